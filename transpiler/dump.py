"""``--dump=STAGE``: print an intermediate form."""

from __future__ import annotations

from typing import Any, TextIO

from transpiler import toolkit
from transpiler.ir import tir
from transpiler.ir.hir_print import print_program
from transpiler.jobs import OperatorJob
from transpiler.pipeline import translate
from transpiler.translation import check_keys
from transpiler.verify import Judge, rust_text, tasks_of


def dump(job: OperatorJob, stage: str, out: TextIO) -> None:
    """Print what ``stage`` gives; the Tile IR of both sides is printed per check."""

    def trace(at: str, of: str, form: Any) -> None:
        if at != stage:
            return
        if stage == "tir":
            out.write(f"// {of}\n{tir.dump(form)}\n")
        else:
            out.write(print_program(form) if stage == "hir" else form)

    translation = translate(job, trace)
    if not stage.startswith("tileir"):
        return
    rust = rust_text(translation)
    with Judge() as judge:
        for _, task, _ in tasks_of(translation.plan, check_keys(translation.plan)):
            out.write(f"// {task.kernel} [{task.specialization.name}] {task.target}\n")
            if stage == "tileir-reference":
                closure = translation.closures[task.kernel]
                bytecode = judge.exporter.export(closure, task.specialization, task.target).bytecode
            elif task.inputs is not None:
                bytecode = judge.compile(rust, task.inputs, task.target)
            else:
                out.write("".join(f"// {d.code}: {d.message}\n" for d in task.problems))
                continue
            out.write(toolkit.disassemble(bytecode) + "\n")
