"""What the commands do: jobs, the run, the report, the output folder, the exit status."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from transpiler import jobs as job_lists
from transpiler import toolkit
from transpiler.batch import Options, Results, failure, run_checks, run_jobs
from transpiler.diagnostics import Diagnostic, Span, TranspileError, error
from transpiler.jobs import OperatorJob
from transpiler.reference.closure import Closure
from transpiler.report import assemble
from transpiler.report.carets import SourceCache, render_all
from transpiler.report.merge import merge
from transpiler.report.model import Report, exit_status
from transpiler.report.sarif import diagnostics_of, to_sarif
from transpiler.report.terminal import console, print_entries, print_kernels, progress, totals_line
from transpiler.store import OutputFolder
from transpiler.translation import KERNEL_FILE, OperatorPlan, Translation
from transpiler.workers import usable_cores

_CHECKS_A_WORKER = 4
_SHOWN = 20


@dataclass(frozen=True)
class FileOptions:
    """``transpile FILE.py``."""

    file: Path
    out: Path
    kernel: str | None = None
    spec: Path | None = None
    target: str | None = None
    variants: bool = False
    verify: bool = True
    cubins: tuple[str, ...] = ()
    format: str = "text"
    jobs: int = 0


@dataclass(frozen=True)
class BatchOptions:
    """``transpile batch``."""

    sources: tuple[str, ...]
    out: Path
    jobs: int
    shard: tuple[int, int] | None
    cubins: tuple[str, ...]
    target: str | None
    json: Path | None


def translate_file(options: FileOptions) -> int:
    """Translate a file, prove it, write DIR and print the results."""
    started = time.perf_counter()
    folder = OutputFolder(options.out)
    if not options.variants:
        folder.refuse_foreign()
    job = _file_job(options)
    checked = options.verify and not options.variants
    workers = worker_count(options.jobs, job.check_count if checked else 0)
    with progress(job.check_count, "checks") if checked else _silent() as advance:
        results = run_jobs([job], Options(verify=checked, cubins=options.cubins, workers=workers), advance)
    for failed in results.failures.values():
        raise TranspileError(failed.diagnostic)
    report = assemble.report(results, seconds=time.perf_counter() - started)
    if options.variants:
        assemble.drop_checks(report)
    else:
        folder.write(list(results.translations.values()), toolkit.versions(), _crate)
    _print_file(report, results, options, _sources([job], report))
    return exit_status(report)


def _file_job(options: FileOptions) -> OperatorJob:
    job = job_lists.file_job(options.file, kernel=options.kernel, spec=options.spec, target=options.target)
    return _with_variants(job) if options.variants else job


def _with_variants(job: OperatorJob) -> OperatorJob:
    """Add a specialization for every path through the kernels' decisions that the job doesn't take yet."""
    from transpiler.frontend import load_program
    from transpiler.rules import table
    from transpiler.specialize.variants import find_variants

    program = load_program(job.path, display=job.display)
    kernels = []
    for kernel in job.kernels:
        found = find_variants(program, kernel.name, kernel.specializations, table())
        kernels.append(replace(kernel, specializations=found))
    return replace(job, kernels=tuple(kernels))


def _print_file(report: Report, results: Results, options: FileOptions, sources: SourceCache) -> None:
    """Print in the format asked for; diagnostics go to the standard error when people read them."""
    if options.format == "json":
        sys.stdout.write(report.to_json())
        return
    if options.format == "sarif":
        sys.stdout.write(to_sarif(report))
        return
    _complain(assemble.diagnostics(results), sources, warnings=not options.variants)
    out = console(sys.stdout)
    print_entries(out, report)
    if not options.variants:
        print(totals_line(report))
        for operator in report.operators:
            print(f"wrote {(options.out / operator.name / KERNEL_FILE).as_posix()}")


def _complain(diagnostics: Iterable[Diagnostic], sources: SourceCache, *, warnings: bool = True) -> None:
    """Print every diagnostic once for its place, with its source line; warnings where there is nothing worse."""
    seen: dict[tuple[str, ...], Diagnostic] = {}
    found = list(diagnostics)
    hidden = not warnings or any(one.severity == "error" for one in found)
    for one in found:
        if one.severity == "warning" and hidden:
            continue
        first = one.message.partition("\n")[0]
        seen.setdefault((one.code, first, one.span.file, str(one.span.line), str(one.span.column)), one)
    rows = list(seen.values())
    err = console(sys.stderr)
    for text in render_all(rows[:_SHOWN], sources):
        err.print(text, soft_wrap=True)
    if len(rows) > _SHOWN:
        err.print(f"and {len(rows) - _SHOWN} more diagnostics; --json or --format json has them all")


def _sources(jobs: Sequence[OperatorJob], report: Report) -> SourceCache:
    """Find sources by the paths that the report shows."""
    paths = {job.name: job.path for job in jobs}
    cache = SourceCache()
    for operator in report.operators:
        if operator.name in paths:
            cache.add_tree(operator.source, paths[operator.name])
    return cache


def dump_file(options: FileOptions, stage: str) -> int:
    """Print what one stage gives, for every specialization where it has one form for each; writes nothing."""
    from transpiler.dump import dump

    dump(_file_job(options), stage, sys.stdout)
    return 0


# batch


def run_batch(options: BatchOptions) -> int:
    """Translate and prove corpora and files, write DIR, print a table and the totals."""
    started = time.perf_counter()
    folder = OutputFolder(options.out)
    folder.refuse_foreign()
    jobs, unreadable = source_jobs(options.sources, options.target)
    wanted = None
    if options.shard is not None:
        jobs, wanted = job_lists.shard(jobs, *options.shard)
    total = len(wanted) if wanted is not None else sum(job.check_count for job in jobs)
    run = Options(cubins=options.cubins, workers=worker_count(options.jobs, total), wanted=wanted)
    with progress(total, "checks") as advance:
        results = run_jobs(jobs, run, advance)
    for name, diagnostic in unreadable:
        results.failures[name] = failure(OperatorJob(name, Path(name), None, ()), diagnostic)
    report = assemble.report(results, seconds=time.perf_counter() - started)
    if results.translations:
        folder.write(list(results.translations.values()), toolkit.versions(), _crate)
    _finish(report, assemble.diagnostics(results), options.json, _sources(jobs, report))
    _print_equivalences(results)
    return exit_status(report)


def source_jobs(sources: Sequence[str], target: str | None) -> tuple[list[OperatorJob], list[tuple[str, Diagnostic]]]:
    """Make the jobs of corpora and files; a source file that can't be read doesn't stop the others."""
    from transpiler.corpora import is_corpus

    jobs: list[OperatorJob] = []
    unreadable: list[tuple[str, Diagnostic]] = []
    for argument in sources:
        if is_corpus(argument):
            jobs += job_lists.corpus_jobs(argument)
        elif not argument.endswith(".py"):
            raise error("E0270", f"`{argument}` is neither a corpus nor a Python file",
                        help=f"known corpora: {', '.join(_corpus_names())}; or give a path") from None  # fmt: skip
        else:
            try:
                jobs.append(job_lists.file_job(Path(argument), target=target))
            except TranspileError as exc:
                if len(sources) == 1:
                    raise
                unreadable.append((job_lists.operator_name(Path(argument)), exc.diagnostic))
    jobs = job_lists.with_target(jobs, target)
    job_lists.distinct_names(jobs)
    return jobs, unreadable


def _corpus_names() -> tuple[str, ...]:
    from transpiler.corpora import corpus_names

    return corpus_names()


def _finish(report: Report, diagnostics: Iterable[Diagnostic], json: Path | None, sources: SourceCache) -> None:
    """Write the JSON, and print diagnostics, table and totals."""
    to_stdout = json is not None and str(json) == "-"
    if json is not None and not to_stdout:
        write_whole(json, report.to_json())
    _complain(diagnostics, sources)
    out = console(sys.stderr if to_stdout else sys.stdout)
    print_kernels(out, report)
    out.print(totals_line(report), soft_wrap=True)
    if to_stdout:
        sys.stdout.write(report.to_json())


def _print_equivalences(results: Results) -> None:
    """Say which named equivalences the proofs used, and how often."""
    used = results.timing.equivalences
    if used:
        rows = ", ".join(f"{name} {used[name]}" for name in sorted(used))
        console(sys.stderr).print(f"equivalences used: {rows}", soft_wrap=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as exc:
        temporary.unlink(missing_ok=True)
        raise error("E0823", f"can't write {path.as_posix()}: {exc.strerror}") from None


# merge and verify


def run_merge(paths: Sequence[Path], json: Path | None) -> int:
    """Join reports and print the whole."""
    report = merge([_read_report(path) for path in paths])
    _finish(report, map(assemble.diagnostic, diagnostics_of(report)), json, SourceCache())
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


def run_verify(path: Path, cubins: tuple[str, ...], jobs: int, json: Path | None) -> int:
    """Check a folder again, from what is in it alone."""
    started = time.perf_counter()
    folder = OutputFolder(path)
    manifest = folder.load()
    translations = [_stored(folder, stored.plan) for stored in manifest.operators]
    changed = [folder.read(stored) for stored in manifest.operators]
    for stored in changed:
        if stored.changed:
            print(f"{stored.plan.name}/{KERNEL_FILE} was changed since it was written", file=sys.stderr)
    total = sum(kernel.check_count for t in translations for kernel in t.plan.kernels)
    with progress(total, "checks") as advance:
        results: Results = run_checks(translations, Options(cubins=cubins, workers=worker_count(jobs, total)), advance)
    report = assemble.report(results, seconds=time.perf_counter() - started)
    found = [d for d in assemble.diagnostics(results) if d.severity != "warning"]
    uncovered = [_uncovered(path / name) for name in folder.changed(manifest)]
    _finish(report, (*found, *uncovered), json, SourceCache())
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
