"""The judge's own check: a program must equal itself after renaming and legal reordering.

As in Alive2, finding src = src and tgt = tgt comes before src = tgt: a comparison that would accept
anything, or depends on names or order, can't be trusted on this program.
"""

from __future__ import annotations

import heapq
import random

from transpiler.tileir.compare import compare
from transpiler.tileir.graph import is_weak_load, may_fault
from transpiler.tileir.model import Entry, Op, Region, Value, walk
from transpiler.tileir.ops.schema import SCHEMAS, TERMINATORS


def selfcheck(entry: Entry, *, target: str, seed: int = 0) -> bool:
    """Say whether the entry equals a copy with values renumbered and independent operations reordered.

    Costs about one comparison of the entry with itself.
    """
    return compare(entry, shuffled(entry, seed), target=target).equal


def shuffled(entry: Entry, seed: int) -> Entry:
    """Return a copy with other value numbers and names and another legal order of operations in each block."""
    return _Shuffler(entry, seed).run()


class _Shuffler:
    def __init__(self, entry: Entry, seed: int) -> None:
        self._entry = entry
        self._random = random.Random(seed)
        order = list(range(len(entry.values)))
        self._random.shuffle(order)
        self._renumber = order
        self._reads: dict[int, frozenset[int]] = {}

    def run(self) -> Entry:
        entry = self._entry
        values = [Value("", "")] * len(entry.values)
        for old, new in enumerate(self._renumber):
            values[new] = Value(f"%v{new}", entry.values[old].type)
        body = self._region(entry.body)
        params = self._rename(entry.params)
        return Entry(entry.name, entry.hints, params, values, body, entry.line, entry.locations)

    def _rename(self, values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([self._renumber[v] for v in values])

    def _region(self, region: Region) -> Region:
        return Region(self._rename(region.args), [self._copy(op) for op in self._reorder(region.ops)])

    def _copy(self, op: Op) -> Op:
        regions = [self._region(r) for r in op.regions]
        return Op(op.form, self._rename(op.results), self._rename(op.operands), op.line, op.loc, regions)

    def _reorder(self, ops: list[Op]) -> list[Op]:
        """Return a random topological order; see :func:`_pinned` for what keeps its place in it."""
        defined = {value: i for i, op in enumerate(ops) for value in op.results}
        following: list[list[int]] = [[] for _ in ops]
        waiting = [0] * len(ops)
        before: set[tuple[int, int]] = set()
        last_pinned = -1
        for i, op in enumerate(ops):
            sources = {defined[v] for v in self._read_by(op) if v in defined}
            if _pinned(op) or i == len(ops) - 1:
                if last_pinned >= 0:
                    sources.add(last_pinned)
                last_pinned = i
                if op.name in TERMINATORS:
                    sources.update(range(i))
            for source in sources - {i}:
                before.add((source, i))
        for source, i in sorted(before):
            following[source].append(i)
            waiting[i] += 1
        return [ops[i] for i in self._topological(following, waiting)]

    def _topological(self, following: list[list[int]], waiting: list[int]) -> list[int]:
        ready = [(self._random.random(), i) for i, count in enumerate(waiting) if not count]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            _, i = heapq.heappop(ready)
            order.append(i)
            for j in following[i]:
                waiting[j] -= 1
                if not waiting[j]:
                    heapq.heappush(ready, (self._random.random(), j))
        return order

    def _read_by(self, op: Op) -> frozenset[int]:
        """Return the values that an operation reads, its regions included."""
        if not op.regions:
            return frozenset(op.operands)
        found = self._reads.get(id(op))
        if found is None:
            inner = (v for region in op.regions for o in region.ops for v in self._read_by(o))
            found = self._reads[id(op)] = frozenset((*op.operands, *inner))
        return found


def _pinned(op: Op) -> bool:
    """Say whether an operation keeps its order among others like it.

    These are effects, exits, what may fault or states a fact (both depend on where they are), and control
    operations that contain any of them.
    """
    return any(_pinned_itself(o) for o in ([op] if not op.regions else [op, *(o for r in op.regions for o in walk(r))]))


def _pinned_itself(op: Op) -> bool:
    kind = SCHEMAS[op.name].kind
    if kind == "memory":
        return not is_weak_load(op.form) or may_fault(op.form)
    return kind in ("effect", "assume") or op.name in ("return", "break", "continue") or may_fault(op.form)
