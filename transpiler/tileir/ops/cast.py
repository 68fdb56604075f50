"""Conversions between element types, and the same bits as another type."""

from __future__ import annotations

from typing import Any

from transpiler.tileir.elements import BITS, unsigned_dtype
from transpiler.tileir.ops.integer import as_unsigned
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import Function, rows
from transpiler.tileir.ops.site import Site
from transpiler.tileir.rounding import round_to, to_odd

Array = Any


def _extend(site: Site) -> Function:
    dtype = site.result_dtype
    if site.element() == "i1":
        sign = -1 if not site.unsigned else 1
        return lambda a: a.astype(dtype) * dtype.type(sign)
    return (lambda a: as_unsigned(site, a).astype(dtype)) if site.unsigned else (lambda a: a.astype(dtype))


def _truncate(site: Site) -> Function:
    if site.result_element == "i1":
        return lambda a: (a & 1).astype(bool)
    dtype = site.result_dtype
    if site.result_element == "i4":
        return lambda a: ((a << 4).astype(np.int8) >> 4).astype(dtype)
    return lambda a: a.astype(dtype)


def _float_to_float(site: Site) -> Function:
    source, target = site.element(), site.result_element
    direction, dtype = site.get("rounding", "nearest_even"), site.result_dtype
    if target in ("f32", "f64") and direction == "nearest_even":
        return lambda a: a.astype(dtype)
    if source == "f32" and target in ("f16", "bf16") and direction == "nearest_even":
        return lambda a: a.astype(dtype)
    return lambda a: round_to(np.asarray(a).astype(np.float64), target, direction)[()]


def _float_to_int(site: Site) -> Function:
    """Rounds towards zero; NaN and what doesn't fit is undefined: reported, and 0 or the nearest bound."""
    bits, dtype = BITS[site.result_element], site.result_dtype
    low, high = (0, (1 << bits) - 1) if site.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    exact = np.longdouble if bits == 64 else np.float64
    target = unsigned_dtype(bits) if site.unsigned else dtype

    def run(a: Array) -> Array:
        value = np.trunc(np.asarray(a).astype(exact))
        nan = np.isnan(value)
        wrong = nan | (value < low) | (value > high)
        site.undefined(f"converts a float outside of {site.result_element}'s range", wrong)
        kept = np.where(nan, exact(0), np.clip(value, exact(low), exact(high)))
        return kept.astype(target).view(dtype)[()] if bits > 1 else kept.astype(bool)[()]

    return run


def _int_to_float(site: Site) -> Function:
    target, dtype = site.result_element, site.result_dtype
    direction = site.get("rounding", "nearest_even")
    wide = BITS[site.element()] == 64 and target != "f64"

    def run(a: Array) -> Array:
        integer = as_unsigned(site, a) if site.unsigned else (a if site.element() != "i1" else -a.astype(np.int8))
        if target in ("f32", "f64") and direction == "nearest_even":
            return integer.astype(dtype)
        value = integer.astype(np.float64)
        if wide:
            value = to_odd(value, (integer.astype(np.longdouble) - value.astype(np.longdouble)).astype(np.float64))
        return round_to(value, target, direction)[()]

    return run


def _bitcast(site: Site) -> Function:
    dtype = site.result_dtype
    if site.result_element == "i1" or site.element() == "i1":
        return lambda a: a.astype(dtype)
    return lambda a: np.ascontiguousarray(a).view(dtype).reshape(np.shape(a))[()]


def _same(site: Site) -> Function:
    del site
    return lambda a: a


def _unpack(site: Site) -> Function:
    """Bytes as a tile of another element type; the low half of a byte comes first."""
    element, dtype = site.result_element, site.result_dtype
    if BITS[element] >= 8:
        return lambda a: np.ascontiguousarray(a).view(np.uint8).view(dtype)
    if element == "i1":
        return lambda a: np.unpackbits(np.ascontiguousarray(a).view(np.uint8), bitorder="little").astype(bool)

    def run(a: Array) -> Array:
        data = np.ascontiguousarray(a).view(np.uint8)
        halves = np.stack((data & 15, data >> 4), axis=-1).reshape(-1)
        if element == "i4":
            return ((halves << 4).view(np.int8) >> 4).astype(dtype)
        return halves.view(dtype)

    return run


def _pack(site: Site) -> Function:
    """A tile as bytes; the low half of a byte comes first."""
    element = site.element()
    if BITS[element] >= 8:
        return lambda a: np.ascontiguousarray(a).view(np.int8)
    if element == "i1":
        return lambda a: np.packbits(a, bitorder="little").view(np.int8)

    def run(a: Array) -> Array:
        halves = (a.astype(np.int8) if element == "i4" else np.ascontiguousarray(a)).view(np.uint8) & 15
        return (halves[0::2] | halves[1::2] << 4).astype(np.uint8).view(np.int8)

    return run


ROWS = {
    **rows("exti", 1, "signedness", make=_extend),
    **rows("trunci", 1, "overflow", make=_truncate),
    **rows("ftof", 1, "rounding flush_to_zero", make=_float_to_float),
    **rows("ftoi", 1, "signedness rounding", make=_float_to_int),
    **rows("itof", 1, "signedness rounding", make=_int_to_float),
    **rows("bitcast", 1, make=_bitcast),
    **rows("int_to_ptr ptr_to_int ptr_to_ptr", 1, make=_same),
    **rows("pack", 1, make=_pack),
    **rows("unpack", 1, make=_unpack),
}
