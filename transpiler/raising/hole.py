"""One Hole, a call without a rule in a kernel that is translated otherwise: the reference's operations in its place.

They are those that come from the place of the call.  An expression that the call begins (``f(x) + i``) has the same
place, so that the last of them are left out where they take what the call doesn't have.  What they take from elsewhere
has to be an operand of the call, told by its type; whether all that was right is for the judge to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from transpiler.diagnostics import NO_SPAN, Span
from transpiler.ir.construct import Construct, RaisedCall
from transpiler.ir.tir import RAISED, Value
from transpiler.ir.types import PtrTy, TileTy, sizes
from transpiler.raising.lift import Lifter
from transpiler.raising.refusal import refused
from transpiler.raising.types import type_of
from transpiler.raising.values import Values
from transpiler.spec import Specialization
from transpiler.tileir.model import Entry, Region, walk
from transpiler.tileir.model import Op as TileOp
from transpiler.tileir.ops.schema import SCHEMAS


class HoleRaiser:
    """Fills calls of one kernel for one specialization; ``keys`` are overrides by the construct that they fill."""

    def __init__(self, entry: Entry, target: str, keys: Mapping[Construct, str]) -> None:
        self.entry, self.target = entry, target
        self.keys = {_any_dtype(construct): (construct, key) for construct, key in keys.items()}
        self._made_by = {index: op for op in walk(entry.body) for index in op.results}

    def __call__(self, construct: Construct, operands: Sequence[Value], span: Span) -> RaisedCall | None:
        """The operations of a call and its results; None where no override is for it, E0610 where it can't be done."""
        known = self.keys.get(_any_dtype(construct))
        if known is None:
            return None
        found = list(self._at(self.entry.body, span))
        if not found:
            raise refused("no operation of the reference comes from the call alone", span)
        ops, bound = self._fitting(found, [v for v in operands if isinstance(v.ty, TileTy | PtrTy)], span)
        for op in ops:
            if SCHEMAS[op.name].kind not in ("pure", "assume"):
                raise refused(f"`{op.name}` is ordered by tokens, which a call has no operands for", span)
        low = Lifter(self.entry, Values((), (), Specialization(name="", params={}), {}), self.target, {})
        for index, value in bound.items():
            low.values[index] = value
        for op in ops:
            low.op(op)
        results = tuple(low.values[index] for index in self._used(ops))
        if not results:
            raise refused("nothing uses what the call gives", span)
        for made in low.block.ops:
            made.rule = RAISED
        return RaisedCall(*known, tuple(low.block.ops), results)

    def _at(self, region: Region, span: Span) -> Iterator[TileOp]:
        """The operations that come from a place, without those inside of them."""
        for op in region.ops:
            place = self.entry.location(op)
            if not op.regions or op.name in ("reduce", "scan"):
                here = place.in_python if place is not None else NO_SPAN
                if (here.file, here.line, here.column) == (span.file, span.line, span.column):
                    yield op
            else:
                for inner in op.regions:
                    yield from self._at(inner, span)

    def _with_constants(self, ops: list[TileOp], span: Span) -> list[TileOp]:
        """With the constants that they use and that come from the call, wherever they stand."""
        mine = set(map(id, ops))
        needed = (self._made_by.get(index) for op in ops for index in op.operands)
        constants = {
            id(op): op
            for op in needed
            if op is not None and op.name == "constant" and id(op) not in mine and self._within(op, span)
        }
        return [*constants.values(), *ops]

    def _within(self, op: TileOp, span: Span) -> bool:
        """Does an operation come from the call or its arguments?"""
        place = self.entry.location(op)
        if place is None or place.file != span.file:
            return False
        end = (span.end_line or span.line, span.end_column or span.column + 1)
        return (span.line, span.column) <= (place.line, place.in_python.column) < end

    def _fitting(
        self, found: Sequence[TileOp], operands: Sequence[Value], span: Span
    ) -> tuple[list[TileOp], dict[int, Value]]:
        """The most of the operations, from the first on, that take nothing but operands of the call, and which."""
        missing = ""
        for count in range(len(found), 0, -1):
            ops = self._with_constants(list(found[:count]), span)
            bound, lacks = self._bound(ops, operands)
            if not lacks:
                return ops, bound
            missing = missing or lacks
        raise refused(f"the reference uses a {missing} there that is no operand of the call", span)

    def _bound(self, ops: Sequence[TileOp], operands: Iterable[Value]) -> tuple[dict[int, Value], str]:
        """Every value from elsewhere with the first operand left that has its type; else the type that none has."""
        inside = {index for op in ops for index in op.results}
        rest, bound = list(operands), {}
        for index in dict.fromkeys(i for op in ops for i in op.operands if i not in inside):
            printed = self.entry.values[index].type
            fitting = next((v for v in rest if _fits(v, printed)), None)
            if fitting is None:
                return {}, printed
            rest.remove(fitting)
            bound[index] = fitting
        return bound, ""

    def _used(self, ops: Sequence[TileOp]) -> list[int]:
        """The results that other operations use, in order."""
        mine = {id(inner) for op in ops for inner in (op, *(o for r in op.regions for o in walk(r)))}
        uses = {index for op in walk(self.entry.body) if id(op) not in mine for index in op.operands}
        return [index for op in ops if op.name != "constant" for index in op.results if index in uses]


def _any_dtype(construct: Construct) -> Construct:
    """The construct without dtypes: a Hole is met in a generic kernel, and filled in a concrete one."""
    return replace(construct, operands=tuple(" ".join(o.split()[::2]) for o in construct.operands))


def _fits(v: Value, printed: str) -> bool:
    if not printed.startswith("tile<"):
        return False
    wanted = type_of(printed)
    if type(wanted) is not type(v.ty) or not isinstance(v.ty, TileTy | PtrTy) or not isinstance(wanted, TileTy | PtrTy):
        return False
    own, other = replace(v.ty.dtype, of=None), wanted.dtype
    same = own == other or (own.is_int and other.is_int and own.bits == other.bits)
    return same and sizes(v.ty.shape) == sizes(wanted.shape)
