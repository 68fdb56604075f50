"""A branch at run time: the values of its two sides become the results of one ``if``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transpiler.ir.tir import Block, Op, Value, walk
from transpiler.ir.types import DType, TileTy, sizes
from transpiler.specialize.arrays import chosen
from transpiler.specialize.blocks import Into, agreed, handed_out, numeric, replaced, typed
from transpiler.specialize.builder import Builder
from transpiler.specialize.values import Const, DTypeVal, HoleVal, TupleVal, Undefined, Val


def emit_if(
    ev: Builder, cond: Value, blocks: Sequence[Block], values: Sequence[Sequence[Val]], names: Sequence[str]
) -> list[Val]:
    """Emit ``if`` over two sides that both go on; returns the merged values.

    A merged value is a result, or the value that both sides agree on.  ``names`` are the author's.
    """
    merger = _Merger(ev, blocks)
    return _finish(ev, cond, blocks, merger, [merger.merge(a, b) for a, b in zip(*values, strict=True)], names)


def emit_one_sided_if(
    ev: Builder, cond: Value, blocks: Sequence[Block], side: int, values: Sequence[Val], names: Sequence[str]
) -> list[Val]:
    """Emit ``if`` of which only ``side`` goes on: results are the values that it makes."""
    merger = _OneSide({v for op in walk(blocks[side]) for v in op.results}, side)
    return _finish(ev, cond, blocks, merger, [merger.take(v) for v in values], names)


def _finish(
    ev: Builder, cond: Value, blocks: Sequence[Block], merger: _Merger | _OneSide, merged: list[Val],
    names: Sequence[str],
) -> list[Val]:  # fmt: skip
    op = ev.emit("if", (cond,), [r.ty for r in merger.results])
    for i, v in enumerate(merger.results):
        op.results[i].hint = next((n.lstrip("$") for n, m in zip(names, merged, strict=False) if m is v), "")
    for block, outs in zip(blocks, merger.outputs, strict=True):
        if outs is not None:
            block.ops.append(Op("yield", tuple(outs), span=ev.span, statement=ev.statement, site=ev.site))
    op.regions = tuple(blocks)
    new = dict(zip(merger.results, op.results, strict=True))
    return [replaced(m, new) for m in merged]


class _Merger:
    """Joins the values of two branches; creates a placeholder result where they differ."""

    def __init__(self, ev: Builder, blocks: Sequence[Block]) -> None:
        self.ev, self.blocks = ev, blocks
        self.results: list[Value] = []
        self.outputs: tuple[list[Value], list[Value]] = ([], [])

    def merge(self, a: Val, b: Val) -> Val:
        if a is b and isinstance(a, Value) and isinstance(a.ty, TileTy):
            return self._unchanged(a)
        if (a is b or a == b) and not isinstance(a, Const):
            return a
        for v in (a, b):
            if isinstance(v, (HoleVal, Undefined)):
                return v
        if isinstance(a, TupleVal) and isinstance(b, TupleVal) and len(a.items) == len(b.items):
            return TupleVal(tuple(map(self.merge, a.items, b.items)))
        if numeric(a) and numeric(b):
            return self._numbers(a, b)
        if a == b:
            return a
        if isinstance(a, DTypeVal) and isinstance(b, DTypeVal) and self.ev.same_dtype(a.dtype, b.dtype):
            return a
        return chosen(a, b)

    def _unchanged(self, v: Value) -> Val:
        """The value that both sides have anyway; who uses it needs the branch, and doesn't see through it."""
        same = self.ev.value("opaque", (v,), v.ty)
        assert same.op is not None
        same.op.result_of = result = Value(v.ty)
        self.results.append(result)
        for out in self.outputs:
            out.append(v)
        return same

    def _numbers(self, a: Val, b: Val) -> Val:
        dtype = self._dtype(a, b)
        constant = agreed(self.ev, (a, b), dtype)
        pair = []
        for block, v in zip(self.blocks, (a, b), strict=True):
            with Into(self.ev, block):
                pair.append(typed(self.ev, v, dtype))
        ta, tb = (self.ev.type_of(p) for p in pair)
        if ta.dtype.name != tb.dtype.name or sizes(ta.shape) != sizes(tb.shape):
            return Undefined(f"it is {ta} in one branch and {tb} in the other")
        self.ev.unify(ta.dtype, tb.dtype)
        for x, y in zip(ta.shape, tb.shape, strict=True):
            self.ev.decide_equal(x.sym, y.sym, True)
        result = Value(ta)
        self.results.append(result)
        for out, p in zip(self.outputs, pair, strict=True):
            out.append(p)
        return result if constant is None else handed_out(constant, result)

    def _dtype(self, a: Val, b: Val) -> DType | None:
        for v, other in ((a, b), (b, a)):
            if isinstance(v, Value) and isinstance(other, Const):
                return self.ev.promote_constant(self.ev.type_of(v).dtype, other)
        return None


class _OneSide:
    """Takes the values of the only branch that goes on; creates a placeholder for each that it makes."""

    def __init__(self, made: set[Value], side: int) -> None:
        self.made = made
        self.results: list[Value] = []
        self._out: list[Value] = []
        self.outputs: tuple[list[Value] | None, ...] = (self._out, None) if side == 0 else (None, self._out)
        self._known: dict[Value, Value] = {}

    def take(self, v: Val) -> Val:
        if isinstance(v, TupleVal):
            return TupleVal(tuple(map(self.take, v.items)))
        if not isinstance(v, Value) or v not in self.made or not numeric(v):
            return v
        if v not in self._known:
            self._known[v] = Value(v.ty)
            self.results.append(self._known[v])
            self._out.append(v)
        return self._known[v]


Side = Callable[[], Val]
