"""One generated kernel, its mutants, and what tells them from the reference: the graph, facts and hints, execution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, Literal

from fault_edits import Program
from fault_kinds import KINDS, Kind

from transpiler.cubin import compare_cubins
from transpiler.diagnostics import TranspileError
from transpiler.execute.agree import Profile
from transpiler.jobs import OperatorJob
from transpiler.pipeline import translate
from transpiler.tileir import compare, parse_entry
from transpiler.tileir.compare import Comparison
from transpiler.toolkit import disassemble
from transpiler.translation import check_keys
from transpiler.verify import CheckTask, Judge, parameter_map, promises, rust_text, tasks_of

Found = Literal["graph", "facts and hints", "nothing"]
Executed = Literal["found", "agrees", "not executed"]
PROFILES: tuple[Profile, ...] = (("normal", "plain"), ("ragged", "edge"))
VISIBLE = ("structure", "effect")
"""Differences of graphs; facts, hints and signatures are the others."""


@dataclass(frozen=True)
class Mutant:
    """A fault that compiled to another Tile IR, and who found it; ``equivalent`` says why nobody has to."""

    kernel: str
    kind: str
    found: Found
    difference: str = ""
    executed: Executed = "not executed"
    equivalent: str = ""


@dataclass
class Result:
    """What became of a kernel: its mutants, and how many edits don't count."""

    kernel: str
    mutants: list[Mutant]
    refused: int = 0
    """Edits that cutile refuses to compile, or whose Tile IR is ill-formed."""
    identical: int = 0
    """Edits after which the Tile IR is the same text."""
    executable: bool = False
    reason: str = ""


class Bench:
    """A kernel at one specialization."""

    def __init__(self, judge: Judge, job: OperatorJob) -> None:
        self._judge = judge
        (kernel,) = job.kernels
        (self.spec,) = kernel.specializations
        self.name = f"{job.name}/{kernel.name} [{self.spec.name}]"
        made = translate(job)
        ((_, self.task, decided),) = tasks_of(made.plan, check_keys(made.plan))
        if decided is not None or self.task.inputs is None:
            raise ValueError(f"{self.name} isn't compiled")
        self.program = Program(made.text, self.task.inputs)
        self._rust = rust_text(made)
        self._reference = parse_entry(disassemble(self._exported(made, kernel.name, self.task)))
        self._mapping = parameter_map(self.spec)
        self._bytecode = self._compiled(self.program)
        self._tile_ir = disassemble(self._bytecode)
        self._execution: Any = None

    def _exported(self, made: Any, kernel: str, task: CheckTask) -> bytes:
        return self._judge.exporter.export(made.closures[kernel], task.specialization, task.target).bytecode

    def run(self, kinds: range, places: int, tries: int, every: int) -> Result:
        """Put faults of some kinds into the first places where they compile; execute one mutant of ``every``."""
        untouched = self._compare(self._tile_ir)
        if not untouched.equal:
            return Result(self.name, [], reason="the untouched kernel differs")
        result = Result(self.name, [])
        for index in kinds:
            for program, bytecode, tile_ir in islice(self._mutants(KINDS[index], tries, result), places):
                execute = every > 0 and len(result.mutants) % every == 0
                result.mutants.append(
                    self._judged(KINDS[index], program, (bytecode, tile_ir), untouched, execute, result)
                )
        return result

    def _mutants(self, kind: Kind, tries: int, result: Result) -> Iterator[tuple[Program, bytes, str]]:
        for program in islice(kind.edit(self.program), tries):
            try:
                bytecode = self._compiled(program)
                tile_ir = disassemble(bytecode)
            except TranspileError:
                result.refused += 1
                continue
            if tile_ir == self._tile_ir:
                result.identical += 1
            else:
                yield program, bytecode, tile_ir

    def _judged(
        self,
        kind: Kind,
        program: Program,
        made: tuple[bytes, str],
        untouched: Comparison,
        execute: bool,
        result: Result,
    ) -> Mutant:
        bytecode, tile_ir = made
        comparison = self._compare(tile_ir)
        executed = self._execute(tile_ir, result) if execute or comparison.equal else "not executed"
        if comparison.equal:
            reason = "" if executed == "found" else self._equivalent(bytecode, comparison, untouched)
            return Mutant(self.name, kind.name, "nothing", _changed(self.program, program), executed, reason)
        kinds = {d.kind for d in comparison.differences}
        found: Found = "graph" if kinds & set(VISIBLE) else "facts and hints"
        return Mutant(self.name, kind.name, found, comparison.differences[0].message.split("\n")[0], executed)

    def _compiled(self, program: Program) -> bytes:
        return self._judge.compile(replace(self._rust, text=program.text), program.inputs, self.task.target)

    def _compare(self, tile_ir: str) -> Comparison:
        return compare(self._reference, parse_entry(tile_ir), target=self.task.target, parameter_map=self._mapping,
                       promises=promises(self.spec))  # fmt: skip

    def _equivalent(self, bytecode: bytes, comparison: Comparison, untouched: Comparison) -> str:
        """Why a mutant that nobody tells from the reference is none, "" if it isn't."""
        try:
            if compare_cubins(self._bytecode, bytecode, arch=self.task.target).outcome == "identical":
                return "identical machine code"
        except TranspileError:
            pass
        more = [name for name, n in comparison.equivalences.items() if n > untouched.equivalences.get(name, 0)]
        return f"equal by {', '.join(sorted(more))}" if more else ""

    # Execution

    def _execute(self, tile_ir: str, result: Result) -> Executed:
        """Execute a mutant on the inputs of the kernel's check."""
        from transpiler.execute.agree import Execution, invalid
        from transpiler.execute.inputs import make
        from transpiler.tileir.interpret import Program as Executable

        try:
            if self._execution is None:
                execution = Execution(parse_entry(self._tile_ir), self._reference, self.spec, seed=self.name)
                runs = []
                for shape, values in PROFILES:
                    plan = execution.search.plan(shape)
                    if plan is not None:
                        inputs = make(self.spec, plan, values, self.name)
                        theirs = execution.run_side("reference", inputs, races=False)
                        if not invalid(theirs):
                            runs.append((inputs, theirs))
                self._execution = execution, runs
                result.executable = bool(runs)
                result.reason = "" if runs else execution.search.problem
            execution, runs = self._execution
            if not runs:
                return "not executed"
            execution.ours = Executable(parse_entry(tile_ir))
            for inputs, theirs in runs:
                mine = execution.run_side("ours", inputs, races=False)
                if execution.compare(inputs, theirs, mine) is not None:
                    return "found"
        except (TranspileError, ArithmeticError) as failure:
            result.reason = str(failure)
            return "not executed"
        return "agrees"


def _changed(before: Program, after: Program) -> str:
    """The lines that a fault changed, or the compile inputs."""
    old, new = before.text.splitlines(), after.text.splitlines()
    lines = [f"{a.strip()} -> {b.strip()}" for a, b in zip(old, new, strict=False) if a != b]
    if lines:
        return lines[0]
    pairs = [(f.name, getattr(before.inputs, f.name), getattr(after.inputs, f.name)) for f in fields(before.inputs)]
    return "; ".join(f"{name} {_only(a, b)} -> {_only(b, a)}" for name, a, b in pairs if a != b)


def _only(value: object, other: object) -> str:
    """The items of a tuple that another one lacks."""
    if isinstance(value, tuple) and isinstance(other, tuple):
        return ", ".join(str(item) for item in value if item not in other)
    return str(value)
