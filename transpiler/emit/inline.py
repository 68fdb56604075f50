"""Writing an override's Rust in the place of an operation."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from transpiler.ir import rust
from transpiler.ir.construct import Construct, Fragment
from transpiler.ir.tir import Op
from transpiler.ir.types import PtrTy, TensorTy, TileTy, Type
from transpiler.select.forms import instantiate
from transpiler.select.params import keys

if TYPE_CHECKING:
    from transpiler.emit.generics import Generics
    from transpiler.emit.lower import Lowering

_NOT_ARGUMENTS = frozenset({"sym", "array", "group"})


def construct_of(op: Op, generics: Generics) -> Construct:
    """The construct that an operation without a form is: its attributes, and what forms can ask of its types."""
    arguments = {k: repr(v) for k, v in op.attrs.items() if v is not None and k not in _NOT_ARGUMENTS}
    arguments |= {k: repr(v) for k, v in keys(op, generics).items() if k not in _NOT_ARGUMENTS and v is not None}
    operands = tuple(_described(v.ty, generics) for v in op.operands)
    results = " ".join(_described(v.ty, generics) for v in op.results)
    return Construct("operation", op.opcode, operands, (*sorted(arguments.items()), ("results", results)))


def _described(ty: Type, generics: Generics) -> str:
    if not isinstance(ty, TileTy | PtrTy | TensorTy):
        return type(ty).__name__
    kind = {TileTy: "tile", PtrTy: "pointers", TensorTy: "array"}[type(ty)]
    return f"{kind} {'generic' if generics.is_generic(ty.dtype) else ty.dtype.name} {ty.rank}"


def write(low: Lowering, op: Op, fragment: Fragment) -> None:
    """Write a fragment; what it binds gets variables of its own, named like the fragment's where those are free."""
    simple = len(fragment.body) == 1
    operands = low.take(op.operands) if simple else low.as_variables(op)
    scope: dict[Hashable, Hashable] = {}
    values: dict[str, rust.Expr | str] = {str(i): e for i, e in enumerate(operands)}
    values |= _types(low, op)
    *steps, end = fragment.body
    for stmt in steps:
        low.emit(_stmt(low, op, stmt, values, scope))
    assert isinstance(end, rust.Tail)
    low.results(op, _expr(end.value, values, scope), simple)


def _types(low: Lowering, op: Op) -> dict[str, rust.Expr | str]:
    """``$type``, ``$element`` and ``$shape`` of the first result, and ``$type0`` .. of the operands."""
    out: dict[str, rust.Expr | str] = {}
    for suffix, v in (("", op.results[0]), *((str(i), v) for i, v in enumerate(op.operands))):
        out[f"type{suffix}"] = low.generics.value_type(v)
        if isinstance(v.ty, TileTy | PtrTy):
            out[f"element{suffix}"] = low.generics.element(v.ty.dtype)
            out[f"shape{suffix}"] = rust.shape(low.generics.dims(v.ty.shape))
    return out


def _stmt(
    low: Lowering, op: Op, stmt: rust.Stmt, values: Mapping[str, rust.Expr | str], scope: dict[Hashable, Hashable]
) -> rust.Stmt:
    """A statement with its own variables; blocks inside share the scope (names are unique in a fragment)."""
    if not isinstance(stmt, rust.Let):
        raise ValueError(f"a fragment can't hold {type(stmt).__name__}")
    value = _expr(stmt.value, values, scope)
    types = tuple(str(instantiate(rust.Text(t), values).text) for t in stmt.types)  # type: ignore[union-attr]
    for key, text in zip(stmt.vars, types, strict=True):
        if key is not None:
            scope[key] = (op, key, len(low.variables))
            low.variable(scope[key], str(key), text)
    return replace(stmt, vars=tuple(scope.get(k) for k in stmt.vars), types=types, value=value, note=low.note(op))


def _expr(e: rust.Expr, values: Mapping[str, rust.Expr | str], scope: Mapping[Hashable, Hashable]) -> rust.Expr:
    def local(x: rust.Expr) -> rust.Expr:
        if isinstance(x, rust.Text) and x.text in scope:
            return rust.Var(scope[x.text])
        return rust.map_children(x, local)

    return instantiate(local(e), values)
