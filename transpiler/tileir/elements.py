"""Element types of Tile IR as dtypes, and their literals.

``tf32`` is kept in float32 with its low 13 bits zero; pointers are 64-bit integers; ``i1`` is bool.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from transpiler.diagnostics import TranspileError, error
from transpiler.tileir.constants import dense_bytes
from transpiler.tileir.ops.lazy import ml_dtypes, np

_NUMPY = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "f16": "float16", "f32": "float32", "f64": "float64", "tf32": "float32",
}  # fmt: skip
_ML = {
    "bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f8E8M0FNU": "float8_e8m0fnu",
    "f4E2M1FN": "float4_e2m1fn", "i4": "int4",
}  # fmt: skip
BITS = {"i1": 1, "i4": 4, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64,
        "tf32": 32, "f8E4M3FN": 8, "f8E5M2": 8, "f8E8M0FNU": 8, "f4E2M1FN": 4}  # fmt: skip
"""How many bits an element has."""
MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52, "tf32": 10, "f8E4M3FN": 3, "f8E5M2": 2, "f4E2M1FN": 1,
            "f8E8M0FNU": 0}  # fmt: skip
"""How many bits of a float's significand are stored."""


def not_executable(type_text: str) -> TranspileError:
    """Say that a type is none that the interpreter knows."""
    return error("E0689", f"`{type_text}` is not a type that can be executed")


def is_float(element: str) -> bool:
    """Whether an element type is a floating-point type."""
    return element in MANTISSA


def is_pointer(element: str) -> bool:
    """Whether an element type is a pointer."""
    return element.startswith("ptr")


@lru_cache(maxsize=256)
def dtype_of(element: str) -> Any:
    """Return the dtype that holds an element type; E0689 for one that isn't known."""
    if is_pointer(element):
        return np.dtype("int64")
    if element in _NUMPY:
        return np.dtype(_NUMPY[element])
    if element in _ML:
        return np.dtype(getattr(ml_dtypes, _ML[element]))
    raise not_executable(element)


@lru_cache(maxsize=256)
def unsigned_dtype(bits: int) -> Any:
    """Return the unsigned integer type of a width."""
    return np.dtype(f"uint{max(8, bits)}")


def pointee(element: str) -> str:
    """Return what a pointer type points to."""
    return element[4:-1]


@lru_cache(maxsize=4096)
def literal(text: str, element: str) -> Any:
    """Read one printed number (``1.5``, ``0xFF800000``, ``true``, ``-3``) as a scalar of the element's dtype."""
    text = text.strip()
    dtype = dtype_of(element)
    if element == "i1":
        return np.bool_(text in ("true", "1", "-1"))
    if not is_float(element):
        return _integer(int(text, 0), BITS[element], dtype)
    if text.startswith(("0x", "0X")):
        bits = np.array(int(text, 16), unsigned_dtype(BITS[element]))
        return bits.view(dtype)[()]
    return np.float64(text).astype(np.float32).astype(dtype) if element != "f64" else np.float64(text)


def _integer(value: int, bits: int, dtype: Any) -> Any:
    value &= (1 << bits) - 1
    return np.array(value - (1 << bits) if value >> (bits - 1) else value, np.int64).astype(dtype)[()]


def literals(text: str, element: str) -> Any:
    """Read a printed attribute: one number, nested lists of them, or the bytes of all (flat)."""
    if (content := dense_bytes(f"{element}:{text}")) is not None:
        raw = np.frombuffer(content, unsigned_dtype(BITS[element]))
        return raw != 0 if element == "i1" else raw.view(dtype_of(element))
    if not text.startswith("["):
        return literal(text, element)
    flat = [literal(part, element) for part in text.replace("[", " ").replace("]", " ").split(",")]
    return np.array(flat, dtype_of(element))
