"""From the results of a run to the coverage report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from transpiler import toolkit
from transpiler.batch import Results
from transpiler.coverage.holes import hole_rows
from transpiler.coverage.model import (
    ConstructRow,
    Coverage,
    CoverageTotals,
    EquivalenceRow,
    FormRow,
    HoleKindRow,
    KernelCoverage,
    Kind,
    OperatorCoverage,
    RuleRow,
    UnmappedRow,
)
from transpiler.emit.lower import WRITTEN
from transpiler.frontend.constructs import CONSTRUCTS as WITHOUT_MEANING
from transpiler.ir.trace import RuleTrace, Table
from transpiler.overrides import Override
from transpiler.report import assemble
from transpiler.report.model import SEVERITY_ORDER, DiagnosticRow, Kernel, Operator, Report, Verdict
from transpiler.rules import table as rule_table
from transpiler.rules.constructs import CONSTRUCTS
from transpiler.select import FAMILIES
from transpiler.tileir.equivalences import EQUIVALENCES
from transpiler.translation import check_keys

CONSTRUCTOR = "cuda.tile.dtype_constructor"
"""What a call of an element type is to the rules; not a name of cuda.tile's."""
_PLACES = 20
K = TypeVar("K")
_BLOCKING: dict[Verdict, Literal["unmapped", "differs", "error"]] = {
    "unmapped": "unmapped", "differs": "differs", "error": "error",
}  # fmt: skip
_KINDS: dict[str, Kind] = {
    "cuda.tile": "operation", "operator": "operator", "builtins": "builtin", "Tile": "method", "Array": "method",
    "TiledView": "method", "Tuple": "method",
}  # fmt: skip


@dataclass
class _Count:
    """The uses of one row: in all, by kernel, by place, and the rules that were behind them."""

    uses: int = 0
    kernels: dict[str, int] = field(default_factory=dict)
    places: set[tuple[str, int]] = field(default_factory=set)
    rules: set[str] = field(default_factory=set)

    def listed(self) -> list[str]:
        return [f"{file}:{line}" for file, line in sorted(self.places)][:_PLACES]


class _Counts:
    """The uses of the rows of all tables."""

    def __init__(self) -> None:
        self._rows: dict[tuple[Table, str], _Count] = {}

    def add(self, kernel: str, trace: RuleTrace) -> None:
        for use, count in trace.counts.items():
            row = self._rows.setdefault((use.table, use.name), _Count())
            row.uses += count
            row.kernels[kernel] = row.kernels.get(kernel, 0) + count
            row.places.add((use.file, use.line))
            if use.rule:
                row.rules.add(use.rule)

    def of(self, table: Table, name: str) -> _Count:
        return self._rows.get((table, name), _Count())


def collect(sources: Sequence[str], results: Results, overrides: Sequence[Override] = ()) -> Coverage:
    """Return the coverage report of a run."""
    report = assemble.report(results, seconds=0.0)
    counts = _Counts()
    for name, translation in sorted(results.translations.items()):
        for kernel, trace in sorted(translation.traces.items()):
            counts.add(f"{name}.{kernel}", trace)
    proofs = _equivalences(results)
    unmapped = _unmapped(report)
    operators = [_operator(one, results, proofs, unmapped) for one in report.operators]
    holes = hole_rows(results, overrides)
    rules, constructs, forms = _rules(counts), _constructs(counts, report), _forms(counts)
    return Coverage(
        tool=toolkit.versions(),
        sources=[_shown(source) for source in sources],
        totals=_totals(report, operators, rules, constructs, forms, holes),
        machine_code=_sum(kernel.machine_code for one in operators for kernel in one.kernels),
        operators=operators,
        unmapped=unmapped,
        rules=rules,
        constructs=constructs,
        forms=forms,
        equivalences=_equivalence_rows(proofs),
        holes=holes,
    )


def _shown(source: str) -> str:
    """A source without what belongs to this machine: an absolute path is its last part."""
    return Path(source).name if Path(source).is_absolute() or source.startswith("..") else source


# Operators and kernels


def _operator(
    one: Operator, results: Results, proofs: dict[str, _Proofs], unmapped: Sequence[UnmappedRow]
) -> OperatorCoverage:
    translation = results.translations.get(one.name)
    traces = translation.traces if translation is not None else {}
    kernels = []
    for kernel in one.kernels:
        name = f"{one.name}.{kernel.name}"
        trace = traces.get(kernel.name, RuleTrace())
        kernels.append(KernelCoverage(
            name=kernel.name,
            line=kernel.line,
            verdict=kernel.verdict,
            entries=sum(1 for entry in kernel.entries if entry.name),
            checks=_in_order(Counter(check.verdict for check in kernel.checks())),
            raised=sum(bool(check.raised) for check in kernel.checks()),
            machine_code=_sum({arch: {outcome: 1}} for check in kernel.checks()
                              for arch, outcome in check.machine_code.items()),
            rules=dict(sorted(trace.names("rule").items())),
            constructs=dict(sorted(trace.names("construct").items())),
            forms=dict(sorted(trace.names("form").items())),
            equivalences=dict(sorted(proofs[name].uses.items())) if name in proofs else {},
            blocked_by=[i for i, row in enumerate(unmapped) if name in row.kernels],
        ))  # fmt: skip
    found = {kernel.verdict for kernel in kernels if kernel.verdict is not None}
    verdict: Verdict | None = next((v for v in SEVERITY_ORDER if v in found), "error" if one.diagnostics else None)
    return OperatorCoverage(
        name=one.name, source=one.source, verdict=verdict, kernels=kernels, diagnostics=one.diagnostics or []
    )


def _in_order(counts: Counter[Verdict]) -> dict[Verdict, int]:
    return {verdict: counts[verdict] for verdict in SEVERITY_ORDER if counts[verdict]}


def _sum(tables: Iterable[dict[str, dict[K, int]]]) -> dict[str, dict[K, int]]:
    out: dict[str, Counter[K]] = {}
    for one in tables:
        for arch, outcomes in one.items():
            out.setdefault(arch, Counter()).update(outcomes)
    return {arch: dict(sorted(outcomes.items(), key=str)) for arch, outcomes in sorted(out.items())}


# What is in the way


def _unmapped(report: Report) -> list[UnmappedRow]:
    """Every reason for which a check isn't proved, the one that blocks most kernels first."""
    rows: dict[tuple[str, str, str], UnmappedRow] = {}
    for operator in report.operators:
        for kernel in operator.kernels:
            for verdict, one in _reasons(kernel):
                _count_reason(rows, verdict, one, f"{operator.name}.{kernel.name}")
        if operator.diagnostics and not operator.kernels:
            for one in operator.diagnostics:
                _count_reason(rows, "error", one, operator.name)
    blocked = Counter(name for row in rows.values() for name in row.kernels)
    for row in rows.values():
        row.kernels.sort()
        row.alone = sum(blocked[name] == 1 for name in row.kernels)
        row.places = sorted(row.places)[:_PLACES]
    return sorted(rows.values(), key=lambda r: (-len(r.kernels), -r.alone, -r.checks, r.code, r.reason))


def _reasons(kernel: Kernel) -> Iterable[tuple[Literal["unmapped", "differs", "error"], DiagnosticRow]]:
    """The diagnostics of checks that aren't proved, and what is wrong with the kernel as a whole."""
    for one in kernel.diagnostics:
        if one.severity == "error":
            yield "error", one
    for check in kernel.checks():
        if check.verdict in _BLOCKING:
            yield from ((_BLOCKING[check.verdict], one) for one in check.diagnostics if one.severity == "error")


def _count_reason(
    rows: dict[tuple[str, str, str], UnmappedRow], verdict: Literal["unmapped", "differs", "error"],
    one: DiagnosticRow, kernel: str,
) -> None:  # fmt: skip
    reason = one.message.partition("\n")[0]
    new = UnmappedRow(verdict=verdict, code=one.code, reason=reason, help=one.help,
                      kernels=[], alone=0, checks=0, places=[])  # fmt: skip
    row = rows.setdefault((verdict, one.code, reason), new)
    row.checks += 1
    if kernel not in row.kernels:
        row.kernels.append(kernel)
    place = f"{one.file}:{one.line}" if one.line else one.file
    if place and place not in row.places:
        row.places.append(place)


# The tables


def _rules(counts: _Counts) -> list[RuleRow]:
    rows = []
    for rule in rule_table():
        count = counts.of("rule", rule.key)
        module, _, _ = rule.callee.rpartition(".")
        rows.append(RuleRow(
            key=rule.key, callee=rule.callee, kind=_KINDS.get(module, "function"), family=rule.family,
            status=rule.status, reason=rule.reason,
            doc="" if rule.status == "unsupported" else rule.doc, uses=count.uses, kernels=sorted(count.kernels),
            places=count.listed(),
        ))  # fmt: skip
    return rows


def _constructs(counts: _Counts, report: Report) -> list[ConstructRow]:
    rows = []
    for name, doc in CONSTRUCTS.items():
        count = counts.of("construct", name)
        rows.append(ConstructRow(name=name, status="exact", code="", doc=doc, uses=count.uses,
                                 kernels=sorted(count.kernels), places=count.listed()))  # fmt: skip
    met = _codes(report)
    for code, construct in WITHOUT_MEANING.items():
        count = met.get(code, _Count())
        rows.append(ConstructRow(name=construct.what, status="unsupported", code=code, doc=construct.help,
                                 uses=count.uses, kernels=sorted(count.kernels), places=count.listed()))  # fmt: skip
    return rows


def _codes(report: Report) -> dict[str, _Count]:
    """Where each construct without a meaning was met, each place once a kernel."""
    out: dict[str, _Count] = {}
    for operator in report.operators:
        for kernel in operator.kernels:
            name = f"{operator.name}.{kernel.name}"
            met = {
                (d.code, d.file, d.line) for c in kernel.checks() for d in c.diagnostics if d.code in WITHOUT_MEANING
            }
            for code, file, line in sorted(met):
                count = out.setdefault(code, _Count())
                count.uses += 1
                count.kernels[name] = 1
                count.places.add((file, line))
    return out


def _forms(counts: _Counts) -> list[FormRow]:
    known = [(row.key, row.opcode, family.__name__.rpartition(".")[2], row.template)
             for family in FAMILIES for row in family.ROWS]  # fmt: skip
    known += [(name, name, "emission", text) for name, text in WRITTEN.items()]
    rows = []
    for key, opcode, family, text in known:
        count = counts.of("form", key)
        rows.append(FormRow(key=key, opcode=opcode, family=family, rust=text, rules=sorted(count.rules),
                            uses=count.uses, kernels=sorted(count.kernels)))  # fmt: skip
    return rows


# The proofs


@dataclass
class _Proofs:
    """The equivalences that the checks of one kernel needed: how often, and in how many checks."""

    uses: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)


def _equivalences(results: Results) -> dict[str, _Proofs]:
    out: dict[str, _Proofs] = {}
    for plan in results.plans():
        for key in check_keys(plan):
            if key in results.checks and results.checks[key].verdict == "proved":
                kernel = out.setdefault(f"{plan.name}.{plan.kernels[key.kernel].name}", _Proofs())
                found = results.checks[key].equivalences
                kernel.uses.update(found)
                kernel.checks.update(found.keys())
    return out


def _equivalence_rows(proofs: dict[str, _Proofs]) -> list[EquivalenceRow]:
    rows = []
    for one in EQUIVALENCES:
        needing = {name: p for name, p in proofs.items() if p.uses[one.name]}
        rows.append(EquivalenceRow(
            name=one.name, justification=one.justification, uses=sum(p.uses[one.name] for p in needing.values()),
            checks=sum(p.checks[one.name] for p in needing.values()), kernels=sorted(needing),
        ))  # fmt: skip
    return rows


def _standing(kernel: KernelCoverage) -> str:
    """A kernel's verdict; what is proved of raised code isn't a success of the rules."""
    return "raised" if kernel.raised and kernel.verdict in ("proved", "tested") else kernel.verdict or "none"


def _totals(
    report: Report, operators: Sequence[OperatorCoverage], rules: Sequence[RuleRow],
    constructs: Sequence[ConstructRow], forms: Sequence[FormRow], holes: Sequence[HoleKindRow],
) -> CoverageTotals:  # fmt: skip
    kernels = [kernel for one in operators for kernel in one.kernels]
    verdicts: Counter[str] = Counter(map(_standing, kernels))
    checks = Counter[Verdict]()
    for kernel in kernels:
        checks.update(kernel.checks)
    exact = [row for row in rules if row.status == "exact"]
    names = [row for row in rules if row.kind in ("operation", "method") and row.callee != CONSTRUCTOR]
    built = [row for row in constructs if row.status == "exact"]
    return CoverageTotals(
        operators=len(operators),
        kernels=len(kernels),
        entries=sum(kernel.entries for kernel in kernels),
        checks=report.totals.checks,
        kernels_by_verdict={v: verdicts[v] for v in (*SEVERITY_ORDER, "raised", "none") if verdicts[v]},
        checks_by_verdict=_in_order(checks),
        rules=len(exact),
        rules_unsupported=len(rules) - len(exact),
        rules_exercised=sum(row.uses > 0 for row in exact),
        names=len({row.callee for row in names}),
        names_mapped=len({row.callee for row in names if row.status == "exact"}),
        names_exercised=len({row.callee for row in names if row.status == "exact" and row.uses}),
        constructs=len(built),
        constructs_exercised=sum(row.uses > 0 for row in built),
        forms=len(forms),
        forms_exercised=sum(row.uses > 0 for row in forms),
        holes=len(holes),
        holes_filled=sum(not row.open for row in holes),
        llm_tokens=sum(row.tokens for row in holes),
        llm_cost=round(sum(row.cost for row in holes), 6),
    )
