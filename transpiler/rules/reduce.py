"""Reductions and scans."""

from __future__ import annotations

from collections.abc import Callable

from transpiler.ir.tir import Value
from transpiler.ir.types import I32, TileTy, dim
from transpiler.rules.common import axis_arg, enum_arg, flag
from transpiler.rules.registry import Rule, unsupported
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import Const, TupleVal, Val


def reduce_tile(
    ev: Evaluator, fn: str, x: Val, axis: Val, keepdims: bool, rounding: str | None, ftz: bool, nan: bool
) -> Value:
    """Reduce one axis after the other, the lowest first; keepdims is a reshape at the end."""
    v = ev.tile(x)
    ty = ev.type_of(v)
    if ty.dtype.category == "restricted_float":
        ev.refuse(f"{ty.dtype} can't be reduced")
    if ty.dtype.category == "bool" and fn in ("min", "max"):
        ev.hole("E0302", f"the {fn} of bools starts from other identities than cutile 0.5's", "use ct.sum or ct.prod")
    if ty.dtype.name == "float64" and fn == "max":
        ev.hole("E0302", "cuda-tile 1.7 starts the max of float64 from +inf, so it is always inf; cutile 0.5 can't",
                "negate, and use ct.min")  # fmt: skip
    if ty.dtype.category == "bool":
        v = ev.astype(v, I32)
    axes = _axes(ev, axis, ty.rank)
    shape = list(ty.shape)
    for done, a in enumerate(axes):
        del shape[a - done]
        result = TileTy(ev.type_of(v).dtype, tuple(shape))
        v = ev.value("reduce", (v,), result, fn=fn, axis=a - done, rounding=rounding, ftz=ftz, nan=nan)
    if keepdims:
        v = ev.reshape(v, tuple(dim(1) if i in axes else d for i, d in enumerate(ty.shape)))
    return v


def _axes(ev: Evaluator, axis: Val, rank: int) -> tuple[int, ...]:
    if isinstance(axis, Const) and axis.value is None:
        return tuple(range(rank))
    items = axis.items if isinstance(axis, TupleVal) else (axis,)
    axes = sorted(axis_arg(ev, a, rank) for a in items)
    if len(set(axes)) != len(axes):
        ev.refuse(f"an axis is repeated in {axes}")
    return tuple(axes)


def _sum_like(fn: str) -> Callable[..., Value]:
    def lower(ev: Evaluator, x: Val, axis: Val, keepdims: Val, rounding_mode: Val, flush_to_zero: Val) -> Value:
        mode, ftz = enum_arg(ev, rounding_mode), flag(ev, flush_to_zero)
        return reduce_tile(ev, fn, x, axis, flag(ev, keepdims), mode, ftz, False)

    return lower


def _max_like(fn: str) -> Callable[..., Value]:
    def lower(ev: Evaluator, x: Val, axis: Val, keepdims: Val, flush_to_zero: Val, propagate_nan: Val) -> Value:
        ftz, nan = flag(ev, flush_to_zero), flag(ev, propagate_nan)
        return reduce_tile(ev, fn, x, axis, flag(ev, keepdims), None, ftz, nan)

    return lower


def _scan(fn: str) -> Callable[..., Value]:
    def lower(ev: Evaluator, x: Val, axis: Val, reverse: Val, rounding_mode: Val, flush_to_zero: Val) -> Value:
        v = ev.tile(x)
        if ev.type_of(v).dtype.category == "bool":
            v = ev.astype(v, I32)
        ty = ev.type_of(v)
        return ev.value("scan", (v,), ty, fn=fn, axis=axis_arg(ev, axis, ty.rank), reverse=flag(ev, reverse),
                        rounding=enum_arg(ev, rounding_mode), ftz=flag(ev, flush_to_zero))  # fmt: skip

    return lower


_SUM = "x, /, axis=None, *, keepdims=False, rounding_mode=None, flush_to_zero=False"
_MAX = "x, /, axis=None, *, keepdims=False, flush_to_zero=False, propagate_nan=False"
_CUM = "x, /, axis=0, *, reverse=False, rounding_mode=None, flush_to_zero=False"

ROWS: tuple[Rule, ...] = (
    Rule("cuda.tile.sum", _SUM, "sum along axes", _sum_like("add")),
    Rule("cuda.tile.prod", _SUM, "product along axes", _sum_like("mul")),
    Rule("cuda.tile.max", _MAX, "maximum along axes", _max_like("max")),
    Rule("cuda.tile.min", _MAX, "minimum along axes", _max_like("min")),
    Rule("cuda.tile.cumsum", _CUM, "running sum", _scan("add")),
    unsupported("cuda.tile.cumprod", "cutile 0.5 scans start from 0 whatever identity is given", _CUM),
    unsupported("cuda.tile.argmax", "cutile 0.5 has no reduction of tuples",
                "x, /, axis=None, *, keepdims=False, propagate_nan=False"),
    unsupported("cuda.tile.argmin", "cutile 0.5 has no reduction of tuples",
                "x, /, axis=None, *, keepdims=False, propagate_nan=False"),
    unsupported("cuda.tile.reduce", "cutile 0.5 ignores a reduction's dimension and identity",
                "x, /, axis, func, identity, *, keepdims=False"),
    unsupported("cuda.tile.scan", "cutile 0.5 ignores a scan's dimension and identity",
                "x, /, axis, func, identity, *, reverse=False"),
)  # fmt: skip
