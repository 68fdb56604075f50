"""Rounding as IEEE 754 has it, for every float type and direction.

Types narrower than f64 are computed in f64 together with the sign of the exact result's remainder, and
kept as *round to odd*: the last bit says that something is missing.  Rounding that to any narrower type,
in any direction, is then as if the exact result were rounded once (Boldo and Melquiond 2008).
"""

from __future__ import annotations

from typing import Any

from transpiler.tileir.elements import MANTISSA, dtype_of
from transpiler.tileir.ops.lazy import ml_dtypes, np

Array = Any
_TINY = {"f32": 2.0**-126, "f64": 2.0**-1022, "f16": 2.0**-14, "bf16": 2.0**-126}
_LEAST = {
    "f16": -24,
    "bf16": -133,
    "f32": -149,
    "tf32": -136,
    "f8E4M3FN": -9,
    "f8E5M2": -16,
    "f4E2M1FN": -1,
    "f8E8M0FNU": -127,
}
"""The exponent of the least positive number."""


def flush(values: Array, element: str) -> Array:
    """Replace subnormal numbers by a zero of their sign."""
    small = np.abs(values) < np.asarray(_TINY[element], values.dtype)
    return np.where(small, np.copysign(np.zeros((), values.dtype), values), values)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and what it lacks (Knuth)."""
    s = a + b
    shadow = s - a
    return s, (a - (s - shadow)) + (b - shadow)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded product of f64 and what it lacks (Dekker, Veltkamp)."""
    p = a * b
    ah, al = _split(a)
    bh, bl = _split(b)
    error = ((ah * bh - p) + ah * bl + al * bh) + al * bl
    return p, np.where(np.isfinite(error), error, 0.0)


def _split(a: Array) -> tuple[Array, Array]:
    c = a * 134217729.0
    high = c - (c - a)
    return high, a - high


def to_odd(values: Array, lacks: Array) -> Array:
    """Make the last bit odd where something is missing; ``lacks`` has the sign of exact minus given."""
    values = np.asarray(values, np.float64)
    bits = values.view(np.int64)
    inexact = (lacks != 0) & (bits & 1 == 0) & np.isfinite(values)
    away = (lacks > 0) == (values > 0)
    away = np.where(values == 0, True, away)
    moved = np.where(away, bits | 1, bits - 1)
    signed = np.where((values == 0) & (lacks < 0), moved | np.int64(-(1 << 63)), moved)
    return np.where(inexact, signed, bits).view(np.float64)


def round_to(values: Array, element: str, direction: str = "nearest_even") -> Array:
    """Round f64 values (to odd, if not exact) to an element type in a direction."""
    if element == "f64":
        return np.asarray(values, np.float64)
    if direction in ("nearest_even", "", "approx", "full"):
        return _nearest(values, element)
    return _directed(np.asarray(values, np.float64), element, direction)


def _nearest(values: Array, element: str) -> Array:
    dtype = dtype_of(element)
    if element in ("f32", "f16"):
        return np.asarray(values).astype(dtype)
    if element == "tf32":
        return _quantized(np.asarray(values, np.float64), element, np.rint).astype(np.float32)
    narrow = np.asarray(values, np.float64).astype(np.float32)  # to odd once more, then to the type
    lacks = np.where(np.isfinite(narrow), values - narrow.astype(np.float64), 0.0)
    bits = narrow.view(np.int32)
    away = np.where(narrow == 0, True, (lacks > 0) == (narrow > 0))
    odd = np.where((lacks != 0) & (bits & 1 == 0), np.where(away, bits | 1, bits - 1), bits)
    odd = np.where((narrow == 0) & (lacks < 0), odd | np.int32(-(1 << 31)), odd).astype(np.int32)
    return odd.view(np.float32).astype(dtype)


def _quantized(values: Array, element: str, how: Any) -> Array:
    """Round to the grid of a type, without regard to its range; in f64."""
    _, exponent = np.frexp(values)
    step = np.maximum(exponent - 1 - MANTISSA[element], _LEAST[element]).astype(np.int32)
    scaled = np.ldexp(values, -step)
    rounded = np.where(np.isfinite(values), np.ldexp(how(scaled), step), values)
    return np.copysign(rounded, values)


_HOW = {"zero": "trunc", "negative_inf": "floor", "positive_inf": "ceil"}


def _directed(values: Array, element: str, direction: str) -> Array:
    dtype = dtype_of(element)
    grid = _quantized(values, element, getattr(np, _HOW[direction]))
    info = np.finfo(dtype) if element in ("f32", "f16") else None
    largest = float(info.max) if info is not None else _largest(element)
    over = np.isfinite(values) & (np.abs(grid) > largest)
    keeps = (direction == "zero") | ((direction == "negative_inf") & (values > 0)) | (
        (direction == "positive_inf") & (values < 0))  # fmt: skip
    limit = np.where(keeps, np.copysign(largest, values), np.copysign(np.inf, values))
    return np.where(over, limit, grid).astype(dtype)


def _largest(element: str) -> float:
    if element == "tf32":
        return float((2 - 2.0**-10) * 2.0**127)
    info: Any = ml_dtypes.finfo  # untyped
    return float(info(dtype_of(element)).max)
