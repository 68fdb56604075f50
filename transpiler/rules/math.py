"""Unary mathematics."""

from __future__ import annotations

import math
from collections.abc import Callable

from transpiler.ir import symbolic as sy
from transpiler.ir.types import BOOL, F32, TileTy
from transpiler.rules.common import enum_arg, flag
from transpiler.rules.registry import Rule
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import Const, Val, const

FOLD: dict[str, Callable[[float], float]] = {
    "exp": math.exp, "exp2": lambda x: 2**x, "log": math.log, "log2": math.log2, "sqrt": math.sqrt,
    "rsqrt": lambda x: x**-0.5, "sin": math.sin, "cos": math.cos, "tan": math.tan, "sinh": math.sinh,
    "cosh": math.cosh, "tanh": math.tanh, "floor": math.floor, "ceil": math.ceil, "abs": abs,
}  # fmt: skip
DEFAULT_ROUNDING = {"exp": "full", "tanh": "full", "sqrt": "nearest_even"}


def unary(ev: Evaluator, fn: str, x: Val, rounding: str | None = None, ftz: bool = False) -> Val:
    """A unary operation: integers become float32 (except abs), constants fold."""
    if isinstance(x, Const):
        return fold(ev, fn, x)
    v = ev.tile(x)
    d = ev.type_of(v).dtype
    if fn != "abs" and not d.is_float:
        if fn in ("floor", "ceil"):
            ev.refuse(f"`{fn}` needs a float, not {d}")
        v = ev.astype(v, F32)
    ty = ev.type_of(v)
    if (c := ev.known_exactly(v)) is not None:
        folded = fold(ev, fn, c)
        return ev.constant(folded.value, ty.dtype, sym=folded.sym)
    if ftz or rounding in ("approx", "full"):
        if ty.dtype.name != "float32":
            ev.refuse(f"{rounding or 'flush_to_zero'} needs float32, not {ty.dtype}")
        ty = TileTy(ev.fix(ty.dtype), ty.shape)
    return ev.value(_opcode(fn, ty), (v,), ty, **_attributes(fn, rounding, ftz))


def fold(ev: Evaluator, fn: str, x: Const) -> Const:
    """Python's own function on a constant."""
    try:
        value = FOLD[fn](x.value)
    except (ArithmeticError, ValueError, TypeError) as e:
        ev.refuse(f"{fn}({x.value!r}): {e}")
    if fn in sy.OPERATORS:
        return Const(value, sy.apply(fn, x.sym))
    ev.decide(x)
    return const(value)


def _opcode(fn: str, ty: TileTy) -> str:
    if fn == "abs":
        return "absf" if ty.dtype.is_float else "absi"
    return fn


def _attributes(fn: str, rounding: str | None, ftz: bool) -> dict[str, object]:
    attrs: dict[str, object] = {}
    if fn in DEFAULT_ROUNDING:
        attrs["rounding"] = rounding or DEFAULT_ROUNDING[fn]
    if fn in ("exp2", "rsqrt", "sqrt"):
        attrs["ftz"] = ftz
    return attrs


def _plain(fn: str) -> Callable[..., Val]:
    return lambda ev, x: unary(ev, fn, x)


def _ftz(fn: str) -> Callable[..., Val]:
    return lambda ev, x, flush_to_zero: unary(ev, fn, x, ftz=flag(ev, flush_to_zero))


def _rounded(fn: str) -> Callable[..., Val]:
    return lambda ev, x, rounding_mode: unary(ev, fn, x, enum_arg(ev, rounding_mode))


def _sqrt(ev: Evaluator, x: Val, rounding_mode: Val, flush_to_zero: Val) -> Val:
    return unary(ev, "sqrt", x, enum_arg(ev, rounding_mode), flag(ev, flush_to_zero))


def _isnan(ev: Evaluator, x: Val) -> Val:
    if isinstance(x, Const):
        return const(math.isnan(ev.decide(x)))
    v = ev.tile(x)
    ty = ev.type_of(v)
    if not ty.dtype.is_float:
        ev.refuse(f"isnan needs a float, not {ty.dtype}")
    if (c := ev.known_exactly(v)) is not None:
        return ev.constant(math.isnan(ev.decide(c)), BOOL)
    return ev.value("cmpf", (v, v), TileTy(BOOL, ty.shape), predicate="ne", ordered=False)


def _host(fn: str) -> Callable[..., Val]:
    def lower(ev: Evaluator, x: Val) -> Val:
        if not isinstance(x, Const):
            ev.refuse(f"`math.{fn}` needs a constant", f"use ct.{fn}")
        return fold(ev, fn, x)

    return lower


ROWS: tuple[Rule, ...] = (
    *(Rule(f"cuda.tile.{fn}", "x, /", fn, _plain(fn))
      for fn in ("log", "log2", "sin", "cos", "tan", "sinh", "cosh", "floor", "ceil", "abs")),
    *(Rule(f"cuda.tile.{fn}", "x, /, *, flush_to_zero=False", fn, _ftz(fn)) for fn in ("exp2", "rsqrt")),
    *(Rule(f"cuda.tile.{fn}", "x, /, *, rounding_mode=None", fn, _rounded(fn)) for fn in ("exp", "tanh")),
    Rule("cuda.tile.sqrt", "x, /, *, rounding_mode=None, flush_to_zero=False", "square root", _sqrt),
    Rule("cuda.tile.isnan", "x, /", "unordered with itself", _isnan),
    Rule("builtins.abs", "x, /", "absolute value", _plain("abs")),
    *(Rule(f"math.{fn}", "x, /", f"{fn} of a constant", _host(fn))
      for fn in ("sqrt", "exp", "log", "log2", "floor", "ceil", "sin", "cos", "tanh")),
)  # fmt: skip
