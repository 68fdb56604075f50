"""The values that Python numbers have in a dtype: integers wrap around, floats are rounded to nearest even."""

from __future__ import annotations

import math
import struct

import ml_dtypes
import numpy as np

from transpiler.ir.types import GENERIC_CLASS, DType

_FLOATS: dict[str, type] = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu, "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
_TF32_DROPPED = 13  # bits of a float32 significand that tf32 hasn't


def wrapped(value: int, dtype: DType) -> int:
    """An integer modulo the dtype's range."""
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.signed and low >> (dtype.bits - 1) else low


def rounded(value: float, dtype: str) -> float:
    """The nearest value of a float dtype, ties to even."""
    if not math.isfinite(value):
        return value
    if dtype == "tfloat32":
        return _tf32(value)
    with np.errstate(over="ignore"):
        return float(_FLOATS[dtype](value))


def literal(value: float, dtype: DType) -> float:
    """What a Python float is in a dtype: it is a float32 first, which shows in float64 (and seldom in float16)."""
    if not math.isfinite(value):
        return value
    single = rounded(value, "float32")
    names = (dtype.name,) if dtype.of is None else GENERIC_CLASS
    return value if all(rounded(single, n) == rounded(value, n) for n in names) else single


def bits(value: float, dtype: str) -> int:
    """The bits of a float below 16 bits, as an unsigned integer."""
    return int(np.asarray(_FLOATS[dtype](value)).view(np.uint8)) & ((1 << DType(dtype).bits) - 1)


def same_in_generic_class(value: float) -> bool:
    """Whether the dtypes that one generic entry serves all hold exactly this value."""
    return not math.isfinite(value) or all(rounded(value, d) == value for d in GENERIC_CLASS)


def _tf32(value: float) -> float:
    (bits,) = struct.unpack("<I", struct.pack("<f", np.float32(value)))
    half = (1 << (_TF32_DROPPED - 1)) - 1 + (bits >> _TF32_DROPPED & 1)
    kept = (bits + half) >> _TF32_DROPPED << _TF32_DROPPED
    return float(struct.unpack("<f", struct.pack("<I", kept))[0])
