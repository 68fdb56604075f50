"""Races: accesses to one element, at least one a write, that nothing orders.

Inside a tile block only tokens order memory operations (a token is the set of the accesses before it, as
bits).  Between tile blocks nothing does, except a chain of atomics: who acquires what another block
released comes after what that block did.  Program order and data dependences order nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from transpiler.tileir.ops.lazy import np

if TYPE_CHECKING:
    from transpiler.tileir.memory import Allocation
    from transpiler.tileir.model import Op

Array = Any
AccessKind = Literal["read", "write"]
_NOBODY, _MANY = -1, -2


@dataclass
class Access:
    """One execution of a memory operation; ``bit`` stands for it in tokens."""

    kind: AccessKind
    atomic: bool
    number: int
    bit: int
    op: Op | None = None
    index: Array = None
    low: int = 0
    high: int = 0


@dataclass
class _Shadow:
    """Who touched each element of an allocation, by tile block."""

    writer: Array
    """The tile block that wrote last without an atomic."""
    reader: Array
    """The tile block that read without an atomic, or that there were several."""
    atomic: Array
    """The tile block that used an atomic, or that there were several."""
    reads: list[Access] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)
    """This block's accesses; those of atomics are writes."""


@dataclass
class Races:
    """The shadow of memory during one run."""

    enabled: bool = True
    block: int = 0
    _count: int = 0
    _shadows: dict[int, _Shadow] = field(default_factory=dict)
    _released: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    _after: set[int] = field(default_factory=set)
    """The tile blocks that this block comes after."""

    def enter(self, block: int) -> None:
        """Begin with another tile block."""
        self.block, self._count, self._after = block, 0, set()
        for shadow in self._shadows.values():
            shadow.reads.clear()
            shadow.writes.clear()

    def begin(self, kind: AccessKind, atomic: bool) -> Access:
        """Number an execution of a memory operation."""
        if not self.enabled:
            return Access(kind, atomic, 0, 0)
        number = self._count
        self._count += 1
        return Access(kind, atomic, number, 1 << number)

    def release(self, allocation: Allocation, index: Array) -> None:
        """The elements now carry that everything of this block so far is done."""
        for at in index.tolist():
            self._released.setdefault((allocation.base, at), set()).update({self.block, *self._after})

    def acquire(self, allocation: Allocation, index: Array) -> None:
        """What follows comes after what was released with these elements."""
        for at in index.tolist():
            self._after |= self._released.get((allocation.base, at), set())

    def check(self, access: Access, allocation: Allocation, index: Array, token: int, op: Op) -> str:
        """Record an access to elements; says what is wrong with it, or nothing."""
        shadow = self._shadows.get(allocation.base)
        if shadow is None:
            size = -(-allocation.data.size // allocation.itemsize)
            shadow = _Shadow(_nobody(size), _nobody(size), _nobody(size))
            self._shadows[allocation.base] = shadow
        problem = self._between(access, shadow, index, allocation) or self._within(access, shadow, index, token, op)
        return problem

    def _between(self, access: Access, shadow: _Shadow, index: Array, allocation: Allocation) -> str:
        """Compare with other tile blocks, and leave this one's mark."""
        name = allocation.name
        problem = ""
        if access.kind == "write" or access.atomic:
            checked = [(shadow.writer, "written"), (shadow.reader, "read")]
            if not access.atomic:
                checked.append((shadow.atomic, "updated by an atomic"))
        else:
            checked = [(shadow.writer, "written"), (shadow.atomic, "updated by an atomic")]
        verb = {"read": "reads", "write": "writes"}[access.kind]
        for who, how in checked:
            others = self._others(who[index])
            if others.any():
                at = int(index[np.flatnonzero(others)[0]])
                other = int(who[at])
                whom = f"tile block {other}" if other >= 0 else "several tile blocks"
                problem = f"{verb} element {at} of `{name}`, which is {how} in {whom} too"
                break
        self._leave_mark(access, shadow, index)
        return problem

    def _others(self, seen: Array) -> Array:
        others = (seen != _NOBODY) & (seen != self.block)
        if self._after and others.any():
            others &= ~np.isin(seen, list(self._after))
        return others

    def _leave_mark(self, access: Access, shadow: _Shadow, index: Array) -> None:
        if access.atomic or access.kind == "read":
            mark = shadow.atomic if access.atomic else shadow.reader
            seen = mark[index]
            before = (seen == _NOBODY) | (seen == self.block)
            if self._after:  # who is ordered before this block needn't be remembered beside it
                before |= np.isin(seen, list(self._after))
            mark[index] = np.where(before, self.block, _MANY)
        else:
            shadow.writer[index] = self.block

    def _within(self, access: Access, shadow: _Shadow, index: Array, token: int, op: Op) -> str:
        """Compare with this block's accesses that the token doesn't order before."""
        access.op = op
        low, high = int(index.min()), int(index.max())
        problem = ""
        for earlier in shadow.writes if access.kind == "read" else (*shadow.writes, *shadow.reads):
            if token >> earlier.number & 1 or earlier.number == access.number:
                continue
            if earlier.atomic and access.atomic:
                continue
            if earlier.high < low or earlier.low > high or not np.isin(index, earlier.index).any():
                continue
            assert earlier.op is not None
            words = {"read": "read", "write": "write"}
            problem = (f"no token orders this {words[access.kind]} after the {words[earlier.kind]} of the same element "
                       f"in line {earlier.op.line} (`{earlier.op.name}`)")  # fmt: skip
            break
        kept = Access(access.kind, access.atomic, access.number, access.bit, op, index, low, high)
        (shadow.reads if access.kind == "read" else shadow.writes).append(kept)
        return problem


def _nobody(size: int) -> Array:
    return np.full(size, _NOBODY, np.int32)
