"""Conversions between dtypes."""

from __future__ import annotations

from typing import Any

from transpiler.ir import symbolic as sy
from transpiler.ir.tir import Value
from transpiler.ir.types import BOOL, Dim, DType, TileTy
from transpiler.rules.common import enum_arg
from transpiler.rules.registry import Rule, unsupported
from transpiler.rules.shape import reshape
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import Const, TupleVal, Val, const, describe

U8 = DType("uint8")


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
        return ev.number(x, d, _as_category(x, d))
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


def _pack(ev: Evaluator, x: Val) -> Value:
    v = reshape(ev, x, TupleVal((const(-1),)))
    d = ev.fix(ev.type_of(v).dtype)
    if d == BOOL:
        ev.refuse("pack_to_bytes of a bool tile")
    if d.bits == 8:
        return v if d == U8 else ev.value("bitcast", (v,), TileTy(U8, ev.type_of(v).shape))
    return ev.value("pack", (v,), TileTy(U8, (_regrouped(ev, ev.type_of(v).shape[0], d.bits, 8),)))


def _unpack(ev: Evaluator, x: Val, dtype: Val) -> Value:
    v, d = ev.tile(x), ev.fix(ev.dtype_arg(dtype))
    ty = ev.type_of(v)
    if ty.dtype != U8 or ty.rank != 1 or d == BOOL:
        ev.refuse(f"unpack_from_bytes of {ty} to {d}", "it takes a uint8 tile of rank 1 and no bool")
    if d.bits == 8:
        return v if d == U8 else ev.value("bitcast", (v,), TileTy(d, ty.shape))
    return ev.value("unpack", (v,), TileTy(d, (_regrouped(ev, ty.shape[0], 8, d.bits),)))


def _regrouped(ev: Evaluator, size: Dim, bits: int, new_bits: int) -> Dim:
    """The number of elements when ``size`` elements of ``bits`` are taken as elements of ``new_bits``."""
    if size.value * bits % new_bits:
        ev.refuse(f"{size.value} elements of {bits} bits can't be taken as elements of {new_bits} bits")
    factor, op = (bits // new_bits, "mul") if bits > new_bits else (new_bits // bits, "floordiv")
    return Dim(size.value * bits // new_bits, sy.apply(op, size.sym, sy.lit(factor)))


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
    Rule("cuda.tile.pack_to_bytes", "x, /", "a tile's bytes as a flat uint8 tile", _pack),
    Rule("cuda.tile.unpack_from_bytes", "x, /, dtype", "a flat uint8 tile as elements of another dtype", _unpack),
    unsupported("cuda.tile.foreign_pointer_dtype", "raw pointers aren't mapped", "pointee_dtype, /"),
)  # fmt: skip
