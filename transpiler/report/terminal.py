"""Reports for people: tables of verdicts, the totals line, entries with their conditions, and progress."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from transpiler.report.model import SEVERITY_ORDER, VERDICTS, Kernel, Report, Verdict

STYLES: dict[Verdict, str] = {
    "proved": "green", "tested": "cyan", "differs": "bold red", "unmapped": "yellow", "rejected": "magenta",
    "error": "bold red",
}  # fmt: skip
_PLAIN_WIDTH = 140
_SECONDS_A_LINE = 2.0


def console(stream: TextIO | None) -> Console:
    """Return a console for a stream; off a terminal it is plain and wide enough not to fold tables."""
    if stream is not None and stream.isatty():  # None: the program was started with it closed
        return Console(file=stream, highlight=False, soft_wrap=False)
    stream = stream or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    return Console(file=stream, highlight=False, width=_PLAIN_WIDTH, color_system=None, force_terminal=False)


def verdict_text(kernel: Kernel) -> Text:
    """The kernel's verdict, with the count of each where its checks don't agree."""
    counts = Counter((check.verdict, bool(check.raised)) for check in kernel.checks())
    text = Text()
    for verdict, raised in ((v, r) for v in SEVERITY_ORDER for r in (False, True) if counts[v, r]):
        label = f"{verdict} (raised)" if raised else verdict
        number = "" if len(counts) == 1 else f"{counts[verdict, raised]} "
        text.append(", " if text else "").append(f"{number}{label}", STYLES[verdict])
    return text or Text("not checked", "dim")


def print_kernels(out: Console, report: Report) -> None:
    """A row a kernel: what it became and its verdict."""
    cubins = any(check.machine_code for o in report.operators for k in o.kernels for check in k.checks())
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, justify in (("operator", "left"), ("kernel", "left"), ("entries", "right"), ("checks", "right")):
        table.add_column(name, justify="right" if justify == "right" else "left", overflow="fold")
    executed = report.totals.executed is not None
    if cubins:
        table.add_column("machine code")
    if executed:
        table.add_column("executed", overflow="fold")
    table.add_column("seconds", justify="right")
    table.add_column("verdict", overflow="fold")
    for operator in report.operators:
        for kernel in operator.kernels:
            checks = list(kernel.checks())
            row = [operator.name, kernel.name, str(kernel.entry_count), str(len(checks))]
            row += [_machine_code(kernel)] if cubins else []
            row += [_executed(kernel)] if executed else []
            table.add_row(*row, f"{sum(c.seconds for c in checks):.2f}", verdict_text(kernel))
        if operator.diagnostics:
            table.add_row(operator.name, "", "", "", *[""] * (cubins + executed), "", Text("error", STYLES["error"]))
    out.print(table)


def _machine_code(kernel: Kernel) -> str:
    counts = Counter(outcome for check in kernel.checks() for outcome in check.machine_code.values())
    return ", ".join(f"{counts[o]} {o}" for o in ("identical", "differs", "refused") if counts[o])


def _executed(kernel: Kernel) -> str:
    """On how many inputs, and how many checks were not executed."""
    rows = [check.executed for check in kernel.checks() if check.executed is not None]
    inputs, without = sum(row.valid for row in rows), sum(not row.valid for row in rows)
    parts = [counted(inputs, "input")] if inputs else []
    return ", ".join(parts + ([f"{counted(without, 'check')} not"] if without else []))


def counted(count: int, noun: str) -> str:
    """Say how many there are of something, such as ``1 entry`` or ``21 entries``."""
    one_or_many = noun if count == 1 else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {one_or_many}"


def print_entries(out: Console, report: Report) -> None:
    """Every entry of every kernel: when it is taken, its generics, and what became of its checks."""
    for operator in report.operators:
        for kernel in operator.kernels:
            out.print(
                Text(f"{kernel.name}", "bold").append(f"  {operator.source}:{kernel.line}", "dim"), soft_wrap=True
            )
            for entry in kernel.entries:
                text = Text(f"  {entry.name or 'no Rust could be made:'}", "cyan" if entry.name else "")
                if entry.generics:
                    text.append(f"<{', '.join(entry.generics)}>")
                counts = Counter(check.verdict for check in entry.checks)
                for verdict in (v for v in SEVERITY_ORDER if counts[v]):
                    text.append(f"  {counts[verdict]} {verdict}", STYLES[verdict])
                out.print(text, soft_wrap=True)
                if entry.name:
                    out.print(Text("    when ", "dim").append(entry.condition, ""), soft_wrap=True)
            _print_completeness(out, kernel)


def _print_completeness(out: Console, kernel: Kernel) -> None:
    """Whether the entries take every call; else the calls that they don't, and why."""
    if kernel.complete:
        out.print(Text("  complete", "green").append(": its entries take every call of these ranks", "dim"))
    for one in kernel.uncovered or ():
        text = Text("  not covered: ", "yellow").append(one.condition).append(f"  ({one.reason})", "dim")
        out.print(text, soft_wrap=True)


def totals_line(report: Report) -> str:
    """One line with every count that isn't zero."""
    totals = report.totals
    parts = [counted(totals.operators, "operator"), counted(totals.kernels, "kernel"),
             counted(totals.entries, "entry")]  # fmt: skip
    verdicts = [f"{getattr(totals, v)} {v}" for v in VERDICTS if getattr(totals, v)]
    verdicts += [f"{totals.raised} raised"] if totals.raised else []
    parts.append(counted(totals.checks, "check") + (f": {', '.join(verdicts)}" if verdicts else ""))
    if totals.complete is not None:
        parts.append(f"{counted(totals.complete, 'kernel')} complete")
    if totals.machine_code_identical or totals.machine_code_refused:
        parts.append(f"machine code: {totals.machine_code_identical} identical, {totals.machine_code_refused} refused")
    if totals.executed is not None:
        parts.append(f"{counted(totals.executed, 'check')} executed on {counted(totals.executed_inputs or 0, 'input')}")
    if report.cached_checks:
        parts.append(f"{report.cached_checks} of them unchanged since an earlier run")
    return f"{'; '.join(parts)}; {report.seconds:.1f} s (reference exports {report.reference_seconds:.1f} s)"


@contextlib.contextmanager
def progress(total: int, label: str) -> Iterator[Callable[[int, str], None]]:
    """Show progress on the standard error: a bar on a terminal, a line every few seconds elsewhere."""
    if sys.stderr is not None and sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        # no refreshing thread: workers are forked meanwhile
        with Progress(*columns, console=Console(file=sys.stderr), transient=True, auto_refresh=False) as bar:
            task = bar.add_task(label, total=total)

            def advance(count: int, what: str) -> None:
                bar.update(task, advance=count, description=f"{label} {what}", refresh=True)

            yield advance
        return
    done, shown = 0, time.monotonic()

    def say(count: int, what: str) -> None:
        nonlocal done, shown
        done += count
        if time.monotonic() - shown >= _SECONDS_A_LINE:
            shown = time.monotonic()
            print(f"{label}: {done} of {total} ({what})", file=sys.stderr, flush=True)

    yield say
