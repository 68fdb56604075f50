"""Comparisons and choices."""

from __future__ import annotations

from typing import Any

from transpiler.tileir.ops.integer import read
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import Function, rows
from transpiler.tileir.ops.site import Site

Array = Any
_PREDICATES = {"equal": "equal", "not_equal": "not_equal", "less_than": "less", "less_than_or_equal": "less_equal",
               "greater_than": "greater", "greater_than_or_equal": "greater_equal"}  # fmt: skip


def _cmpi(site: Site) -> Function:
    function: Function = getattr(np, _PREDICATES[site.get("predicate")])
    if site.get("predicate") in ("equal", "not_equal") or (not site.unsigned and site.element() != "i1"):
        return function
    reading = read(site)
    return lambda a, b: function(reading(a), reading(b))


def _cmpf(site: Site) -> Function:
    """``ordered`` is false and ``unordered`` is true where an operand is NaN."""
    function: Function = getattr(np, _PREDICATES[site.get("predicate")])
    unordered = site.get("nan_order") == "unordered"
    negated = site.get("predicate") == "not_equal"  # NumPy's is true for NaN, the other predicates are false

    def run(a: Array, b: Array) -> Array:
        result = function(a, b)
        if unordered == negated:
            return result
        nan = np.isnan(a) | np.isnan(b)
        return result | nan if unordered else result & ~nan

    return run


def _select(site: Site) -> Function:
    dtype = site.result_dtype

    def run(condition: Array, a: Array, b: Array) -> Array:
        if np.ndim(condition) == 0:
            return a if condition else b
        chosen: Array = np.where(condition, a, b)
        return chosen.astype(dtype, copy=False)

    return run


ROWS = {
    **rows("cmpi", 2, "predicate signedness", make=_cmpi),
    **rows("cmpf", 2, "predicate nan_order", make=_cmpf),
    **rows("select", 3, make=_select),
}
