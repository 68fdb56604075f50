"""The JSON that other tools read: the contract of docs/architecture.md as pydantic models.

``Report`` is what ``transpile FILE``, ``--variants``, ``batch``, ``verify`` and ``merge`` print.  Its order is
canonical, so that merging shards gives what one run gives: operators by name, kernels by line, checks by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

from transpiler.diagnostics import Diagnostic, Severity, Span

Verdict = Literal["proved", "tested", "differs", "unmapped", "rejected", "error"]
MachineCode = Literal["identical", "differs", "refused"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
SEVERITY_ORDER: tuple[Verdict, ...] = ("error", "differs", "unmapped", "tested", "proved", "rejected")
"""From what has to be looked at first; a kernel's verdict is the first of these that one of its checks has."""


class _Model(BaseModel):
    """Unknown keys are errors: a file that isn't ours is found out at once."""

    model_config = ConfigDict(extra="forbid")


class DiagnosticRow(_Model):
    """``D`` of the contract."""

    code: str
    severity: Severity
    message: str
    help: str
    file: str
    line: int
    column: int


class Filled(_Model):
    """A Hole that an override fills, and the line that it is in; ``raised``: made of the reference's Tile IR."""

    hole: str
    override: str
    kind: Literal["rust", "raised"]
    model: str
    line: int


class Executed(_Model):
    """What executing both sides gave: for how many inputs, on how many of them the kernel is defined, how many agree in
    every bit; ``regions``: how many of the reference's loop bodies and branches were reached, of how many."""

    inputs: int
    valid: int
    exact: int
    regions: list[int]
    seconds: float = 0.0
    reason: str = ""
    """Why the kernel is defined on none of the inputs."""


class Check(_Model):
    """One entry compiled for one specialization on both sides; ``filled`` is there where overrides fill Holes.

    ``raised`` is there (and true) where one of them was made of the reference's own Tile IR: no rules translated that.
    """

    specialization: str
    target: str
    verdict: Verdict
    machine_code: dict[str, MachineCode] = {}
    diagnostics: list[DiagnosticRow] = []
    filled: list[Filled] | None = None
    raised: bool | None = None
    seconds: float = 0.0
    executed: Executed | None = None


class Entry(_Model):
    """One Rust function of a kernel, and when it is taken."""

    name: str
    condition: str
    generics: list[str]
    checks: list[Check] = []


class Uncovered(_Model):
    """Calls that the reference may take and no entry does: their condition in the author's words, and why."""

    condition: str
    reason: str


class Kernel(_Model):
    """One ``@ct.kernel`` function.

    ``complete`` and ``uncovered`` are there where its paths were explored: whether its entries take every call with the
    ranks and classes of dtypes that were given.
    """

    name: str
    line: int
    diagnostics: list[DiagnosticRow] = []
    entries: list[Entry] = []
    complete: bool | None = None
    uncovered: list[Uncovered] | None = None

    def checks(self) -> Iterable[Check]:
        """All checks, entry by entry."""
        return (check for entry in self.entries for check in entry.checks)

    @property
    def entry_count(self) -> int:
        """How many Rust functions it became."""
        return sum(bool(entry.name) for entry in self.entries)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that decides for the kernel, None without checks."""
        found = {check.verdict for check in self.checks()}
        return next((verdict for verdict in SEVERITY_ORDER if verdict in found), None)


class Operator(_Model):
    """A source module. ``diagnostics`` is only there when the module as a whole could not be read."""

    name: str
    source: str
    kernels: list[Kernel] = []
    diagnostics: list[DiagnosticRow] | None = None


class HoleRow(_Model):
    """What became of one Hole in ``transpile fill``; ``cost`` in US dollars where it is known.

    ``filled``: an override was accepted; ``parked``: its answer waits for other Holes; ``stopped``: see ``reason``.
    ``digest`` names the construct.
    """

    operator: str
    kernel: str
    file: str
    line: int
    hole: str
    digest: str
    code: str
    status: Literal["filled", "parked", "stopped"]
    reason: str
    detail: str
    override: str
    model: str
    task_tokens: int
    questions: int
    tokens: int
    cost: float | None = None
    verdicts: list[str]


class ShardOf(_Model):
    """Which shards of a batch a report has (from 1), of how many; ``batch`` is the same in all of them."""

    shards: list[int]
    count: int
    batch: str
    checks: int
    """How many checks the whole batch has."""

    @property
    def missing(self) -> list[int]:
        """The shards that the report doesn't have."""
        return [index for index in range(1, self.count + 1) if index not in self.shards]


class Totals(_Model):
    """Counts; the verdicts count checks, the machine code counts checks and architectures.

    Checks that no Rust could be made for stand under an entry without a name, which isn't counted.

    ``raised`` counts the checks of raised code that are proved or tested: those verdicts count translated code alone.
    """

    operators: int = 0
    kernels: int = 0
    entries: int = 0
    checks: int = 0
    proved: int = 0
    tested: int = 0
    differs: int = 0
    unmapped: int = 0
    rejected: int = 0
    error: int = 0
    raised: int | None = None
    machine_code_identical: int = 0
    machine_code_refused: int = 0
    executed: int | None = None
    """Checks whose sides were both executed; None where nobody asked for it."""
    executed_inputs: int | None = None
    complete: int | None = None
    """Kernels whose entries take every call, where their paths were explored."""


class Report(_Model):
    """The whole result of a run; ``cached_checks`` is how many of its checks an earlier run had done.

    ``holes`` is there after ``transpile fill``, ``shard`` unless the report is of the whole.
    """

    tool: dict[str, str]
    seconds: float
    reference_seconds: float
    llm_tokens: int = 0
    cached_checks: int | None = None
    shard: ShardOf | None = None
    holes: list[HoleRow] | None = None
    operators: list[Operator]
    totals: Totals

    def to_json(self) -> str:
        """Return the report as indented JSON with a line end."""
        return self.model_dump_json(indent=2, exclude_none=True) + "\n"


def diagnostic_row(diagnostic: Diagnostic) -> DiagnosticRow:
    """Return a diagnostic as the contract's object."""
    return DiagnosticRow.model_validate(diagnostic.to_json())


def diagnostic(row: DiagnosticRow) -> Diagnostic:
    """Return a row of a report as the diagnostic that it was made from."""
    return Diagnostic(row.code, row.message, row.help, row.severity, Span(row.file, row.line, row.column))


def make_report(
    tool: dict[str, str], operators: Iterable[Operator], *, seconds: float, reference_seconds: float,
    llm_tokens: int = 0, cached_checks: int | None = None, shard: ShardOf | None = None,
) -> Report:  # fmt: skip
    """Put a run's operators in canonical order, count them, and say which kernels can't be used at all (W0220)."""
    ordered = sorted(operators, key=lambda operator: operator.name)
    for operator in ordered:
        operator.kernels.sort(key=lambda kernel: (kernel.line, kernel.name))
        for kernel in operator.kernels:
            for entry in kernel.entries:
                entry.checks.sort(key=lambda check: (natural(check.specialization), check.target))
            _note_unusable(operator, kernel, known=shard is None)
    return Report(
        tool=tool, seconds=round(seconds, 3), reference_seconds=round(reference_seconds, 3), llm_tokens=llm_tokens,
        cached_checks=cached_checks, shard=shard, operators=ordered, totals=count(ordered),
    )  # fmt: skip


UNUSABLE = "W0220"
_NAMED = 4


def _note_unusable(operator: Operator, kernel: Kernel, *, known: bool) -> None:
    """Say of a kernel that each of its checks was rejected; a shard doesn't know that (then ``known`` is False)."""
    kernel.diagnostics = [row for row in kernel.diagnostics if row.code != UNUSABLE]
    checks = list(kernel.checks())
    if known and checks and all(check.verdict == "rejected" for check in checks):
        names = list(dict.fromkeys(check.specialization for check in checks))
        which = ", ".join(names[:_NAMED]) + (", .." if len(names) > _NAMED else "")
        kernel.diagnostics.append(DiagnosticRow(
            code=UNUSABLE, severity="warning", file=operator.source, line=kernel.line, column=1,
            message=f"`{kernel.name}` can't be used: the reference compiler refuses every specialization ({which})",
            help="correct the kernel, or what it is called with (a SPEC.toml, or the launch)"))  # fmt: skip


def unusable(report: Report) -> list[DiagnosticRow]:
    """Return the warnings about kernels of which nothing can be used."""
    return [row for o in report.operators for k in o.kernels for row in k.diagnostics if row.code == UNUSABLE]


def natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key in which ``b_9`` comes before ``b_10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text) if part]


def count(operators: Iterable[Operator]) -> Totals:
    """Count everything that :class:`Totals` names."""
    totals = Totals()
    for operator in operators:
        totals.operators += 1
        totals.kernels += len(operator.kernels)
        for kernel in operator.kernels:
            totals.entries += kernel.entry_count
            if kernel.complete is not None:
                totals.complete = (totals.complete or 0) + kernel.complete
            for check in kernel.checks():
                _count_check(totals, check)
    return totals


def _count_check(totals: Totals, check: Check) -> None:
    totals.checks += 1
    if check.raised and check.verdict in ("proved", "tested"):
        totals.raised = (totals.raised or 0) + 1
    else:
        setattr(totals, check.verdict, getattr(totals, check.verdict) + 1)
    outcomes = list(check.machine_code.values())
    totals.machine_code_identical += outcomes.count("identical")
    totals.machine_code_refused += outcomes.count("refused")
    if check.executed is not None:
        totals.executed = (totals.executed or 0) + (check.executed.valid > 0)
        totals.executed_inputs = (totals.executed_inputs or 0) + check.executed.valid


def exit_status(report: Report) -> int:
    """Return the exit status of the contract: 1 when something differs or failed, 3 when Holes are left, else 0."""
    totals = report.totals
    broken = any(_has_error(o.diagnostics or ()) or any(_has_error(k.diagnostics) for k in o.kernels)
                 for o in report.operators)  # fmt: skip
    if totals.differs or totals.error or broken:
        return 1
    return 3 if totals.unmapped else 0


def _has_error(rows: Iterable[DiagnosticRow]) -> bool:
    return any(row.severity == "error" for row in rows)
