"""The values that Python numbers have in a dtype: integers wrap around, floats are rounded to nearest even."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from transpiler.ir.types import GENERIC_CLASS, DType

QUIET_NAN = {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000, "float64": 0x7FF8000000000000}
"""The bits of the NaN that a Python float is in each float type (with the sign bit: of the negative one)."""

_DROPPED = {"bfloat16": 16, "tfloat32": 13}  # bits of a float32's significand that a dtype hasn't


def wrapped(value: int, dtype: DType) -> int:
    """An integer modulo the dtype's range."""
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.signed and low >> (dtype.bits - 1) else low


def rounded(value: float, dtype: str) -> float:
    """The nearest value of a float dtype, ties to even."""
    if not math.isfinite(value):
        return value
    rounding = _ROUNDING.get(dtype)
    return float(_small(dtype)(value)) if rounding is None else rounding(value)


def _packed(form: str) -> Callable[[float], float]:
    def rounding(value: float) -> float:
        try:
            return float(struct.unpack(form, struct.pack(form, float(value)))[0])
        except OverflowError:
            return math.copysign(math.inf, value)

    return rounding


_single = _packed("<f")


def _shortened(dtype: str) -> Callable[[float], float]:
    """Round to a float32 with the last bits of its significand dropped."""
    dropped = _DROPPED[dtype]

    def rounding(value: float) -> float:
        (word,) = struct.unpack("<I", struct.pack("<f", _single(value)))
        half = (1 << (dropped - 1)) - 1 + (word >> dropped & 1)
        return from_bits((word + half) >> dropped, dtype)

    return rounding


_ROUNDING = {
    "float64": float, "float32": _single, "float16": _packed("<e"),
    **{dtype: _shortened(dtype) for dtype in _DROPPED},
}  # fmt: skip


def _small(dtype: str) -> Callable[[float], Any]:
    """The type of a small float; ml_dtypes is loaded for those alone, it takes a while."""
    import ml_dtypes

    found: Callable[[float], Any] = getattr(ml_dtypes, dtype)
    return found


def literal(value: float, dtype: DType) -> float:
    """What a Python float is in a dtype: it is a float32 first, which shows in float64 (and seldom in float16)."""
    if not math.isfinite(value):
        return value
    single = rounded(value, "float32")
    names = (dtype.name,) if dtype.of is None else GENERIC_CLASS
    return value if all(rounded(single, n) == rounded(value, n) for n in names) else single


def bits(value: float, dtype: str) -> int:
    """The bits of a float below 16 bits, as an unsigned integer."""
    import numpy as np

    return int(np.asarray(_small(dtype)(value)).view(np.uint8)) & ((1 << DType(dtype).bits) - 1)


def float32_bits(value: float) -> int:
    """The bits of a float as a float32, as a signed integer; every NaN is the one that Python writes."""
    single = math.nan if math.isnan(value) else rounded(value, "float32")
    return int(struct.unpack("<i", struct.pack("<f", single))[0])


_WORDS = {"float16": ("<H", "<e"), "float32": ("<I", "<f"), "float64": ("<Q", "<d")}


def from_bits(pattern: int, dtype: str) -> float:
    """The float whose bits are ``pattern``, an unsigned integer (of tf32: the 19 bits that it has)."""
    if dtype in _DROPPED:
        return from_bits(pattern << _DROPPED[dtype], "float32")
    if dtype in _WORDS:
        word, number = _WORDS[dtype]
        return float(struct.unpack(number, struct.pack(word, pattern))[0])
    import numpy as np

    return float(np.asarray(pattern, np.uint8).view(_small(dtype)))  # type: ignore[call-overload]


def same_in_generic_class(value: float) -> bool:
    """Whether the dtypes that one generic entry serves all hold exactly this value."""
    return not math.isfinite(value) or all(rounded(value, d) == value for d in GENERIC_CLASS)
