"""The interpreter judged by a GPU: what a device computed on the inputs of a case, beside what we compute.

A case names a kernel, a specialization and a plan, so that its inputs can be made again anywhere.  Where every
operation of the program promises exact bits, a digest of each array that the device left is kept; elsewhere some
of its elements, which have to be within what the operations' tolerances let them be.  Elements that depend on what
a load without a padding value gives outside of its array are not compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transpiler.execute.agree import differing, within
from transpiler.execute.inputs import Inputs, Values, make, seed_of
from transpiler.execute.plan import Plan
from transpiler.spec import Specialization
from transpiler.tileir.interpret import Outcome, Program, promises_bits
from transpiler.tileir.model import walk
from transpiler.tileir.noise import Noise

_OPEN_VALUES = (1.5, -0.75)
"""What loads may give where that is open, apart from 0.  No NaN: kernels count on 0 times what they don't know."""
KEPT_ELEMENTS = 512
"""Of larger arrays so many elements are kept."""
_NOISY_RUNS = 64
"""At most so many: a device has many elements near the border between two numbers of a narrow type."""
Array = Any


def plan_row(plan: Plan) -> dict[str, Any]:
    """A plan as JSON."""
    return {
        "shape": plan.shape, "sizes": {f"{name}/{axis}": n for (name, axis), n in plan.sizes.items()},
        "scalars": dict(plan.scalars), "grid": list(plan.grid), "integers": plan.integers, "most": plan.most,
        "length": plan.length, "padded": plan.padded,
    }  # fmt: skip


def plan_of(row: Mapping[str, Any]) -> Plan:
    """Read :func:`plan_row`."""
    sizes = {(key.rpartition("/")[0], int(key.rpartition("/")[2])): n for key, n in row["sizes"].items()}
    return Plan(**{**row, "sizes": sizes, "grid": tuple(row["grid"])})


def inputs_of(spec: Specialization, plan: Plan, values: Values) -> Inputs:
    """The inputs of a case; their content follows from the specialization and the plan alone."""
    return make(spec, plan, values, seed_of("recorded", spec.model_dump_json(exclude={"name"})))


def inputs_digest(inputs: Inputs) -> str:
    """A digest of the content of memory, to notice when inputs are no longer what the device got."""
    found = hashlib.sha256()
    for allocation in inputs.memory.allocations:
        found.update(f"{allocation.name} {allocation.data.size} ".encode() + allocation.data.tobytes())
    return found.hexdigest()


def array_digest(values: Array, ignored: Array | None = None) -> str:
    """A digest of an array's bits, in which all NaNs are one, and ``ignored`` elements too."""
    ignored = np.zeros(values.shape, bool) if ignored is None else ignored
    found = np.where(ignored, 0, bits(values))
    if values.dtype.kind not in "iub":
        found = np.where(np.isnan(values) & ~ignored, found.dtype.type(np.iinfo(found.dtype).max), found)
    return hashlib.sha256(found.tobytes()).hexdigest()


def bits(values: Array) -> Array:
    """The bits of each element."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def kept_places(count: int) -> Array:
    """Which elements of an array are kept: all of a small one, else some that are spread over all of it."""
    if count <= KEPT_ELEMENTS:
        return np.arange(count)
    golden = np.arange(2 * KEPT_ELEMENTS) * 0.6180339887498949 % 1.0
    return np.unique((golden * count).astype(np.int64)[:KEPT_ELEMENTS])


@dataclass(frozen=True)
class Judgement:
    """What became of one array: how many elements were compared, how many have equal bits, what is wrong."""

    array: str
    compared: int
    equal: int
    problem: str = ""


@dataclass
class Judge:
    """Executes one case and compares with what the device left."""

    program: Program
    inputs: Inputs
    exact: bool = field(init=False)
    """Whether every operation of the program promises exact bits."""
    outcome: Outcome = field(init=False)
    """What the interpreter leaves."""
    _noisy: dict[int, Outcome] = field(default_factory=dict)
    _summed: Outcome | None = None
    _others: list[Outcome] = field(init=False)
    """Outcomes with other values where loads are open."""

    def __post_init__(self) -> None:
        self.exact = promises_bits(self.program.entry)
        self.outcome = self.run()
        self._others = [self.run(open_value=value) for value in _OPEN_VALUES if self.outcome.open_loads]

    def run(self, **options: Any) -> Outcome:
        """Execute once; ``options`` are those of :meth:`Program.run`."""
        return self.program.run(self.inputs.reference, self.inputs.grid, self.inputs.memory, races=False, **options)

    def on_tensor_cores(self, array: str, device: Array) -> int:
        """How many elements have the device's bits when matrix products are summed as Hopper does."""
        if self._summed is None:
            self._summed = self.run(tensor_core=True)
        return int((~differing(self._summed.memory[array].reshape(-1), device) & ~self.open(array)).sum())

    def open(self, array: str) -> Array:
        """Which elements of an array (flat) depend on what the program leaves open."""
        ours = self.outcome.memory[array].reshape(-1)
        found = np.zeros(ours.size, bool)
        for other in self._others:
            found |= differing(ours, other.memory[array].reshape(-1))
        return found

    def noisy(self, turn: int) -> Outcome:
        """The outcome with noise, each computed once."""
        if turn not in self._noisy:
            self._noisy[turn] = self.run(noise=Noise.of(seed_of("recorded noise", turn)))
        return self._noisy[turn]

    def whole(self, array: str, device: Array) -> Judgement:
        """Compare all elements of an array (flat, of its dtype)."""
        return self.elements(array, np.arange(device.size), device)

    def elements(self, array: str, places: Array, device: Array) -> Judgement:
        """Compare the elements at ``places`` with those of the device, as far as the program says what they are."""
        known = ~self.open(array)[places]
        places, device = places[known], device[known]
        ours = self.outcome.memory[array].reshape(-1)[places]
        different = differing(ours, device)
        at = np.flatnonzero(different)
        equal = int(places.size - at.size)
        if not at.size:
            return Judgement(array, int(places.size), equal)
        problem = ""
        if self.exact or ours.dtype.kind in "iub":
            problem = f"promised exact bits, but {at.size} of {places.size} elements differ"
        else:
            inside = within(lambda turn: self.noisy(turn).memory[array].reshape(-1)[places][at], ours[at], device[at],
                            _NOISY_RUNS)  # fmt: skip
            if not inside.all():
                at = at[~inside]
                problem = f"{at.size} of {places.size} elements are farther off than the tolerances allow"
        if problem:
            first = at[0]
            problem += f"; element {int(places[first])} is {ours[first]}, on the device {device[first]}"
        return Judgement(array, int(places.size), equal, problem)


def changed(inputs: Inputs, left: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    """The arrays of which the device changed any bit, each with its flat content as it was left."""
    for allocation in inputs.memory.allocations:
        if allocation.name in left:
            content = left[allocation.name].view(allocation.dtype)
            if (bits(content) != bits(allocation.array().reshape(-1))).any():
                yield allocation.name, content


def keep(judge: Judge, left: Mapping[str, Array]) -> tuple[dict[str, Any], dict[str, Array], Sequence[Judgement]]:
    """What is committed of a case: a row and an array's bits for each array, and how all elements compare."""
    row: dict[str, Any] = {}
    kept: dict[str, Array] = {}
    said = []
    for name, content in changed(judge.inputs, left):
        judgement = judge.whole(name, content)
        said.append(judgement)
        row[name] = {"elements": judgement.compared, "equal": judgement.equal}
        if judgement.compared < content.size:
            row[name]["open"] = content.size - judgement.compared
        if judgement.equal < judgement.compared and any(op.name == "mmaf" for op in walk(judge.program.entry.body)):
            row[name]["tensor_core"] = judge.on_tensor_cores(name, content)
        if judge.exact:
            row[name]["sha256"] = array_digest(content, judge.open(name))
        else:
            kept[name] = bits(content)[kept_places(content.size)]
    untouched = [n for n in _written(judge) if n not in row]
    said += [Judgement(name, 0, 0, "is written by the interpreter, but not by the device") for name in untouched]
    return row, kept, said


def check(judge: Judge, row: Mapping[str, Any], kept: Mapping[str, Array]) -> list[Judgement]:
    """Compare the interpreter with what was committed of a case."""
    said = []
    written = _written(judge)
    for name in sorted({*written, *row}):
        if name not in row:
            said.append(Judgement(name, 0, 0, "is written by the interpreter, but not by the device"))
            continue
        ours = judge.outcome.memory[name].reshape(-1)
        if "sha256" in row[name]:
            same = array_digest(ours, judge.open(name)) == row[name]["sha256"]
            problem = "" if same else "promised exact bits, but the digest differs from the device's"
            said.append(Judgement(name, ours.size, ours.size if same else 0, problem))
        else:
            places = kept_places(ours.size)
            said.append(judge.elements(name, places, kept[name].view(ours.dtype)))
    return said


def _written(judge: Judge) -> list[str]:
    """The arrays that the interpreter leaves with other bits."""
    pairs = zip(judge.inputs.memory.allocations, judge.outcome.memory.allocations, strict=True)
    return [a.name for a, b in pairs if (a.data != b.data).any()]
