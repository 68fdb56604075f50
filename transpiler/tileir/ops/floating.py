"""Floating-point arithmetic that IEEE 754 defines to the last bit; NaNs are all one value.

f16 and bf16 are computed in f32 and rounded once more, which gives the same as rounding the exact result
once: f32 has more than twice their bits and two (Figueroa 1995), for sums, products, quotients and roots.
"""

from __future__ import annotations

from typing import Any

from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import Function, rows, ulp
from transpiler.tileir.ops.site import Site
from transpiler.tileir.rounding import flush, round_to, to_odd, two_product, two_sum

Array = Any
_ARITH = "rounding flush_to_zero"
_PLAIN = ("", "nearest_even", "approx", "full")
_UFUNCS = {"addf": "add", "subf": "subtract", "mulf": "multiply", "divf": "divide", "maxf": "fmax", "minf": "fmin",
           "absf": "absolute", "negf": "negative", "floor": "floor", "ceil": "ceil"}  # fmt: skip


def flushing(site: Site, function: Function) -> Function:
    """Flush subnormal operands and results to zero where the operation says so."""
    if not site.has("flush_to_zero"):
        return function
    element = site.result_element

    def run(*values: Array) -> Array:
        return flush(function(*[flush(v, element) for v in values]), element)

    return run


def _arithmetic(site: Site) -> Function:
    direction, element = site.get("rounding", "nearest_even"), site.result_element
    if direction in _PLAIN:
        return flushing(site, getattr(np, _UFUNCS[site.name]))
    exact = _EXACT[site.name]

    def run(a: Array, b: Array) -> Array:
        x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
        value, lacks = exact(x, y)
        if element == "f64":
            return _step(value, lacks, direction)
        result = round_to(to_odd(value, lacks), element, direction)
        if direction == "negative_inf" and site.name in ("addf", "subf"):
            other = -y if site.name == "subf" else y
            cancels = (value == 0) & (lacks == 0) & ~((x == 0) & (other == 0) & ~np.signbit(x) & ~np.signbit(other))
            result = np.where(cancels, np.asarray(-0.0).astype(result.dtype), result)
        return result

    return flushing(site, run)


def _step(value: Array, lacks: Array, direction: str) -> Array:
    """Correct f64 rounded to nearest to another direction."""
    lacks = np.where(np.isfinite(value), lacks, 0.0)
    down = (lacks < 0) & ((direction == "negative_inf") | ((direction == "zero") & (value > 0)))
    up = (lacks > 0) & ((direction == "positive_inf") | ((direction == "zero") & (value < 0)))
    return np.where(down, np.nextafter(value, -np.inf), np.where(up, np.nextafter(value, np.inf), value))


def _quotient(a: Array, b: Array) -> tuple[Array, Array]:
    q = a / b
    p, e = two_product(q, b)
    remainder = (a - p) - e
    remainder = np.where(np.isfinite(q) & np.isfinite(b), remainder, 0.0)
    return q, remainder * np.sign(b)


_EXACT: dict[str, Function] = {
    "addf": two_sum,
    "subf": lambda a, b: two_sum(a, -b),
    "mulf": two_product,
    "divf": _quotient,
}
"""An f64 result and the sign of what it lacks."""


def _fma(site: Site) -> Function:
    direction, element = site.get("rounding", "nearest_even"), site.result_element

    def run(a: Array, b: Array, c: Array) -> Array:
        x, y, z = (np.asarray(v, np.float64) for v in (a, b, c))
        if element == "f64":
            product, low = two_product(x, y)
            total, rest = two_sum(product, z)
            rest = np.where(np.isfinite(rest), rest, 0.0) + low
            return total + np.where(np.isfinite(rest), rest, 0.0)
        total, lacks = two_sum(x * y, z)  # the product is exact in f64
        lacks = np.where(np.isfinite(total), lacks, 0.0)
        return round_to(to_odd(total, lacks), element, direction)

    return flushing(site, run)


def _extremum(site: Site) -> Function:
    """IEEE 754-2019 maximumNumber and minimumNumber, or maximum and minimum; +0 is greater than -0."""
    largest = site.name == "maxf"
    function = (np.maximum if largest else np.minimum) if site.has("propagate_nan") else (
        np.fmax if largest else np.fmin)  # fmt: skip

    def run(a: Array, b: Array) -> Array:
        result = function(a, b)
        if not np.all(result):
            zeros = (result == 0) & (a == b)
            zero = a + b if largest else -((-a) + (-b))
            result = np.where(zeros, zero, result)
        return result

    return flushing(site, run)


def _unary(site: Site) -> Function:
    return flushing(site, getattr(np, _UFUNCS[site.name]))


def _remainder(site: Site) -> Function:
    return flushing(site, np.fmod)


_APPROX = ulp(
    2, "`rounding<approx>` and `rounding<full>` are reciprocals of the hardware, at most 2 ulp off; all else is exact",
    where=lambda site: site.get("rounding") in ("approx", "full"),
)  # fmt: skip
_FMA64 = ulp(1, "f64 is computed as a double-double, which may round twice; all else is exact",
             where=lambda site: site.result_element == "f64")  # fmt: skip
ROWS = {
    **rows("addf subf mulf", 2, _ARITH, make=_arithmetic),
    **rows("divf", 2, _ARITH, make=_arithmetic, tolerance=_APPROX),
    **rows("fma", 3, _ARITH, make=_fma, tolerance=_FMA64),
    **rows("remf", 2, _ARITH, make=_remainder),
    **rows("maxf minf", 2, "flush_to_zero propagate_nan", make=_extremum),
    **rows("absf negf floor ceil", 1, _ARITH, make=_unary),
}
