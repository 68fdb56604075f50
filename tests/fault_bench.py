"""Generated kernels to put faults into, and the judge that has to find them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from fault_edits import Edit, Program

from transpiler.diagnostics import TranspileError
from transpiler.jobs import corpus_jobs
from transpiler.pipeline import translate
from transpiler.reference.export import ReferenceExporter
from transpiler.spec import ConstantSpec, Specialization
from transpiler.tileir import compare, parse_entry
from transpiler.tileir.compare import Comparison
from transpiler.toolkit import disassemble
from transpiler.verify import Judge, promises, rust_text

TARGET = "sm_90"


@dataclass(frozen=True)
class Subject:
    """A kernel of tilegym-core at one of its specializations, perhaps with other constants.

    Square tiles let faults compile that would otherwise be refused because a shape doesn't fit.
    """

    operator: str
    kernel: str
    specialization: str
    constants: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """A fault that compiled, and what the judge said of it."""

    program: Program
    comparison: Comparison


class Bench:
    """One generated kernel: the program, and its reference to compare with."""

    def __init__(self, subject: Subject, exporter: ReferenceExporter) -> None:
        job = next(j for j in corpus_jobs("tilegym-core") if j.name == subject.operator)
        kernel = next(k for k in job.kernels if k.name == subject.kernel)
        known = next(s for s in kernel.specializations if s.name == subject.specialization)
        wanted = _with_constants(known, subject.constants)
        translation = translate(replace(job, kernels=(replace(kernel, specializations=(wanted,)),)))
        check = translation.plan.kernels[0].entries[0].checks[0]
        assert check.inputs is not None, check.diagnostics
        self.program = Program(translation.text, check.inputs)
        self._rust = rust_text(translation)
        self._judge = Judge()
        self._promises = promises(wanted)
        exported = exporter.export(translation.closures[subject.kernel], wanted, TARGET)
        self._reference = parse_entry(disassemble(exported.bytecode))
        self._untouched = self._tile_ir(self.program)

    def untouched(self) -> Comparison:
        """Compare the program as it was generated."""
        return self._compare(self._untouched)

    def faults(self, edit: Edit, tries: int) -> Iterator[Fault]:
        """Yield what an edit makes of the program where that compiles, to another Tile IR; look at ``tries`` places."""
        for program in islice(edit(self.program), tries):
            try:
                tile_ir = self._tile_ir(program)
            except TranspileError:
                continue
            if tile_ir != self._untouched:
                yield Fault(program, self._compare(tile_ir))

    def _tile_ir(self, program: Program) -> str:
        rust = replace(self._rust, text=program.text)
        return disassemble(self._judge.compile(rust, program.inputs, TARGET))

    def _compare(self, tile_ir: str) -> Comparison:
        return compare(self._reference, parse_entry(tile_ir), target=TARGET, promises=self._promises)


def _with_constants(one: Specialization, constants: dict[str, int]) -> Specialization:
    params = {**one.params, **{name: ConstantSpec(value=value) for name, value in constants.items()}}
    return one.model_copy(update={"params": params})
