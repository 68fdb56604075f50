"""Transcendental functions: computed in f64 and rounded once, where hardware may be some ulp off."""

from __future__ import annotations

from typing import Any

from transpiler.tileir.ops.floating import flushing
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import Function, rows, ulp
from transpiler.tileir.ops.site import Site
from transpiler.tileir.rounding import round_to, to_odd

Array = Any
_ARITH = "rounding flush_to_zero"
_PLAIN = ("", "nearest_even", "approx", "full")
_UFUNCS = {"atan2": "arctan2", "powf": "power", "fpowf": "power", "pow": "power", "fpowi": "power"}


def _function(site: Site) -> Function:
    """Compute in f64; f16 and bf16 go through f32, which doesn't show at their precision."""
    function: Function = getattr(np, _UFUNCS.get(site.name, site.name))
    dtype = site.result_dtype

    def run(*values: Array) -> Array:
        return function(*[np.asarray(v).astype(np.float64) for v in values]).astype(dtype)

    return flushing(site, run)


def _rsqrt(site: Site) -> Function:
    dtype = site.result_dtype
    return flushing(site, lambda a: (1.0 / np.sqrt(np.asarray(a).astype(np.float64))).astype(dtype))


def _sqrt(site: Site) -> Function:
    """Correctly rounded, in every direction."""
    direction, element = site.get("rounding", "nearest_even"), site.result_element
    if direction in _PLAIN:
        return flushing(site, np.sqrt)

    def run(a: Array) -> Array:
        x = np.asarray(a, np.float64)
        root = np.sqrt(x)
        lacks = np.where(np.isfinite(root), x - root * root, 0.0)
        return round_to(to_odd(root, lacks), element, direction)

    return flushing(site, run)


_TWO = "the hardware's functions are at most 2 ulp off over the range where results are normal"
ROWS = {
    **rows("sin cos tan sinh cosh tanh exp exp2 log log2", 1, _ARITH, make=_function, tolerance=ulp(2, _TWO)),
    **rows("rsqrt", 1, _ARITH, make=_rsqrt, tolerance=ulp(2, _TWO)),
    **rows("sqrt", 1, _ARITH, make=_sqrt, tolerance=ulp(1, "`rounding<approx>` is 1 ulp off; all else is exact",
                                                        where=lambda site: site.get("rounding") == "approx")),
    **rows("atan2 powf fpowf pow", 2, _ARITH, make=_function, tolerance=ulp(2, _TWO)),
    **rows("fpowi", 2, _ARITH, make=_function, tolerance=ulp(2, _TWO), result_type=0),
}  # fmt: skip
