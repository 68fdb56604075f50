"""A stand-in for torch in the worker: its dtypes as cuda.tile dtypes, and names for annotations.

Kernels spell dtypes as ``torch.float32`` and annotate parameters with ``torch.Tensor``; nothing else of torch has a
meaning in device code.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

_DTYPES = {
    "bool": "bool_", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
    "int8": "int8", "int16": "int16", "short": "int16", "int32": "int32", "int": "int32",
    "int64": "int64", "long": "int64", "float16": "float16", "half": "float16", "bfloat16": "bfloat16",
    "float32": "float32", "float": "float32", "float64": "float64", "double": "float64",
    "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2", "float8_e8m0fnu": "float8_e8m0fnu",
}  # fmt: skip


class Tensor:
    """Stands for ``torch.Tensor`` in annotations."""


def make_torch(tile: Any) -> ModuleType:
    """Return a module object to use in the place of torch; ``tile`` is the module ``cuda.tile``."""
    module = ModuleType("torch", "A stub: dtypes only.")
    for name, native in _DTYPES.items():
        if hasattr(tile, native):
            setattr(module, name, getattr(tile, native))
    module.Tensor = Tensor  # type: ignore[attr-defined]
    module.dtype = type(tile.float32)  # type: ignore[attr-defined]
    return module
