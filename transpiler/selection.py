"""What translating chooses from: the rule tables, less what is switched off, and the overrides.

Plain data in an :class:`~transpiler.jobs.OperatorJob`, so that workers get the same.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache

from transpiler.diagnostics import error
from transpiler.ir.construct import Fragments
from transpiler.overrides import Override, of_kind, specialization_digest
from transpiler.rules import Table as RuleTable
from transpiler.rules import table
from transpiler.select import TABLE
from transpiler.select import Table as FormTable
from transpiler.spec import Specialization


@dataclass(frozen=True)
class Selection:
    """``without``: keys of rows to leave out (of rules or forms, ``--without``); ``overrides``: all that were read."""

    without: tuple[str, ...] = ()
    overrides: tuple[Override, ...] = ()

    @property
    def rules(self) -> RuleTable:
        """The rule table."""
        return _rules(self.without)

    @property
    def forms(self) -> FormTable:
        """The table of forms."""
        return _forms(self.without)

    @property
    def digest(self) -> str:
        """The digest of both tables; overrides for others are stale."""
        return _digest(self.without)

    @property
    def fragments(self) -> Fragments:
        """The Rust for constructs that the tables have nothing for, by the construct's digest."""
        return _fragments(self.overrides, self.digest) if self.overrides else {}

    @property
    def tested(self) -> frozenset[str]:
        """The keys of overrides that were accepted because executing agrees: with them it has to be done again."""
        return frozenset(o.key for o in self.overrides if o.evidence is not None and o.evidence.verdict == "tested")

    def raised(self, kernel: str, one: Specialization) -> tuple[Override, ...]:
        """Return the raised overrides for one specialization of a kernel, that of the whole kernel first."""
        digest = specialization_digest(one)
        mine = [o for o in self.overrides if o.kind == "raised" and o.rules == self.digest and o.kernel == kernel
                and o.specialization == digest]  # fmt: skip
        return tuple(sorted(mine, key=lambda o: (o.hole is not None, o.key)))


@cache
def _rules(without: tuple[str, ...]) -> RuleTable:
    rows = table()
    return RuleTable(row for row in rows if row.key not in without) if without else rows


@cache
def _forms(without: tuple[str, ...]) -> FormTable:
    if not without:
        return TABLE
    return FormTable(row for rows in TABLE.rows.values() for row in rows if row.key not in without)


@cache
def _digest(without: tuple[str, ...]) -> str:
    rules = [[r.key, r.signature, r.status, r.reason] for r in _rules(without)]
    forms = [[f.key, f.template, f.nest] for rows in _forms(without).rows.values() for f in rows]
    return hashlib.sha256(json.dumps([rules, forms]).encode()).hexdigest()[:16]


@cache
def _fragments(overrides: tuple[Override, ...], rules: str) -> Fragments:
    """Parsed once for all specializations that ask."""
    return of_kind(overrides, rules)


def check_without(names: tuple[str, ...]) -> None:
    """Raise E0871 for a name that is no row of either table."""
    known = {row.key for row in table()} | {row.key for rows in TABLE.rows.values() for row in rows}
    for name in names:
        if name not in known:
            raise error("E0871", f"there is no rule `{name}`", help="docs/operations.md lists them")
