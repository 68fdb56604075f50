"""The coverage report for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from transpiler.coverage.model import Coverage, KernelCoverage, RuleRow
from transpiler.report.model import SEVERITY_ORDER, MachineCode
from transpiler.report.terminal import STYLES

_NAMES = 3


def print_coverage(out: Console, found: Coverage) -> None:
    """Print what the report answers, one table a question."""
    _print(out, "Kernels", _kernels(found))
    _print(out, "Rules by family", _families(found.rules))
    _names(out, "Rules that nothing here exercises", (r.key for r in found.rules if r.status == "exact" and not r.uses))
    _print(out, "Constructs of Python", _constructs(found))
    if found.unmapped:
        _print(out, "In the way, what blocks most kernels first", _unmapped(found))
    if found.holes:
        _print(out, "Constructs without a rule, what came up most first", _holes(found))
    _print(out, "Equivalences that the proofs used", _equivalences(found))
    _names(out, "Equivalences that no proof used", (row.name for row in found.equivalences if not row.uses))
    out.print(_summary(found), soft_wrap=True)
    out.print(Text("versions: ", "dim").append(", ".join(f"{k} {v}" for k, v in found.tool.items())), soft_wrap=True)


def _print(out: Console, title: str, table: Table) -> None:
    if table.row_count:
        out.print(Text(title, "bold underline"))
        out.print(table)
        out.print()


def _table(*columns: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def _kernels(found: Coverage) -> Table:
    cubins = bool(found.machine_code)
    columns = ("operator", "kernel", "entries", "checks", "rules", *(("machine code",) if cubins else ()), "verdict")
    table = _table(*columns, right=("entries", "checks", "rules"))
    for operator in found.operators:
        for kernel in operator.kernels:
            row = [operator.name, kernel.name, str(kernel.entries), str(sum(kernel.checks.values())),
                   str(len(kernel.rules)), *([_outcomes(kernel.machine_code.values())] if cubins else [])]  # fmt: skip
            table.add_row(*row, _verdict(kernel))
        if operator.diagnostics:
            table.add_row(operator.name, *[""] * (len(columns) - 2), Text("error", STYLES["error"]))
    return table


def _outcomes(tables: Iterable[Mapping[MachineCode, int]]) -> str:
    total = Counter[MachineCode]()
    for one in tables:
        total.update(one)
    outcomes: tuple[MachineCode, ...] = ("identical", "differs", "refused")
    return ", ".join(f"{total[o]} {o}" for o in outcomes if total[o])


def _verdict(kernel: KernelCoverage) -> Text:
    text = Text()
    for verdict in (v for v in SEVERITY_ORDER if v in kernel.checks):
        words = verdict if len(kernel.checks) == 1 else f"{kernel.checks[verdict]} {verdict}"
        text.append(", " if text else "").append(words, STYLES[verdict])
    return text or Text("not checked", "dim")


def _families(rules: Sequence[RuleRow]) -> Table:
    table = _table("family", "rules", "exercised", "never", "unsupported", "uses",
                   right=("rules", "exercised", "never", "unsupported", "uses"))  # fmt: skip
    for family in dict.fromkeys(row.family for row in rules):
        mine = [row for row in rules if row.family == family]
        exact = [row for row in mine if row.status == "exact"]
        used = sum(row.uses > 0 for row in exact)
        counts = (len(exact), used, len(exact) - used, len(mine) - len(exact), sum(row.uses for row in mine))
        table.add_row(family, *map(str, counts))
    return table


def _names(out: Console, title: str, names: Iterable[str]) -> None:
    found = list(names)
    if found:
        out.print(Text(f"{title} ({len(found)})", "bold underline"))
        out.print(Text(", ".join(found)))
        out.print()


def _constructs(found: Coverage) -> Table:
    table = _table("construct", "uses", "kernels", "what becomes of it", right=("uses", "kernels"))
    for row in found.constructs:
        if row.status == "exact" or row.uses:
            what = row.doc if row.status == "exact" else Text(f"no meaning in a kernel ({row.code})", "yellow")
            table.add_row(row.name, str(row.uses), str(len(row.kernels)), what)
    return table


def _unmapped(found: Coverage) -> Table:
    table = _table("kernels", "alone", "checks", "code", "reason", "where", right=("kernels", "alone", "checks"))
    for row in found.unmapped:
        names = ", ".join(row.kernels[:_NAMES]) + (" .." if len(row.kernels) > _NAMES else "")
        place = f"{names} ({row.places[0]})" if row.places else names
        counts = (str(len(row.kernels)), str(row.alone), str(row.checks))
        table.add_row(*counts, Text(row.code, STYLES[row.verdict]), row.reason, place)
    return table


def _holes(found: Coverage) -> Table:
    columns = ("checks", "open", "filled", "construct", "overrides", "tokens", "where")
    table = _table(*columns, right=("checks", "open", "filled", "tokens"))
    for row in found.holes:
        writers = ", ".join(row.models) + (f", ${row.cost:g}" if row.cost else "")
        open_ = Text(str(row.open), STYLES["unmapped"] if row.open else "")
        place = row.places[0] if row.places else ""
        table.add_row(str(row.uses), open_, str(row.filled), row.name, writers, str(row.tokens), place)
    return table


def _equivalences(found: Coverage) -> Table:
    table = _table("equivalence", "uses", "checks", "kernels", right=("uses", "checks", "kernels"))
    for row in sorted(found.equivalences, key=lambda r: -r.uses):
        if row.uses:
            table.add_row(row.name, str(row.uses), str(row.checks), str(len(row.kernels)))
    return table


def _summary(found: Coverage) -> Text:
    totals = found.totals
    text = Text(f"{totals.operators} operators, {totals.kernels} kernels: ")
    for i, (verdict, count) in enumerate(totals.kernels_by_verdict.items()):
        text.append(", " if i else "").append(f"{count} {verdict if verdict != 'none' else 'not checked'}")
    text.append(
        f"; {totals.names_mapped} of {totals.names} public names of cuda.tile have a rule; exercised: "
        f"{totals.rules_exercised} of {totals.rules} rules, {totals.constructs_exercised} of {totals.constructs} "
        f"constructs, {totals.forms_exercised} of {totals.forms} Rust forms"
    )
    if found.holes:
        text.append(f"; constructs without a rule: {totals.holes}, {totals.holes_filled} of them filled by overrides "
                    f"({totals.llm_tokens} tokens)")  # fmt: skip
    for arch, outcomes in found.machine_code.items():
        text.append(f"; machine code {arch}: {_outcomes([outcomes])}")
    return text
