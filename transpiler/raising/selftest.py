"""Raising judged by kernels that rules translate too: export, raise, compile, compare; no Hole is needed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transpiler import toolkit
from transpiler.diagnostics import NO_SPAN, TranspileError
from transpiler.emit.entry import emit_entry
from transpiler.emit.inputs import compile_inputs
from transpiler.emit.render import emit_operator
from transpiler.frontend import load_program
from transpiler.ir import hir
from transpiler.jobs import OperatorJob
from transpiler.raising.raise_kernel import About, closure_names, raise_kernel
from transpiler.raising.refusal import CODE
from transpiler.reference.closure import Closure, extract_closure
from transpiler.reference.export import ReferenceRejected
from transpiler.reference.source import SourceTree
from transpiler.spec import Specialization
from transpiler.tileir.parse import parse_entry
from transpiler.verify import CheckTask, Judge, RustText


@dataclass(frozen=True)
class Outcome:
    """One check: ``proved``, ``differs``, ``refused`` (no form; ``why`` says of what), ``rejected`` or ``error``."""

    operator: str
    kernel: str
    specialization: str
    outcome: str
    why: str = ""


def raise_checks(jobs: Iterable[OperatorJob], judge: Judge, *, checks: int = 1, seed: int = 0) -> Iterator[Outcome]:
    """Raise some specializations of every kernel, chosen by ``seed``."""
    for job in jobs:
        program = load_program(job.path, display=job.display)
        tree = SourceTree(job.path, job.display)
        for kernel in job.kernels:
            closure = extract_closure(tree, kernel.name)
            known = list(kernel.specializations)
            for one in random.Random(seed).sample(known, min(checks, len(known))):
                yield _outcome(job, program, kernel.name, one, closure, judge)


def _outcome(
    job: OperatorJob, program: hir.Program, kernel: str, one: Specialization, closure: Closure, judge: Judge
) -> Outcome:
    try:
        outcome, why = _check(job, program, kernel, one, closure, judge)
    except ReferenceRejected as refusal:
        outcome, why = "rejected", refusal.diagnostic.message
    except TranspileError as failure:
        outcome = "refused" if failure.diagnostic.code == CODE else "error"
        why = failure.diagnostic.message
    return Outcome(job.name, kernel, one.name, outcome, why)


def _check(
    job: OperatorJob, program: hir.Program, kernel: str, one: Specialization, closure: Closure, judge: Judge
) -> tuple[str, str]:
    target = one.target or job.target
    bytecode = judge.exporter.export(closure, one, target).bytecode
    about = About.read(program, kernel, closure_names(closure))
    raised = raise_kernel(parse_entry(toolkit.disassemble(bytecode, debug=True)), about, one, target)
    emitted = emit_entry(raised)
    errors = [d.message for d in emitted.diagnostics if d.severity == "error"]
    if errors:
        return "refused", errors[0]
    module = emit_operator(job.name, [(raised, emitted)])
    inputs = compile_inputs(module.kernel_abis[0].entries[0], one, target)
    text = RustText(module.module, module.text, {})
    result = judge.check(text, closure, CheckTask(kernel, one, target, inputs, NO_SPAN))
    return result.verdict, result.diagnostics[0].message if result.diagnostics else ""
