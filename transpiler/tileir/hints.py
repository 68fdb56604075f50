"""Optimization hints: resolved for the check's target, then compared exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeVar

from transpiler.tileir.graph import Program
from transpiler.tileir.model import Hints
from transpiler.tileir.numbering import Numbering

_T = TypeVar("_T")
Options = tuple[tuple[str, str], ...]
ByContext = dict[int, set[Hints]]
"""The hints of the operations with one number, by control context: a load has one number wherever it stands."""

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
        for number, mine_by_context in ours.items():
            their_by_context = reference.get(number)
            if their_by_context is None or their_by_context == mine_by_context:
                continue
            pair = self._differing(mine_by_context, their_by_context)
            if pair is None:
                self.counts["hint-key-resolved"] += int(_all(mine_by_context) != _all(their_by_context))
                continue
            texts = [" | ".join(sorted(show(o) for o in options)) for options in pair]
            message = f"`{self._form(number).name}` has other hints"
            found.append(HintDifference(message, texts[0], texts[1], our_nodes[number], reference_nodes[number]))
        return found

    def _differing(self, ours: ByContext, reference: ByContext) -> tuple[set[Options], set[Options]] | None:
        """Return the resolved hints of both where they differ: in a context that both have, or in all together."""
        mine, theirs = (
            {context: {self._resolve(h) for h in hints} for context, hints in side.items()}
            for side in (ours, reference)
        )
        for context, options in mine.items():
            if context in theirs and theirs[context] != options:
                return options, theirs[context]
        everywhere = _all(mine), _all(theirs)
        return None if everywhere[0] == everywhere[1] else everywhere

    def _resolve(self, hints: Hints) -> Options:
        if any(DEFAULTS.get(k) == v for _, options in hints for k, v in options):
            self.counts["default-hint"] += 1
        return resolve(hints, self._target)

    def _by_number(self, program: Program) -> tuple[dict[int, ByContext], dict[int, int]]:
        hints: dict[int, ByContext] = {}
        nodes: dict[int, int] = {}
        for node, stated, context in program.hinted:
            number = self._number[node]
            if number in self._live:
                hints.setdefault(number, {}).setdefault(self._number[context], set()).add(stated)
                nodes.setdefault(number, node)
        return hints, nodes


def _all(by_context: dict[int, set[_T]]) -> set[_T]:
    return set[_T]().union(*by_context.values())


def show(options: Options) -> str:
    """Print resolved options."""
    return ", ".join(f"{k}={v}" for k, v in options) or "none"
