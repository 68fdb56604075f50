"""Matrix products."""

from __future__ import annotations

from transpiler.ir.tir import Value
from transpiler.ir.types import DType, Shape, TileTy, sizes
from transpiler.rules.common import flag
from transpiler.rules.registry import Rule, unsupported
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import Val

# operand dtype -> accumulator dtypes; the last one is matmul's
ACCUMULATORS = {
    "float8_e4m3fn": ("float16", "float32"), "float8_e5m2": ("float16", "float32"),
    "float16": ("float32", "float16"), "bfloat16": ("float32",), "float32": ("float32",),
    "tfloat32": ("float32",), "float64": ("float64",), "int8": ("int32",), "uint8": ("int32",),
}  # fmt: skip


def _check(ev: Evaluator, x: DType, y: DType, acc: DType) -> None:
    bytes_ = ("int8", "uint8")
    if x.name != y.name and not (x.name in bytes_ and y.name in bytes_):
        ev.refuse(f"mma needs operands of one dtype, not {x} and {y}")
    if acc.name not in ACCUMULATORS.get(x.name, ()):
        ev.refuse(f"mma of {x} can't accumulate in {acc}")
    if x.name == y.name:
        ev.unify(x, y)


def _shapes(ev: Evaluator, x: Shape, y: Shape) -> tuple[Shape, Shape, Shape]:
    """The broadcast operand shapes and the accumulator's."""
    if len(x) < 2 or len(y) < 2:
        ev.refuse("mma needs tiles of at least 2 dimensions")
    if x[-1].value != y[-2].value:
        ev.refuse(f"mma of shapes {sizes(x)} and {sizes(y)}: inner dimensions differ")
    ev.decide_equal(x[-1].sym, y[-2].sym, True)
    batch = ev.broadcast_shapes(x[:-2], y[:-2])
    return (*batch, *x[-2:]), (*batch, *y[-2:]), (*batch, x[-2], y[-1])


def _mma(ev: Evaluator, x: Val, y: Val, acc: Val, use_fast_acc: Val) -> Value:
    a, b, c = ev.tile(x), ev.tile(y), ev.tile(acc)
    ta, tb, tc = ev.type_of(a), ev.type_of(b), ev.type_of(c)
    sa, sb, sc = _shapes(ev, ta.shape, tb.shape)
    if sizes(sc) != sizes(tc.shape):
        ev.refuse(f"mma needs an accumulator of shape {sizes(sc)}, not {sizes(tc.shape)}")
    for p, q in zip(sc, tc.shape, strict=True):
        ev.decide_equal(p.sym, q.sym, True)
    _check(ev, ta.dtype, tb.dtype, tc.dtype)
    if tc.dtype.of is not None:
        tc = TileTy(ev.fix(tc.dtype), tc.shape)
    return ev.value("mma", (ev.broadcast_to(a, sa), ev.broadcast_to(b, sb), c), tc,
                    fast=flag(ev, use_fast_acc))  # fmt: skip


def _matmul(ev: Evaluator, x: Val, y: Val) -> Value:
    a, b = ev.tile(x), ev.tile(y)
    ta, tb = ev.type_of(a), ev.type_of(b)
    if ta.rank == 1 or tb.rank == 1:
        ev.hole("E0302", "ct.matmul of 1-d tiles isn't built yet")
    sa, sb, sc = _shapes(ev, ta.shape, tb.shape)
    common = ev.fix(ev.promote_dtypes(ta.dtype, tb.dtype))
    accumulators = ACCUMULATORS.get(common.name)
    if accumulators is None:
        ev.refuse(f"ct.matmul of {common}")
    d = DType(accumulators[-1])
    zero = ev.constant(0, d, sc)
    va = ev.broadcast_to(ev.astype(a, common), sa)
    vb = ev.broadcast_to(ev.astype(b, common), sb)
    product = ev.value("mma", (va, vb, zero), TileTy(d, sc), fast=False)
    return ev.astype(product, common)


ROWS: tuple[Rule, ...] = (
    Rule("cuda.tile.mma", "x, y, /, acc, *, use_fast_acc=False", "multiply and accumulate", _mma),
    Rule("cuda.tile.matmul", "x, y, /", "product with a fresh accumulator", _matmul),
    Rule("operator.matmul", "x, y, /", "product with a fresh accumulator", _matmul),
    unsupported("cuda.tile.mma_scaled", "not built yet (sm_100)", "x, x_scale, y, y_scale, /, acc"),
)
