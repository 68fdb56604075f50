"""The machine that executes an entry: the current tile block, memory, what was printed, what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from transpiler.tileir.elements import dtype_of, is_pointer
from transpiler.tileir.memory import Allocation, Memory, Part, parts
from transpiler.tileir.model import Entry, Loc, Op
from transpiler.tileir.noise import Noise
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.race import Access, Races
from transpiler.tileir.views import Outside

FindingKind = Literal["bounds", "uninitialized", "race", "undefined", "assumption", "assert"]
Array = Any
Token = int
"""The set of this block's memory accesses that come before, as bits."""


@dataclass
class Finding:
    """Something that a correct program doesn't do: which operation, where, in which block first, how often."""

    kind: FindingKind
    op: str
    line: int
    """The line of the disassembly."""
    loc: Loc | None
    message: str
    block: tuple[int, int, int]
    count: int = 1
    needs: tuple[str, int, int] | None = None
    """For an access out of bounds: an array, one of its dimensions (-1: its elements), the size that would do."""
    callers: tuple[Loc, ...] = ()
    """The operation's place and those that it was inlined into, innermost first."""


class StoppedError(Exception):
    """The execution was given up: too many steps."""


@dataclass
class Machine:
    """What semantics may look at and change; one for each compiled entry, reset for each run."""

    entry: Entry
    memory: Memory = field(default_factory=Memory)
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (0, 0, 0)
    findings: dict[tuple[str, int, str], Finding] = field(default_factory=dict)
    prints: list[str] = field(default_factory=list)
    races: Races = field(default_factory=Races)
    noise: Noise | None = None
    watch: tuple[str, int] | None = None
    """An element of which it is to be known who wrote it last."""
    writer: Op | None = None
    fatal: frozenset[str] = frozenset()
    """Kinds of findings at which a run ends."""
    steps: int = 0
    limit: int = 0
    loaded: int = 0
    stored: int = 0
    open_value: float = 0.0
    """What loads give where the program leaves it open (integers: 0 or 1)."""
    open_loads: int = 0
    """Elements loaded so."""
    tensor_core: bool = False
    """Sum matrix products as Hopper does, where that is known."""
    visited: set[int] = field(default_factory=set)
    """Regions that were run."""

    def reset(
        self, memory: Memory, grid: tuple[int, int, int], *, limit: int, races: bool, fatal: frozenset[str],
        noise: Noise | None = None, watch: tuple[str, int] | None = None, open_value: float = 0.0,
        tensor_core: bool = False,
    ) -> None:  # fmt: skip
        """Start anew."""
        self.open_value, self.open_loads, self.tensor_core = open_value, 0, tensor_core
        self.noise, self.watch, self.writer = noise, watch, None
        self.fatal = fatal
        self.memory, self.grid, self.block = memory, grid, (0, 0, 0)
        self.findings, self.prints = {}, []
        self.races = Races(enabled=races)
        self.steps, self.limit = 0, limit
        self.loaded = self.stored = 0
        self.visited = set()

    def enter(self, block: tuple[int, int, int]) -> None:
        """Begin with another tile block."""
        self.block = block
        gx, gy, _ = self.grid
        self.races.enter(block[0] + gx * (block[1] + gy * block[2]))

    def step(self) -> None:
        """Count an iteration of a loop; raises :class:`StoppedError` at the limit."""
        self.steps += 1
        if self.steps > self.limit:
            raise StoppedError(f"more than {self.limit} loop iterations")

    def report(self, kind: FindingKind, op: Op, message: str, needs: tuple[str, int, int] | None = None) -> None:
        """Note a finding; the same one again is only counted. Raises :class:`StoppedError` where runs end at it."""
        key = (kind, id(op), message if kind == "assert" else "")
        if key in self.findings:
            self.findings[key].count += 1
            return
        place, callers = self.entry.location(op), tuple(self.entry.locations.frames(op.loc))
        self.findings[key] = Finding(kind, op.name, op.line, place, message, self.block, 1, needs, callers)
        if kind in self.fatal:
            raise StoppedError(f"{op.name}: {message}")

    # Memory

    def load(
        self, op: Op, addresses: Array, element: str, mask: Array | None, padding: Array | None, token: Token,
        *, atomic: bool = False,
    ) -> tuple[Array, Token]:  # fmt: skip
        """Read a tile; masked elements get the padding; where there is none, they are open."""
        dtype = dtype_of(element)
        shape = addresses.shape
        flat, chosen = _selected(addresses, mask)
        if padding is None:
            padding = self.open_value if dtype.kind not in "iub" else self.open_value != 0
            self.open_loads += addresses.size - flat.size
        out = np.empty(shape, dtype)
        out[...] = np.asarray(padding).astype(dtype)
        result = out.reshape(-1)
        access = self.races.begin("read", atomic)
        for part in parts(self.memory, flat):
            inside, positions, index = self.locate(op, part, element, "read")
            if inside is None:
                continue
            self.check_written(op, inside, index, element)
            self.loaded += index.size
            values = _view(inside, element)[index]
            where = positions if chosen is None else chosen if positions is None else chosen[positions]
            if where is None:
                result[:] = values
            else:
                result[where] = values
            self.order(op, access, inside, index, element, token)
        return result.reshape(shape), token | access.bit

    def store(
        self, op: Op, addresses: Array, element: str, values: Array, mask: Array | None, token: Token,
        *, atomic: bool = False,
    ) -> Token:  # fmt: skip
        """Write a tile; masked elements are left out."""
        flat, chosen = _selected(addresses, mask)
        given = np.broadcast_to(values, addresses.shape).reshape(-1)
        if chosen is not None:
            given = given[chosen]
        access = self.races.begin("write", atomic)
        for part in parts(self.memory, flat):
            inside, positions, index = self.locate(op, part, element, "write")
            if inside is None:
                continue
            written = given if positions is None else given[positions]
            if self.races.enabled and self._twice(index, written):
                self.report("race", op, f"writes an element of `{inside.name}` twice, with different values")
            _view(inside, element)[index] = written
            self.mark(op, inside, index, element)
            self.order(op, access, inside, index, element, token)
        return token | access.bit

    @staticmethod
    def _twice(index: Array, values: Array) -> bool:
        """Whether an index comes twice with different bits: which one stays is open."""
        if index.size < 2 or (index[1:] > index[:-1]).all():
            return False
        order = np.argsort(index, kind="stable")
        at, bits = index[order], np.ascontiguousarray(values[order]).view(f"u{values.dtype.itemsize}")
        return bool(((at[1:] == at[:-1]) & (bits[1:] != bits[:-1])).any())

    def mark(self, op: Op, allocation: Allocation, index: Array, element: str) -> None:
        """Remember that elements were written."""
        self.stored += index.size
        if self.watch is not None and self.watch[0] == allocation.name and (index == self.watch[1]).any():
            self.writer = op
        if allocation.written is not None:
            size = _storage(element)
            whole = allocation.written.size // size * size
            allocation.written[:whole].reshape(-1, size)[index] = True

    def check_written(self, op: Op, allocation: Allocation, index: Array, element: str) -> None:
        """Report a read of elements of which a byte was never written."""
        if allocation.written is not None:
            size = _storage(element)
            if not allocation.written[: allocation.written.size // size * size].reshape(-1, size)[index].all():
                message = f"reads memory of `{allocation.name}` that was never written"
                self.report("uninitialized", op, message, (allocation.name, -1, 0))

    def locate(self, op: Op, part: Part, element: str, what: str) -> tuple[Allocation | None, Array | None, Array]:
        """Return the allocation, positions in the tile and element indices of what lies inside; report the rest."""
        size = _storage(element)
        allocation, offsets = part.allocation, part.offsets
        if allocation is None:
            self.report("bounds", op, f"{what}s at an address that belongs to no array")
            return None, None, offsets
        index = offsets // size
        inside = (offsets >= 0) & (offsets <= allocation.data.size - size)
        if size > 1 and (offsets % size).any():
            self.report("bounds", op, f"{what}s `{allocation.name}` at an address that isn't a multiple of {size}")
            inside &= offsets % size == 0
        if inside.all():
            return allocation, part.positions, index
        wrong = int(offsets[np.flatnonzero(~inside)[0]])
        total = allocation.data.size // size
        reach = int(offsets.max()) // size + 1
        message = f"{what}s element {wrong // size} of `{allocation.name}`, which has {total}"
        self.report("bounds", op, message, (allocation.name, -1, reach) if int(offsets.min()) >= 0 else None)
        kept = np.flatnonzero(inside)
        return allocation, kept if part.positions is None else part.positions[kept], index[kept]

    def order(self, op: Op, access: Access, allocation: Allocation, index: Array, element: str, token: Token) -> None:
        """Check the access against the others' in this block and in other blocks."""
        if self.races.enabled and index.size:
            size, granule = _storage(element), index
            if allocation.itemsize != size:
                granule = index * size // allocation.itemsize
            problem = self.races.check(access, allocation, granule, token, op)
            if problem:
                self.report("race", op, problem)

    def acquire(self, addresses: Array, element: str) -> None:
        """What follows comes after what was released with these elements."""
        for part in parts(self.memory, addresses.reshape(-1)):
            if part.allocation is not None:
                self.races.acquire(part.allocation, part.offsets // _storage(element))

    def release(self, addresses: Array, element: str) -> None:
        """Who acquires these elements comes after what this tile block did so far."""
        for part in parts(self.memory, addresses.reshape(-1)):
            if part.allocation is not None:
                self.races.release(part.allocation, part.offsets // _storage(element))

    def outside(self, op: Op, what: str, base: int, problem: Outside) -> None:
        """Report a tile index that a view doesn't have."""
        allocation = self.memory.find(base)
        name = allocation.name if allocation is not None else "?"
        message = f"{what} tile index {problem.index} of `{name}` in dimension {problem.dim}, which has {problem.count}"
        needs = (name, problem.dim, problem.needed) if problem.needed else None
        self.report("bounds", op, message, needs)

    def element_view(self, allocation: Allocation, element: str) -> Array:
        """The content of an allocation as elements of a type."""
        return _view(allocation, element)


def _storage(element: str) -> int:
    """The size of an element in memory, in bytes."""
    return 8 if is_pointer(element) else int(dtype_of(element).itemsize)


def _view(allocation: Allocation, element: str) -> Array:
    size = _storage(element)
    whole = allocation.data.size // size * size
    return allocation.data[:whole].view(dtype_of(element))


def _selected(addresses: Array, mask: Array | None) -> tuple[Array, Array | None]:
    """Flat addresses of the elements that take part, and their positions (None: all)."""
    flat = addresses.reshape(-1)
    if mask is None:
        return flat, None
    chosen = np.broadcast_to(mask, addresses.shape).reshape(-1)
    if chosen.all():
        return flat, None
    positions = np.flatnonzero(chosen)
    return flat[positions], positions
