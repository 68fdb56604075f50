//! A kernel's table and calls of it, without a device: the checks, the choice, the facts.

use std::ffi::CString;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::abi::{Launch, MAX_RANK, Payload, RawValue, TensorDesc, form, kind};
use super::call::Call;
use super::choose::{Argument, Chosen, choose, dtype, extent, facts_decide, flag, size};
use super::dispatch::Backend;
use super::dtype::DType;
use super::facts::array_facts;
use super::plan::describe;
use super::py;
use super::signature::signature;
use super::status::{Failure, Status};
use super::table::{Element, Entry, Extent, Generic, Kernel, Param};

const GENERIC: &[DType] = &[DType::F16, DType::BF16, DType::F32];

/// Two entries: `narrow` where BLOCK is 1 or the first extent of x is compiled in, `wide` for all other calls.
static KERNEL: Kernel = Kernel {
    name: "_scale",
    arrays: &["x", "index"],
    scalars: &["factor"],
    constants: &["BLOCK", "MODE"],
    opt_levels: &[],
    entries: &[
        Entry {
            name: "narrow",
            when: "BLOCK == 1",
            applies: |call| {
                py::holds(py::eq(call.constant(0), 1)) || (py::same(call.dim(0, 0), 1) && py::fails(call.constant(1)))
            },
            generics: &[
                Generic::Type("E", GENERIC, |call| dtype(call.dtype(0))),
                Generic::Size("X_D0", |call| extent(call.dim(0, 0))),
            ],
            params: &[
                Param::Array {
                    name: "x",
                    index: 0,
                    element: Element::Generic(0),
                    extents: &[Extent::Generic(1), Extent::Dynamic],
                    viewed: true,
                    dynamic_strides: &[],
                },
                Param::Array {
                    name: "index",
                    index: 1,
                    element: Element::Fixed(DType::I32),
                    extents: &[Extent::Dynamic],
                    viewed: false,
                    dynamic_strides: &[],
                },
                Param::Scalar { name: "factor", index: 0, dtype: DType::F32 },
            ],
        },
        Entry {
            name: "wide",
            when: "not MODE",
            applies: |call| py::fails(py::eq(call.constant(1), "slow")),
            generics: &[
                Generic::Type("E", GENERIC, |call| dtype(call.dtype(0))),
                Generic::Size("HALF", |call| size(py::floordiv(call.constant(0), 2))),
                Generic::Flag("FAST", |call| flag(py::ne(call.constant(1), 0))),
            ],
            params: &[
                Param::Array {
                    name: "x",
                    index: 0,
                    element: Element::Generic(0),
                    extents: &[Extent::Dynamic, Extent::Dynamic],
                    viewed: true,
                    dynamic_strides: &[0],
                },
                Param::Array {
                    name: "index",
                    index: 1,
                    element: Element::Fixed(DType::I32),
                    extents: &[Extent::Dynamic],
                    viewed: false,
                    dynamic_strides: &[],
                },
                Param::Scalar { name: "factor", index: 0, dtype: DType::F32 },
            ],
        },
    ],
};

fn array(dtype: DType, shape: &[i64], strides: &[i64]) -> TensorDesc {
    let fill = |sizes: &[i64]| std::array::from_fn(|axis| sizes.get(axis).copied().unwrap_or(0));
    let (shape_, strides_): ([i64; MAX_RANK], [i64; MAX_RANK]) = (fill(shape), fill(strides));
    TensorDesc {
        data: 0x1000,
        shape: shape_,
        strides: strides_,
        ndim: shape.len() as i32,
        dtype: dtype as i32,
        device: 0,
        form: form::ARRAY,
    }
}

fn int(value: i64) -> RawValue {
    RawValue { kind: kind::INT, reserved: 0, payload: Payload { int: value } }
}

fn float(value: f64) -> RawValue {
    RawValue { kind: kind::FLOAT, reserved: 0, payload: Payload { float: value } }
}

struct Arguments {
    arrays: Vec<TensorDesc>,
    scalars: Vec<RawValue>,
    constants: Vec<RawValue>,
    launch: Launch,
}

fn arguments() -> Arguments {
    Arguments {
        arrays: vec![array(DType::F16, &[32, 5], &[8, 1]), array(DType::I32, &[32], &[1])],
        scalars: vec![float(2.0)],
        constants: vec![int(64), int(0)],
        launch: Launch {
            size: size_of::<Launch>() as u32,
            flags: 0,
            grid: [4, 1, 1],
            device: 0,
            occupancy: 0,
            num_ctas: 0,
            num_worker_warps: 0,
            opt_level_plus_one: 0,
            stream: 0,
        },
    }
}

impl Arguments {
    fn call(&self) -> Result<Call<'_>, Failure> {
        let raw = |values: &Vec<RawValue>| (values.as_ptr(), values.len());
        let arrays = (self.arrays.as_ptr(), self.arrays.len());
        // SAFETY: the pointers are to the vectors, which outlive the call.
        unsafe { Call::read(&KERNEL, arrays, raw(&self.scalars), raw(&self.constants), &self.launch) }
    }

    fn chosen(&self) -> Result<Chosen, Failure> {
        choose(&self.call()?)
    }

    fn failure(&self) -> (Status, String) {
        let failure = self.chosen().unwrap_err();
        (failure.status, failure.message)
    }
}

fn failing(change: impl FnOnce(&mut Arguments)) -> (Status, String) {
    let mut arguments = arguments();
    change(&mut arguments);
    arguments.failure()
}

#[test]
fn the_first_entry_that_applies_is_taken() {
    let mut arguments = arguments();
    assert_eq!(arguments.chosen().unwrap().entry.name, "wide");
    arguments.constants[0] = int(1);
    assert_eq!(arguments.chosen().unwrap().entry.name, "narrow");
    arguments.constants[0] = int(64);
    arguments.arrays[0].shape[0] = 1;
    let chosen = arguments.chosen().unwrap();
    assert_eq!(chosen.entry.name, "narrow");
    assert_eq!(chosen.generics, [Argument::Type(DType::F16), Argument::Size(1)]);
}

#[test]
fn generics_are_computed() {
    let chosen = arguments().chosen().unwrap();
    let texts: Vec<_> = chosen.generics.iter().map(|value| value.text()).collect();
    assert_eq!(texts, ["f16", "32", "false"]);
}

#[test]
fn a_plan_states_the_facts_of_the_reference() {
    let arguments = arguments();
    let call = arguments.call().unwrap();
    let chosen = choose(&call).unwrap();
    assert_eq!(
        describe(&call, &chosen),
        "{\"entry\": \"wide\", \"generics\": [\"f16\", \"32\", \"false\"], \
         \"strides\": [[\"x\", [-1, 1]], [\"index\", [1]]], \
         \"specs\": [[\"x\", [16, 1], [8, 1], 16], [\"index\", [16], [1], 16]], \"scalar_hints\": [], \
         \"occupancy\": null, \"num_ctas\": null, \"num_worker_warps\": null}"
    );
}

#[test]
fn a_stride_that_the_text_reads_is_not_compiled_in() {
    let mut arguments = arguments();
    arguments.arrays[0] = array(DType::F16, &[32, 5], &[1, 1]);
    let strides = |arguments: &Arguments| {
        let call = arguments.call().unwrap();
        let chosen = choose(&call).unwrap();
        let facts = chosen.entry.params.iter().find_map(|param| array_facts(&call, param, &chosen.generics));
        (chosen.entry.name, facts.unwrap().1.strides)
    };
    assert_eq!(strides(&arguments), ("wide", vec![-1, 1]));
    arguments.constants[0] = int(1);
    assert_eq!(strides(&arguments), ("narrow", vec![1, 1]));
}

#[test]
fn null_pointers_and_counts() {
    let good = arguments();
    let none = (std::ptr::null(), 0);
    let values = (good.constants.as_ptr(), 2);
    let scalars = (good.scalars.as_ptr(), 1);
    let arrays = (good.arrays.as_ptr(), 2);
    // SAFETY: the pointers are null or to vectors that outlive the calls.
    let read = |arrays, scalars, values, launch| unsafe {
        Call::read(&KERNEL, arrays, scalars, values, launch).err().unwrap().status
    };
    assert_eq!(read(arrays, scalars, values, std::ptr::null()), Status::NullPointer);
    assert_eq!(read((std::ptr::null(), 2), scalars, values, &good.launch), Status::NullPointer);
    assert_eq!(read(none, scalars, values, &good.launch), Status::ArgumentCount);
    assert_eq!(read(arrays, (std::ptr::null(), 0), values, &good.launch), Status::ArgumentCount);
    assert_eq!(read(arrays, scalars, (values.0, 1), &good.launch), Status::ArgumentCount);
    assert_eq!(failing(|a| a.launch.size = 40).0, Status::AbiMismatch);
    assert_eq!(failing(|a| a.arrays[1].data = 0).0, Status::NullPointer);
}

#[test]
fn arrays_are_checked() {
    let (status, message) = failing(|a| a.arrays[0].ndim = 9);
    assert_eq!((status, message.as_str()), (Status::Rank, "array `x` has rank 9"));
    assert_eq!(failing(|a| a.arrays[0].ndim = -1).0, Status::Rank);
    assert_eq!(failing(|a| a.arrays[0].dtype = 99).0, Status::Dtype);
    assert_eq!(failing(|a| a.arrays[0].shape[1] = -5).0, Status::Shape);
    assert_eq!(failing(|a| a.arrays[0].strides[0] = -8).0, Status::Stride);
    let (status, message) = failing(|a| a.arrays[0].shape[0] = 1 << 31);
    assert_eq!(status, Status::IndexOverflow);
    assert_eq!(message, "array `x` has extent 2147483648 and stride 8 along axis 0: more than 32 bits hold");
    assert_eq!(failing(|a| a.arrays[1].device = 1).0, Status::Device);
}

#[test]
fn an_empty_array_may_be_at_null_and_a_device_may_be_unknown() {
    let mut arguments = arguments();
    arguments.arrays[1] = TensorDesc { data: 0, device: -1, ..array(DType::I32, &[0], &[1]) };
    assert!(arguments.chosen().is_ok());
}

#[test]
fn types_and_ranks_that_no_entry_takes() {
    let (status, message) = failing(|a| a.arrays[0] = array(DType::F16, &[32], &[1]));
    assert_eq!(status, Status::Rank);
    assert_eq!(message, "`_scale`: array `x` has rank 1, and was translated for rank 2");
    let (status, message) = failing(|a| a.arrays[1].dtype = DType::I64 as i32);
    assert_eq!(status, Status::Dtype);
    assert_eq!(message, "`_scale`: array `index` has elements of type int64, and was translated for int32");
    let (status, message) = failing(|a| a.arrays[0].dtype = DType::F64 as i32);
    assert_eq!(status, Status::Dtype);
    assert_eq!(
        message,
        "`_scale`: array `x` has elements of type float64, and was translated for float16, bfloat16, float32"
    );
    let (status, message) = failing(|a| a.scalars[0] = int(2));
    assert_eq!(status, Status::Value);
    assert_eq!(message, "`_scale`: scalar `factor` is int32, and was translated for float32");
}

#[test]
fn constants_that_no_entry_takes() {
    let text = CString::new("slow").unwrap();
    let slow = RawValue { kind: kind::TEXT, reserved: 0, payload: Payload { text: text.as_ptr() } };
    let (status, message) = failing(|a| a.constants[1] = slow);
    assert_eq!(status, Status::NoEntry);
    let expected = "`_scale` was not translated for BLOCK=64, MODE=\"slow\"; there is narrow where BLOCK == 1, \
                    wide where not MODE";
    assert_eq!(message, expected);
    assert_eq!(failing(|a| a.constants[0] = int(1 << 40)).0, Status::NoEntry);
    assert_eq!(failing(|a| a.constants[0].kind = 17).0, Status::Value);
}

#[test]
fn grids_and_hints() {
    assert_eq!(failing(|a| a.launch.grid = [0, 1, 1]).0, Status::Grid);
    assert_eq!(failing(|a| a.launch.grid = [1, 65536, 1]).0, Status::Grid);
    assert_eq!(failing(|a| a.launch.device = -1).0, Status::Device);
    for change in [
        |launch: &mut Launch| launch.occupancy = 33,
        |launch: &mut Launch| launch.num_ctas = 3,
        |launch: &mut Launch| launch.num_worker_warps = -4,
        |launch: &mut Launch| launch.opt_level_plus_one = 5,
        |launch: &mut Launch| launch.flags = 8,
    ] {
        assert_eq!(failing(|a| change(&mut a.launch)).0, Status::Hint);
    }
}

fn shape(sizes: [i64; 2]) -> [i64; MAX_RANK] {
    std::array::from_fn(|axis| sizes.get(axis).copied().unwrap_or(0))
}

#[test]
fn a_signature_holds_what_decides_and_nothing_else() {
    let of = |change: &dyn Fn(&mut Arguments)| {
        let mut arguments = arguments();
        change(&mut arguments);
        signature(&arguments.call().unwrap())
    };
    let same: [&dyn Fn(&mut Arguments); 4] =
        [&|a| a.arrays[0].shape[0] = 48, &|a| a.arrays[0].data = 0x2000, &|a| a.scalars[0] = float(-1.0), &|a| {
            (a.launch.grid, a.launch.stream) = ([7, 7, 7], 9)
        }];
    assert!(same.iter().all(|change| of(*change) == of(&|_| ())));
    let other: [&dyn Fn(&mut Arguments); 11] = [
        &|a| (a.arrays[0].shape, a.arrays[0].strides) = (shape([32, 9]), shape([8, 1])),
        &|a| a.arrays[0].shape[0] = 31,
        &|a| a.arrays[0].shape[1] = 1,
        &|a| a.arrays[0].strides[0] = 9,
        &|a| a.arrays[0].data = 0x2008,
        &|a| a.arrays[0].dtype = DType::BF16 as i32,
        &|a| a.scalars[0] = int(2),
        &|a| a.constants[0] = int(65),
        &|a| a.constants[1] = float(0.0),
        &|a| a.launch.num_ctas = 2,
        &|a| (a.launch.device, a.arrays[0].device, a.arrays[1].device) = (1, 1, 1),
    ];
    let mut all: Vec<_> = other.iter().map(|change| of(*change)).collect();
    all.push(of(&|_| ()));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 12);
}

#[test]
fn texts_are_part_of_a_signature() {
    let of = |text: &CString| {
        let mut arguments = arguments();
        arguments.constants[1] = RawValue { kind: kind::TEXT, reserved: 0, payload: Payload { text: text.as_ptr() } };
        signature(&arguments.call().unwrap())
    };
    let texts = ["slow", "slowest", "a text of more than eight", "a text of more than nine."];
    let found: Vec<_> = texts.iter().map(|text| of(&CString::new(*text).unwrap())).collect();
    assert!((1..found.len()).all(|index| !found[..index].contains(&found[index])));
    assert_eq!(found[0], of(&CString::new("slow").unwrap()));
}

/// Counts how often an entry is chosen, and remembers signatures.
struct Recorder {
    known: Mutex<Vec<Vec<u64>>>,
    again: AtomicUsize,
}

impl Backend for Recorder {
    fn run_again(&self, _: &Call<'_>, signature: &[u64]) -> Option<Result<(), Failure>> {
        self.known.lock().unwrap().iter().any(|known| known == signature).then(|| {
            self.again.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    }

    fn run(&self, _: &Call<'_>, _: Chosen, signature: Vec<u64>) -> Result<(), Failure> {
        self.known.lock().unwrap().push(signature);
        Ok(())
    }
}

#[test]
fn the_facts_of_lists_are_remembered() {
    static RECORDER: Recorder = Recorder { known: Mutex::new(Vec::new()), again: AtomicUsize::new(0) };
    static LISTS: Kernel = Kernel {
        name: "_lists",
        arrays: &["xs"],
        scalars: &[],
        constants: &[],
        opt_levels: &[],
        entries: &[Entry {
            name: "all",
            when: "True",
            applies: |_| true,
            generics: &[],
            params: &[Param::List { name: "xs", index: 0, element: Element::Fixed(DType::F16), rank: 2 }],
        }],
    };
    let launched = |items: &[TensorDesc]| {
        let list = TensorDesc { data: items.as_ptr() as u64, form: form::LIST, ..array(DType::F16, &[], &[]) };
        let list = TensorDesc { shape: shape([items.len() as i64, 0]), ..list };
        let (launch, none) = (arguments().launch, std::ptr::null());
        // SAFETY: the pointers are to values that outlive the call.
        let status = unsafe { super::launch(&LISTS, &RECORDER, &raw const list, 1, none, 0, none, 0, &launch) };
        assert_eq!(status, 0);
        (RECORDER.known.lock().unwrap().len(), RECORDER.again.load(Ordering::Relaxed))
    };
    let of = |rows: i64| array(DType::F16, &[rows, 5], &[8, 1]);
    assert_eq!(launched(&[of(16), of(32)]), (1, 0));
    assert_eq!(launched(&[of(48), of(64), of(16)]), (1, 1)); // other arrays and more of them, the same facts
    assert_eq!(launched(&[of(48), of(17)]), (2, 1));
    assert_eq!(launched(&[of(5)]), (2, 2));
}

#[test]
fn facts_decide_unless_a_type_fixes_another_extent() {
    let arguments = arguments();
    assert!(facts_decide(&arguments.call().unwrap()));
}
