"""Make a counterexample small: fewer tile blocks, smaller arrays, constant contents, as long as the sides differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from transpiler.execute.agree import Counterexample, Difference, Execution
from transpiler.execute.inputs import Inputs, make
from transpiler.execute.plan import Plan, fits
from transpiler.tileir.memory import Memory

_RUNS = 60


def shrink(execution: Execution, found: Counterexample) -> Counterexample:
    """Return a counterexample of which no smaller variant was found within some number of executions."""
    shrinker = _Shrinker(execution, found)
    shrinker.smaller_plans()
    shrinker.simpler_contents()
    best = shrinker.best
    return replace(best, difference=execution.located(best.inputs, best.difference), runs=shrinker.runs)


class _Shrinker:
    def __init__(self, execution: Execution, found: Counterexample) -> None:
        self.execution, self.best, self.runs = execution, found, 0

    def _accept(self, inputs: Inputs) -> bool:
        """Keep the inputs when the sides differ on them."""
        if self.runs >= _RUNS:
            return False
        self.runs += 1
        difference: Difference | None = self.execution.compare_again(inputs, races=False)
        if difference is None:
            return False
        self.best = Counterexample(inputs, difference)
        return True

    def smaller_plans(self) -> None:
        """Halve the grid and sizes, as long as that works."""
        again = True
        while again and self.runs < _RUNS:
            again = False
            for plan in _smaller(self.execution, self.best.inputs.plan):
                old = self.best.inputs
                new = make(self.execution.spec, plan, old.values, self.execution.seed)
                if self._accept(replace(new, open_value=old.open_value)):
                    again = True
                    break

    def simpler_contents(self) -> None:
        """Make arrays constant, one after another: zeros, else ones, else the first half as it is."""
        for number, allocation in enumerate(self.best.inputs.memory.allocations):
            if allocation.dtype.kind == "i" and allocation.itemsize == 8 and "[" in allocation.name:
                continue
            for content in (0, 1):
                if self._accept(_filled(self.best.inputs, number, content, 0)):
                    break
            else:
                kept = allocation.array().size
                while kept > 1 and self._accept(_filled(self.best.inputs, number, 0, kept // 2)):
                    kept //= 2


def _filled(inputs: Inputs, number: int, content: float, kept: int) -> Inputs:
    """The inputs with a constant in an array, apart from its first elements."""
    memory: Memory = inputs.memory.copy()
    array = memory.allocations[number].array().reshape(-1)
    array[kept:] = np.asarray(content).astype(array.dtype)
    return replace(inputs, memory=memory)


def _smaller(execution: Execution, plan: Plan) -> Iterator[Plan]:
    """Plans with one number halved, largest first; sizes keep their divisors."""
    for axis, count in enumerate(plan.grid):
        if count > 1:
            grid = list(plan.grid)
            grid[axis] = count // 2
            yield replace(plan, grid=(grid[0], grid[1], grid[2]))
    free = execution.search.dims.free
    for size in sorted({plan.sizes[at] for at in free}, reverse=True):
        same = [at for at in free if plan.sizes[at] == size]
        divisor = max(free[at][1] for at in same)
        half = -(-(size // 2) // divisor) * divisor
        if 0 < half < size:
            chosen = {**plan.sizes, **dict.fromkeys(same, half)}
            scalars = {name: half if value == size else value for name, value in plan.scalars.items()}
            if fits(execution.spec, chosen):
                yield replace(plan, sizes=chosen, scalars=scalars)
