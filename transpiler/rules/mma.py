"""Matrix products."""

from __future__ import annotations

from transpiler.ir.tir import Value
from transpiler.ir.types import DType, Shape, TileTy, dim, sizes
from transpiler.rules.common import flag
from transpiler.rules.registry import Rule
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import Val

# operand dtype -> accumulator dtypes; the first one is matmul's
ACCUMULATORS = {
    "float8_e4m3fn": ("float16", "float32"), "float8_e5m2": ("float16", "float32"),
    "float16": ("float16", "float32"), "bfloat16": ("float32",), "float32": ("float32",),
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
    row, column = ta.rank == 1, tb.rank == 1  # a row from the left, a column from the right, as NumPy has it
    if column:
        b = ev.reshape(b, (*tb.shape, dim(1)))
    sa, sb, sc = _shapes(ev, (dim(1), *ta.shape) if row else ta.shape, ev.type_of(b).shape)
    common = ev.fix(ev.promote_dtypes(ta.dtype, tb.dtype))
    accumulators = ACCUMULATORS.get(common.name)
    if accumulators is None:
        ev.refuse(f"ct.matmul of {common}")
    d = DType(accumulators[0])
    zero = ev.constant(0, d, sc)
    va = ev.broadcast_to(ev.astype(a, common), sa)
    vb = ev.broadcast_to(ev.astype(b, common), sb)
    product = ev.value("mma", (va, vb, zero), TileTy(d, sc), fast=False)
    given = (*sc[:-2], *(() if row else sc[-2:-1]), *(() if column else sc[-1:]))
    return ev.reshape(ev.astype(product, common), given)


# operand dtype -> scale dtype -> elements of K a scale may stand for
_SCALES: dict[str, dict[str, tuple[int, ...]]] = {
    "float8_e4m3fn": {"float8_e8m0fnu": (32,)}, "float8_e5m2": {"float8_e8m0fnu": (32,)},
    "float4_e2m1fn": {"float8_e8m0fnu": (16, 32), "float8_e4m3fn": (16,)},
}  # fmt: skip


def _scaled(ev: Evaluator, x: Val, x_scale: Val, y: Val, y_scale: Val, acc: Val) -> Value:
    a, sa, b, sb, c = (ev.tile(v) for v in (x, x_scale, y, y_scale, acc))
    ta, tsa, tb, tsb, tc = (ev.type_of(v) for v in (a, sa, b, sb, c))
    if ta.dtype != tb.dtype or tsa.dtype != tsb.dtype or ev.fix(tc.dtype).name != "float32":
        ev.refuse("mma_scaled needs operands of one dtype, scales of one dtype and a float32 accumulator")
    if tsa.dtype.name not in _SCALES.get(ta.dtype.name, {}):
        ev.refuse(f"mma_scaled of {ta.dtype} can't take scales of {tsa.dtype}")
    for t, scale, k in ((ta, tsa, -1), (tb, tsb, -2)):
        _check_scale(ev, t, scale, k)
    left, right, out = _shapes(ev, ta.shape, tb.shape)
    if sizes(out) != sizes(tc.shape):
        ev.refuse(f"mma_scaled needs an accumulator of shape {sizes(out)}, not {sizes(tc.shape)}")
    for p, q in zip(out, tc.shape, strict=True):
        ev.decide_equal(p.sym, q.sym, True)
    batch = out[:-2]
    operands = (ev.broadcast_to(a, left), ev.broadcast_to(sa, (*batch, *tsa.shape[-2:])), ev.broadcast_to(b, right),
                ev.broadcast_to(sb, (*batch, *tsb.shape[-2:])), c)  # fmt: skip
    return ev.value("mma_scaled", operands, TileTy(ev.fix(tc.dtype), tc.shape))


def _check_scale(ev: Evaluator, t: TileTy, scale: TileTy, k: int) -> None:
    whole, parts = sizes(t.shape), sizes(scale.shape)
    blocks = _SCALES[t.dtype.name][scale.dtype.name]
    same = len(whole) == len(parts) and all(w == p for i, (w, p) in enumerate(zip(whole, parts, strict=True))
                                            if i - len(whole) != k)  # fmt: skip
    if not same or whole[k] % parts[k] or whole[k] // parts[k] not in blocks:
        ev.refuse(f"scales of shape {parts} don't fit a tile of shape {whole}: one for {blocks} elements of K")


ROWS: tuple[Rule, ...] = (
    Rule("cuda.tile.mma", "x, y, /, acc, *, use_fast_acc=False", "multiply and accumulate", _mma),
    Rule("cuda.tile.matmul", "x, y, /", "product with a fresh accumulator", _matmul),
    Rule("operator.matmul", "x, y, /", "product with a fresh accumulator", _matmul),
    Rule(
        "cuda.tile.mma_scaled", "x, x_scale, y, y_scale, /, acc", "multiply with block scales and accumulate", _scaled
    ),
)
