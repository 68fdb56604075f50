//! Launches from Python without Python code on the way: what CPython's launch function is made of.
//!
//! Packing descriptions in Python costs several times what a launch does. [`cutile_kernels_python_launcher`] makes
//! a Python function for one kernel that reads tensors, numbers and the stream itself and calls the kernel's C
//! function. It takes what a hot loop passes: tensors of a library with DLPack's C exchange interface (torch 2.10
//! and newer), numbers, bools, strings, None. For anything else it answers [`DECLINED`] without an error, and the
//! caller packs the call in Python, with messages that say what was wrong with which argument.
//!
//! The library knows nothing of Python when it is built or loaded. The caller hands over the addresses of the
//! functions of CPython's stable interface that are used here ([`Api`]), so any CPython from 3.10 on will do.

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::abi::{Launch, MAX_RANK, Payload, RawValue, TensorDesc, form, kind};
use super::dtype::DType;

/// The answer to a call that has to be packed in Python.
pub const DECLINED: c_long = -1;

const MAX_ARGUMENTS: usize = 64;
const CUDA: [i32; 2] = [2, 13]; // kDLCUDA, kDLCUDAManaged
const FASTCALL: c_int = 0x80;

/// A Python object.
#[repr(C)]
pub struct Object {
    _opaque: [u8; 0],
}

type Py = *mut Object;
type KernelFn = unsafe extern "C" fn(
    *const TensorDesc,
    usize,
    *const RawValue,
    usize,
    *const RawValue,
    usize,
    *const Launch,
) -> i32;
type FastCall = unsafe extern "C" fn(Py, *const Py, isize) -> Py;

macro_rules! api {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)* @objects $($object:ident;)*) => {
        /// Functions of CPython's stable interface, then objects, in the order in which their addresses are passed.
        #[allow(non_snake_case, missing_docs)]
        #[derive(Clone, Copy)]
        pub struct Api {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            $($object: Py,)*
        }

        impl Api {
            /// The names of the functions and objects, in order, separated by spaces.
            const NAMES: &'static CStr = match CStr::from_bytes_with_nul(
                concat!($(stringify!($name), " ",)* $(stringify!($object), " ",)* "\0").as_bytes()
            ) {
                Ok(names) => names,
                Err(_) => panic!("a name with a zero in it"),
            };

            /// # Safety
            ///
            /// The addresses are those of the functions and objects with these names.
            unsafe fn new(addresses: &[usize]) -> Option<Self> {
                if addresses.contains(&0) {
                    return None;
                }
                let mut addresses = addresses.iter().copied();
                let api = Self {
                    // SAFETY: the caller's promise.
                    $($name: unsafe {
                        std::mem::transmute::<usize, unsafe extern "C" fn($($argument),*) $(-> $result)?>(addresses.next()?)
                    },)*
                    $($object: addresses.next()? as Py,)*
                };
                addresses.next().is_none().then_some(api)
            }
        }
    };
}

api! {
    PyCapsule_New: fn(*mut c_void, *const c_char, Option<unsafe extern "C" fn(Py)>) -> Py;
    PyCapsule_GetPointer: fn(Py, *const c_char) -> *mut c_void;
    PyCFunction_NewEx: fn(*const MethodDef, Py, Py) -> Py;
    PyErr_Clear: fn();
    PyErr_Occurred: fn() -> Py;
    PyEval_RestoreThread: fn(*mut c_void);
    PyEval_SaveThread: fn() -> *mut c_void;
    PyFloat_AsDouble: fn(Py) -> f64;
    PyLong_AsLongLong: fn(Py) -> c_longlong;
    PyLong_FromLong: fn(c_long) -> Py;
    PyObject_GetAttr: fn(Py, Py) -> Py;
    PyObject_Type: fn(Py) -> Py;
    PyTuple_GetItem: fn(Py, isize) -> Py;
    PyTuple_Size: fn(Py) -> isize;
    PyUnicode_AsUTF8AndSize: fn(Py, *mut isize) -> *const c_char;
    PyUnicode_InternFromString: fn(*const c_char) -> Py;
    Py_DecRef: fn(Py);
    @objects
    None; True; bool; float; int; str; tuple;
}

// SAFETY: addresses of functions and of objects that live as long as the interpreter.
unsafe impl Send for Api {}
// SAFETY: as above; the objects are only compared with.
unsafe impl Sync for Api {}

#[repr(C)]
struct MethodDef {
    name: *const c_char,
    function: FastCall,
    flags: c_int,
    doc: *const c_char,
}

// SAFETY: the pointers are to constants.
unsafe impl Sync for MethodDef {}

static METHOD: MethodDef = MethodDef {
    name: c"launch".as_ptr(),
    function: launch,
    flags: FASTCALL,
    doc: c"launch(stream, grid, args, flags): enqueue the kernel; 0 when it is, a status, or -1 for none of both"
        .as_ptr(),
};

/// What is known of a kernel before it is launched.
struct Launcher {
    api: Api,
    function: KernelFn,
    roles: Box<[u8]>,
    hints: [i32; 4],
    /// The device that the hints were resolved for; -1: they are the same on all.
    device: i32,
    stream_attribute: Py,
}

const CAPSULE: &CStr = c"cutile_kernels.launcher";

/// The functions and objects of CPython whose addresses [`cutile_kernels_python_launcher`] takes, in order.
#[unsafe(no_mangle)]
pub extern "C" fn cutile_kernels_python_names() -> *const c_char {
    Api::NAMES.as_ptr()
}

/// Makes a Python function `launch(stream, grid, args, flags) -> int` for a kernel; null when it can't be made, with
/// Python's error set if it was Python's.
///
/// `function` is the kernel's C function. `roles` has a character for each parameter: `a` an array, `s` a scalar,
/// `c` a constant. `hints` are occupancy, num_ctas, num_worker_warps and opt_level_plus_one as in [`Launch`],
/// for `device` (-1 where they are the same for all).
///
/// # Safety
///
/// The interpreter's lock is held, the addresses are those of [`cutile_kernels_python_names`], the other pointers are
/// to a kernel's function, a text with a terminating zero, and four integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutile_kernels_python_launcher(
    addresses: *const usize,
    count: usize,
    function: Option<KernelFn>,
    roles: *const c_char,
    hints: *const i32,
    device: i32,
) -> Py {
    let made = std::panic::catch_unwind(|| {
        if addresses.is_null() || roles.is_null() || hints.is_null() {
            return None;
        }
        // SAFETY: the caller's promise.
        let (api, roles, hints) = unsafe {
            let api = Api::new(std::slice::from_raw_parts(addresses, count))?;
            (api, CStr::from_ptr(roles).to_bytes(), hints.cast::<[i32; 4]>().read_unaligned())
        };
        if roles.len() > MAX_ARGUMENTS || !roles.iter().all(|role| b"asc".contains(role)) {
            return None;
        }
        // SAFETY: the interpreter's lock is held; the capsule owns the launcher and gives it back.
        unsafe {
            let stream_attribute = (api.PyUnicode_InternFromString)(c"cuda_stream".as_ptr());
            let launcher = Launcher { api, function: function?, roles: roles.into(), hints, device, stream_attribute };
            let pointer = Box::into_raw(Box::new(launcher));
            let capsule = (api.PyCapsule_New)(pointer.cast(), CAPSULE.as_ptr(), Some(release));
            if capsule.is_null() {
                drop(Box::from_raw(pointer));
                return None;
            }
            API.get_or_init(|| api);
            let made = (api.PyCFunction_NewEx)(&raw const METHOD, capsule, std::ptr::null_mut());
            (api.Py_DecRef)(capsule);
            Some(made)
        }
    });
    made.ok().flatten().unwrap_or(std::ptr::null_mut())
}

static API: OnceLock<Api> = OnceLock::new();

unsafe extern "C" fn release(capsule: Py) {
    if let Some(api) = API.get() {
        // SAFETY: only launchers are in capsules of this name.
        let pointer = unsafe { (api.PyCapsule_GetPointer)(capsule, CAPSULE.as_ptr()) }.cast::<Launcher>();
        if !pointer.is_null() {
            // SAFETY: made by Box::into_raw, and given back once.
            drop(unsafe { Box::from_raw(pointer) });
        }
    }
}

/// The Python function. A status that isn't 0 has its message in `cutile_kernels_last_error`.
unsafe extern "C" fn launch(capsule: Py, args: *const Py, count: isize) -> Py {
    let Some(api) = API.get() else { return std::ptr::null_mut() };
    // SAFETY: Python passes the capsule that the function was made with, and `count` arguments.
    let answer = std::panic::catch_unwind(|| unsafe {
        let launcher = (api.PyCapsule_GetPointer)(capsule, CAPSULE.as_ptr()).cast::<Launcher>();
        match (launcher.as_ref(), count) {
            (Some(launcher), 4) => launcher.launch(std::slice::from_raw_parts(args, 4)),
            _ => None,
        }
    });
    // SAFETY: the interpreter's lock is held.
    unsafe {
        let answer = answer.ok().flatten().map_or(DECLINED, c_long::from);
        if answer == DECLINED {
            (api.PyErr_Clear)();
        }
        (api.PyLong_FromLong)(answer)
    }
}

impl Launcher {
    /// # Safety
    ///
    /// The interpreter's lock is held; the arguments are objects that live until the call returns.
    unsafe fn launch(&self, args: &[Py]) -> Option<i32> {
        let api = &self.api;
        let mut arrays = [const { MaybeUninit::<TensorDesc>::uninit() }; MAX_ARGUMENTS];
        let mut scalars = [const { MaybeUninit::<RawValue>::uninit() }; MAX_ARGUMENTS];
        let mut constants = [const { MaybeUninit::<RawValue>::uninit() }; MAX_ARGUMENTS];
        let (mut n_arrays, mut n_scalars, mut n_constants) = (0, 0, 0);
        let mut device = -1;
        // SAFETY: the caller's promise; tuples keep their items.
        unsafe {
            if api.kind_of(args[2]) != api.tuple || (api.PyTuple_Size)(args[2]) != self.roles.len() as isize {
                return None;
            }
            for (position, role) in self.roles.iter().enumerate() {
                let argument = (api.PyTuple_GetItem)(args[2], position as isize);
                match role {
                    b'a' => {
                        let array = tensor(api, argument)?;
                        if device >= 0 && array.device != device {
                            return None;
                        }
                        device = array.device;
                        arrays[n_arrays].write(array);
                        n_arrays += 1;
                    }
                    b's' => {
                        scalars[n_scalars].write(api.value(argument)?);
                        n_scalars += 1;
                    }
                    _ => {
                        constants[n_constants].write(api.value(argument)?);
                        n_constants += 1;
                    }
                }
            }
            if device < 0 || (self.device >= 0 && self.device != device) {
                return None;
            }
            let [occupancy, num_ctas, num_worker_warps, opt_level_plus_one] = self.hints;
            let launch = Launch {
                size: size_of::<Launch>() as u32,
                flags: u32::try_from(api.integer(args[3])?).ok()?,
                grid: api.grid(args[1])?,
                device,
                occupancy,
                num_ctas,
                num_worker_warps,
                opt_level_plus_one,
                stream: self.stream(args[0])?,
            };
            let thread = (api.PyEval_SaveThread)();
            let status = (self.function)(
                arrays.as_ptr().cast(),
                n_arrays,
                scalars.as_ptr().cast(),
                n_scalars,
                constants.as_ptr().cast(),
                n_constants,
                &raw const launch,
            );
            (api.PyEval_RestoreThread)(thread);
            Some(status)
        }
    }

    /// The handle of a stream: an int, or what a torch stream has.
    ///
    /// # Safety
    ///
    /// As for [`Launcher::launch`].
    unsafe fn stream(&self, stream: Py) -> Option<u64> {
        let api = &self.api;
        // SAFETY: the caller's promise.
        unsafe {
            if api.kind_of(stream) == api.int {
                return u64::try_from(api.integer(stream)?).ok();
            }
            let handle = (api.PyObject_GetAttr)(stream, self.stream_attribute);
            if handle.is_null() {
                return None;
            }
            let value = api.integer(handle);
            (api.Py_DecRef)(handle);
            u64::try_from(value?).ok()
        }
    }
}

impl Api {
    /// The type of an object, as an address to compare with.
    unsafe fn kind_of(&self, object: Py) -> Py {
        // SAFETY: an object's type lives as long as the object.
        unsafe {
            let kind = (self.PyObject_Type)(object);
            (self.Py_DecRef)(kind);
            kind
        }
    }

    unsafe fn integer(&self, object: Py) -> Option<i64> {
        // SAFETY: the caller holds the interpreter's lock and the object.
        unsafe {
            let kind = self.kind_of(object);
            if kind != self.int && kind != self.bool {
                return None;
            }
            let value = (self.PyLong_AsLongLong)(object);
            (value != -1 || (self.PyErr_Occurred)().is_null()).then_some(value)
        }
    }

    unsafe fn value(&self, object: Py) -> Option<RawValue> {
        let raw = |kind, payload| Some(RawValue { kind, reserved: 0, payload });
        // SAFETY: as above; a str keeps its UTF-8.
        unsafe {
            if object == self.None {
                return raw(kind::NONE, Payload { int: 0 });
            }
            let of = self.kind_of(object);
            if of == self.int {
                return raw(kind::INT, Payload { int: self.integer(object)? });
            }
            if of == self.bool {
                return raw(kind::BOOL, Payload { int: i64::from(object == self.True) });
            }
            if of == self.float {
                return raw(kind::FLOAT, Payload { float: (self.PyFloat_AsDouble)(object) });
            }
            if of == self.str {
                let mut length = 0;
                let text = (self.PyUnicode_AsUTF8AndSize)(object, &raw mut length);
                // A zero inside would end the text early.
                if text.is_null() || CStr::from_ptr(text).to_bytes().len() as isize != length {
                    return None;
                }
                return raw(kind::TEXT, Payload { text });
            }
            None
        }
    }

    unsafe fn grid(&self, grid: Py) -> Option<[u32; 3]> {
        let mut out = [1; 3];
        // SAFETY: as above.
        unsafe {
            if self.kind_of(grid) != self.tuple {
                return None;
            }
            let rank = (self.PyTuple_Size)(grid);
            if !(1..=3).contains(&rank) {
                return None;
            }
            for axis in 0..rank {
                out[axis as usize] = u32::try_from(self.integer((self.PyTuple_GetItem)(grid, axis))?).ok()?;
            }
        }
        Some(out)
    }
}

// -- DLPack's C exchange interface --------------------------------------------------------------------

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// `DLPackExchangeAPI` of DLPack 1.2 and later versions 1.
#[repr(C)]
struct Exchange {
    major: u32,
    minor: u32,
    previous: *const Exchange,
    allocate: *const c_void,
    from_object: *const c_void,
    to_object: *const c_void,
    /// Fills a tensor that borrows from the object; may be null.
    borrow: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    current_stream: *const c_void,
}

const EXCHANGE: &CStr = c"dlpack_exchange_api";

/// Types whose interface is known. Types are kept alive, so that an address never comes to mean another type.
struct Known {
    kind: AtomicPtr<Object>,
    exchange: AtomicPtr<Exchange>,
}

static KNOWN: [Known; 8] =
    [const { Known { kind: AtomicPtr::new(std::ptr::null_mut()), exchange: AtomicPtr::new(std::ptr::null_mut()) } }; 8];

unsafe fn exchange_of(api: &Api, object: Py) -> Option<&'static Exchange> {
    // SAFETY: the interpreter's lock is held; the interface lives as long as its type, which a slot keeps.
    unsafe {
        let kind = (api.PyObject_Type)(object);
        for slot in &KNOWN {
            let known = slot.kind.load(Ordering::Acquire);
            if known == kind {
                (api.Py_DecRef)(kind);
                return slot.exchange.load(Ordering::Acquire).as_ref();
            }
            if known.is_null() {
                let found = find_exchange(api, kind)?;
                slot.exchange.store(found, Ordering::Release);
                slot.kind.store(kind, Ordering::Release); // the reference stays with the slot
                return found.as_ref();
            }
        }
        (api.Py_DecRef)(kind);
        None
    }
}

/// The interface of a type, or null where it has none that is known here. Takes no reference; null is remembered too.
unsafe fn find_exchange(api: &Api, kind: Py) -> Option<*mut Exchange> {
    // SAFETY: as for [`exchange_of`].
    unsafe {
        let name = (api.PyUnicode_InternFromString)(c"__dlpack_c_exchange_api__".as_ptr());
        let capsule = (api.PyObject_GetAttr)(kind, name);
        (api.Py_DecRef)(name);
        if capsule.is_null() {
            (api.PyErr_Clear)();
            return Some(std::ptr::null_mut());
        }
        let found = (api.PyCapsule_GetPointer)(capsule, EXCHANGE.as_ptr()).cast::<Exchange>();
        (api.Py_DecRef)(capsule);
        (api.PyErr_Clear)();
        let usable = found.as_ref().is_some_and(|exchange| exchange.major == 1 && exchange.borrow.is_some());
        Some(if usable { found } else { std::ptr::null_mut() })
    }
}

/// Describes a tensor on a GPU; `None` for anything else.
unsafe fn tensor(api: &Api, object: Py) -> Option<TensorDesc> {
    // SAFETY: the interface fills the tensor with pointers into the object, which the caller keeps.
    unsafe {
        let borrow = exchange_of(api, object)?.borrow?;
        let mut tensor = MaybeUninit::<Tensor>::zeroed();
        if borrow(object.cast(), tensor.as_mut_ptr()) != 0 {
            return None;
        }
        let tensor = tensor.assume_init();
        let rank = usize::try_from(tensor.ndim).ok().filter(|rank| *rank <= MAX_RANK)?;
        if !CUDA.contains(&tensor.device_type) || (rank > 0 && (tensor.shape.is_null() || tensor.strides.is_null())) {
            return None;
        }
        let dtype = DType::from_dlpack(tensor.code, tensor.bits, tensor.lanes)?;
        let (mut shape, mut strides) = ([0; MAX_RANK], [0; MAX_RANK]);
        for axis in 0..rank {
            (shape[axis], strides[axis]) = (*tensor.shape.add(axis), *tensor.strides.add(axis));
        }
        Some(TensorDesc {
            data: tensor.data as u64 + tensor.byte_offset,
            shape,
            strides,
            ndim: tensor.ndim,
            dtype: dtype as i32,
            device: tensor.device,
            form: form::ARRAY,
        })
    }
}
