"""Filling Holes from the reference's own Tile IR, operation by operation, for one specialization; no language model.

    the folder, translated again -> its specializations with Holes
    each: the reference is exported, its operations put in the place of the Holes, compiled, compared
    what isn't proved that way: the whole kernel lifted instead, compiled, compared
    what is proved is kept: overrides of kind ``raised``, whose body is the reference's Tile IR with its locations

The folder is translated with the overrides, so that what is written is what every later translation gives.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from transpiler import toolkit
from transpiler.agents.context import Opened, open_folder
from transpiler.batch import Options, Results, run_jobs
from transpiler.commands import worker_count
from transpiler.diagnostics import Diagnostic, TranspileError
from transpiler.emit.extras import render_crate_files
from transpiler.ir.construct import RAISED_MODEL, HoleSite
from transpiler.jobs import OperatorJob
from transpiler.overrides import ConstructKey, Evidence, Override, overrides_folder, specialization_digest
from transpiler.pipeline import translate
from transpiler.raising.apply import missing_rules
from transpiler.raising.refusal import CODE as REFUSED
from transpiler.reference.export import ReferenceExporter
from transpiler.report import assemble
from transpiler.report.model import exit_status
from transpiler.report.output import finish, source_cache, write_whole
from transpiler.report.terminal import progress
from transpiler.shards import Wanted
from transpiler.spec import Specialization
from transpiler.translation import CheckPlan, Translation
from transpiler.verify import CheckResult

if TYPE_CHECKING:
    from transpiler.agents.command import FillOptions

_LIBRARY = re.compile(r'"/[^"]*(/cuda/tile\b[^"]*)"')
Overrides = dict[str, tuple[Override, ...]]
"""By operator."""


@dataclass(frozen=True)
class _Attempt:
    """A specialization with Holes, and the reference's Tile IR for it."""

    job: OperatorJob
    kernel: str
    one: Specialization
    sites: tuple[HoleSite, ...]
    body: str

    @property
    def wanted(self) -> tuple[str, str, str]:
        """The check that it is about."""
        return self.job.name, self.kernel, self.one.name

    def holes(self) -> tuple[Override, ...]:
        """An override for each Hole; none where one of them is more than a call."""
        if any(site.construct.kind != "call" for site in self.sites):
            return ()
        found = {site.construct.digest: site for site in self.sites}
        return tuple(self._override(ConstructKey.of(site.construct), (site,)) for site in found.values())

    def whole(self) -> tuple[Override, ...]:
        """An override for the kernel."""
        return (self._override(None, self.sites),)

    def _override(self, hole: ConstructKey | None, sites: tuple[HoleSite, ...]) -> Override:
        return Override(
            kind="raised", rules=self.job.selection.digest, model=RAISED_MODEL, kernel=f"{self.job.name}.{self.kernel}",
            specialization=specialization_digest(self.one), hole=hole, body=self.body, missing=missing_rules(sites),
            evidence=Evidence(verdict="proved", checks=(self.one.name,)),
        ).keyed()  # fmt: skip


def run(options: FillOptions) -> int:
    """Raise what has Holes in a folder; returns the exit status of the contract."""
    started = time.perf_counter()
    opened = open_folder(options.folder, options.source, options.kernel)
    said: list[Diagnostic] = []
    with ReferenceExporter() as exporter:
        attempts = [a for job in opened.jobs for a in _attempts(job, options.kernel, exporter, said)]
    accepted: Overrides = {job.name: () for job in opened.jobs}
    attempts, _ = _tried(attempts, _Attempt.holes, accepted, options)
    _, reasons = _tried(attempts, _Attempt.whole, accepted, options)
    said += reasons
    jobs = [_with(job, accepted[job.name]) for job in opened.jobs]
    results = _run(jobs, options)
    _write(opened, accepted, results)
    report = assemble.report(results, seconds=time.perf_counter() - started)
    sources = source_cache({job.name: job.path for job in jobs}, report)
    finish(report, [*said, *assemble.diagnostics(results)], options.json, sources)
    return exit_status(report)


# What to raise


def _attempts(
    job: OperatorJob, kernel: str | None, exporter: ReferenceExporter, said: list[Diagnostic]
) -> Iterator[_Attempt]:
    """Every specialization with Holes; what the reference refuses is said and left out."""
    translation = translate(job)
    for name, check in _unmapped(translation, kernel):
        closure = translation.closures.get(name)
        if closure is None:
            continue
        try:
            bytecode = exporter.export(closure, check.specialization, check.target).bytecode
            body = _LIBRARY.sub(r'"\1"', toolkit.disassemble(bytecode, debug=True))
        except TranspileError as failure:
            said.append(failure.diagnostic)
            continue
        sites = tuple(s.site for s in translation.sites if (s.kernel, s.specialization) == (name, check.specialization))
        yield _Attempt(job, name, check.specialization, sites, body)


def _unmapped(translation: Translation, kernel: str | None) -> Iterator[tuple[str, CheckPlan]]:
    for one in translation.plan.kernels:
        if kernel in (None, one.name):
            yield from ((one.name, c) for e in one.entries for c in e.checks if c.outcome == "unmapped")


# Trying


def _tried(
    attempts: Sequence[_Attempt], make: Callable[[_Attempt], tuple[Override, ...]], accepted: Overrides,
    options: FillOptions,
) -> tuple[list[_Attempt], list[Diagnostic]]:  # fmt: skip
    """Check one kind of overrides; adds what is proved to ``accepted``, and returns what is left to try, and why."""
    made = {attempt.wanted: make(attempt) for attempt in attempts}
    jobs: dict[str, OperatorJob] = {}
    for attempt in (a for a in attempts if made[a.wanted]):
        jobs[attempt.job.name] = _with(jobs.get(attempt.job.name, attempt.job), made[attempt.wanted])
    if not jobs:
        return list(attempts), []
    wanted = frozenset(key for key, overrides in made.items() if overrides)
    results = _run(list(jobs.values()), options, wanted)
    outcomes = dict(_outcomes(results))
    rest: list[_Attempt] = []
    reasons: list[Diagnostic] = []
    for attempt in attempts:
        result = outcomes.get(attempt.wanted)
        if result is not None and result.verdict == "proved" and made[attempt.wanted]:
            accepted[attempt.job.name] += made[attempt.wanted]
            continue
        rest.append(attempt)
        if made[attempt.wanted] and result is not None:
            reasons.extend(d for d in result.diagnostics if result.verdict != "unmapped" or d.code == REFUSED)
    return rest, reasons


def _outcomes(results: Results) -> Iterator[tuple[tuple[str, str, str], CheckResult]]:
    """The result of each check by operator, kernel and specialization."""
    for key, result in results.checks.items():
        kernel = results.translations[key.operator].plan.kernels[key.kernel]
        name = kernel.entries[key.entry].checks[key.check].specialization.name
        yield (key.operator, kernel.name, name), result


def _with(job: OperatorJob, overrides: Iterable[Override]) -> OperatorJob:
    selection = replace(job.selection, overrides=(*job.selection.overrides, *overrides))
    return replace(job, selection=selection)


def _run(jobs: Sequence[OperatorJob], options: FillOptions, wanted: Wanted | None = None) -> Results:
    total = sum(job.check_count for job in jobs) if wanted is None else len(wanted)
    with progress(total, "checks") as advance:
        return run_jobs(jobs, Options(workers=worker_count(options.jobs, total), wanted=wanted), advance)


# What is kept


def _write(opened: Opened, accepted: Overrides, results: Results) -> None:
    """Write the overrides, in the place of older ones for the same, then the operators that were translated."""
    folder = overrides_folder(opened.folder.path)
    new = {one.key: one for found in accepted.values() for one in found}
    for key, one in new.items():
        write_whole(folder / f"{key}.toml", one.to_toml())
    stands_for = {(o.kernel, o.specialization) for o in new.values()}
    for old in opened.overrides:
        if old.kind == "raised" and (old.kernel, old.specialization) in stands_for and old.key not in new:
            (folder / f"{old.key}.toml").unlink(missing_ok=True)
    if new:
        opened.folder.write(list(results.translations.values()), toolkit.versions(), render_crate_files)
