"""Matrix products as the tensor cores of Hopper sum them; found by comparing with the results of an H200.

A step takes some neighbouring terms of the sum and the accumulator.  It aligns them to the largest exponent among
them, cuts off what lies below a number of bits, and adds exactly; the sum is cut off to f32.  A product's exponent is
the sum of its factors' exponents, where subnormal factors have the least one.  No order within a step is left to show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transpiler.tileir.ops.lazy import np

Array = Any
_NONE = -(1 << 20)
"""The exponent of a zero: below all others."""
_ROWS = 16
"""So many rows at once: a step's terms are all in memory."""
_OVERFLOW = 2.0**128


@dataclass(frozen=True)
class Adder:
    """How many terms a step takes, how many bits below the largest exponent it keeps, the factors' least exponent."""

    terms: int
    bits: int
    least: int


ADDERS = {
    "f16": Adder(16, 25, -14),
    "bf16": Adder(16, 25, -126),
    "tf32": Adder(8, 25, -126),
    "f8E5M2": Adder(32, 13, -14),
}
"""Element types of factors for which this was measured, with f32 accumulators."""


def product(x: Array, y: Array, start: Array, adder: Adder) -> Array:
    """``x @ y + start`` in f32, of f64 arrays with the factors' values."""
    if x.ndim > 2:
        return np.stack([product(*one, adder) for one in zip(x, y, start, strict=True)])
    result = np.empty(start.shape, np.float32)
    with np.errstate(all="ignore"):  # infinities, and steps of zeros
        for row in range(0, x.shape[0], _ROWS):
            total = start[row : row + _ROWS]
            for at in range(0, x.shape[1], adder.terms):
                total = _step(x[row : row + _ROWS, at : at + adder.terms], y[at : at + adder.terms], total, adder)
            result[row : row + _ROWS] = total
    return result


def _step(x: Array, y: Array, total: Array, adder: Adder) -> Array:
    terms = np.concatenate((x[:, :, None] * y[None], total[:, None, :]), 1)
    exponents = np.concatenate(
        (_exponent(x, adder.least)[:, :, None] + _exponent(y, adder.least)[None], _exponent(total)[:, None, :]), 1
    )
    unit = np.ldexp(1.0, np.where(terms == 0, _NONE, exponents).max(1) - adder.bits)
    exact = np.trunc(terms / unit[:, None, :]).sum(1) * unit
    exact = np.where(np.isfinite(exact), exact, terms.sum(1))
    narrow = exact.astype(np.float32).astype(np.float64)
    cut = np.where(np.abs(narrow) > np.abs(exact), np.nextafter(narrow.astype(np.float32), np.float32(0)), narrow)
    return np.where(np.abs(exact) >= _OVERFLOW, np.copysign(np.inf, exact), cut)


def _exponent(values: Array, least: int = -126) -> Array:
    return np.maximum(np.frexp(values)[1] - 1, least)
