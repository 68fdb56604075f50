//! DLPack's C exchange interface: tensors of Python described without a call of Python.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::abi::{MAX_RANK, TensorDesc, form};
use super::dtype::DType;
use super::python::{Api, Object, Py};

const CUDA: [i32; 2] = [2, 13]; // kDLCUDA, kDLCUDAManaged

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
///
/// # Safety
///
/// The interpreter's lock is held, and the object lives until the call has returned.
pub(super) unsafe fn tensor(api: &Api, object: Py) -> Option<TensorDesc> {
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
