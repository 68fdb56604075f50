"""Filling Holes from the reference's own Tile IR, operation by operation, for one specialization; no language model.

    the folder, translated again -> its specializations with Holes
    each: the reference is exported, lifted (transpiler.raising), compiled, compared; kept when it is proved
    what is kept: an override of kind ``raised``, whose body is the reference's Tile IR with its source locations

The folder is translated with the overrides, so that what is written is what every later translation gives.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from transpiler import toolkit
from transpiler.agents.context import Opened, open_folder
from transpiler.batch import Options, Results, run_jobs
from transpiler.commands import worker_count
from transpiler.diagnostics import Diagnostic, TranspileError
from transpiler.emit.extras import render_crate_files
from transpiler.jobs import OperatorJob
from transpiler.overrides import RAISED_MODEL, Evidence, Override, overrides_folder, specialization_digest
from transpiler.pipeline import translate
from transpiler.raising.apply import missing_rules
from transpiler.raising.refusal import CODE as REFUSED
from transpiler.reference.export import ReferenceExporter, ReferenceRejected
from transpiler.report import assemble
from transpiler.report.model import exit_status
from transpiler.report.output import finish, source_cache, write_whole
from transpiler.report.terminal import progress
from transpiler.translation import CheckPlan, Translation
from transpiler.verify import CheckResult

if TYPE_CHECKING:
    from transpiler.agents.command import FillOptions

_LIBRARY = re.compile(r'"/[^"]*(/cuda/tile\b[^"]*)"')


def run(options: FillOptions) -> int:
    """Raise what has Holes in a folder; returns the exit status of the contract."""
    started = time.perf_counter()
    opened = open_folder(options.folder, options.source, options.kernel)
    refusals: list[Diagnostic] = []
    candidates: dict[str, tuple[Override, ...]] = {}
    with ReferenceExporter() as exporter:
        for job in opened.jobs:
            candidates[job.name] = tuple(_candidates(job, options.kernel, exporter, refusals))
    jobs = [_with(job, candidates[job.name]) for job in opened.jobs]
    results = _run(jobs, options)
    accepted, dropped = _judged(jobs, candidates, results)
    if any(dropped.values()):  # what isn't proved isn't kept: its Holes stay
        refusals += [d for name, lost in dropped.items() for d in _reasons(name, lost, results)]
        jobs = [_with(job, accepted[job.name]) for job in opened.jobs]
        results = _run(jobs, options)
    _write(opened, accepted, results)
    report = assemble.report(results, seconds=time.perf_counter() - started)
    sources = source_cache({job.name: job.path for job in jobs}, report)
    finish(report, [*refusals, *assemble.diagnostics(results)], options.json, sources)
    return exit_status(report)


# What to raise


def _candidates(
    job: OperatorJob, kernel: str | None, exporter: ReferenceExporter, refusals: list[Diagnostic]
) -> Iterator[Override]:
    """An override for each specialization with Holes; the reference's refusals are told."""
    translation = translate(job)
    for name, check in _unmapped(translation, kernel):
        closure = translation.closures.get(name)
        if closure is None:
            continue
        try:
            bytecode = exporter.export(closure, check.specialization, check.target).bytecode
            body = _portable(toolkit.disassemble(bytecode, debug=True))
        except ReferenceRejected as refusal:
            refusals.append(refusal.diagnostic)
            continue
        except TranspileError as failure:
            refusals.append(failure.diagnostic)
            continue
        sites = tuple(s.site for s in translation.sites if (s.kernel, s.specialization) == (name, check.specialization))
        yield Override(
            kind="raised", rules=job.selection.digest, model=RAISED_MODEL, kernel=f"{job.name}.{name}",
            specialization=specialization_digest(check.specialization), body=body, missing=missing_rules(sites),
        ).keyed()  # fmt: skip


def _unmapped(translation: Translation, kernel: str | None) -> Iterator[tuple[str, CheckPlan]]:
    for one in translation.plan.kernels:
        if kernel in (None, one.name):
            yield from ((one.name, c) for e in one.entries for c in e.checks if c.outcome == "unmapped")


def _portable(text: str) -> str:
    """Tile IR without the folder that cuda-tile is installed in."""
    return _LIBRARY.sub(r'"\1"', text)


def _with(job: OperatorJob, overrides: Iterable[Override]) -> OperatorJob:
    selection = replace(job.selection, overrides=(*job.selection.overrides, *overrides))
    return replace(job, selection=selection)


# What to keep


def _run(jobs: Sequence[OperatorJob], options: FillOptions) -> Results:
    total = sum(job.check_count for job in jobs)
    with progress(total, "checks") as advance:
        return run_jobs(jobs, Options(workers=worker_count(options.jobs, total)), advance)


def _judged(
    jobs: Sequence[OperatorJob], candidates: dict[str, tuple[Override, ...]], results: Results
) -> tuple[dict[str, tuple[Override, ...]], dict[str, tuple[Override, ...]]]:
    """The overrides whose checks are proved, with that as evidence, and the others; by operator."""
    accepted: dict[str, tuple[Override, ...]] = {}
    dropped: dict[str, tuple[Override, ...]] = {}
    for job in jobs:
        proved = {key: name for key, name, result in _raised(job.name, results) if result.verdict == "proved"}
        mine = candidates[job.name]
        accepted[job.name] = tuple(
            o.model_copy(update={"evidence": Evidence(verdict="proved", checks=(proved[o.key],))})
            for o in mine
            if o.key in proved
        )
        if lost := tuple(o for o in mine if o.key not in proved):
            dropped[job.name] = lost
    return accepted, dropped


def _raised(operator: str, results: Results) -> Iterator[tuple[str, str, CheckResult]]:
    """Key of the override, name of the specialization and result of each check of raised code."""
    if operator not in results.translations:
        return
    plan = results.translations[operator].plan
    for key, result in results.checks.items():
        if key.operator == operator:
            check = plan.kernels[key.kernel].entries[key.entry].checks[key.check]
            yield from ((f.override, check.specialization.name, result) for f in check.filled if f.kind == "raised")


def _reasons(operator: str, lost: Sequence[Override], results: Results) -> Iterator[Diagnostic]:
    """Why overrides weren't kept: what has no form, or what came out different."""
    if operator not in results.translations:
        return
    plan = results.translations[operator].plan
    keys = {(o.kernel, o.specialization) for o in lost}
    for key, result in results.checks.items():
        kernel = plan.kernels[key.kernel] if key.operator == operator else None
        if kernel is None:
            continue
        check = kernel.entries[key.entry].checks[key.check]
        if (f"{operator}.{kernel.name}", specialization_digest(check.specialization)) in keys:
            yield from (d for d in result.diagnostics if check.filled or d.code == REFUSED)


def _write(opened: Opened, accepted: dict[str, tuple[Override, ...]], results: Results) -> None:
    """Write the overrides, in the place of older ones for the same, then the operators that were translated."""
    folder = overrides_folder(opened.folder.path)
    new = [one for found in accepted.values() for one in found]
    for one in new:
        write_whole(folder / f"{one.key}.toml", one.to_toml())
    stands_for = {(o.kernel, o.specialization) for o in new}
    for old in opened.overrides:
        if (
            old.kind == "raised"
            and (old.kernel, old.specialization) in stands_for
            and old.key not in {o.key for o in new}
        ):
            (folder / f"{old.key}.toml").unlink(missing_ok=True)
    if new:
        opened.folder.write(list(results.translations.values()), toolkit.versions(), render_crate_files)
