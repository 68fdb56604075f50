"""The cases on which the interpreter is judged: from what is committed of one to its program and its inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transpiler import toolkit
from transpiler.execute import recorded
from transpiler.jobs import OperatorJob, corpus_jobs
from transpiler.reference.closure import extract_closure
from transpiler.reference.export import ReferenceExporter
from transpiler.reference.source import SourceTree
from transpiler.spec import Specialization
from transpiler.tileir import parse_entry
from transpiler.tileir.interpret import Program

RESULTS = Path(__file__).resolve().parent.parent / "results"
NAME = "interpreter"
"""Of the files of results: NAME.json and NAME.npz."""
AGAIN = "the cases have to run on a GPU again, see `interpreter-pack` in the Makefile"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Exported:
    """The reference's program for a specialization."""

    bytecode: bytes
    text: str

    @property
    def digest(self) -> str:
        """What the program is: a digest of its text, which has no source locations."""
        return hashlib.sha256(self.text.encode()).hexdigest()


class StaleError(Exception):
    """A case is no longer what the device ran."""


def export(exporter: ReferenceExporter, job: OperatorJob, kernel: str, spec: Specialization) -> Exported:
    """Return the reference's Tile IR; raises what the exporter raises."""
    found = exporter.export(extract_closure(SourceTree(job.path), kernel), spec, job.target)
    return Exported(found.bytecode, toolkit.disassemble(found.bytecode))


def key_of(row: Row) -> str:
    """The name of a case's specialization, in the table of specializations."""
    return f"{row['operator']} {row['kernel']} {row['specialization']}"


def judges(rows: Iterable[Row], specializations: Row) -> Iterator[recorded.Judge | StaleError]:
    """Execute the cases in order; an error stands for one whose program or inputs are others than the device's.

    ``specializations`` are those that the device's kernels were compiled for, whatever a corpus says by now.
    """
    jobs: dict[str, list[OperatorJob]] = {}
    known: tuple[str, Exported, Program, Specialization] | None = None
    with ReferenceExporter() as exporter:
        for row in rows:
            key = key_of(row)
            try:
                if known is None or known[0] != key:
                    if row["corpus"] not in jobs:
                        jobs[row["corpus"]] = corpus_jobs(row["corpus"])
                    job = _named(jobs[row["corpus"]], row["operator"], row["kernel"])
                    spec = Specialization.model_validate(specializations[key])
                    exported = export(exporter, job, row["kernel"], spec)
                    known = key, exported, Program(parse_entry(exported.text)), spec
                yield _judge(row, *known[1:])
            except StaleError as exc:
                yield exc


def _judge(row: Row, exported: Exported, program: Program, spec: Specialization) -> recorded.Judge:
    name = key_of(row)
    if exported.digest != row["tile_ir"]:
        raise StaleError(f"{name}: the reference compiles it to other Tile IR now: {AGAIN}")
    inputs = recorded.inputs_of(spec, recorded.plan_of(row["plan"]), row["values"])
    if recorded.inputs_digest(inputs) != row["inputs"]:
        raise StaleError(f"{name}: its inputs are made in another way now: {AGAIN}")
    return recorded.Judge(program, inputs)


def _named(jobs: list[OperatorJob], operator: str, kernel: str) -> OperatorJob:
    for job in jobs:
        if job.name == operator and any(one.name == kernel for one in job.kernels):
            return job
    raise StaleError(f"{operator} {kernel}: no corpus has it any more: {AGAIN}")
