"""What the commands do: jobs, the run, the report, the output folder, the exit status."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from transpiler import jobs as job_lists
from transpiler import toolkit
from transpiler.batch import Options, Results, run_checks, run_jobs
from transpiler.diagnostics import Diagnostic, Span, TranspileError, error
from transpiler.exploration import explored
from transpiler.folder_notes import print_notes, removal_notes
from transpiler.jobs import OperatorJob
from transpiler.reference.closure import Closure
from transpiler.report import assemble
from transpiler.report.carets import SourceCache
from transpiler.report.merge import incomplete, merge
from transpiler.report.model import Report, diagnostic, exit_status, natural
from transpiler.report.output import complain, complain_of_unusable, finish, source_cache
from transpiler.report.output import write_whole as write_whole
from transpiler.report.sarif import diagnostics_of, to_sarif
from transpiler.report.terminal import console, print_entries, progress, totals_line
from transpiler.shards import distinct_names
from transpiler.store import OutputFolder
from transpiler.translation import KERNEL_FILE, KernelPlan, OperatorPlan, Translation
from transpiler.workers import usable_cores

_CHECKS_A_WORKER = 4


@dataclass(frozen=True)
class FileOptions:
    """``transpile FILE.py``."""

    file: Path
    out: Path
    kernel: str | None = None
    spec: Path | None = None
    target: str | None = None
    variants: bool = False
    explore: bool = False
    verify: bool = True
    cubins: tuple[str, ...] = ()
    format: str = "text"
    jobs: int = 0
    without: tuple[str, ...] = ()


def translate_file(options: FileOptions) -> int:
    """Translate a file, prove it, write DIR and print the results."""
    started = time.perf_counter()
    folder = OutputFolder(options.out)
    if not options.variants:
        folder.refuse_foreign([job_lists.operator_name(options.file)])
    job = _file_job(options)
    wanted = explored(job) if options.variants or options.explore else job
    checked = options.verify and not options.variants
    count = worker_count(options.jobs, wanted.check_count if checked else 0)
    with progress(wanted.check_count, "checks") if checked else _silent() as advance:
        results = run_jobs([wanted], Options(verify=checked, cubins=options.cubins, workers=count), advance)
    for failed in results.failures.values():
        raise TranspileError(failed.diagnostic)
    if options.variants:
        _number_as_written(results, job)
    report = assemble.report(results, seconds=time.perf_counter() - started)
    if options.variants:
        assemble.drop_checks(report)
    else:
        folder.write(list(results.translations.values()), toolkit.versions(), _crate)
        print_notes(removal_notes(folder))
    _print_file(report, results, options, source_cache({job.name: job.path}, report))
    return exit_status(report)


def _file_job(options: FileOptions) -> OperatorJob:
    job = job_lists.file_job(options.file, kernel=options.kernel, spec=options.spec, target=options.target)
    return job_lists.selected([job], options.without, options.out)[0]


def _number_as_written(results: Results, job: OperatorJob) -> None:
    """Give entries that kernel.rs has the names that they have there; the others are numbered after them."""
    from transpiler.pipeline import translate

    written = {kernel.name: kernel for kernel in translate(job).plan.kernels}
    for name, found in results.translations.items():
        kernels = tuple(_renumbered(kernel, written[kernel.name]) for kernel in found.plan.kernels)
        results.translations[name] = replace(found, plan=found.plan.model_copy(update={"kernels": kernels}))


def _renumbered(kernel: KernelPlan, written: KernelPlan) -> KernelPlan:
    """Rename a kernel's entries; which are the same is told by the specializations that take them."""
    home = {check.specialization.name: entry.name for entry in written.entries for check in entry.checks}
    names: dict[str, str] = {}
    for entry in kernel.entries:
        taken = [home[c.specialization.name] for c in entry.checks if home.get(c.specialization.name)]
        if entry.name and taken and taken[0] not in names.values():
            names[entry.name] = taken[0]
    known = {entry.name for entry in kernel.entries} | set(home.values())
    free = iter(sorted(known - set(names.values()) - {""}, key=natural))
    entries = [entry.model_copy(update={"name": names.get(entry.name) or (next(free) if entry.name else "")})
               for entry in kernel.entries]  # fmt: skip
    return kernel.model_copy(update={"entries": tuple(sorted(entries, key=lambda e: (not e.name, natural(e.name))))})


def _print_file(report: Report, results: Results, options: FileOptions, sources: SourceCache) -> None:
    """Print in the format asked for; diagnostics go to the standard error when people read them."""
    if options.format == "json":
        sys.stdout.write(report.to_json())
        return
    if options.format == "sarif":
        sys.stdout.write(to_sarif(report))
        return
    complain(assemble.diagnostics(results), sources)
    complain_of_unusable(report, sources)
    out = console(sys.stdout)
    print_entries(out, report)
    if not options.variants:
        print(totals_line(report))
        for operator in report.operators:
            print(f"wrote {(options.out / operator.name / KERNEL_FILE).as_posix()}")


def dump_file(options: FileOptions, stage: str) -> int:
    """Print what one stage gives, for every specialization where it has one form for each; writes nothing."""
    from transpiler.dump import dump

    dump(_file_job(options), stage, sys.stdout)
    return 0


# Sources


def source_jobs(sources: Sequence[str], target: str | None) -> tuple[list[OperatorJob], list[tuple[str, Diagnostic]]]:
    """Make the jobs of corpora and files; a source file that can't be read doesn't stop the others."""
    jobs: list[OperatorJob] = []
    unreadable: list[tuple[str, Diagnostic]] = []
    for argument in sources:
        try:
            jobs += job_lists.argument_jobs(argument, target)
        except TranspileError as exc:
            if len(sources) == 1 or not argument.endswith(".py"):
                raise
            unreadable.append((job_lists.operator_name(Path(argument)), exc.diagnostic))
    distinct_names(jobs)
    return jobs, unreadable


# merge and verify


def run_merge(paths: Sequence[Path], json: Path | None) -> int:
    """Join reports and print the whole."""
    reports = [_read_report(path) for path in paths]
    report = merge(reports, [path.as_posix() for path in paths])
    print_notes(incomplete(report, reports))
    finish(report, map(diagnostic, diagnostics_of(report)), json, SourceCache())
    return exit_status(report)


def _read_report(path: Path) -> Report:
    from pydantic import ValidationError

    try:
        return Report.model_validate_json(path.read_bytes())
    except OSError as exc:
        raise error("E0811", f"can't read {path.as_posix()}: {exc.strerror}") from None
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"{path.as_posix()} is not JSON that transpile wrote: {where + ': ' if where else ''}{first['msg']}"
        raise error("E0811", message, Span(path.as_posix(), 1, 1), help="give the files that `--json` wrote") from None


_EDITED = f"{KERNEL_FILE} was changed since it was written: correct it, or translate again"


def run_verify(path: Path, cubins: tuple[str, ...], jobs: int, json: Path | None, *, execute: bool = False) -> int:
    """Check a folder again, from what is in it alone."""
    started = time.perf_counter()
    folder = OutputFolder(path)
    manifest = folder.load()
    print_notes(removal_notes(folder))
    translations = [_stored(folder, stored.plan) for stored in manifest.operators]
    changed = [folder.read(stored) for stored in manifest.operators]
    for stored in changed:
        if stored.changed:
            print(f"{stored.plan.name}/{KERNEL_FILE} was changed since it was written", file=sys.stderr)
    total = sum(kernel.check_count for t in translations for kernel in t.plan.kernels)
    with progress(total, "checks") as advance:
        options = Options(cubins=cubins, workers=worker_count(jobs, total), execute=execute)
        results: Results = run_checks(translations, options, advance)
    report = assemble.report(results, seconds=time.perf_counter() - started)
    found = [d for d in assemble.diagnostics(results) if d.severity != "warning" or d.code.startswith("W07")]
    if any(stored.changed for stored in changed):
        found = [replace(d, help=_EDITED) if d.code == "E0711" else d for d in found]
    uncovered = [_uncovered(path / name) for name in folder.changed(manifest)]
    finish(report, (*found, *uncovered), json, SourceCache(below=True))
    return 1 if uncovered else exit_status(report)


def _uncovered(path: Path) -> Diagnostic:
    """A file beside kernel.rs that the checks say nothing of any more."""
    gone = "was changed since it was written" if path.is_file() else "is missing"
    message = f"{path.as_posix()} {gone}; the checks don't cover it"
    return Diagnostic("E0824", message, "translate again to restore it", "error", Span(path.as_posix(), 1, 1))


def _stored(folder: OutputFolder, plan: OperatorPlan) -> Translation:
    closures = {}
    for kernel in plan.kernels:
        if kernel.closure:
            text = folder.closure_text(plan.name, kernel.closure)
            closures[kernel.name] = Closure.from_text(text, f"{plan.name}/{kernel.closure}")
    return Translation(plan, {KERNEL_FILE: folder.closure_text(plan.name, KERNEL_FILE)}, closures)


# Shared


def worker_count(asked: int, checks: int) -> int:
    """How many workers: as asked, or one a core, but no more than there is work for."""
    if asked:
        return asked
    return max(1, min(usable_cores(), -(-checks // _CHECKS_A_WORKER)))


def _crate(names: Sequence[str]) -> dict[str, str]:
    """Render the files at the top of DIR."""
    from transpiler.emit.extras import render_crate_files

    return render_crate_files(names)


def _silent() -> contextlib.AbstractContextManager[Callable[[int, str], None]]:
    """Show no progress."""
    return contextlib.nullcontext(lambda _count, _what: None)
