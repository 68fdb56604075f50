"""How a constant is written, by its type and by where it stands."""

from __future__ import annotations

import math
from dataclasses import dataclass

from transpiler.emit.generics import Generics
from transpiler.ir import rust
from transpiler.ir.numbers import QUIET_NAN, bits, float32_bits
from transpiler.ir.symbolic import Sym, apply
from transpiler.ir.tir import Op
from transpiler.ir.types import DType, TileTy

_SPLATS = {"int32": "i32", "int64": "i64", "float32": "f32"}


@dataclass(frozen=True)
class Constant:
    """The expression of a constant; ``nest``: it needs no ``let`` of its own to have a type."""

    expr: rust.Expr
    nest: bool


def constant(op: Op, generics: Generics) -> Constant | None:
    """The constant of a ``constant`` operation; None if it has no form."""
    ty = op.result.ty
    assert isinstance(ty, TileTy)
    value, sym = op.attrs["value"], op.attrs["sym"]
    if ty.dtype.is_int and generics.is_symbolic(sym):
        return _symbolic(value, sym, ty, generics)
    if ty.dtype.name == "float32" and generics.is_symbolic(sym):
        return _symbolic_float(sym, float(value), ty, generics)
    shape = rust.shape(generics.dims(ty.shape))
    if ty.dtype.category == "bool":
        return _typed("splat_bool", str(int(value)), shape, bool(ty.shape))
    if ty.dtype.is_int:
        return _integer(_signed(int(value), ty.dtype), ty, shape)
    return _float(float(value), ty, shape, generics.is_generic(ty.dtype))


def generic_name(op: Op, generics: Generics) -> str:
    """What a constant that parameters decide is called as a variable: as its const generic."""
    sym, value = op.attrs["sym"], op.attrs["value"]
    if isinstance(value, float):
        return generics.derived_name(sym).lower()
    return generics.const(sym, value).lower()


def literalized(op: Op, generics: Generics) -> bool:
    """Does the text fix the value of a constant that depends on parameters (no const generic can hold it)?"""
    ty = op.result.ty
    assert isinstance(ty, TileTy)
    return ty.dtype.is_int and generics.is_symbolic(op.attrs["sym"]) and ty.dtype.name != "int32"


def _symbolic(value: int, sym: Sym, ty: TileTy, generics: Generics) -> Constant | None:
    if ty.dtype.name != "int32":
        return _integer(_signed(int(value), ty.dtype), ty, rust.shape(generics.dims(ty.shape)))
    return _splat(rust.call("to_tile", rust.Text(generics.const(sym, value))), ty, generics)


def _symbolic_float(sym: Sym, value: float, ty: TileTy, generics: Generics) -> Constant:
    """A float32 that parameters decide: its bits are the const generic, since cutile 0.5 has none of floats."""
    name = generics.const(apply("f32_bits", sym), float32_bits(value))
    return _splat(rust.call("f32_from_bits", rust.Text(name)), ty, generics)


def _splat(scalar: rust.Expr, ty: TileTy, generics: Generics) -> Constant:
    if not ty.shape:
        return Constant(scalar, True)
    ones = rust.shape(("1",) * len(ty.shape))
    wide = rust.call("reshape", scalar, ones)
    return Constant(rust.call("broadcast", wide, rust.shape(generics.dims(ty.shape))), True)


def _typed(name: str, text: str, shape: rust.Expr, nest: bool) -> Constant:
    return Constant(rust.call(name, rust.Text(text), shape), nest)


def _scalar_or_splat(dtype: DType, text: str, ty: TileTy, shape: rust.Expr) -> Constant:
    suffix = _SPLATS[dtype.name]
    if not ty.shape:
        return Constant(rust.call(f"const_{suffix}", rust.Text(text)), True)
    return _typed(f"splat_{suffix}", text, shape, True)


def _integer(value: int, ty: TileTy, shape: rust.Expr) -> Constant:
    if ty.dtype.name in _SPLATS:
        return _scalar_or_splat(ty.dtype, str(value), ty, shape)
    return _typed("const_i", str(value), shape, False)


def _signed(value: int, dtype: DType) -> int:
    """The bits of an unsigned value as a signed one: that is what the constant operation takes."""
    return value - (1 << dtype.bits) if not dtype.signed and value >= 1 << (dtype.bits - 1) else value


def _float(value: float, ty: TileTy, shape: rust.Expr, generic: bool) -> Constant | None:
    if ty.dtype.category == "restricted_float":
        return _restricted(value, ty, shape)
    if math.isnan(value):
        return None if generic else _nan(ty, shape, negative=math.copysign(1, value) < 0)
    text = f"f64::{'' if value > 0 else 'NEG_'}INFINITY" if math.isinf(value) else repr(value)
    if not generic and ty.dtype.name == "float32":
        return _scalar_or_splat(ty.dtype, text, ty, shape)
    return _typed("const_f", text, shape, False)


def _restricted(value: float, ty: TileTy, shape: rust.Expr) -> Constant | None:
    """fp8 and fp4 by their bits, which cutile 0.5 reads as an unsigned number (and anything else as 0).

    tf32 can only be a 0 of one element: the bits of other numbers corrupt cutile's bytecode, and so do those of tiles.
    """
    if ty.dtype.name != "tfloat32":
        return _typed("const_i", str(bits(value, ty.dtype.name)), shape, False)
    zero = value == 0 and math.copysign(1, value) > 0 and not ty.shape
    return _typed("const_i", "0", shape, False) if zero else None


def _nan(ty: TileTy, shape: rust.Expr, *, negative: bool) -> Constant:
    """A quiet NaN by its bits, as a signed number: cutile 0.5 has no literal of one."""
    number = str(QUIET_NAN[ty.dtype.name] - (negative << (ty.dtype.bits - 1)))
    if ty.dtype.bits != 32:
        whole = rust.call(f"const_i::<i{ty.dtype.bits}, _>", rust.Text(number), shape)
    elif ty.shape:
        whole = rust.call("splat_i32", rust.Text(number), shape)
    else:
        whole = rust.call("const_i32", rust.Text(number))
    return Constant(rust.call("bitcast", whole), False)
