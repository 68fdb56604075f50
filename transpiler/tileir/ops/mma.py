"""Matrix products: exact products, summed in f64 and rounded once to the accumulator's type."""

from __future__ import annotations

from typing import Any

from transpiler.tileir.model import tile_type
from transpiler.tileir.noise import Terms, least_normal
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import Function, rows, summed
from transpiler.tileir.ops.site import Site
from transpiler.tileir.rounding import round_to
from transpiler.tileir.tensor_core import ADDERS, product

Array = Any


def _wide(a: Array) -> Array:
    return np.ascontiguousarray(np.asarray(a).astype(np.float64))


def _terms(site: Site, x: Array, y: Array, z: Array) -> Terms:
    """What the finite products and accumulators add up to, by sign; subnormal factors count like the least normal."""
    left, right, start = (~np.isfinite(v) for v in (x, y, z))
    special = left.any(-1, keepdims=True) | right.any(-2, keepdims=True) | start
    x, y, z = (np.where(np.isfinite(v), v, 0.0) for v in (x, y, z))
    total = np.matmul(x, y) + z
    least = [least_normal(site.element(i)) if site.name == "mmaf" else 0.0 for i in range(2)]
    x, y = (np.where(v == 0, 0.0, np.maximum(np.abs(v), tiny)) for v, tiny in zip((x, y), least, strict=True))
    magnitude = np.matmul(x, y) + np.abs(z)
    return Terms((magnitude + total) / 2, (magnitude - total) / 2, special)


def _rounded(site: Site, x: Array, y: Array, z: Array, depth: int) -> Array:
    noise, adder = site.machine.noise, ADDERS.get(site.element())
    if site.machine.tensor_core and adder is not None and site.result_element == "f32" and site.name == "mmaf":
        return product(x, y, z, adder)
    result = round_to(np.matmul(x, y) + z, site.result_element)
    return result if noise is None else noise.summed(result, _terms(site, x, y, z), depth, _factor(site))


def _factor(site: Site) -> float:
    """How many times larger than f32's the accumulator's eps is."""
    return 2.0**10 if site.element().startswith("f8") and site.result_element == "f32" else 1.0


def _mmaf(site: Site) -> Function:
    depth = tile_type(site.operand_types[0]).shape[-1]
    return lambda a, b, c: _rounded(site, _wide(a), _wide(b), _wide(c), depth)


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
    depth = tile_type(site.operand_types[0]).shape[-1]

    def run(a: Array, b: Array, c: Array, left: Array, right: Array) -> Array:
        x = _wide(a) * np.repeat(_wide(left), depth // left.shape[-1], axis=-1)
        y = _wide(b) * np.repeat(_wide(right), depth // right.shape[-2], axis=-2)
        return _rounded(site, x, y, _wide(c), depth)

    return run


_ORDER = (
    "hardware adds in an order of its own, in its accumulator; here the sum is f64 and rounded once. It aligns "
    "products by the exponents of their factors, which for subnormals is the least. Hopper keeps about 14 bits of "
    "sums of f8 products (DeepSeek-V3 technical report, 3.3.2): there eps is 2**10 times f32's"
)
ROWS = {
    **rows("mmaf", 3, "fast_acc", make=_mmaf, tolerance=summed(1.0, _ORDER), static=False),
    **rows("mmai", 3, "signedness", make=_mmai),
    **rows("mmaf_scaled", 5, "", make=_scaled, tolerance=summed(1.0, _ORDER), result_type=2),
}
