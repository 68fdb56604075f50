"""``transpile batch``: what has changed since the last run is done, everything else comes from the cache.

Nothing of the compiler is imported here before it is known that there is something to do.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from transpiler import toolkit
from transpiler.cache.folder import CacheFolder, default_path, key_of
from transpiler.cache.listing import Listed, find_listing, listed, store_listing
from transpiler.cache.operators import (
    KnownOperator,
    find_operator,
    load_translations,
    operator_key,
    selection_key,
    store_operator,
)
from transpiler.cache.output import removed_operators, stale_operators, store_state
from transpiler.diagnostics import Diagnostic, TranspileError
from transpiler.inputs import Lookups
from transpiler.report.model import Operator, Report, ShardOf, exit_status, make_report
from transpiler.report.output import finish, source_cache
from transpiler.report.terminal import console, progress
from transpiler.resources import OVERRIDES
from transpiler.shards import Names, Wanted, distinct_names, shard
from transpiler.sources import sources_folder

if TYPE_CHECKING:
    from transpiler.batch import Results
    from transpiler.jobs import OperatorJob
    from transpiler.translation import Translation


@dataclass(frozen=True)
class BatchOptions:
    """``transpile batch``; ``folder`` holds the packages that corpora name, instead of the installed ones."""

    sources: tuple[str, ...]
    out: Path
    jobs: int
    shard: tuple[int, int] | None
    cubins: tuple[str, ...]
    target: str | None
    json: Path | None
    cached: bool = True
    without: tuple[str, ...] = ()
    explore: bool = False
    folder: Path | None = None


@dataclass
class _Plan:
    """What a run has to do: operators by argument, files that can't be read, and jobs where they were made already."""

    operators: list[Listed] = field(default_factory=list)
    unreadable: list[tuple[str, Diagnostic]] = field(default_factory=list)
    jobs: dict[str, OperatorJob] = field(default_factory=dict)


def run_batch(options: BatchOptions) -> int:
    """Translate and prove corpora and files, write DIR, print a table and the totals."""
    run = _Run(options)
    try:
        return run.run()
    finally:
        run.folder.prune()


class _Run:
    def __init__(self, options: BatchOptions) -> None:
        self._options = options
        self._sources = sources_folder(options.folder) if options.folder is not None else None
        self._started = time.perf_counter()
        self._since = time.time_ns()
        self.folder = CacheFolder(default_path() if options.cached else None)
        self._selection = selection_key(options.out / OVERRIDES, options.without)

    def run(self) -> int:
        plan = self._plan()
        names = [one.names for one in plan.operators]
        wanted = shard(names, *self._options.shard) if self._options.shard else None
        mine = [one for one in plan.operators if self._is_mine(one, wanted)]
        known, missing = self._known(mine, wanted)
        stale = self._stale(known, missing)
        total = len(wanted) if wanted is not None else sum(one.check_count for one in mine)
        with progress(total, "checks") as advance:
            for one in known:
                advance(_check_count(one.operator), one.listed.name)
            results = self._do(plan, missing, wanted, total, advance) if missing or plan.unreadable else None
        part = self._shard_of(names)
        report = self._report(known, results, part)
        wrote = self._write(stale, results)
        self._remember(missing, wanted, results)
        self._print(report, mine, known, results)
        self._print_places(wrote, bool(known))
        return exit_status(report)

    # What there is to do

    def _is_mine(self, one: Listed, wanted: Wanted | None) -> bool:
        """Has this run something of an operator to do? One that is only host code is the first shard's."""
        if wanted is None or (not one.kernels and self._options.shard and self._options.shard[0] == 1):
            return True
        return any(key[0] == one.name for key in wanted)

    def _plan(self) -> _Plan:
        plan = _Plan()
        for argument in self._options.sources:
            found = find_listing(self.folder, argument, self._options.target, self._sources, self._options.explore)
            if found is None:
                self._read(argument, plan)
            else:
                plan.operators += found
        distinct_names(plan.operators)
        return plan

    def _read(self, argument: str, plan: _Plan) -> None:
        """Read an argument; a source file that can't be read doesn't stop the others."""
        lookups = Lookups()
        try:
            from transpiler.jobs import argument_jobs

            jobs = argument_jobs(argument, self._options.target, lookups, self._sources, explore=self._options.explore)
        except TranspileError as exc:
            if len(self._options.sources) == 1 or not argument.endswith(".py") or self._sources is not None:
                raise
            from transpiler.jobs import operator_name

            plan.unreadable.append((operator_name(Path(argument)), exc.diagnostic))
            return
        found = [listed(argument, job) for job in jobs]
        plan.operators += found
        plan.jobs |= {job.name: job for job in jobs}
        if any(job.problem is not None for job in jobs):
            return  # what has to change for it to be gone isn't known
        store_listing(self.folder, argument, self._options.target, found, lookups, self._since, self._sources,
                      self._options.explore)  # fmt: skip

    def _key(self, one: Listed, wanted: Wanted | None) -> str:
        return operator_key(one, self._options.cubins, wanted, self._selection)

    def _known(self, mine: Sequence[Listed], wanted: Wanted | None) -> tuple[list[KnownOperator], list[Listed]]:
        known, missing = [], []
        for one in mine:
            found = find_operator(self.folder, one, self._key(one, wanted))
            if found is None:
                missing.append(one)
            else:
                known.append(found)
        return known, missing

    def _stale(self, known: list[KnownOperator], missing: list[Listed]) -> dict[str, Translation]:
        """What of the known operators isn't in DIR as it should be; where it can't be restored it is done again."""
        stale = stale_operators(self.folder, self._options.out, toolkit.versions(), known)
        if not stale and not missing:
            return {}
        from transpiler.store import OutputFolder

        names = [*(one.listed.name for one in known), *(one.name for one in missing)]
        OutputFolder(self._options.out).refuse_foreign(names)
        found = load_translations(self.folder, stale)
        if found is None:
            missing += [one.listed for one in stale]
            known[:] = [one for one in known if one not in stale]
        return found or {}

    # Doing it

    def _do(
        self, plan: _Plan, missing: Sequence[Listed], wanted: Wanted | None, total: int,
        advance: Callable[[int, str], None],
    ) -> Results:  # fmt: skip
        from transpiler.batch import Options, failure, run_jobs
        from transpiler.cache.checks import CheckMemo
        from transpiler.commands import worker_count
        from transpiler.jobs import OperatorJob

        jobs = self._jobs(plan, missing)
        memo = CheckMemo(self.folder, self._options.cubins)
        count = sum(one.check_count for one in missing)
        run = Options(cubins=self._options.cubins, workers=worker_count(self._options.jobs, min(total, count)),
                      wanted=wanted, memo=memo)  # fmt: skip
        results = run_jobs(jobs, run, advance)
        for name, diagnostic in plan.unreadable:
            results.failures[name] = failure(OperatorJob(name, Path(name), None, ()), diagnostic)
        return results

    def _jobs(self, plan: _Plan, missing: Sequence[Listed]) -> list[OperatorJob]:
        """The jobs of what is missing; arguments whose listing was known have to be read now."""
        from transpiler.jobs import argument_jobs, selected

        for argument in dict.fromkeys(one.argument for one in missing if one.name not in plan.jobs):
            made = argument_jobs(argument, self._options.target, None, self._sources, explore=self._options.explore)
            plan.jobs |= {job.name: job for job in made}
        return selected([plan.jobs[one.name] for one in missing], self._options.without, self._options.out)

    def _write(self, stale: dict[str, Translation], results: Results | None) -> bool:
        """Bring DIR up to date; returns whether there was anything to write."""
        done = list(results.translations.values()) if results is not None else []
        mine = {translation.plan.name for translation in done} | set(stale)
        if done or stale or set(removed_operators(self.folder, self._options.out)) - mine:
            from transpiler.emit.extras import render_crate_files
            from transpiler.folder_notes import print_notes, removal_notes
            from transpiler.store import OutputFolder

            out = OutputFolder(self._options.out)
            out.write([*done, *stale.values()], toolkit.versions(), render_crate_files)
            print_notes(removal_notes(out))
            store_state(self.folder, self._options.out)
        return bool(done or stale)

    def _remember(self, missing: Sequence[Listed], wanted: Wanted | None, results: Results | None) -> None:
        for one in missing:
            if results is not None and one.name in results.translations:
                store_operator(self.folder, self._key(one, wanted), results, one.name, wanted, self._since)

    # Results

    def _shard_of(self, names: Sequence[Names]) -> ShardOf | None:
        """What makes shards belong together: the checks of the whole batch, and what is done with each."""
        index, count = self._options.shard or (1, 1)
        if count == 1:
            return None
        batch = key_of(names, self._options.target, self._options.cubins, self._options.without)
        checks = sum(len(specializations) for _, kernels in names for _, specializations in kernels)
        return ShardOf(shards=[index], count=count, batch=batch[:16], checks=checks)

    def _report(self, known: Sequence[KnownOperator], results: Results | None, part: ShardOf | None) -> Report:
        operators: list[Operator] = [one.operator for one in known]
        reference, cached = 0.0, sum(_check_count(one.operator) for one in known)
        if results is not None:
            from transpiler.report import assemble

            operators += assemble.operators(results)
            reference = assemble.reference_seconds(results)
            cached += sum(result.cached for result in results.checks.values())
        return make_report(toolkit.versions(), operators, seconds=time.perf_counter() - self._started,
                           reference_seconds=reference, cached_checks=cached or None, shard=part)  # fmt: skip

    def _print(
        self, report: Report, mine: Sequence[Listed], known: Sequence[KnownOperator], results: Results | None
    ) -> None:
        found = {one.listed.name: one.diagnostics for one in known}
        equivalences: dict[str, int] = {}
        for one in known:
            _count(equivalences, one.equivalences)
        if results is not None:
            from transpiler.report.assemble import operator_diagnostics

            names = {*results.translations, *results.failures}
            found |= {name: tuple(operator_diagnostics(results, name)) for name in names}
            _count(equivalences, results.timing.equivalences)
        ordered = [diagnostic for name in sorted(found) for diagnostic in found[name]]
        finish(report, ordered, self._options.json, source_cache({one.name: one.path for one in mine}, report))
        if equivalences:
            rows = ", ".join(f"{name} {equivalences[name]}" for name in sorted(equivalences))
            console(sys.stderr).print(f"equivalences used: {rows}", soft_wrap=True)

    def _print_places(self, wrote: bool, kept: bool) -> None:
        """Say where the results are; beside the JSON where that is what the standard output gets."""
        json, out = self._options.json, self._options.out.as_posix()
        said = [f"wrote {out}"] if wrote else [f"{out} is up to date"] if kept else []
        if json is not None and str(json) != "-":
            said.append(f"wrote {json.as_posix()}")
        if said:
            stream = console(sys.stderr if str(json) == "-" else sys.stdout)
            stream.print("; ".join(said), soft_wrap=True, markup=False)


def _check_count(operator: Operator) -> int:
    return sum(len(entry.checks) for kernel in operator.kernels for entry in kernel.entries)


def _count(counts: dict[str, int], more: dict[str, int]) -> None:
    for name, uses in more.items():
        counts[name] = counts.get(name, 0) + uses
