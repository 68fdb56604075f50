"""Compare a reference's Tile IR with ours: equal value graphs, facts and hints, or the differences.

The method and its soundness are described in :mod:`.numbering` and :mod:`.graph`.  Both programs are
numbered in one partition; they are equal when their effects have the same numbers, each as often, when
every fact of the reference is kept and every other fact of ours is implied (:mod:`.facts`), and when
the hints resolve to the same options for the target (:mod:`.hints`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from transpiler.tileir import facts as fact_rules
from transpiler.tileir import hints as hint_rules
from transpiler.tileir.equivalences import REWRITES
from transpiler.tileir.explain import Explainer
from transpiler.tileir.graph import Graph, build
from transpiler.tileir.liveness import live_numbers, repeated_loads, speculated
from transpiler.tileir.model import Entry, Loc, Module
from transpiler.tileir.numbering import Numbering

Kind = Literal["structure", "effect", "fact", "hint", "signature"]
LIMIT = 12
"""How many differences are described; the rest is counted in the last message."""


@dataclass(frozen=True)
class Difference:
    """One difference, with the smallest expressions that show it, printed."""

    kind: Kind
    message: str
    ours: str = ""
    reference: str = ""
    ours_loc: Loc | None = None
    reference_loc: Loc | None = None


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found; ``equivalences`` counts the uses of each named equivalence."""

    equal: bool
    differences: tuple[Difference, ...] = ()
    equivalences: dict[str, int] = field(default_factory=dict)


def compare(
    reference: Module | Entry, ours: Module | Entry, *, target: str, parameter_map: Sequence[int] | None = None
) -> Comparison:
    """Compare two entries for a target architecture such as ``sm_90``.

    ``parameter_map[i]`` is the reference's parameter that our parameter ``i`` stands for (-1: none);
    without it parameters correspond by position.  A module must have exactly one entry (E0685).
    Raises ``TranspileError`` E0687 for control flow without a meaning here.
    """
    theirs = reference.entry() if isinstance(reference, Module) else reference
    mine = ours.entry() if isinstance(ours, Module) else ours
    return _Comparer(theirs, mine, target, parameter_map).run()


class _Comparer:
    def __init__(self, reference: Entry, ours: Entry, target: str, parameter_map: Sequence[int] | None) -> None:
        mapping = None if parameter_map is None else dict(enumerate(parameter_map))
        if mapping is not None:
            mapping = {ours_index: index for ours_index, index in mapping.items() if index >= 0}
        self._target = target
        self._graph = Graph()
        self._reference = build(self._graph, reference)
        self._ours = build(self._graph, ours, mapping)
        self._numbering = Numbering(self._graph, (self._reference, self._ours), REWRITES)
        self._counts = Counter(self._numbering.applied)
        for program in (self._reference, self._ours):
            self._counts.update(program.equivalences)
        self._found: list[Difference] = []

    def run(self) -> Comparison:
        live = [live_numbers(self._numbering, p) for p in (self._reference, self._ours)]
        self._signature(live)
        self._effects()
        self._speculation(live)
        self._facts(live)
        self._hints(live)
        differences = self._found
        if len(differences) > LIMIT:
            rest = len(differences) - LIMIT
            differences = [*differences[:LIMIT], Difference("structure", f"and {rest} more differences")]
        return Comparison(not differences, tuple(differences), dict(sorted(self._counts.items())))

    def _signature(self, live: list[set[int]]) -> None:
        """Report parameters that both sides use with different types."""
        numbering, forms = self._numbering, self._numbering.form
        for index, node in self._ours.params.items():
            other = self._reference.params.get(index)
            mine = numbering.number[node]
            if mine not in live[1]:
                continue
            if other is None:
                self._found.append(
                    Difference("signature", f"parameter {index} of ours has no counterpart in the reference")
                )
                continue
            theirs = numbering.number[other]
            if theirs in live[0] and mine != theirs:
                types = (forms(mine).result_types[0], forms(theirs).result_types[0])
                message = f"parameter {index} has another type"
                self._found.append(Difference("signature", message, *types))

    def _effects(self) -> None:
        """Report the effects that only one side has, paired where they resemble each other."""
        number = self._numbering.number
        ours = Counter(number[n] for n in self._ours.effects)
        theirs = Counter(number[n] for n in self._reference.effects)
        if ours == theirs:
            return
        lacking, extra = theirs - ours, ours - theirs
        explainer = Explainer(self._numbering, self._reference, self._ours)
        reference_nodes = _pick(self._reference.effects, number, lacking)
        our_nodes = _pick(self._ours.effects, number, extra)
        seen: set[str] = set()
        for part in explainer.explain(reference_nodes, our_nodes):
            kind: Kind = "effect" if part.ours is None or part.reference is None else "structure"
            if part.message + part.ours_text not in seen:
                seen.add(part.message + part.ours_text)
                self._found.append(
                    Difference(
                        kind, part.message, part.ours_text, part.reference_text, part.ours_loc, part.reference_loc
                    )
                )

    def _speculation(self, live: list[set[int]]) -> None:
        """Report values that ours computes where that may be undefined behaviour although the result is equal."""
        numbering, both = self._numbering, live[0] & live[1]
        explainer = Explainer(numbering, self._reference, self._ours)
        rows = [
            (node, "may fault or race, and runs where the reference doesn't run it")
            for node in speculated(numbering, self._reference, self._ours, both)
        ]
        rows += [
            (self._graph.args[node][0], "runs more often than in the reference, where something waits for it")
            for node in repeated_loads(numbering, self._reference, self._ours, both)
        ]
        for node, why in rows:
            name = numbering.form(numbering.number[node]).name
            place = explainer.location(self._ours, node)
            self._found.append(Difference("effect", f"`{name}` {why}", explainer.text(node), "", place))

    def _facts(self, live: list[set[int]]) -> None:
        checker = fact_rules.FactChecker(self._numbering, self._reference, self._ours, live[0] & live[1])
        explainer = Explainer(self._numbering, self._reference, self._ours)
        for item in checker.check():
            place = explainer.location(self._ours, item.ours_node)
            other = explainer.location(self._reference, item.reference_node)
            node = item.ours_node if item.ours_node is not None else item.reference_node
            text = "" if node is None else explainer.text(node)
            self._found.append(Difference("fact", f"{item.code}: {item.message}", text, text, place, other))
        if checker.implied:
            self._counts["fact-implied"] += checker.implied

    def _hints(self, live: list[set[int]]) -> None:
        checker = hint_rules.HintChecker(self._numbering, self._reference, self._ours, self._target, live[0] & live[1])
        explainer = Explainer(self._numbering, self._reference, self._ours)
        for item in checker.check():
            place = explainer.location(self._ours, item.ours_node)
            other = explainer.location(self._reference, item.reference_node)
            self._found.append(Difference("hint", item.message, item.ours, item.reference, place, other))
        self._counts.update(checker.counts)


def _pick(nodes: list[int], number: list[int], wanted: Counter[int]) -> list[int]:
    """Return the last ``wanted[n]`` nodes of each number, in program order."""
    left = dict(wanted)
    found: list[int] = []
    for node in reversed(nodes):
        if left.get(number[node], 0) > 0:
            left[number[node]] -= 1
            found.append(node)
    return found[::-1]
