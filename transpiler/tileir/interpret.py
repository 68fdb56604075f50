"""Execute Tile IR in NumPy.

An entry is compiled once into closures over an environment (a list with a slot for each SSA value) and
run for each tile block of the grid, one after another, in the order of their numbers, x fastest.  What
depends on nothing is computed when compiling; what depends on parameters alone once a run.

    memory = Memory()
    x = memory.allocate("x", np.arange(8, dtype=np.float32))
    outcome = interpret(entry, [x, 8, 1], grid=(1, 1, 1), memory=memory)
    outcome.memory["x"], outcome.findings

Arguments are the entry's flat parameters: addresses in ``memory`` for pointers, numbers for the rest.
``memory`` itself isn't changed.  What each operation computes is in ``ops/``.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from transpiler.diagnostics import error
from transpiler.tileir.elements import dtype_of
from transpiler.tileir.machine import Finding, Machine, StoppedError
from transpiler.tileir.memory import Memory
from transpiler.tileir.model import Entry, Op, Region, tile_type, walk
from transpiler.tileir.noise import Noise
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.schema import REGION_LAMBDAS, ROWS
from transpiler.tileir.ops.site import CompiledRegion, Env, Runner, Signal, Site

Argument = Any
"""An address, a number, or a NumPy scalar."""
_LIMIT = 200_000
_FAULTING = frozenset({"divi", "remi", "assume", "assert"})
"""Operations that may have findings: they are only executed where the program does."""


@dataclass(frozen=True)
class Outcome:
    """What a run left, and what it did."""

    memory: Memory
    prints: tuple[str, ...]
    findings: tuple[Finding, ...]
    """What a correct program doesn't do."""
    stopped: str = ""
    """Why the run was given up; "" when it wasn't."""
    loaded: int = 0
    """Elements read, those of atomics aside."""
    stored: int = 0
    """Elements written."""
    steps: int = 0
    """Iterations of loops."""
    writer: Op | None = None
    """Who wrote the watched element last."""
    regions: tuple[int, int] = (0, 0)
    """How many of the program's regions (bodies of loops, branches) were run, of how many."""
    open_loads: int = 0
    """Elements that were loaded where the program leaves open what a load gives."""


class Program:
    """A compiled entry."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.machine = Machine(entry)
        self._constants: dict[int, Any] = {}
        self._once: list[Runner] = []
        compiler = _Compiler(self.machine, self._constants, self._once)
        with np.errstate(all="ignore"):
            self._body = compiler.top(entry.body)
        self._regions = compiler.regions

    def run(
        self, arguments: Sequence[Argument], grid: Sequence[int], memory: Memory, *, races: bool = True,
        limit: int = _LIMIT, fatal: frozenset[str] = frozenset(), noise: Noise | None = None,
        watch: tuple[str, int] | None = None, open_value: float = 0.0, tensor_core: bool = False,
    ) -> Outcome:  # fmt: skip
        """Run all tile blocks; ``limit`` bounds the loop iterations, findings of ``fatal`` kinds end the run.

        ``noise`` moves inexact results; ``watch`` names an allocation and an element, to learn who writes it last;
        ``open_value`` is what a load without a padding value gives outside of its array.  With ``tensor_core``
        matrix products are summed as Hopper does (:mod:`.tensor_core`).
        Raises E0688 when the arguments don't fit the entry's parameters.
        """
        x, y, z = (*grid, 1, 1, 1)[:3]
        machine = self.machine
        machine.reset(memory.copy(), (x, y, z), limit=limit, races=races, fatal=fatal, noise=noise,
                      watch=watch, open_value=open_value, tensor_core=tensor_core)  # fmt: skip
        env: Env = [None] * len(self.entry.values)
        for value, constant in self._constants.items():
            env[value] = constant
        self._bind(env, arguments)
        stopped = ""
        collecting = gc.isenabled()
        gc.disable()
        try:
            with np.errstate(all="ignore"):
                for step in self._once:
                    step(env)
                for k, j, i in product(range(z), range(y), range(x)):
                    machine.enter((i, j, k))
                    self._body(env)
        except StoppedError as exc:
            stopped = str(exc)
        finally:
            if collecting:
                gc.enable()
        return Outcome(
            machine.memory, tuple(machine.prints), tuple(machine.findings.values()), stopped, machine.loaded,
            machine.stored, machine.steps, machine.writer, (len(machine.visited), self._regions), machine.open_loads,
        )  # fmt: skip

    def _bind(self, env: Env, arguments: Sequence[Argument]) -> None:
        params = self.entry.params
        if len(arguments) != len(params):
            raise error("E0688", f"`{self.entry.name}` has {len(params)} parameters, not {len(arguments)}")
        for param, argument in zip(params, arguments, strict=True):
            dtype = dtype_of(tile_type(self.entry.values[param].type).element)
            env[param] = np.asarray(argument).astype(dtype)[()]


def interpret(
    entry: Entry, arguments: Sequence[Argument], grid: Sequence[int], memory: Memory, *, races: bool = True,
    limit: int = _LIMIT,
) -> Outcome:  # fmt: skip
    """Compile and run an entry; use :class:`Program` to run it several times."""
    return Program(entry).run(arguments, grid, memory, races=races, limit=limit)


def promises_bits(entry: Entry) -> bool:
    """Whether every operation of the entry promises exact bits, so that any correct machine leaves the same."""
    machine = Machine(entry)
    return not any(ROWS[op.name].tolerance.applies(Site(op, entry, machine)) for op in walk(entry.body))


class _Compiler:
    """Makes steps of operations; knows which values are constant, and which are the same for all tile blocks."""

    def __init__(self, machine: Machine, constants: dict[int, Any], once: list[Runner]) -> None:
        self._machine, self._constants, self._once = machine, constants, once
        self._shared: set[int] = set(machine.entry.params)
        self.regions = 0

    def top(self, body: Region) -> Runner:
        """Compile the entry's body: what all tile blocks compute alike goes to the steps done once."""
        steps: list[Runner] = []
        certain = True
        for op in body.ops:
            step = self._operation(op)
            if step is None:
                continue
            if self._is_shared(op, certain):
                self._shared.update(op.results)
                self._once.append(step)
            else:
                steps.append(step)
                certain = certain and not any(inner.name == "return" for region in op.regions for inner in walk(region))
        return _sequence(steps)

    def _is_shared(self, op: Op, certain: bool) -> bool:
        """Whether an operation gives the same for every tile block, and is executed by every one."""
        row = ROWS[op.name]
        pure = row.static or op.name in ("assume", "get_num_tile_blocks")
        if not pure or (op.name in _FAULTING and not certain):
            return False
        return all(v in self._shared or v in self._constants for v in op.operands)

    def region(self, region: Region, *, pure: bool) -> CompiledRegion:
        """Compile a region inside of an operation; the body of a reduction is ``pure``."""
        if pure:
            first = self._function(region.ops[0], ()) if len(region.ops) == 2 else None
            return CompiledRegion(region.args, _sequence(self._steps(region)), first)
        number, machine = self.regions, self._machine
        self.regions += bool(region.ops)
        steps = self._steps(region)
        if region.ops:
            steps.insert(0, lambda _env: machine.visited.add(number))
        return CompiledRegion(region.args, _sequence(steps))

    def _steps(self, region: Region) -> list[Runner]:
        return [step for op in region.ops if (step := self._operation(op)) is not None]

    def _function(self, op: Op, regions: tuple[CompiledRegion, ...]) -> Any:
        row = ROWS[op.name]
        site = Site(op, self._machine.entry, self._machine, regions)
        function = row.make(site)
        noisy = row.tolerance.kind == "ulp" and row.tolerance.ulps and row.tolerance.applies(site)
        return _noisy(function, self._machine, row.tolerance.ulps) if noisy else function

    def _operation(self, op: Op) -> Runner | None:
        """Compile an operation; None when its result is known already."""
        row = ROWS[op.name]
        function = self._function(op, tuple(self.region(r, pure=op.name in REGION_LAMBDAS) for r in op.regions))
        if row.schema.kind == "control" or row.schema.regions:
            runner: Runner = function
            return runner
        if op.name == "assume" and op.operands[0] in self._constants:
            self._constants[op.results[0]] = self._constants[op.operands[0]]  # nothing that inputs could break
            return None
        if row.static and op.name not in _FAULTING and all(v in self._constants for v in op.operands):
            self._fold(op, function)
            return None
        return _step(op, function)

    def _fold(self, op: Op, function: Any) -> None:
        result = function(*[self._constants[v] for v in op.operands])
        if len(op.results) == 1:
            self._constants[op.results[0]] = result
        else:
            self._constants.update(zip(op.results, result, strict=True))


def _noisy(function: Any, machine: Machine, ulps: float) -> Any:
    """Let noise in, when there is any."""

    def run(*values: Any) -> Any:
        result = function(*values)
        return result if machine.noise is None else machine.noise.elementwise(result, ulps)

    return run


def _sequence(steps: list[Runner]) -> Runner:
    def run(env: Env) -> Signal | None:
        for step in steps:
            signal = step(env)
            if signal is not None:
                return signal
        return None

    return run


def _step(op: Op, function: Any) -> Runner:
    """Call an operation's function with its operands' values, and keep its results."""
    results, operands = op.results, op.operands
    if len(results) != 1:
        return _general_step(op, function)
    result = results[0]
    match operands:
        case (a,):

            def one(env: Env) -> None:
                env[result] = function(env[a])

            return one
        case (a, b):

            def two(env: Env) -> None:
                env[result] = function(env[a], env[b])

            return two

    def many(env: Env) -> None:
        env[result] = function(*[env[v] for v in operands])

    return many


def _general_step(op: Op, function: Any) -> Runner:
    results, operands = op.results, op.operands

    def run(env: Env) -> None:
        values = function(*[env[v] for v in operands])
        if results:
            for result, value in zip(results, values, strict=True):
                env[result] = value

    return run
