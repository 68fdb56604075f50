"""Writing an override's Rust in the place of an operation."""

from __future__ import annotations

from collections.abc import Mapping
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
    from transpiler.emit.lower import Key, Lowering

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
    """Write an override's Rust."""
    write_body(low, op, fragment.body)


def write_body(low: Lowering, op: Op, body: tuple[rust.Stmt, ...]) -> None:
    """Write statements; what they bind gets variables of its own, named as they say where those names are free."""
    *steps, end = body
    simple = not steps and isinstance(end, rust.Tail) and not isinstance(end.value, rust.If)
    operands = low.take(op.operands) if simple else low.as_variables(op)
    writer = _Writer(low, op, {**{str(i): e for i, e in enumerate(operands)}, **_types(low, op)})
    for stmt in steps:
        low.emit(replace(writer.stmt(stmt), note=low.note(op)))
    if not isinstance(end, rust.Tail):
        raise ValueError("a fragment ends in its value")
    low.results(op, writer.expr(end.value), simple and nests(op))


def nests(op: Op) -> bool:
    """May the value be written inside another expression? cutile 0.5 takes an operand's type for the result's."""
    types = {str(v.ty) for v in (*op.operands, *op.results)}
    return len(types) == 1


def _types(low: Lowering, op: Op) -> dict[str, rust.Expr | str]:
    """``$type``, ``$element`` and ``$shape`` of the first result, and ``$type0`` .. of the operands."""
    out: dict[str, rust.Expr | str] = {}
    for suffix, v in ((("", op.results[0]),) if op.results else ()) + tuple(
        (str(i), v) for i, v in enumerate(op.operands)
    ):
        out[f"type{suffix}"] = low.generics.value_type(v)
        if isinstance(v.ty, TileTy | PtrTy):
            out[f"element{suffix}"] = low.generics.element(v.ty.dtype)
            dims = low.generics.dims(v.ty.shape)
            out[f"shape{suffix}"] = rust.shape(dims)
            out |= {f"dim{suffix}_{axis}": text for axis, text in enumerate(dims)}
    return out


class _Writer:
    """Fills a fragment's placeholders and gives its variables keys of this place."""

    def __init__(self, low: Lowering, op: Op, values: Mapping[str, rust.Expr | str]) -> None:
        self.low, self.op, self.values = low, op, values
        self.keys: dict[str, Key] = {}

    def bind(self, name: str, type_text: str, mutable: bool) -> Key:
        key = (self.op, name, len(self.low.variables))
        self.low.variable(key, name, type_text)
        self.low.variables[key].mutable = mutable
        self.keys[name] = key
        return key

    def block(self, body: tuple[rust.Stmt, ...]) -> tuple[rust.Stmt, ...]:
        return tuple(map(self.stmt, body))

    def stmt(self, stmt: rust.Stmt) -> rust.Stmt:
        match stmt:
            case rust.Let():
                value = self.expr(stmt.value)
                types = tuple(self.text(t) for t in stmt.types)
                mut = stmt.mut or (False,) * len(types)
                keys = tuple(
                    None if name is None else self.bind(str(name), text, mutable)
                    for name, text, mutable in zip(stmt.vars, types, mut, strict=True)
                )
                return replace(stmt, vars=keys, types=types, value=value, mut=())
            case rust.Assign():
                return replace(stmt, var=self.keys[str(stmt.var)], value=self.expr(stmt.value))
            case rust.Do() | rust.Tail():
                return replace(stmt, value=self.expr(stmt.value))
            case rust.For():
                bounds = self.expr(stmt.iter)
                return replace(
                    stmt, var=self.bind(str(stmt.var), "i32", False), iter=bounds, body=self.block(stmt.body)
                )
            case _:
                raise ValueError(f"a fragment can't hold {type(stmt).__name__}")

    def expr(self, e: rust.Expr) -> rust.Expr:
        if isinstance(e, rust.If):
            return rust.If(self.expr(e.cond), self.block(e.then), self.block(e.other))
        return instantiate(self._own(e), self.values)

    def _own(self, e: rust.Expr) -> rust.Expr:
        if isinstance(e, rust.Var):
            return rust.Var(self.keys[str(e.key)])
        return rust.map_children(e, self._own)

    def text(self, type_text: str) -> str:
        filled = instantiate(rust.Text(type_text), self.values)
        if not isinstance(filled, rust.Text):
            raise ValueError(f"`{type_text}` is no type")
        return filled.text
