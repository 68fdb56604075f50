"""Conversions between dtypes."""

from __future__ import annotations

from typing import Any

from transpiler.ir import symbolic as sy
from transpiler.ir.tir import Value
from transpiler.ir.types import BOOL, DType, TileTy
from transpiler.rules.common import enum_arg
from transpiler.rules.registry import Rule, unsupported
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import Const, TupleVal, Val, describe


def astype(ev: Evaluator, x: Val, dtype: Val, rounding_mode: Val) -> Value:
    """``astype``: nothing when the dtype is the same."""
    v, d = ev.tile(x), ev.dtype_arg(dtype)
    mode = enum_arg(ev, rounding_mode)
    if mode is not None and not (ev.type_of(v).dtype.is_float and d.is_float):
        ev.refuse("rounding_mode is for conversions between floats")
    return ev.astype(v, d, mode)


def _constructor(ev: Evaluator, dtype: Val, x: Val) -> Value:
    d = ev.dtype_arg(dtype)
    if isinstance(x, Const):
        return ev.constant(x.value, d, sym=_as_category(x, d))
    v = ev.tile(x)
    if ev.type_of(v).rank != 0:
        ev.refuse(f"{d}(...) needs a scalar", "use ct.astype")
    return ev.astype(v, d)


def _as_category(x: Const, d: DType) -> sy.Sym:
    if not sy.leaves_of(x.sym) or isinstance(x.value, float) == d.is_float:
        return x.sym
    return sy.apply("float" if d.is_float else "int", x.sym)


def _bitcast(ev: Evaluator, x: Val, dtype: Val) -> Value:
    v, d = ev.tile(x), ev.dtype_arg(dtype)
    ty = ev.type_of(v)
    if BOOL in (ty.dtype, d) or ty.dtype.bits != d.bits:
        ev.refuse(f"can't bitcast {ty.dtype} to {d}", "bitcast needs equal widths and no bool")
    if ty.dtype == d:
        return v
    return ev.value("bitcast", (v,), TileTy(d, ty.shape))


def _astile(ev: Evaluator, value: Val, dtype: Val) -> Value:
    d = ev.dtype_arg(dtype)
    if isinstance(value, TupleVal):
        ev.hole("E0301", "ct.astile of a tuple has no rule")
    return ev.astype(ev.tile(value), d)


def _python(kind: type) -> Any:
    def lower(ev: Evaluator, x: Val) -> Val:
        if isinstance(x, Const):
            return Const(kind(x.value), x.sym if type(x.value) is kind else sy.apply(kind.__name__, x.sym))
        v = ev.tile(x, f"the argument of {kind.__name__}()")
        if kind is bool:
            return ev.astype(v, BOOL)
        ev.hole("E0301", f"{kind.__name__}() of {describe(v)} has no rule")

    return lower


ROWS: tuple[Rule, ...] = (
    Rule("cuda.tile.astype", "x, dtype, /, *, rounding_mode=None", "element-wise conversion", astype),
    Rule("Tile.astype", "x, dtype, *, rounding_mode=None", "element-wise conversion", astype),
    Rule("cuda.tile.dtype_constructor", "dtype, x, /", "ct.float32(x): a typed scalar", _constructor),
    Rule("cuda.tile.bitcast", "x, /, dtype", "the same bits under another dtype", _bitcast),
    Rule("cuda.tile.astile", "value, /, *, dtype", "a scalar as a 0-d tile", _astile),
    Rule("builtins.float", "x, /", "float of a constant", _python(float)),
    Rule("builtins.int", "x, /", "int of a constant", _python(int)),
    Rule("builtins.bool", "x, /", "bool", _python(bool)),
    unsupported("cuda.tile.pack_to_bytes", "not built yet: pack works on rank 1 only in cutile 0.5", "x, /"),
    unsupported("cuda.tile.unpack_from_bytes", "not built yet: unpack works on rank 1 only in cutile 0.5",
                "x, /, dtype"),
    unsupported("cuda.tile.foreign_pointer_dtype", "raw pointers aren't mapped", "pointee_dtype, /"),
)  # fmt: skip
