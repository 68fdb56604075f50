"""Optimization hints: resolved for the check's target, then compared exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from transpiler.tileir.graph import Program
from transpiler.tileir.model import Hints
from transpiler.tileir.numbering import Numbering

Options = tuple[tuple[str, str], ...]

DEFAULTS = {"allow_tma": "true"}
"""Options whose stated value is what their absence means."""


@dataclass(frozen=True)
class HintDifference:
    """A hint that is lost, added or changed."""

    message: str
    ours: str
    reference: str
    ours_node: int | None = None
    reference_node: int | None = None


def resolve(hints: Hints, target: str) -> Options:
    """Return the options that hold for a target: those under its key win over ``default``, option by option."""
    chosen: dict[str, str] = {}
    for wanted in ("default", target):
        for key, options in hints:
            if key == wanted:
                chosen.update(options)
    return tuple(sorted((k, v) for k, v in chosen.items() if DEFAULTS.get(k) != v))


class HintChecker:
    """Compare the entries' hints and those of the live memory operations."""

    def __init__(self, numbering: Numbering, reference: Program, ours: Program, target: str, live: set[int]) -> None:
        self._number = numbering.number
        self._form = numbering.form
        self._reference, self._ours = reference, ours
        self._target = target
        self._live = live
        self.counts: Counter[str] = Counter()

    def check(self) -> list[HintDifference]:
        """Return the differences: the entry's first, then the operations' in program order."""
        found: list[HintDifference] = []
        mine, theirs = self._resolve(self._ours.entry.hints), self._resolve(self._reference.entry.hints)
        if self._ours.entry.hints != self._reference.entry.hints and mine == theirs:
            self.counts["hint-key-resolved"] += 1
        if mine != theirs:
            found.append(HintDifference("the entry has other hints", show(mine), show(theirs)))
        ours, our_nodes = self._by_number(self._ours)
        reference, reference_nodes = self._by_number(self._reference)
        for number, hints in ours.items():
            other = reference.get(number)
            if other is None or other == hints:
                continue
            mine_resolved, theirs_resolved = ({self._resolve(h) for h in hs} for hs in (hints, other))
            if mine_resolved == theirs_resolved:
                self.counts["hint-key-resolved"] += 1
                continue
            texts = [" | ".join(sorted(show(o) for o in options)) for options in (mine_resolved, theirs_resolved)]
            message = f"`{self._form(number).name}` has other hints"
            found.append(HintDifference(message, texts[0], texts[1], our_nodes[number], reference_nodes[number]))
        return found

    def _resolve(self, hints: Hints) -> Options:
        if any(DEFAULTS.get(k) == v for _, options in hints for k, v in options):
            self.counts["default-hint"] += 1
        return resolve(hints, self._target)

    def _by_number(self, program: Program) -> tuple[dict[int, set[Hints]], dict[int, int]]:
        hints: dict[int, set[Hints]] = {}
        nodes: dict[int, int] = {}
        for node, stated in program.hinted:
            number = self._number[node]
            if number in self._live:
                hints.setdefault(number, set()).add(stated)
                nodes.setdefault(number, node)
        return hints, nodes


def show(options: Options) -> str:
    """Print resolved options."""
    return ", ".join(f"{k}={v}" for k, v in options) or "none"
