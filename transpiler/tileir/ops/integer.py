"""Integer arithmetic: wraps around; what the specification leaves undefined is reported, and gives 0."""

from __future__ import annotations

from typing import Any

from transpiler.tileir.elements import BITS, unsigned_dtype
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import Function, rows
from transpiler.tileir.ops.site import Site

Array = Any


def as_unsigned(site: Site, values: Array) -> Array:
    """The same bits as unsigned integers (``i1`` as 0 and 1)."""
    if site.element() == "i1":
        return values.astype(np.uint8)
    return values.view(unsigned_dtype(BITS[site.element()]))


def as_signed(site: Site, values: Array) -> Array:
    """Integers that can be calculated with as signed: ``i1`` true is -1."""
    return -values.astype(np.int8) if site.element() == "i1" else values


def read(site: Site) -> Function:
    """How the operation reads its operands: signed or unsigned."""
    return (lambda x: as_unsigned(site, x)) if site.unsigned else (lambda x: as_signed(site, x))


def _back(site: Site, values: Array) -> Array:
    """Wrap to the result's type."""
    if site.result_element == "i1":
        return (values & 1).astype(bool)
    return values.view(site.result_dtype) if values.dtype.itemsize == site.result_dtype.itemsize else values.astype(
        site.result_dtype)  # fmt: skip


_UFUNCS = {"addi": "add", "subi": "subtract", "muli": "multiply", "andi": "bitwise_and", "ori": "bitwise_or",
           "xori": "bitwise_xor"}  # fmt: skip
_BOOLEAN = {"addi": "logical_xor", "subi": "logical_xor", "muli": "logical_and"}
"""What arithmetic modulo 2 is."""


def _wrapping(site: Site) -> Function:
    name = _UFUNCS[site.name]
    if site.result_element == "i1":
        name = _BOOLEAN.get(site.name, name)
    function: Function = getattr(np, name)
    if site.has("overflow") and site.get("overflow") != "none" and site.result_element != "i1":
        return _checked(site, function)
    return function


def _checked(site: Site, function: Function) -> Function:
    """Arithmetic that promises not to overflow: keeping the promise is checked in a wider type."""
    kinds, bits = site.get("overflow"), BITS[site.result_element]
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def run(a: Array, b: Array) -> Array:
        result = function(a, b)
        wide = function(a.astype(object), b.astype(object))
        if "signed" in kinds.replace("unsigned", "") or "nsw" in kinds:
            site.undefined("signed overflow, which the operation excludes", (wide < low) | (wide > high))
        return result

    return run


def _shl(site: Site) -> Function:
    bits = BITS[site.result_element]

    def run(a: Array, b: Array) -> Array:
        amount = as_unsigned(site, b)
        site.undefined(f"shifts by {bits} bits or more", wrong := amount >= bits)
        shifted = as_unsigned(site, a) << np.where(wrong, 0, amount).astype(amount.dtype)
        return np.where(wrong, 0, _back(site, shifted)).astype(site.result_dtype)

    return run


def _shr(site: Site) -> Function:
    bits, reading = BITS[site.result_element], read(site)

    def run(a: Array, b: Array) -> Array:
        amount = as_unsigned(site, b)
        site.undefined(f"shifts by {bits} bits or more", wrong := amount >= bits)
        values = reading(a)
        shifted = values >> np.where(wrong, bits - 1, amount).astype(values.dtype)
        return _back(site, shifted)

    return run


def _divisible(site: Site, a: Array, b: Array) -> Array:
    """The divisor with 1 where dividing is undefined, which is reported."""
    site.undefined("divides by zero", wrong := b == 0)
    if not site.unsigned:
        lowest = (b == -1) & (a == np.iinfo(a.dtype).min)
        site.undefined("divides the lowest integer by -1", lowest)
        wrong = wrong | lowest
    return np.where(wrong, 1, b).astype(b.dtype)


def _div(site: Site) -> Function:
    reading, rounding = read(site), site.get("rounding", "zero")

    def run(a: Array, b: Array) -> Array:
        x, y = reading(a), reading(b)
        y = _divisible(site, x, y)
        down = x // y  # rounds to negative infinity
        if rounding == "positive_inf":
            down = down + (x % y != 0).astype(x.dtype)
        elif rounding == "zero" and not site.unsigned:
            down = down + ((x % y != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
        return _back(site, np.asarray(down))[()]

    return run


def _rem(site: Site) -> Function:
    reading = read(site)

    def run(a: Array, b: Array) -> Array:
        x, y = reading(a), reading(b)
        return _back(site, np.asarray(np.fmod(x, _divisible(site, x, y))))[()]

    return run


def _extremum(site: Site) -> Function:
    function: Function = np.minimum if site.name == "mini" else np.maximum
    reading = read(site)
    return lambda a, b: _back(site, function(reading(a), reading(b)))


def _abs(site: Site) -> Function:
    return lambda a: _back(site, np.abs(as_signed(site, a)))


def _neg(site: Site) -> Function:
    return lambda a: _back(site, np.negative(as_signed(site, a)))


def _mulhi(site: Site) -> Function:
    """The upper half of the double-width product."""
    bits, signed = BITS[site.result_element], site.has("signedness") and not site.unsigned

    def run(a: Array, b: Array) -> Array:
        if bits <= 32:
            wide = np.int64 if signed else np.uint64
            x, y = ((v if signed else as_unsigned(site, v)).astype(wide) for v in (a, b))
            return ((x * y) >> wide(bits)).astype(unsigned_dtype(bits) if not signed else site.result_dtype).view(
                site.result_dtype)  # fmt: skip
        return _mulhi64(a, b, signed=signed)

    return run


def _mulhi64(a: Array, b: Array, *, signed: bool) -> Array:
    """The upper 64 bits of 128, from four products of 32-bit halves."""
    x, y = (np.asarray(v).view(np.uint64) for v in (a, b))
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    xl, xh, yl, yh = x & low, x >> half, y & low, y >> half
    middle = xh * yl + (xl * yl >> half)
    cross = xl * yh + (middle & low)
    high = xh * yh + (middle >> half) + (cross >> half)
    if signed:
        high = high - np.where(np.asarray(a) < 0, y, 0).astype(np.uint64) - np.where(np.asarray(b) < 0, x, 0).astype(
            np.uint64)  # fmt: skip
    return high.view(np.int64)


ROWS = {
    **rows("addi subi muli", 2, "overflow", make=_wrapping),
    **rows("andi ori xori", 2, make=_wrapping),
    **rows("shli", 2, "overflow", make=_shl),
    **rows("shri", 2, "signedness", make=_shr),
    **rows("absi", 1, "overflow", make=_abs),
    **rows("negi", 1, "overflow", make=_neg),
    **rows("divi", 2, "signedness rounding", make=_div),
    **rows("remi", 2, "signedness", make=_rem),
    **rows("mini maxi", 2, "signedness", make=_extremum),
    **rows("mulhii mulhi", 2, "signedness", make=_mulhi),
}
