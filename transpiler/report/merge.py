"""Join the reports of shards into the report that one run would have given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from transpiler.diagnostics import Diagnostic, error
from transpiler.report.model import Check, DiagnosticRow, Entry, Kernel, Operator, Report, ShardOf, make_report


def merge(reports: Sequence[Report], names: Sequence[str] = ()) -> Report:
    """Join reports; times and tokens add up, and a report that is given twice counts once.

    ``names`` says what to call them. Raises E0812 where two reports contradict each other, or are of two batches.
    """
    names = names or [f"report {number}" for number, _ in enumerate(reports, 1)]
    distinct = [(report, name) for i, (report, name) in enumerate(zip(reports, names, strict=True))
                if report not in reports[:i]]  # fmt: skip
    reports = [report for report, _ in distinct]
    shard = _joined_shard(distinct)
    operators: dict[str, Operator] = {}
    for report in reports:
        for operator in report.operators:
            known = operators.get(operator.name)
            operators[operator.name] = operator if known is None else _operators(known, operator)
    return make_report(
        _versions(report.tool for report in reports), operators.values(),
        seconds=sum(r.seconds for r in reports), reference_seconds=sum(r.reference_seconds for r in reports),
        llm_tokens=sum(r.llm_tokens for r in reports),
        cached_checks=_cached(reports) or None, shard=shard,
    )  # fmt: skip


def _joined_shard(reports: Sequence[tuple[Report, str]]) -> ShardOf | None:
    """The shards that the reports have together, None for a whole; they have to be of one batch."""
    (first, first_name), *others = reports
    for other, name in others:
        a, b = first.shard, other.shard
        if (a is None) != (b is None):
            part, whole = (first_name, name) if b is None else (name, first_name)
            raise _contradiction(f"{part} is a shard, and {whole} is the report of a whole run")
        if a is not None and b is not None and (a.count, a.batch) != (b.count, b.batch):
            raise _contradiction(f"{first_name} and {name} are shards of different batches "
                                 f"({_shards(a)} of {a.checks} checks, {_shards(b)} of {b.checks})")  # fmt: skip
    found = sorted({index for report, _ in reports if report.shard is not None for index in report.shard.shards})
    if first.shard is None or len(found) == first.shard.count:
        return None
    return first.shard.model_copy(update={"shards": found})


def _shards(one: ShardOf) -> str:
    return ", ".join(f"{index}/{one.count}" for index in one.shards)


def incomplete(merged: Report, reports: Sequence[Report]) -> list[Diagnostic]:
    """Say of joined reports that shards are missing, or that they are no shards (W0813)."""
    shard = merged.shard
    if shard is not None:
        missing = ", ".join(f"{index}/{shard.count}" for index in shard.missing)
        are = "is" if len(shard.missing) == 1 else "are"
        message = (f"{len(shard.missing)} of {shard.count} shards {are} missing ({missing}): these are "
                   f"{merged.totals.checks} of {shard.checks} checks")  # fmt: skip
        return [Diagnostic("W0813", message, "give the JSON of all shards", "warning")]
    if any(report.shard is None and report != reports[0] for report in reports):
        message = "these are reports of whole runs, not shards of one batch; nothing says that they belong together"
        return [Diagnostic("W0813", message, "give what `batch --shard I/N --json` wrote", "warning")]
    return []


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
