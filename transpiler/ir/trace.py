"""What made a program: every use of a rule, of a construct of Python and of a Rust form, with its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from transpiler.diagnostics import Span

Table = Literal["rule", "construct", "form", "override"]


class Use(NamedTuple):
    """A row of a table at a line of Python. ``rule`` is the rule whose operation a form writes ("" for none)."""

    table: Table
    name: str
    file: str
    line: int
    rule: str = ""


class RuleTrace:
    """How often each row was used at each place, in the order of first use."""

    def __init__(self, counts: dict[Use, int] | None = None) -> None:
        self.counts: dict[Use, int] = {} if counts is None else counts

    def add(self, table: Table, name: str, span: Span, rule: str = "") -> None:
        """Count one use."""
        use = Use(table, name, span.file, span.line, rule)
        self.counts[use] = self.counts.get(use, 0) + 1

    def names(self, table: Table) -> dict[str, int]:
        """Return how often each row of a table was used."""
        out: dict[str, int] = {}
        for use, count in self.counts.items():
            if use.table == table:
                out[use.name] = out.get(use.name, 0) + count
        return out


def joined(traces: Iterable[RuleTrace]) -> RuleTrace:
    """Return the sum of traces."""
    out: dict[Use, int] = {}
    for trace in traces:
        for use, count in trace.counts.items():
            out[use] = out.get(use, 0) + count
    return RuleTrace(out)
