"""A kernel's launch as one function of the library, with no Python code on the way to the driver.

The library reads tensors, numbers and the stream itself (rust_runtime/support/src/python.rs). It works on the
functions of CPython's stable interface whose addresses it is given here, and knows nothing of Python otherwise.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

Launch = Callable[[Any, Any, Any, int], int]
"""``launch(stream, grid, args, flags)``: 0 when the kernel is enqueued, a status, or -1 when it wasn't tried."""

_OBJECTS: dict[str, Any] = {"None": None, "True": True, "bool": bool, "float": float, "int": int, "list": list,
                            "str": str, "tuple": tuple}  # fmt: skip


class FastLaunches:
    """Makes launch functions of a loaded library; makes none where the interpreter isn't CPython."""

    def __init__(self, path: str) -> None:
        self._make: Any = None
        if sys.implementation.name != "cpython":
            return
        library = ctypes.PyDLL(path)
        names = library.cutile_kernels_python_names
        names.restype, names.argtypes = ctypes.c_char_p, ()
        found = [_address(name) for name in names().decode().split()]
        self._addresses = (ctypes.c_size_t * len(found))(*found)
        self._make = library.cutile_kernels_python_launcher
        self._make.restype = ctypes.c_void_p  # ctypes crashes over an object that is null
        self._make.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p,
                               ctypes.c_int32)  # fmt: skip

    def make(self, function: int, roles: str, hints: Sequence[int], device: int) -> Launch | None:
        """Return the launch function of the kernel whose C function is at an address; None when there can't be one.

        ``roles`` has a letter for each parameter (a: array, l: list of arrays, s: scalar, c: constant); ``hints`` are
        in the order of the C structure, and hold for ``device`` (-1: for all).
        """
        if self._make is None:
            return None
        values = (ctypes.c_int32 * 4)(*hints)
        address = self._make(self._addresses, len(self._addresses), function, roles.encode(), values, device)
        if address is None:
            return None
        made: Launch = ctypes.cast(address, ctypes.py_object).value
        _drop_reference(address)  # the one that was returned; `made` is another
        return made


_drop_reference = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_DecRef", ctypes.pythonapi))


def _address(name: str) -> int:
    if name in _OBJECTS:
        return id(_OBJECTS[name])
    try:
        function = getattr(ctypes.pythonapi, name)
    except AttributeError:
        return 0  # the library refuses a table with a hole
    return ctypes.cast(function, ctypes.c_void_p).value or 0
