"""Arrays, lists of arrays and views as values: a branch can't choose one at run time, and a loop can't rebind one.

The reference compiler carries their pointers and sizes; in cutile they are no values that an ``if`` or a loop could
hand out.  The name is fine as long as nothing uses it, so the Hole is where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transpiler.specialize.blocks import numeric
from transpiler.specialize.evaluate import Evaluator, Reads
from transpiler.specialize.values import (
    ArrayVal,
    HoleError,
    HoleVal,
    ListVal,
    TiledViewVal,
    TupleVal,
    Undefined,
    Val,
    describe,
)

CODE = "E0305"
HELP = (
    "put the accesses into the branches or give each array its own name; or choose between the tiles loaded from them"
)
_WHY = "cutile 0.5 hands no array or view out of a branch or a loop"


def chosen(a: Val, b: Val) -> Undefined:
    """What a name is after a branch whose sides give it two values that can't be merged."""
    how = _either(a, "in one branch", b, "in the other")
    return Undefined(f"{how}; {_WHY}", CODE) if _alike(a, b) else Undefined(how)


def rebound(ev: Evaluator, name: str, init: Val, inside: Val, finals: Sequence[Val], reads: Reads) -> Undefined | None:
    """Refuse that a loop's body reads what no number is and another iteration gave: a Hole, or ill-typed (E0401).

    ``inside`` is what it is where an iteration begins.  Returns what it is after the loop where an array, or anything
    else in a tuple, is rebound; None where the loop can carry it.
    """
    other = next((final for final in finals if _differs(init, final)), None)
    if other is None:
        return None
    how = _either(init, "before the loop", other, "after an iteration")
    arrays = any(_alike(a, b) for a, b in _pairs(init, other) if _differs(a, b))
    read = reads.get((ev.depth, name, id(inside)))
    if read is not None and arrays:
        ev.record_hole(HoleError(CODE, f"`{name}` can't be used here: {how}; {_WHY}", read[1], HELP))
    elif read is not None:
        ev.span = read[1]
        ev.refuse(f"`{name}` can't be used here: {how}")
    if arrays:
        return Undefined(f"{how}; {_WHY}", CODE)
    return Undefined(how) if isinstance(init, TupleVal) else None


def leaves_of(v: Val) -> Iterator[Val]:
    """What is in a tuple and in the tuples in it; anything else is its only leaf."""
    if isinstance(v, TupleVal):
        for item in v.items:
            yield from leaves_of(item)
    else:
        yield v


def _either(a: Val, here: str, b: Val, there: str) -> str:
    other = "another one" if isinstance(b, Undefined) or describe(a) == describe(b) else describe(b)
    return f"it is {describe(a)} {here} and {other} {there}"


def _pairs(a: Val, b: Val) -> list[tuple[Val, Val]]:
    """The leaves of two values of the same structure."""
    if isinstance(a, TupleVal) and isinstance(b, TupleVal) and len(a.items) == len(b.items):
        return [pair for x, y in zip(a.items, b.items, strict=True) for pair in _pairs(x, y)]
    return [(a, b)]


def _differs(a: Val, b: Val) -> bool:
    """Did a value, or a part of it that is no number, become another one?"""
    leaves = _pairs(a, b)
    if len(leaves) > 1:
        return any(_differs(x, y) for x, y in leaves)
    a, b = leaves[0] if leaves else (a, b)
    if isinstance(a, Undefined | HoleVal) or isinstance(b, HoleVal):
        return False
    return numeric(a) != numeric(b) or not (numeric(a) or a is b or a == b)


def _alike(a: Val, b: Val) -> bool:
    """Are both arrays, lists or views of one type, between which the reference compiler could choose?"""
    if isinstance(b, Undefined) and b.code:
        return isinstance(a, ArrayVal | ListVal | TiledViewVal)
    if isinstance(a, TiledViewVal) and isinstance(b, TiledViewVal):
        return _alike(a.array, b.array)
    both = (isinstance(a, ArrayVal) and isinstance(b, ArrayVal)) or (isinstance(a, ListVal) and isinstance(b, ListVal))
    return both and (a.rank, a.dtype.name) == (b.rank, b.dtype.name)  # type: ignore[union-attr]
