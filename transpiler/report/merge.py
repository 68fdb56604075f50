"""Join the reports of shards into the report that one run would have given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from transpiler.diagnostics import error
from transpiler.report.model import Check, DiagnosticRow, Entry, Kernel, Operator, Report, make_report


def merge(reports: Sequence[Report]) -> Report:
    """Join reports; times and tokens add up, and a report that is given twice counts once.

    Raises E0812 where two reports contradict each other.
    """
    reports = [report for i, report in enumerate(reports) if report not in reports[:i]]
    operators: dict[str, Operator] = {}
    for report in reports:
        for operator in report.operators:
            known = operators.get(operator.name)
            operators[operator.name] = operator if known is None else _operators(known, operator)
    return make_report(
        _versions(report.tool for report in reports), operators.values(),
        seconds=sum(r.seconds for r in reports), reference_seconds=sum(r.reference_seconds for r in reports),
        llm_tokens=sum(r.llm_tokens for r in reports),
        cached_checks=_cached(reports) or None,
    )  # fmt: skip


def _cached(reports: Sequence[Report]) -> int:
    """How many checks an earlier run had done; a check that several reports have counts in the first of them."""
    seen: set[tuple[str, ...]] = set()
    cached = 0
    for report in reports:
        new = _checks(report) - seen
        seen |= new
        cached += min(report.cached_checks or 0, len(new))
    return cached


def _checks(report: Report) -> set[tuple[str, ...]]:
    return {
        (operator.name, kernel.name, entry.name, check.specialization, check.target)
        for operator in report.operators for kernel in operator.kernels for entry in kernel.entries
        for check in entry.checks
    }  # fmt: skip


def _versions(tools: Iterable[dict[str, str]]) -> dict[str, str]:
    """Return each tool's version; where the reports differ, all of them."""
    found: dict[str, list[str]] = {}
    for tool in tools:
        for name, version in tool.items():
            known = found.setdefault(name, [])
            if version not in known:
                known.append(version)
    return {name: " and ".join(versions) for name, versions in found.items()}


def _operators(a: Operator, b: Operator) -> Operator:
    if a.source != b.source:
        raise _contradiction(f"operator `{a.name}` is {a.source} in one and {b.source} in the other")
    kernels = {kernel.name: kernel for kernel in a.kernels}
    for kernel in b.kernels:
        known = kernels.get(kernel.name)
        kernels[kernel.name] = kernel if known is None else _kernels(a.name, known, kernel)
    diagnostics = _union(a.diagnostics or [], b.diagnostics or []) or None
    return a.model_copy(update={"kernels": list(kernels.values()), "diagnostics": diagnostics})


def _kernels(operator: str, a: Kernel, b: Kernel) -> Kernel:
    entries = {entry.name: entry for entry in a.entries}
    for entry in b.entries:
        known = entries.get(entry.name)
        entries[entry.name] = entry if known is None else _entries(f"{operator}.{a.name}", known, entry)
    update = {"entries": list(entries.values()), "diagnostics": _union(a.diagnostics, b.diagnostics)}
    return a.model_copy(update=update)


def _entries(kernel: str, a: Entry, b: Entry) -> Entry:
    if (a.condition, a.generics) != (b.condition, b.generics):
        raise _contradiction(f"entry `{a.name}` of {kernel} isn't the same in both")
    checks = {(check.specialization, check.target): check for check in a.checks}
    for check in b.checks:
        known = checks.setdefault((check.specialization, check.target), check)
        if known is not check and _result(known) != _result(check):
            raise _contradiction(f"check `{check.specialization}` of {kernel} is {known.verdict} and {check.verdict}")
    return a.model_copy(update={"checks": list(checks.values())})


def _result(check: Check) -> tuple[object, ...]:
    return check.verdict, check.machine_code


def _union(a: list[DiagnosticRow], b: list[DiagnosticRow]) -> list[DiagnosticRow]:
    return a + [row for row in b if row not in a]


def _contradiction(message: str) -> Exception:
    return error("E0812", f"the reports don't belong together: {message}",
                 help="merge the JSON of shards of one batch, made from the same sources")  # fmt: skip
