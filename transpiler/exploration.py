"""Closing the set of a job's entries: a specialization for every path that its kernels' decisions allow.

What is found is checked like what was given.  What stays open is kept with its condition and the reason.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from transpiler.diagnostics import TranspileError

if TYPE_CHECKING:
    from transpiler.inputs import Lookups
    from transpiler.jobs import OperatorJob


def explored(job: OperatorJob, lookups: Lookups | None = None) -> OperatorJob:
    """Add a specialization for every path that the job doesn't take yet, and say what no path takes.

    A source that can't be read is left to translation, which says why.
    """
    from transpiler import passes
    from transpiler.frontend.program import load_program, program_lookups
    from transpiler.specialize.variants import explore

    try:
        program = load_program(job.path, display=job.display)
    except TranspileError:
        return job
    if job.problem is not None or any(kernel.name not in program.kernels for kernel in job.kernels):
        return job  # translation says what is wrong
    if lookups is not None:
        lookups.add(program_lookups(job.path, display=job.display))
    kernels = []
    for kernel in job.kernels:
        found = explore(program, kernel.name, kernel.specializations, job.selection.rules, job.selection.fragments,
                        finish=passes.run)  # fmt: skip
        kernels.append(replace(kernel, specializations=found.specializations, uncovered=found.uncovered))
    return replace(job, kernels=tuple(kernels))
