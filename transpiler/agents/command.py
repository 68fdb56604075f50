"""``transpile fill`` and ``transpile promote``."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from transpiler.agents.context import Opened
    from transpiler.agents.stages import Run
    from transpiler.agents.verdicts import Verdict
    from transpiler.jobs import OperatorJob
    from transpiler.report.model import HoleRow

CLIENT = "TRANSPILE_CLIENT"
FOLDER = "_agents"


@dataclass(frozen=True)
class FillOptions:
    """``transpile fill``; ``raised``: from the reference's Tile IR; ``again``: answers of earlier runs don't count."""

    folder: Path
    raised: bool = False
    kernel: str | None = None
    source: Path | None = None
    json: Path | None = None
    jobs: int = 0
    client: str | None = None
    run_tokens: int = 200_000
    hole_tokens: int = 40_000
    seconds: float = 120.0
    again: bool = False


def run_fill(options: FillOptions) -> int:
    """Fill the Holes of a folder; returns the exit status of the contract."""
    if options.raised:
        from transpiler.agents import raising

        return raising.run(options)
    from transpiler.agents.context import open_folder

    started = time.perf_counter()
    opened = open_folder(options.folder, options.source, options.kernel)
    if not opened.jobs:
        print("nothing to fill: no operator of the folder has a Hole")
        return 0
    runs, used, ended = _fill(opened, options)
    rows = [_row(operator, one) for operator, one in runs]
    return _finish(opened, options, rows, used, ended, started)


def _fill(opened: Opened, options: FillOptions) -> tuple[list[tuple[str, Run]], int, str]:
    """Every operator's Holes: their runs, the tokens used, and what ended the run ("" for nothing)."""
    from transpiler.agents.bench import Bench
    from transpiler.agents.clients import make_client
    from transpiler.agents.filler import Filler, Tools
    from transpiler.agents.stages import Budget
    from transpiler.agents.transcript import Transcript

    home = options.folder / FOLDER
    client = make_client(options.client or os.environ.get(CLIENT), home)
    budget = Budget(options.run_tokens, options.hole_tokens, options.seconds)
    runs: list[tuple[str, Run]] = []
    with Bench() as bench:
        tools = Tools(options.folder, bench, client, budget, Transcript(home / "transcript.jsonl", fresh=options.again),
                      _tell, options.kernel)  # fmt: skip
        for job in opened.jobs:  # what was accepted for one operator fills the next one's Holes too
            filler = Filler(_with_overrides(job, options.folder), tools)
            runs += [(job.name, run) for run in filler.fill()]
            if filler.ended:
                return runs, budget.used, filler.ended
    return runs, budget.used, ""


def _with_overrides(job: OperatorJob, folder: Path) -> OperatorJob:
    """A job with the overrides that are there now."""
    from transpiler.overrides import load_overrides, overrides_folder

    return replace(job, selection=replace(job.selection, overrides=load_overrides(overrides_folder(folder))))


def _tell(run: Run, verdict: Verdict) -> None:
    """One line a verdict on the standard error."""
    used = getattr(verdict, "tokens", 0)
    said = verdict.detail.partition("\n")[0][:160]
    extra = f" ({used} tokens)" if used else ""
    print(
        f"{run.construct.name}: {verdict.stage}: {verdict.outcome}{extra}{f': {said}' if said else ''}", file=sys.stderr
    )


def _row(operator: str, run: Run) -> HoleRow:
    from transpiler.agents.machine import Stop
    from transpiler.agents.verdicts import AnalystVerdict
    from transpiler.report.model import HoleRow

    step = run.course.step
    reason = step.reason if isinstance(step, Stop) else ""
    last = next((v.detail for v in reversed(run.course.verdicts) if v.detail), "")
    size = next((v.tokens for v in run.course.verdicts if isinstance(v, AnalystVerdict)), 0)
    return HoleRow(
        operator=operator,
        kernel=run.sites[0].kernel,
        file=run.site.diagnostic.span.file,
        line=run.site.diagnostic.span.line,
        hole=run.construct.name,
        digest=run.construct.digest,
        code=run.site.diagnostic.code,
        status="stopped" if isinstance(step, Stop) else "filled" if step == "accepted" else "parked",
        reason=reason or ("other Holes of the kernel are open" if step == "parked" else ""),
        detail="" if step == "accepted" else last,
        override=run.override.key if run.override is not None and step == "accepted" else "",
        model=run.model,
        task_tokens=size,
        questions=run.questions,
        tokens=run.tokens,
        cost=run.cost or None,
        verdicts=[f"{v.stage}: {v.outcome}" for v in run.course.verdicts],
    )


def _print_rows(rows: list[HoleRow], used: int, ended: str, out: IO[str]) -> None:
    from transpiler.report.terminal import counted

    for row in rows:
        how = ", tested, not proved" if "comparison: tested" in row.verdicts else ""
        what = f"override {row.override}{how}" if row.override else row.reason
        asked = counted(row.questions, "question")
        print(f"{row.file}:{row.line} {row.hole}: {row.status}, {what} ({asked}, {row.tokens} tokens)", file=out)
        if row.status == "stopped" and row.detail:
            print(f"  {row.detail}", file=out)
    if ended:
        print(f"the run ended: {ended}", file=out)
    filled = sum(row.status == "filled" for row in rows)
    print(f"{filled} of {len(rows)} Holes filled; {used} tokens", file=out)


def _finish(opened: Opened, options: FillOptions, rows: list[HoleRow], used: int, ended: str, started: float) -> int:
    """Translate and prove with what was accepted, write DIR, report."""
    from transpiler import toolkit
    from transpiler.batch import Options, run_jobs
    from transpiler.commands import worker_count
    from transpiler.emit.extras import render_crate_files
    from transpiler.report import assemble
    from transpiler.report.model import exit_status
    from transpiler.report.output import write_whole
    from transpiler.report.terminal import console, print_entries, totals_line

    jobs = [_with_overrides(job, options.folder) for job in opened.jobs]
    count = sum(job.check_count for job in jobs)
    results = run_jobs(jobs, Options(workers=worker_count(options.jobs, count)))
    opened.folder.write(list(results.translations.values()), toolkit.versions(), render_crate_files)
    report = assemble.report(results, seconds=time.perf_counter() - started)
    report.llm_tokens, report.holes = used, rows
    to_stdout = options.json is not None and str(options.json) == "-"
    out = sys.stderr if to_stdout else sys.stdout
    _print_rows(rows, used, ended, out)
    print_entries(console(out), report)
    print(totals_line(report), file=out)
    if to_stdout:
        sys.stdout.write(report.to_json())
    elif options.json is not None:
        write_whole(options.json, report.to_json())
    return exit_status(report)


def run_promote(override: Path, into: Path) -> int:
    """Make a rule row and a case of an override."""
    from transpiler.agents.promote import promote

    for path in promote(override, into):
        print(f"wrote {path.as_posix()}")
    return 0
