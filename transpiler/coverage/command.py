"""``transpile coverage``: translate and prove corpora and files, and say which rules that took.

Everything is translated anew, since that is what shows the rules; checks that a batch did before come from its cache.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transpiler import commands
from transpiler.batch import Options, failure, run_jobs
from transpiler.cache.checks import CheckMemo
from transpiler.cache.folder import CacheFolder, default_path
from transpiler.coverage.collect import collect
from transpiler.coverage.terminal import print_coverage
from transpiler.jobs import OperatorJob, selected
from transpiler.report import assemble
from transpiler.report.model import exit_status
from transpiler.report.output import write_whole
from transpiler.report.terminal import console, progress


@dataclass(frozen=True)
class CoverageOptions:
    """``transpile coverage``."""

    sources: tuple[str, ...]
    jobs: int = 0
    cubins: tuple[str, ...] = ()
    target: str | None = None
    html: Path | None = None
    json: Path | None = None
    cached: bool = True
    overrides: Path | None = None
    without: tuple[str, ...] = ()


def run_coverage(options: CoverageOptions) -> int:
    """Do the checks, print the tables, write the page and the JSON; the exit status is that of the checks."""
    jobs, unreadable = commands.source_jobs(options.sources, options.target)
    jobs = selected(jobs, options.without, options.overrides)
    total = sum(job.check_count for job in jobs)
    known = CacheFolder(default_path() if options.cached else None)
    run = Options(cubins=options.cubins, workers=commands.worker_count(options.jobs, total),
                  memo=CheckMemo(known, options.cubins))  # fmt: skip
    try:
        with progress(total, "checks") as advance:
            results = run_jobs(jobs, run, advance)
    finally:
        known.prune()
    for name, diagnostic in unreadable:
        results.failures[name] = failure(OperatorJob(name, Path(name), None, ()), diagnostic)
    overrides = jobs[0].selection.overrides if jobs else ()
    found = collect(options.sources, results, overrides)
    if options.html is not None:
        from transpiler.coverage.page import render_page

        write_whole(options.html, render_page(found, results, paths_of(jobs)))
    if options.json is not None and options.json != Path("-"):
        write_whole(options.json, found.to_json())
    if options.json == Path("-"):
        sys.stdout.write(found.to_json())
    else:
        print_coverage(console(sys.stdout), found)
    return exit_status(assemble.report(results, seconds=0.0))


def paths_of(jobs: Sequence[OperatorJob]) -> dict[str, Path]:
    """Return where each operator's source file lies."""
    return {job.name: job.path for job in jobs}
