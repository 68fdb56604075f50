"""Where operations go while a program is built, and what statements and values hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from transpiler.ir import hir
from transpiler.ir.tir import Block, Value
from transpiler.ir.types import DType, TileTy
from transpiler.specialize.builder import Builder
from transpiler.specialize.values import Const, TupleVal, Val

RETVAL, RETURNING = "$retval", "$returning"
"""Names that no author can give: what a function returns, and whether it is returning."""


class Nested:
    """Emit into a fresh block."""

    def __init__(self, ev: Builder) -> None:
        self.ev = ev

    def __enter__(self) -> Block:
        self.outer, self.ev.block = self.ev.block, Block()
        return self.ev.block

    def __exit__(self, *_: object) -> None:
        self.ev.block = self.outer


class Into:
    """Emit at the end of an existing block."""

    def __init__(self, ev: Builder, block: Block) -> None:
        self.ev, self.block = ev, block

    def __enter__(self) -> None:
        self.outer, self.ev.block = self.ev.block, self.block

    def __exit__(self, *_: object) -> None:
        self.ev.block = self.outer


class BeforeEnd:
    """Emit just before a block's terminator."""

    def __init__(self, ev: Builder, block: Block) -> None:
        self.ev, self.block = ev, block

    def __enter__(self) -> None:
        self.end = self.block.ops.pop()
        self.outer, self.ev.block = self.ev.block, self.block

    def __exit__(self, *_: object) -> None:
        self.block.ops.append(self.end)
        self.ev.block = self.outer


def blocks_of(block: Block) -> Iterator[Block]:
    """The block and every block inside it."""
    yield block
    for op in block.ops:
        for region in op.regions:
            yield from blocks_of(region)


def assigned(body: Sequence[hir.Stmt]) -> tuple[str, ...]:
    """Names that the statements assign, in order of first assignment."""
    names: dict[str, None] = {}

    def target(t: hir.Target) -> None:
        if t.name is not None:
            names.setdefault(t.name)
        for i in t.items:
            target(i)

    for s in hir.walk(tuple(body)):
        if isinstance(s, (hir.Assign, hir.For)):
            target(s.target)
    return tuple(names)


def numeric(v: Val) -> bool:
    """Is it a tile or a Python number?"""
    return (isinstance(v, Value) and isinstance(v.ty, TileTy)) or (
        isinstance(v, Const) and isinstance(v.value, (bool, int, float))
    )


def typed(ev: Builder, v: Val, dtype: DType | None) -> Value:
    """The value as a tile; a Python number gets ``dtype`` if there is one."""
    if isinstance(v, Const) and dtype is not None:
        return ev.number(v, dtype, v.sym)
    return ev.tile(v)


def replaced(v: Val, new: dict[Value, Value]) -> Val:
    """``v`` with tiles replaced, also where it has them from."""
    if isinstance(v, Value):
        if v.op is not None and isinstance(v.op.result_of, Value):
            v.op.result_of = new.get(v.op.result_of, v.op.result_of)
        return new.get(v, v)
    if isinstance(v, Const) and isinstance(v.result_of, Value):
        return replace(v, result_of=new.get(v.result_of, v.result_of))
    if isinstance(v, TupleVal):
        return TupleVal(tuple(replaced(i, new) for i in v.items))
    return v


def agreed(ev: Builder, values: Sequence[Val], dtype: DType | None = None) -> Val | None:
    """The constant that numbers of several paths are here, whatever expressions they have it from; None if they differ.

    Python's numbers become ``dtype`` where there is one. The reference compiler compares values as Python does (0.0 is
    -0.0) and goes on with the first.
    """
    known = [_constant(ev, v, dtype) for v in values]
    first, ty = known[0]
    if first is None or any(c is None or d.name != ty.name for c, d in known):
        return None
    for c, d in known[1:]:
        assert c is not None
        same = bool(first.value == c.value)
        ev.decide_equal(first.sym, c.sym, same)
        if not same:
            return None
        ty = ev.unify(ty, d)
    return first if all(isinstance(v, Const) for v in values) else ev.number(first, ty, first.sym)


def _constant(ev: Builder, v: Val, dtype: DType | None) -> tuple[Const | None, DType]:
    """What is known of a number when translating."""
    if isinstance(v, Const):
        if dtype is None:
            ev.decide_type(v)
        return v, dtype or ev.default_dtype(v.value)
    assert isinstance(v, Value)
    return ev.known_exactly(v), ev.type_of(v).dtype


def handed_out(v: Val, origin: Value) -> Val:
    """The constant ``v`` as what ``origin``, a result of an ``if`` or a loop, always is."""
    if isinstance(v, Const):
        return replace(v, result_of=origin)
    assert isinstance(v, Value)
    assert v.op is not None
    v.op.result_of = origin
    return v
