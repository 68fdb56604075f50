"""Do both sides compute the same?  Execute them on the same inputs and compare what they leave in memory.

Equal bits are wanted.  Where bits differ, floats may be as far apart as the tolerances of the operations
involved let them be: the reference is run again with noise of that size, and ours has to stay within twice
the spread.  What the reference doesn't do on valid inputs (leaving an array, undefined behaviour, a broken
fact, not ending) ours may not do either.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from transpiler.execute.inputs import Inputs, Values, make, seed_of
from transpiler.execute.plan import Shape
from transpiler.execute.search import INVALID, Search
from transpiler.spec import Specialization
from transpiler.tileir.interpret import Outcome, Program
from transpiler.tileir.machine import Finding
from transpiler.tileir.model import Entry, Op

Side = Literal["ours", "reference"]
Profile = tuple[Shape, Values]
PROFILES: tuple[Profile, ...] = (
    ("normal", "plain"), ("normal", "edge"), ("ragged", "plain"), ("ragged", "edge"), ("one", "plain"),
    ("empty", "plain"),
)  # fmt: skip
"""What is executed: sizes that fit tiles and sizes that don't, one element, none; plain and special values."""
_FEW: tuple[Profile, ...] = (("normal", "plain"), ("ragged", "edge"))
"""What is executed of a program that takes long."""
_COSTLY = 400
"""Iterations of loops on the first inputs."""
_NOISY_RUNS = 16
"""At most so many: near the border between two numbers of a narrow type it takes some to move a result."""
_OPEN_VALUE = 1.5
"""What masked loads without padding give in a second run: not the usual padding.  No NaN: kernels count on 0 times
what they don't know."""
_LIMIT = 20_000
_REPORTED = frozenset({"bounds", "uninitialized", "race", "undefined", "assumption"})
Array = Any


@dataclass(frozen=True)
class Difference:
    """Where the sides differ: an element of an array, or (``array`` is "") what one side does."""

    array: str
    index: tuple[int, ...]
    ours: str
    reference: str
    message: str = ""
    ours_op: Op | None = None
    reference_op: Op | None = None


@dataclass(frozen=True)
class Counterexample:
    """Inputs on which the sides differ, and how."""

    inputs: Inputs
    difference: Difference
    runs: int = 0
    """Executions that shrinking took."""


@dataclass(frozen=True)
class SideFinding:
    """A hazard of one side on inputs that are valid for the reference."""

    side: Side
    finding: Finding


@dataclass(frozen=True)
class Agreement:
    """What executing a check gave."""

    valid: int
    """Inputs on which the reference is defined and both sides were run."""
    tried: int
    """Profiles for which inputs were looked for."""
    exact: int
    """Valid inputs on which all bits are equal."""
    counterexample: Counterexample | None = None
    findings: tuple[SideFinding, ...] = ()
    reason: str = ""
    """Why there are no valid inputs."""
    regions: tuple[int, int] = (0, 0)
    """How many of the reference's regions the inputs reached at best, of how many."""
    seconds: float = 0.0

    @property
    def agrees(self) -> bool:
        """Both sides were executed and compute the same."""
        return self.valid > 0 and self.counterexample is None


def execute_check(
    ours: Entry, reference: Entry, spec: Specialization, *, seed: object = "", profiles: Sequence[Profile] = PROFILES
) -> Agreement:
    """Execute both entries on inputs for the specialization; which ones follows from ``seed`` alone.

    Both have the parameters that ``spec`` says (lists differ, see :func:`transpiler.execute.inputs.make`).
    """
    return Execution(ours, reference, spec, seed).run(profiles)


class Execution:
    """Both sides compiled, and the inputs found for them."""

    def __init__(self, ours: Entry, reference: Entry, spec: Specialization, seed: object = "") -> None:
        self.spec, self.seed = spec, seed
        self.ours, self.reference = Program(ours), Program(reference)
        self.search = Search(spec, self.reference, seed)
        self._findings: dict[tuple[str, str, int], SideFinding] = {}

    def run(self, profiles: Sequence[Profile] = PROFILES) -> Agreement:
        """Execute every profile for which there are valid inputs; stops at the first difference."""
        started = time.perf_counter()
        valid = exact = reached = 0
        reason = ""
        counterexample, costly = None, False
        for shape, values in profiles:
            plan = self.search.plan(shape)
            if plan is None:
                reason = reason or self.search.problem
                continue
            if costly and (shape, values) not in _FEW:
                continue
            inputs = make(self.spec, plan, values, self.seed)
            theirs = self.run_side("reference", inputs, races=values == "plain")
            if invalid(theirs):
                continue
            valid += 1
            costly = costly or theirs.steps > _COSTLY
            reached = max(reached, theirs.regions[0])
            mine = self.run_side("ours", inputs, races=values == "plain")
            difference = self.compare(inputs, theirs, mine)
            if difference is None and mine.open_loads:
                inputs = replace(inputs, open_value=_OPEN_VALUE)
                difference = self.compare_again(inputs, races=False)
            if difference is None:
                exact += self._equal_bits(theirs, mine)
                self._note(theirs, mine)
                if valid == 1:
                    self._unwritten(inputs, theirs)
                continue
            from transpiler.execute.shrink import shrink

            counterexample = shrink(self, Counterexample(inputs, difference))
            break
        return Agreement(
            valid, len(profiles), exact, counterexample, tuple(self._findings.values()), "" if valid else reason,
            (reached, theirs.regions[1]) if valid else (0, 0), time.perf_counter() - started,
        )  # fmt: skip

    def run_side(self, side: Side, inputs: Inputs, **options: Any) -> Outcome:
        """Run one side."""
        options = {"open_value": inputs.open_value, **options}
        if side == "reference":
            return self.reference.run(
                inputs.reference, inputs.grid, inputs.memory, limit=_LIMIT, fatal=INVALID, **options
            )
        return self.ours.run(inputs.ours, inputs.grid, inputs.memory, limit=4 * _LIMIT, **options)

    def compare_again(self, inputs: Inputs, **options: Any) -> Difference | None:
        """Run both sides and compare, unless the reference has no meaning, or none but what it leaves open."""
        theirs = self.run_side("reference", inputs, **options)
        if invalid(theirs):
            return None
        if inputs.open_value:
            usual = self.run_side("reference", replace(inputs, open_value=0.0), **options)
            if not self._equal_bits(theirs, usual):
                return None
        return self.compare(inputs, theirs, self.run_side("ours", inputs, **options))

    def compare(self, inputs: Inputs, theirs: Outcome, mine: Outcome) -> Difference | None:
        """Say how the outcomes differ, if they do."""
        wrong = next((f for f in mine.findings if f.kind in INVALID), None)
        if wrong is not None:
            return Difference("", (), wrong.message, "", f"our `{wrong.op}` {wrong.message}, the reference doesn't")
        if mine.stopped:
            return Difference("", (), mine.stopped, "", f"our side was given up: {mine.stopped}")
        if len(theirs.prints) != len(mine.prints):
            counts = str(len(mine.prints)), str(len(theirs.prints))
            return Difference("", (), *counts, f"our side prints {counts[0]} times, the reference {counts[1]} times")
        for a, b in zip(theirs.memory.allocations, mine.memory.allocations, strict=True):
            x, y = a.array(), b.array()
            places = np.flatnonzero(differing(x, y))
            if places.size and not self._tolerated(inputs, a.name, x, y, places):
                at = int(places[0])
                return Difference(a.name, _index(self.spec, inputs, a.name, at), _shown(y, at), _shown(x, at))
        return None

    def located(self, inputs: Inputs, difference: Difference) -> Difference:
        """Add which operations wrote the differing element."""
        if not difference.array:
            return difference
        theirs, mine = self.run_side("reference", inputs), self.run_side("ours", inputs)
        places = np.flatnonzero(differing(theirs.memory[difference.array], mine.memory[difference.array]))
        if not places.size:
            return difference
        watch = (difference.array, int(places[0]))
        found = [self.run_side(side, inputs, races=False, watch=watch).writer for side in ("ours", "reference")]
        return replace(difference, ours_op=found[0], reference_op=found[1])

    def _tolerated(self, inputs: Inputs, name: str, x: Array, y: Array, places: Array) -> bool:
        """Whether ours is within twice the spread that noise gives the reference."""
        if x.dtype.kind in "iub":
            return False
        return bool(within(
            lambda turn: self._noisy(inputs, turn).memory[name].reshape(-1)[places],
            x.reshape(-1)[places], y.reshape(-1)[places],
        ).all())  # fmt: skip

    def _noisy(self, inputs: Inputs, turn: int) -> Outcome:
        from transpiler.tileir.noise import Noise

        return self.run_side("reference", inputs, races=False, noise=Noise.of(seed_of(self.seed, "noise", turn)))

    @staticmethod
    def _equal_bits(theirs: Outcome, mine: Outcome) -> bool:
        pairs = zip(theirs.memory.allocations, mine.memory.allocations, strict=True)
        return not any(differing(a.array(), b.array()).any() for a, b in pairs)

    def _note(self, theirs: Outcome, mine: Outcome) -> None:
        """Keep the hazards of both sides, each once."""
        sides: tuple[tuple[Side, Outcome], ...] = (("reference", theirs), ("ours", mine))
        for side, outcome in sides:
            for finding in outcome.findings:
                if finding.kind in _REPORTED:
                    self._findings.setdefault((side, finding.kind, finding.line), SideFinding(side, finding))

    def _unwritten(self, inputs: Inputs, theirs: Outcome) -> None:
        """Look for reads of memory never written, in arrays that the reference writes before it reads them."""
        names = {a.name for a, b in zip(inputs.memory.allocations, theirs.memory.allocations, strict=True)
                 if differing(a.array(), b.array()).any()}  # fmt: skip
        for _ in range(len(names)):
            outcome = self.run_side("reference", _without(inputs, names), races=False)
            read = {f.needs[0] for f in outcome.findings if f.kind == "uninitialized" and f.needs is not None}
            if not read:
                break
            names -= read
        if names:
            outcome = self.run_side("ours", _without(inputs, names), races=False)
            for finding in outcome.findings:
                if finding.kind == "uninitialized":
                    self._findings.setdefault(("ours", finding.kind, finding.line), SideFinding("ours", finding))


def invalid(outcome: Outcome) -> bool:
    """Whether the program has no meaning on the inputs."""
    return bool(outcome.stopped) or any(f.kind in INVALID for f in outcome.findings)


def differing(x: Array, y: Array) -> Array:
    """Where two arrays differ: in any bit, except that any NaN equals any NaN."""
    if x.dtype.kind in "iub":
        return np.asarray(x != y)
    bits = np.dtype(f"u{x.dtype.itemsize}")
    different: Array = x.view(bits) != y.view(bits)
    if different.any():
        different &= ~(np.isnan(x) & np.isnan(y))
    return different


def within(noisy: Callable[[int], Array], exact: Array, got: Array, turns: int = _NOISY_RUNS) -> Array:
    """Which of ``got`` are within twice the spread that noise gives ``exact``; ``noisy`` is called for each turn.

    An infinity or NaN has to be what noise gives, too.
    """
    wide, start = got.astype(np.float64), exact.astype(np.float64)
    finite = np.isfinite(wide)
    low, high = (np.where(np.isfinite(start), start, limit) for limit in (np.inf, -np.inf))
    seen = _same(wide, start)
    inside = np.zeros(wide.shape, bool)
    for turn in range(turns):
        moved = noisy(turn).astype(np.float64)
        seen |= _same(wide, moved)
        low = np.minimum(low, np.where(np.isfinite(moved), moved, np.inf))
        high = np.maximum(high, np.where(np.isfinite(moved), moved, -np.inf))
        with np.errstate(invalid="ignore"):  # nothing finite was seen
            spread = high - low
            inside = np.where(finite, (wide >= low - spread) & (wide <= high + spread), seen)
        if inside.all():
            break
    return inside


def _same(x: Array, y: Array) -> Array:
    return (x == y) | (np.isnan(x) & np.isnan(y))


def _without(inputs: Inputs, names: set[str]) -> Inputs:
    """The inputs with some arrays never written."""
    memory = inputs.memory.copy()
    for allocation in memory.allocations:
        if allocation.name in names:
            allocation.written = np.zeros(allocation.data.size, bool)
    return replace(inputs, memory=memory)


def _index(spec: Specialization, inputs: Inputs, name: str, at: int) -> tuple[int, ...]:
    """The index of an element, by the array's strides; the plain position where padding lies in between."""
    del spec
    shape, strides = inputs.layouts.get(name, ((), ()))
    index, rest = [0] * len(shape), at
    for axis in sorted(range(len(shape)), key=lambda a: (-strides[a], a)):
        if strides[axis] and shape[axis] > 1:
            index[axis], rest = divmod(rest, strides[axis])
    return tuple(index) if shape and not rest and all(i < n for i, n in zip(index, shape, strict=True)) else (at,)


def _shown(values: Array, at: int) -> str:
    value = values.reshape(-1)[at]
    bits = np.asarray(value).view(f"u{values.dtype.itemsize}") if values.dtype.kind not in "iub" else None
    return f"{value}" if bits is None else f"{float(value):.9g} (0x{int(bits):0{2 * values.dtype.itemsize}x})"
