"""Finding inputs on which a program is defined: neither grid nor sizes nor scalars are in a specialization.

Plans are tried on the reference.  One on which it leaves an array is repaired, by making the array as large as
it has to be; one on which it does something undefined or breaks a fact that it states is dropped.  Of the
others the one that runs most of the program is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from transpiler.execute.inputs import make
from transpiler.execute.plan import Dimensions, Integers, Plan, Shape, dimensions, fits, sizes
from transpiler.spec import ArraySpec, ListSpec, ScalarSpec, Specialization
from transpiler.tileir.interpret import Outcome, Program
from transpiler.tileir.memory import Memory

INVALID = frozenset({"bounds", "undefined", "assumption", "assert"})
"""Kinds of findings that a program has no meaning after."""
_STEPS = 3000
_WORK = 8000
"""Iterations after which no more settings are tried; ``_ELEMENTS`` elements of memory count like one."""
_ELEMENTS = 2000
_ENOUGH = 16
"""More iterations than these make inputs no better."""
_REPAIRS = 24
_REPAIRED_ELEMENTS = 1 << 21
_MODEST = 64
"""Sizes up to this grow fast when they turn out too small again."""
_COSTLY = 400
_TRIALS = 14
_BLOCKS = {0: (), 1: (4, 3, 2), 2: (3, 2), 3: (2,)}
"""How many tile blocks to try along an axis, for each number of axes that count."""
Rule = str
"""How a scalar follows from sizes: "largest", "smallest", or a number."""
_RULES: tuple[Rule, ...] = ("smallest", "largest", "1", "2", "0")


@dataclass(frozen=True)
class Setting:
    """All that is searched for, apart from the grid."""

    rules: Mapping[str, Rule]
    integers: Integers = "small"
    most: str = "2"
    """The bound of integer arrays, a rule; "several" is eight times the largest size."""
    unknown: int = 16
    factor: int = 1


@dataclass(frozen=True)
class Trial:
    """A plan and what the reference did on it."""

    plan: Plan
    outcome: Outcome

    @property
    def problem(self) -> str:
        """Why the inputs aren't valid; "" when they are."""
        if self.outcome.stopped:
            return self.outcome.stopped
        if not self.outcome.stored and self.plan.shape != "empty" and not self.outcome.prints:
            return "nothing is written"
        return ""

    @property
    def score(self) -> tuple[int, int, int]:
        """Regions run, iterations (up to some), elements written."""
        return self.outcome.regions[0], min(self.outcome.steps, _ENOUGH), self.outcome.stored


class Search:
    """Finds plans for one reference program; remembers the setting that worked."""

    def __init__(self, spec: Specialization, reference: Program, seed: object) -> None:
        self.spec, self.reference, self.seed = spec, reference, seed
        self.dims: Dimensions = dimensions(spec, reference.entry)
        self.trials = 0
        self._work = 0
        self._regions = 0
        self._least: dict[tuple[str, int], int] = {}
        """What sizes had to be so far."""
        self.problem = ""
        """Why the last plan that was tried isn't valid."""
        self._scalars = [name for name, p in spec.params.items() if isinstance(p, ScalarSpec)]
        self._numbers = [name for name in self._scalars if _is_whole(spec, name)]
        self._setting: Setting | None = None
        self._plans: dict[Shape, Plan | None] = {}

    def plan(self, shape: Shape) -> Plan | None:
        """Return a valid plan for a shape, None where none was found."""
        if shape not in self._plans:
            self._plans[shape] = self._found(shape)
        return self._plans[shape]

    def _found(self, shape: Shape) -> Plan | None:
        if self._setting is None:
            self._setting = self._first()
            if self._setting is None:
                return None
        trial = self._try(self._setting, shape)
        if trial.problem and self._numbers and shape != "normal":
            trial = self._try(replace(self._setting, rules=dict.fromkeys(self._scalars, "largest")), shape)
        if trial.problem:
            self.problem = trial.problem
            return None
        return self._widened(trial).plan

    def _first(self) -> Setting | None:
        """The best setting for normal sizes."""
        best: tuple[tuple[int, int, int], Setting] | None = None
        for setting in self._candidates():
            trial = self._try(setting, "normal")
            self._regions = trial.outcome.regions[1]
            if trial.problem:
                self.problem = trial.problem
            elif best is None or trial.score > best[0]:
                best = (trial.score, setting)
            if best is not None and (best[0][0] == trial.outcome.regions[1] or self.trials >= _TRIALS // 2):
                break
            if self.trials >= 3 * _TRIALS or self._work > _WORK:
                break
        return self._climbed(*best) if best is not None else None

    def _climbed(self, score: tuple[int, int, int], setting: Setting) -> Setting:
        """Change one scalar at a time, as long as more of the program is run."""
        for name in self._numbers:
            for rule in _RULES:
                if (score[1] >= _ENOUGH and score[0] == self._regions) or self._work > _COSTLY * 4:
                    return setting
                if self.trials >= _TRIALS or self._work > _WORK or rule == setting.rules[name]:
                    continue
                other = replace(setting, rules={**setting.rules, name: rule})
                trial = self._try(other, "normal")
                if not trial.problem and trial.score[:2] > score[:2]:
                    score, setting = trial.score, other
        return setting

    def _candidates(self) -> Iterator[Setting]:
        arrays = [p.element if isinstance(p, ListSpec) else p for p in self.spec.params.values()]
        indices = any(isinstance(p, ArraySpec) and p.dtype.startswith(("int", "uint")) for p in arrays)
        fillings: list[tuple[Integers, str]] = [("small", "2")]
        if indices:
            fillings += [
                ("segments", "smallest"), ("segments", "largest"), ("counts", "largest"), ("sorted", "largest"),
                ("zeros", "1"), ("counts", "2"), ("segments", "several"),
            ]  # fmt: skip
        rules = _RULES if self._numbers else ("largest",)
        for unknown in (16, 64, 4):
            for integers, most in fillings:
                for rule in rules:
                    yield Setting(dict.fromkeys(self._scalars, rule), integers, most, unknown)
        yield Setting(dict.fromkeys(self._scalars, "largest"), factor=2)

    def _planned(self, setting: Setting, shape: Shape) -> Plan:
        chosen = sizes(self.spec, self.dims, shape, unknown=setting.unknown, factor=setting.factor)
        free = [chosen[at] for at in self.dims.free] or list(chosen.values()) or [setting.unknown]

        def number(rule: Rule) -> int:
            if rule == "largest":
                return max(free)
            if rule == "several":
                return 8 * max(free)
            return min((s for s in free if s > 1), default=max(free)) if rule == "smallest" else int(rule)

        scalars: dict[str, int | float] = {
            name: number(setting.rules[name]) if name in self._numbers else _fraction(name) for name in self._scalars
        }
        return Plan(shape, chosen, scalars, integers=setting.integers, most=number(setting.most))

    def _try(self, setting: Setting, shape: Shape) -> Trial:
        """Run a setting's plan, with larger arrays where it leaves them."""
        plan = self._planned(setting, shape)
        self.trials += 1
        if shape in ("one", "empty"):
            return self.run(plan)
        trial = self.run(replace(plan, sizes={at: max(n, self._least.get(at, 0)) for at, n in plan.sizes.items()}))
        for _ in range(_REPAIRS):
            if self._work > 2 * _WORK:
                break
            larger = self._repaired(trial)
            if larger is None:
                break
            trial = self.run(larger)
        if not trial.problem:
            self._least.update({at: n for at, n in trial.plan.sizes.items() if n > plan.sizes[at]})
        return trial

    def _repaired(self, trial: Trial) -> Plan | None:
        """Enlarge the array that a run left; None where that doesn't help."""
        needs = next((f.needs for f in trial.outcome.findings if f.kind == "bounds"), None)
        if needs is None:
            return None
        name, axis, needed = needs[0].partition("[")[0], needs[1], needs[2]
        param = self.spec.params.get(name)
        array = param.element if isinstance(param, ListSpec) else param
        if not isinstance(array, ArraySpec) or axis >= array.ndim:
            return None
        if axis < 0:  # so many elements: more of the slowest dimension
            open_axes = [a for a in range(array.ndim) if (name, a) in self.dims.free]
            if not open_axes:
                return None
            axis = open_axes[0]
            rest = max(1, _product(trial.plan.sizes[name, a] for a in range(array.ndim) if a != axis))
            needed = -(-needed // rest)
        if (name, axis) not in self.dims.free or needed <= trial.plan.sizes[name, axis]:
            return None
        again = trial.plan.sizes[name, axis] > self.dims.free[name, axis][0] * 2
        growth = 4 if needed <= _MODEST else 2
        needed = max(needed, growth * trial.plan.sizes[name, axis]) if again else needed
        divisor = array.shape_divisible_by[axis]
        larger = {**trial.plan.sizes, (name, axis): -(-needed // divisor) * divisor}
        return replace(trial.plan, sizes=larger) if fits(self.spec, larger, _REPAIRED_ELEMENTS) else None

    def run(self, plan: Plan) -> Trial:
        """Run the reference on a plan's plain values, up to the first thing that makes them invalid."""
        if not fits(self.spec, plan.sizes, _REPAIRED_ELEMENTS):
            return Trial(plan, Outcome(Memory(), (), (), "the arrays would be too large"))
        given = make(self.spec, plan, "plain", self.seed)
        outcome = self.reference.run(given.reference, plan.grid, given.memory, races=False, limit=_STEPS, fatal=INVALID)
        self._work += outcome.steps + (outcome.loaded + outcome.stored) // _ELEMENTS
        return Trial(plan, outcome)

    def _widened(self, trial: Trial) -> Trial:
        """Enlarge the grid along each axis that the program looks at, as far as the inputs stay valid."""
        for axis in self.dims.axes:
            known = self.spec.grid[axis] if self.spec.grid is not None and axis < len(self.spec.grid) else None
            counts = _BLOCKS[len(self.dims.axes)]
            for count in counts[:1] if trial.outcome.steps > _COSTLY else counts:
                if known is not None and count > known:
                    continue
                grid = list(trial.plan.grid)
                grid[axis] = count
                wider = self.run(replace(trial.plan, grid=(grid[0], grid[1], grid[2])))
                if not wider.problem:
                    trial = wider
                    break
        return trial


def _is_whole(spec: Specialization, name: str) -> bool:
    param = spec.params[name]
    return isinstance(param, ScalarSpec) and param.dtype.startswith(("int", "uint", "bool"))


def _product(numbers: Iterator[int]) -> int:
    total = 1
    for number in numbers:
        total *= number
    return total


def _fraction(name: str) -> float:
    """A value for a float scalar: small where it is called like what keeps from dividing by zero."""
    return 1e-5 if "eps" in name.lower() else 0.625
