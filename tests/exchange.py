"""A stand-in for torch's tensors: a type with DLPack's C exchange interface, whose arrays are on no device."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

_CODES = {"float16": (2, 16), "bfloat16": (4, 16), "float32": (2, 32), "int32": (0, 32), "bool": (6, 8)}


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


_BORROW = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_DLTensor))


class _Exchange(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p), ("from_object", ctypes.c_void_p), ("to_object", ctypes.c_void_p),
        ("borrow", _BORROW), ("current_stream", ctypes.c_void_p),
    )  # fmt: skip


def _borrow(tensor: Any, out: Any) -> int:
    out[0] = tensor.described
    return 0


_FUNCTION = _BORROW(_borrow)
_TABLE = _Exchange(1, 2, None, None, None, None, _FUNCTION, None)
_NAME = b"dlpack_exchange_api"
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class ExchangeTensor:
    """An array for launches that read it through the C interface; it has what the slow way asks for, too."""

    __dlpack_c_exchange_api__: ClassVar[Any] = _new(ctypes.addressof(_TABLE), _NAME, None)

    def __init__(
        self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str = "float32", *,
        address: int = 0x7F00_0000_0000, device: int = 0, device_type: int = 2,
    ) -> None:  # fmt: skip
        code, bits = _CODES[dtype]
        self._sizes = ((ctypes.c_int64 * len(shape))(*shape), (ctypes.c_int64 * len(shape))(*strides))
        self.described = _DLTensor(address, device_type, device, len(shape), code, bits, 1, *self._sizes, 0)
        self.shape, self.dtype = shape, f"torch.{dtype}"
        self._strides, self._address, self._device = strides, address, device if device_type == 2 else -1

    def data_ptr(self) -> int:
        return self._address

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def get_device(self) -> int:
        return self._device
