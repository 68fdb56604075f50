"""Matrix products: exact products, summed in f64 and rounded once to the accumulator's type."""

from __future__ import annotations

from typing import Any

from transpiler.tileir.model import tile_type
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import Function, rows, summed
from transpiler.tileir.ops.site import Site
from transpiler.tileir.rounding import round_to

Array = Any


def _wide(a: Array) -> Array:
    return np.ascontiguousarray(np.asarray(a).astype(np.float64))


def _mmaf(site: Site) -> Function:
    element, machine = site.result_element, site.machine
    depth = tile_type(site.operand_types[0]).shape[-1]

    def run(a: Array, b: Array, c: Array) -> Array:
        x, y, z = _wide(a), _wide(b), _wide(c)
        result = round_to(np.matmul(x, y) + z, element)
        if machine.noise is not None:
            result = machine.noise.summed(result, np.matmul(np.abs(x), np.abs(y)) + np.abs(z), depth)
        return result

    return run


def _mmai(site: Site) -> Function:
    """Signedness is printed once for each factor; the product is exact in f64 and wraps in i32."""
    signs = [value for key, value in site.op.form.attributes if key == "signedness"]
    left, right = (signs * 2)[:2] if signs else ("signed", "signed")

    def factor(a: Array, sign: str) -> Array:
        return _wide(a.view(np.uint8) if sign == "unsigned" else a)

    def run(a: Array, b: Array, c: Array) -> Array:
        product = np.matmul(factor(a, left), factor(b, right)).astype(np.int64)
        return (product + c.astype(np.int64)).astype(np.int32)

    return run


def _scaled(site: Site) -> Function:
    """Each scale belongs to a block of neighbouring elements along K."""
    element = site.result_element
    depth = tile_type(site.operand_types[0]).shape[-1]

    def run(a: Array, b: Array, c: Array, left: Array, right: Array) -> Array:
        x = _wide(a) * np.repeat(_wide(left), depth // left.shape[-1], axis=-1)
        y = _wide(b) * np.repeat(_wide(right), depth // right.shape[-2], axis=-2)
        return round_to(np.matmul(x, y) + _wide(c), element)

    return run


_ORDER = "hardware adds in an order of its own, in its accumulator; here the sum is f64 and rounded once"
ROWS = {
    **rows("mmaf", 3, "fast_acc", make=_mmaf, tolerance=summed(1.0, _ORDER)),
    **rows("mmai", 3, "signedness", make=_mmai),
    **rows("mmaf_scaled", 5, "", make=_scaled, tolerance=summed(1.0, _ORDER), result_type=2),
}
