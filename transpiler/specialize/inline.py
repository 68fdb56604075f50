"""Calls that no rule maps: what they are as constructs, and the Rust that an override puts in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from transpiler.ir import hir
from transpiler.ir.construct import RAISED_MODEL, Construct, FilledSite, Fragment, RaisedCall, ResultType
from transpiler.ir.tir import Value
from transpiler.ir.types import DTYPE_TABLE, Dim, DType, PtrTy, Shape, TensorTy, TileTy, Type, dim
from transpiler.specialize.values import (
    ArrayVal,
    Const,
    DTypeVal,
    Func,
    HoleError,
    Ref,
    TupleVal,
    Unmapped,
    Val,
    describe,
)

if TYPE_CHECKING:
    from transpiler.specialize.evaluate import Evaluator


def unmapped(
    ev: Evaluator, code: str, message: str, callee: str, args: tuple[Val, ...], kwargs: dict[str, Val], help: str = ""
) -> Val:  # fmt: skip
    """A call without a rule: what an override says, else a Hole."""
    construct, operands = _call(ev, callee, args, kwargs)
    fragment = ev.fragments.get(construct.digest)
    if fragment is None and ev.filler is not None:
        made = ev.filler(construct, operands, ev.span)
        if made is not None:
            return _raised(ev, made)
    if fragment is None:
        inputs = tuple((v.name_in(ev.site), str(v.ty)) for v in operands)
        raise HoleError(code, message, ev.span, help, construct=construct, inputs=inputs)
    for v in (*args, *kwargs.values()):
        if isinstance(v, Const):
            ev.decide(v)
    ev.filled.append(FilledSite(construct, fragment.key, fragment.model, ev.span.file, ev.span.line))
    ev.trace.add("override", fragment.key, ev.span)
    return inlined(ev, fragment, operands)


def _raised(ev: Evaluator, made: RaisedCall) -> Val:
    """Append the reference's own operations; returns what the call gives."""
    for op in made.ops:
        op.site, op.statement, op.span = ev.site, ev.statement, ev.span
        ev.block.ops.append(op)
    ev.filled.append(FilledSite(made.construct, made.key, RAISED_MODEL, ev.span.file, ev.span.line, "raised"))
    return made.results[0] if len(made.results) == 1 else TupleVal(made.results)


def inlined(ev: Evaluator, fragment: Fragment, operands: Sequence[Value]) -> Val:
    """Emit a fragment as one pure operation; returns its value, or a tuple of several."""
    types = tuple(_result(ev, one, operands) for one in fragment.results)
    results = ev.emit("rust", tuple(operands), types, fragment=fragment).results
    return results[0] if len(results) == 1 else TupleVal(results)


def _call(
    ev: Evaluator, callee: str, args: tuple[Val, ...], kwargs: dict[str, Val]
) -> tuple[Construct, tuple[Value, ...]]:
    """The construct that a call is, and its operands."""
    named = [(str(i), v) for i, v in enumerate(args)] + sorted(kwargs.items())
    texts, types, values = described_call(ev, [v for _, v in named])
    arguments = tuple((name, text) for (name, _), text in zip(named, texts, strict=True))
    return Construct("call", callee, types, arguments), values


def described_call(ev: Evaluator, args: Sequence[Val]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Value, ...]]:
    """How each argument is passed as text, the types of the operands among them, and the operands."""
    values: list[Value] = []
    texts = tuple(_argument(v, values) for v in args)
    return texts, tuple(_described(ev, v.ty) for v in values), tuple(values)


def _argument(v: Val, values: list[Value]) -> str:
    """How an argument is passed; tiles and arrays are operands, all else is text."""
    match v:
        case Value() | ArrayVal():
            values.append(v if isinstance(v, Value) else v.tensor)
            return f"${len(values) - 1}"
        case Const(value=value):
            return repr(value)
        case DTypeVal(dtype=dtype):
            return dtype.name
        case Ref(name=name):
            return name
        case Func(function=function):  # what it does counts, not only its name
            return f"{function.name}:{hir.digest(function)}"
        case Unmapped(text=text):
            return text
        case TupleVal(items=items):
            return f"({', '.join(_argument(i, values) for i in items)})"
        case _:
            return describe(v)


def _described(ev: Evaluator, ty: Type) -> str:
    match ty:
        case TileTy() | PtrTy():
            return operand_text(ty, ev.resolve(ty.dtype).of is not None)
        case TensorTy():
            return operand_text(ty, ev.resolve(ty.dtype).of is not None)
        case _:
            return type(ty).__name__


def operand_text(ty: TileTy | PtrTy | TensorTy, generic: bool) -> str:
    """A type as constructs have it: kind, dtype or ``generic``, and rank."""
    kind = {TileTy: "tile", PtrTy: "pointers", TensorTy: "array"}[type(ty)]
    return f"{kind} {'generic' if generic else ty.dtype.name} {ty.rank}"


def _result(ev: Evaluator, one: ResultType, operands: Sequence[Value]) -> TileTy:
    return TileTy(_dtype(ev, one.dtype, operands), _shape(ev, one.shape, operands))


def _dtype(ev: Evaluator, text: str, operands: Sequence[Value]) -> DType:
    if text.startswith("$"):
        return ev.resolve(operands[int(text[1:])].ty.dtype)  # type: ignore[union-attr]
    if text not in DTYPE_TABLE:
        raise ValueError(f"no dtype: {text}")
    return DType(text)


def _shape(ev: Evaluator, shape: str | tuple[int | str, ...], operands: Sequence[Value]) -> Shape:
    if isinstance(shape, str):
        return ev.type_of(operands[int(shape[1:])]).shape
    return tuple(_dim(ev, item, operands) for item in shape)


def _dim(ev: Evaluator, item: int | str, operands: Sequence[Value]) -> Dim:
    if isinstance(item, int):
        return dim(item)
    operand, _, axis = item[1:].partition(".")
    return ev.type_of(operands[int(operand)]).shape[int(axis)]
