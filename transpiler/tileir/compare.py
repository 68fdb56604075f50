"""Compare a reference's Tile IR with ours: equal value graphs, facts and hints, or the differences.

The method and its soundness are described in :mod:`.numbering` and :mod:`.graph`.  All programs are
numbered in one :class:`Partition`; two of them are equal when their effects have the same numbers, each
as often, when every fact of the reference is kept and every other fact of ours is implied
(:mod:`.facts`), and when the hints resolve to the same options for the target (:mod:`.hints`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from transpiler.tileir import facts as fact_rules
from transpiler.tileir import hints as hint_rules
from transpiler.tileir.equivalences import REWRITES
from transpiler.tileir.explain import Explainer
from transpiler.tileir.graph import Graph, build
from transpiler.tileir.liveness import endless, live_numbers, loop_needs, repeated_loads, speculated
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


Promises = Sequence[Collection[str]]
"""For each parameter of the reference the predicates that the caller of a kernel promises (``div_by<16>``)."""


def compare(
    reference: Module | Entry,
    ours: Module | Entry,
    *,
    target: str,
    parameter_map: Sequence[int] | None = None,
    promises: Promises = (),
) -> Comparison:
    """Compare two entries for a target architecture such as ``sm_90``.

    ``parameter_map[i]`` is the reference's parameter that our parameter ``i`` stands for (-1: none);
    without it parameters correspond by position.  ``promises`` justify what ours states of parameters that nothing
    needs, of which the reference states nothing.  A module must have exactly one entry (E0685).
    Raises ``TranspileError`` E0687 for control flow without a meaning here.
    """
    theirs = reference.entry() if isinstance(reference, Module) else reference
    mine = ours.entry() if isinstance(ours, Module) else ours
    return Partition(((theirs, None), (mine, parameter_map)), promises).compare(0, 1, target)


class Partition:
    """Programs whose values are numbered together, so that any two of them can be compared.

    With each entry goes its ``parameter_map``; ``promises``: see :func:`compare`.
    """

    def __init__(self, entries: Sequence[tuple[Entry, Sequence[int] | None]], promises: Promises = ()) -> None:
        self.promises = promises
        graph = Graph()
        self.programs = [build(graph, entry, _known_parameters(mapping)) for entry, mapping in entries]
        self.numbering = Numbering(graph, self.programs, REWRITES)
        needs = loop_needs(self.numbering)
        self.live = [live_numbers(self.numbering, program, needs) for program in self.programs]

    def compare(self, reference: int, ours: int, target: str) -> Comparison:
        """Compare two of the programs, named by their places among the entries."""
        return _Comparer(self, reference, ours, target).run()


def _known_parameters(parameter_map: Sequence[int] | None) -> dict[int, int] | None:
    if parameter_map is None:
        return None
    return {ours: index for ours, index in enumerate(parameter_map) if index >= 0}


class _Comparer:
    def __init__(self, partition: Partition, reference: int, ours: int, target: str) -> None:
        self._target = target
        self._numbering = partition.numbering
        self._graph = self._numbering.graph
        self._reference, self._ours = partition.programs[reference], partition.programs[ours]
        self._promises = partition.promises
        self._live = [partition.live[reference], partition.live[ours]]
        self._both = self._live[0] & self._live[1]
        self._counts = Counter(self._numbering.applied)
        for program in (self._reference, self._ours):
            self._counts.update(program.equivalences)
        self._found: list[Difference] = []

    def run(self) -> Comparison:
        self._signature()
        self._effects()
        self._speculation()
        self._facts()
        self._hints()
        differences = self._found
        if len(differences) > LIMIT:
            rest = len(differences) - LIMIT
            differences = [*differences[:LIMIT], Difference("structure", f"and {rest} more differences")]
        return Comparison(not differences, tuple(differences), dict(sorted(self._counts.items())))

    def _signature(self) -> None:
        """Report parameters that both sides use with different types."""
        numbering, forms, live = self._numbering, self._numbering.form, self._live
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

    def _speculation(self) -> None:
        """Report values that ours computes where that may be undefined behaviour although the result is equal."""
        numbering, both = self._numbering, self._both
        explainer = Explainer(numbering, self._reference, self._ours)
        rows = [
            (node, "may fault or race, and runs where the reference doesn't run it")
            for node in speculated(numbering, self._reference, self._ours, both)
        ]
        rows += [
            (self._graph.args[node][0], "runs more often than in the reference, where something waits for it")
            for node in repeated_loads(numbering, self._reference, self._ours, both)
        ]
        rows += [
            (node, "may never end, and the reference has no such loop")
            for node in endless(numbering, self._reference, self._ours)
        ]
        for node, why in rows:
            name = numbering.form(numbering.number[node]).name
            place = explainer.location(self._ours, node)
            self._found.append(Difference("effect", f"`{name}` {why}", explainer.text(node), "", place))

    def _facts(self) -> None:
        number = self._numbering.number
        promised = {
            number[node]: set(self._promises[index])
            for index, node in self._ours.params.items()
            if 0 <= index < len(self._promises)
        }
        checker = fact_rules.FactChecker(self._numbering, self._reference, self._ours, self._both, promised)
        explainer = Explainer(self._numbering, self._reference, self._ours)
        for item in checker.check():
            place = explainer.location(self._ours, item.ours_node)
            other = explainer.location(self._reference, item.reference_node)
            node = item.ours_node if item.ours_node is not None else item.reference_node
            text = "" if node is None else explainer.text(node)
            self._found.append(Difference("fact", f"{item.code}: {item.message}", text, text, place, other))
        if checker.implied:
            self._counts["fact-implied"] += checker.implied

    def _hints(self) -> None:
        checker = hint_rules.HintChecker(self._numbering, self._reference, self._ours, self._target, self._both)
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
