"""The judge's own check: a program must equal itself after renaming and legal reordering.

As in Alive2, finding src = src and tgt = tgt comes before src = tgt: a comparison that would accept
anything, or depends on names or order, can't be trusted on this program.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from transpiler.tileir.compare import Comparison, Partition, Promises
from transpiler.tileir.graph import is_weak_load, may_fault
from transpiler.tileir.model import Entry, Form, Op, Region, Value
from transpiler.tileir.ops.schema import SCHEMAS, TERMINATORS


@dataclass(frozen=True)
class Checked:
    """Whether each side equals its shuffled copy, and how the two sides compare (worth nothing if one doesn't)."""

    reference: bool
    ours: bool
    comparison: Comparison


def checked_comparison(
    reference: Entry,
    ours: Entry,
    *,
    target: str,
    parameter_map: Sequence[int] | None = None,
    promises: Promises = (),
    seed: int = 0,
) -> Checked:
    """Compare two entries as :func:`.compare` does, and each with a shuffled copy of itself.

    All four are in one partition: each is numbered once, and it is the partition of the verdict that has to find
    the copies equal.
    """
    programs = ((reference, None), (ours, parameter_map))
    copies = [(shuffled(entry, seed), mapping) for entry, mapping in programs]
    partition = Partition((*programs, *copies), promises)
    itself = [partition.compare(side, side + 2, target).equal for side in (0, 1)]
    return Checked(itself[0], itself[1], partition.compare(0, 1, target))


def selfcheck(entry: Entry, *, target: str, seed: int = 0) -> bool:
    """Say whether the entry equals a copy with values renumbered and independent operations reordered."""
    return Partition(((entry, None), (shuffled(entry, seed), None))).compare(0, 1, target).equal


def shuffled(entry: Entry, seed: int) -> Entry:
    """Return a copy with other value numbers and names and another legal order of operations in each block."""
    return _Shuffler(entry, seed).run()


@lru_cache(maxsize=4096)
def _unnamed(type_text: str) -> Value:
    return Value("", type_text)


class _Shuffler:
    def __init__(self, entry: Entry, seed: int) -> None:
        self._entry = entry
        self._random = random.Random(seed).random
        self._renumber = self._permutation(len(entry.values))
        self._reads: dict[int, frozenset[int]] = {}
        self._pinning: dict[int, bool] = {}

    def _permutation(self, count: int) -> list[int]:
        rank = [self._random() for _ in range(count)]
        return sorted(range(count), key=rank.__getitem__)

    def run(self) -> Entry:
        entry = self._entry
        values = [Value("", "")] * len(entry.values)
        for old, new in zip(entry.values, self._renumber, strict=True):
            values[new] = _unnamed(old.type)
        body = self._region(entry.body)
        params = self._rename(entry.params)
        return Entry(entry.name, entry.hints, params, values, body, entry.line, entry.locations)

    def _rename(self, values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([self._renumber[v] for v in values])

    def _region(self, region: Region) -> Region:
        return Region(self._rename(region.args), [self._copy(op) for op in self._reorder(region.ops)])

    def _copy(self, op: Op) -> Op:
        renumber = self._renumber
        results = tuple([renumber[v] for v in op.results])
        operands = tuple([renumber[v] for v in op.operands])
        regions = [self._region(r) for r in op.regions] if op.regions else []
        return Op(op.form, results, operands, op.line, op.loc, regions)

    def _reorder(self, ops: list[Op]) -> list[Op]:
        """Return a random topological order; see :func:`_pinned_itself` for what keeps its place in it."""
        defined = {value: i for i, op in enumerate(ops) for value in op.results}
        following: list[list[int]] = [[] for _ in ops]
        waiting = [0] * len(ops)
        last_pinned = -1
        for i, op in enumerate(ops):
            sources = {defined[v] for v in self._read_by(op) if v in defined}
            sources.discard(i)
            if i == len(ops) - 1 or self._pinned(op):
                if last_pinned >= 0:
                    sources.add(last_pinned)
                last_pinned = i
                if op.form.name in TERMINATORS:
                    sources.update(range(i))
            for source in sources:
                following[source].append(i)
            waiting[i] = len(sources)
        return [ops[i] for i in self._topological(following, waiting)]

    def _topological(self, following: list[list[int]], waiting: list[int]) -> list[int]:
        rank = [self._random() for _ in waiting]
        ready = [(rank[i], i) for i, count in enumerate(waiting) if not count]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            _, i = heapq.heappop(ready)
            order.append(i)
            for j in following[i]:
                waiting[j] -= 1
                if not waiting[j]:
                    heapq.heappush(ready, (rank[j], j))
        return order

    def _read_by(self, op: Op) -> tuple[int, ...] | frozenset[int]:
        """Return the values that an operation reads, its regions included."""
        if not op.regions:
            return op.operands
        found = self._reads.get(id(op))
        if found is None:
            inner = (v for region in op.regions for o in region.ops for v in self._read_by(o))
            found = self._reads[id(op)] = frozenset((*op.operands, *inner))
        return found

    def _pinned(self, op: Op) -> bool:
        """Say whether an operation keeps its order among others like it, itself or for something inside of it."""
        if not op.regions:
            return _pinned_itself(op.form)
        found = self._pinning.get(id(op))
        if found is None:
            inner = (o for region in op.regions for o in region.ops)
            found = self._pinning[id(op)] = _pinned_itself(op.form) or any(self._pinned(o) for o in inner)
        return found


@lru_cache(maxsize=4096)
def _pinned_itself(form: Form) -> bool:
    """Say whether such operations keep their order: effects, exits, and what may fault or states a fact.

    (The last two depend on where they are.)
    """
    kind = SCHEMAS[form.name].kind
    if kind == "memory":
        return not is_weak_load(form) or may_fault(form)
    return kind in ("effect", "assume") or form.name in ("return", "break", "continue") or may_fault(form)
