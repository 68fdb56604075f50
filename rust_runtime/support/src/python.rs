//! Launches from Python without Python code on the way: what CPython's launch function is made of.
//!
//! Packing descriptions in Python costs several times what a launch does. [`cutile_kernels_python_launcher`] makes
//! a Python function for one kernel that reads tensors, numbers and the stream itself and calls the kernel's C
//! function. It takes what a hot loop passes: tensors of a library with DLPack's C exchange interface (torch 2.10
//! and newer), lists and tuples of them, numbers, bools, strings, None. For anything else it answers [`DECLINED`] without an error, and the
//! caller packs the call in Python, with messages that say what was wrong with which argument.
//!
//! The library knows nothing of Python when it is built or loaded. The caller hands over the addresses of the
//! functions of CPython's stable interface that are used here ([`Api`]), so any CPython from 3.10 on will do.

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::abi::{Launch, MAX_RANK, Payload, RawValue, TensorDesc, form, kind};
use super::exchange::tensor;

/// The answer to a call that has to be packed in Python.
pub const DECLINED: c_long = -1;

const MAX_ARGUMENTS: usize = 64;
const FASTCALL: c_int = 0x80;

/// A Python object.
#[repr(C)]
pub struct Object {
    _opaque: [u8; 0],
}

pub(super) type Py = *mut Object;
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
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            $(pub(super) $object: Py,)*
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
    PyList_GetItem: fn(Py, isize) -> Py;
    PyList_Size: fn(Py) -> isize;
    PyLong_FromLong: fn(c_long) -> Py;
    PyObject_GetAttr: fn(Py, Py) -> Py;
    PyObject_Type: fn(Py) -> Py;
    PyTuple_GetItem: fn(Py, isize) -> Py;
    PyTuple_Size: fn(Py) -> isize;
    PyUnicode_AsUTF8AndSize: fn(Py, *mut isize) -> *const c_char;
    PyUnicode_InternFromString: fn(*const c_char) -> Py;
    Py_DecRef: fn(Py);
    Py_IncRef: fn(Py);
    @objects
    None; True; bool; float; int; list; str; tuple;
}

// SAFETY: addresses of functions and of objects that live as long as the interpreter.
unsafe impl Send for Api {}
// SAFETY: as above; the objects are only compared with.
unsafe impl Sync for Api {}

#[repr(C)]
pub(super) struct MethodDef {
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
/// `function` is the kernel's C function. `roles` has a character for each parameter: `a` an array, `l` a list of
/// arrays, `s` a scalar, `c` a constant. `hints` are occupancy, num_ctas, num_worker_warps and opt_level_plus_one as in [`Launch`],
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
        if roles.len() > MAX_ARGUMENTS || !roles.iter().all(|role| b"alsc".contains(role)) {
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

/// The arguments of one call as they are read, each kind in the order of the parameters.
struct Arguments {
    arrays: [MaybeUninit<TensorDesc>; MAX_ARGUMENTS],
    scalars: [MaybeUninit<RawValue>; MAX_ARGUMENTS],
    constants: [MaybeUninit<RawValue>; MAX_ARGUMENTS],
    n_arrays: usize,
    n_scalars: usize,
    n_constants: usize,
    /// The arrays of all lists, one list after the other.
    items: Vec<TensorDesc>,
    /// For each list: which of `arrays` stands for it, and how many of `items` are its own.
    lists: Vec<(usize, usize)>,
    /// The device of all arrays; -1 before the first.
    device: i32,
}

impl Arguments {
    const fn new() -> Self {
        Self {
            arrays: [const { MaybeUninit::uninit() }; MAX_ARGUMENTS],
            scalars: [const { MaybeUninit::uninit() }; MAX_ARGUMENTS],
            constants: [const { MaybeUninit::uninit() }; MAX_ARGUMENTS],
            n_arrays: 0,
            n_scalars: 0,
            n_constants: 0,
            items: Vec::new(),
            lists: Vec::new(),
            device: -1,
        }
    }

    /// Reads the argument of a parameter with this role; `None`: it is left to Python.
    ///
    /// # Safety
    ///
    /// The interpreter's lock is held, and the object lives until the call has returned. There are no more than
    /// `MAX_ARGUMENTS` arguments.
    unsafe fn argument(&mut self, api: &Api, role: u8, argument: Py) -> Option<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match role {
                b'a' => {
                    let array = tensor(api, argument)?;
                    self.on_device(&array)?;
                    self.arrays[self.n_arrays].write(array);
                    self.n_arrays += 1;
                }
                b'l' => {
                    let before = self.items.len();
                    self.list(api, argument)?;
                    self.lists.push((self.n_arrays, self.items.len() - before));
                    self.n_arrays += 1;
                }
                b's' => {
                    self.scalars[self.n_scalars].write(api.value(argument)?);
                    self.n_scalars += 1;
                }
                _ => {
                    self.constants[self.n_constants].write(api.value(argument)?);
                    self.n_constants += 1;
                }
            }
        }
        Some(())
    }

    /// Reads the arrays of a list or tuple that isn't empty.
    ///
    /// # Safety
    ///
    /// As for [`Arguments::argument`].
    unsafe fn list(&mut self, api: &Api, list: Py) -> Option<()> {
        // SAFETY: the caller's promise. An interface that is written in Python may let other threads run, which may
        // change the list: its length is asked for each time, and an item is held while it is read.
        unsafe {
            let kind = api.kind_of(list);
            let (size, item) = match kind {
                _ if kind == api.list => (api.PyList_Size, api.PyList_GetItem),
                _ if kind == api.tuple => (api.PyTuple_Size, api.PyTuple_GetItem),
                _ => return None,
            };
            let length = size(list);
            if length < 1 {
                return None;
            }
            self.items.reserve(length as usize);
            for position in 0..length {
                let object = item(list, position);
                if object.is_null() {
                    return None;
                }
                (api.Py_IncRef)(object);
                let read = tensor(api, object);
                (api.Py_DecRef)(object);
                let array = read?;
                self.on_device(&array)?;
                self.items.push(array);
            }
        }
        Some(())
    }

    /// Whether an array is on the device of those before it.
    fn on_device(&mut self, array: &TensorDesc) -> Option<()> {
        if self.device >= 0 && array.device != self.device {
            return None;
        }
        self.device = array.device;
        Some(())
    }

    /// Describes the lists, once `items` doesn't move any more.
    fn point_to_items(&mut self) {
        let mut first = 0;
        for &(index, length) in &self.lists {
            let mut shape = [0; MAX_RANK];
            shape[0] = length as i64;
            self.arrays[index].write(TensorDesc {
                data: self.items[first..].as_ptr() as u64,
                shape,
                strides: [0; MAX_RANK],
                ndim: 0,
                dtype: 0,
                device: -1,
                form: form::LIST,
            });
            first += length;
        }
    }
}

impl Launcher {
    /// # Safety
    ///
    /// The interpreter's lock is held; the arguments are objects that live until the call returns.
    unsafe fn launch(&self, args: &[Py]) -> Option<i32> {
        let api = &self.api;
        let mut read = Arguments::new();
        // SAFETY: the caller's promise; tuples keep their items.
        unsafe {
            if api.kind_of(args[2]) != api.tuple || (api.PyTuple_Size)(args[2]) != self.roles.len() as isize {
                return None;
            }
            for (position, role) in self.roles.iter().enumerate() {
                read.argument(api, *role, (api.PyTuple_GetItem)(args[2], position as isize))?;
            }
            read.point_to_items();
            let device = read.device;
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
                read.arrays.as_ptr().cast(),
                read.n_arrays,
                read.scalars.as_ptr().cast(),
                read.n_scalars,
                read.constants.as_ptr().cast(),
                read.n_constants,
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
