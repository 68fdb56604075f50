"""Arrays of any library, described by address, shape, strides, element type and device."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from .dtypes import BY_DLPACK, BY_NAME, BY_TYPESTR, NAMES, SIZES
from .errors import ArgumentError, DeviceError, DTypeError, LayoutError

_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_DEVICE_NAMES = {1: "the CPU", 3: "the CPU", 8: "a Metal device", 10: "a ROCm device", 14: "a oneAPI device"}


class Description(NamedTuple):
    """An array in device memory; shape and strides count elements. ``device`` is -1 where the array doesn't say."""

    data: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: int
    device: int

    @property
    def dtype_name(self) -> str:
        """The element type's name in cuda.tile."""
        return NAMES[self.dtype]


def describe(array: Any, name: str = "array", stream: int = 0) -> Description:
    """Describe a torch tensor, or anything with ``__cuda_array_interface__`` or DLPack.

    Raises DeviceError for an array that isn't on a GPU, ArgumentError for what is no array.
    """
    if hasattr(array, "data_ptr") and hasattr(array, "get_device"):
        return _from_torch(array, name)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_interface(array, interface, name)
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        return _from_dlpack(array, name, stream)
    what = type(array).__name__
    if hasattr(array, "__array_interface__"):
        raise _not_on_gpu(name, what, 1)
    raise ArgumentError(
        f"`{name}` has to be an array on the GPU (a torch tensor, or anything with __cuda_array_interface__ or "
        f"DLPack), not {what}"
    )


def _not_on_gpu(name: str, what: str, device_type: int) -> DeviceError:
    place = _DEVICE_NAMES.get(device_type, f"a device of type {device_type}")
    return DeviceError(f"array `{name}` ({what}) is in the memory of {place}; kernels work on arrays on the GPU")


def _from_torch(tensor: Any, name: str) -> Description:
    device: int = tensor.get_device()
    if device < 0:
        raise _not_on_gpu(name, "tensor", 1)
    return Description(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), _named(tensor.dtype, name), device)


_KNOWN: dict[Any, int] = {}


def _named(dtype: Any, name: str) -> int:
    """Look an element type up by its name, once for each type object."""
    code = _KNOWN.get(dtype)
    if code is None:
        text = str(dtype).rpartition(".")[2]
        code = BY_NAME.get(text)
        if code is None:
            raise _unknown_dtype(name, text)
        _KNOWN[dtype] = code
    return code


def _unknown_dtype(name: str, text: str) -> DTypeError:
    return DTypeError(f"array `{name}` has elements of type {text}, which kernels don't know")


# -- __cuda_array_interface__ -------------------------------------------------------------------------


def _from_interface(array: Any, interface: dict[str, Any], name: str) -> Description:
    typestr = str(interface["typestr"])
    code = BY_TYPESTR.get(typestr.lstrip("<|="))
    if code is None:  # bfloat16 and the like have no type string
        code = BY_NAME.get(str(getattr(array, "dtype", "")))
    if code is None:
        raise _unknown_dtype(name, typestr)
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    elements = row_major(shape) if strides is None else tuple(_elements(s, SIZES[code], name) for s in strides)
    return Description(int(interface["data"][0] or 0), shape, elements, code, _device_of(array))


def _elements(stride: int, size: int, name: str) -> int:
    if stride % size:
        raise LayoutError(f"array `{name}` has a stride of {stride} bytes: no whole number of elements of {size} bytes")
    return int(stride) // size


def _device_of(array: Any) -> int:
    """Return the ordinal that an array with the interface says by other means; the interface has no place for it."""
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[1])
    device = getattr(array, "device", None)
    for attribute in ("id", "index"):
        ordinal = getattr(device, attribute, None)
        if isinstance(ordinal, int):
            return ordinal
    return -1


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous array."""
    strides: list[int] = []
    size = 1
    for extent in reversed(shape):
        strides.append(size)
        size *= max(extent, 1)
    return tuple(reversed(strides))


# -- DLPack -------------------------------------------------------------------------------------------


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


def _from_dlpack(array: Any, name: str, stream: int) -> Description:
    device_type, device = array.__dlpack_device__()
    if int(device_type) not in _CUDA:
        raise _not_on_gpu(name, type(array).__name__, int(device_type))
    # The capsule is only looked at: left unused, it gives the array back when it goes.  0 has no meaning as a
    # stream here, 1 is the default stream.
    capsule = array.__dlpack__(stream=stream if stream > 2 else 1)
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    code = BY_DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if code is None:
        raise _unknown_dtype(name, f"({tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes) in DLPack")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else row_major(shape)
    return Description((tensor.data or 0) + tensor.byte_offset, shape, strides, code, int(device))
