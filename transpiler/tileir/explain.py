"""Find and print the smallest part in which two programs differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from transpiler.tileir.graph import BODY, BRANCH, EXIT, GAMMA, MU, WHILE, Program
from transpiler.tileir.model import FORMS, Form, Loc
from transpiler.tileir.numbering import Numbering

DEPTH = 3
"""How deep expressions are printed."""
PAIRS = 3
"""How many differing parts are shown of one pair of effects."""


@dataclass(frozen=True)
class Part:
    """A pair of corresponding nodes that differ (or a node without counterpart), printed."""

    message: str
    ours: int | None
    reference: int | None
    ours_text: str = ""
    reference_text: str = ""
    ours_loc: Loc | None = None
    reference_loc: Loc | None = None


class Explainer:
    """Compares the graphs of both programs in lockstep, from differing effects down."""

    def __init__(self, numbering: Numbering, reference: Program, ours: Program) -> None:
        self._numbering = numbering
        self._graph = numbering.graph
        self._reference, self._ours = reference, ours

    def explain(self, reference: list[int], ours: list[int]) -> Iterator[Part]:
        """Pair the effects that only one side has, and yield the smallest difference of each pair."""
        left = list(ours)
        for node in reference:
            partner = max(left, key=lambda other: self._likeness(node, other), default=None)
            if partner is None or self._likeness(node, partner)[0] == 0:
                yield self._alone(node, self._reference)
                continue
            left.remove(partner)
            for pair in self._smallest(node, partner):
                yield self._pair(*pair)
        for node in left:
            yield self._alone(node, self._ours)

    def text(self, node: int, depth: int = DEPTH) -> str:
        """Print the expression of a node."""
        return render(self._numbering, node, depth)

    def location(self, program: Program, node: int | None) -> Loc | None:
        """Return the source location of a node: its own, or that of the nearest operand that has one."""
        for _ in range(8):
            if node is None or node < 0:
                return None
            op = self._graph.ops[node]
            if op is not None and (found := program.entry.location(op)) is not None:
                return found
            args = self._graph.args[node]
            node = args[-1] if args else None
        return None

    def _likeness(self, reference: int, ours: int) -> tuple[int, int, int]:
        """Score how much two effects resemble each other; the first item is 0 for different operations."""
        graph, number = self._graph, self._numbering.number
        same_name = FORMS[graph.keys[reference]].name == FORMS[graph.keys[ours]].name
        pairs = zip(graph.args[reference], graph.args[ours], strict=False)
        same = sum(number[a] == number[b] for a, b in pairs)
        return int(same_name), int(graph.keys[reference] == graph.keys[ours]), same

    def _operands(self, node: int) -> tuple[int, ...]:
        graph = self._graph
        if node in graph.mus:
            return graph.mus[node]
        if node in graph.whiles:
            return (*graph.args[node], graph.whiles[node])
        return graph.args[node]

    def _smallest(self, reference: int, ours: int) -> list[tuple[int, int]]:
        """Descend to the deepest pairs that differ although their operands correspond (at most PAIRS)."""
        number, graph = self._numbering.number, self._graph
        seen: set[tuple[int, int]] = set()
        found: list[tuple[int, int]] = []
        work = [(reference, ours)]
        while work and len(found) < PAIRS:
            a, b = pair = work.pop()
            if (number[a], number[b]) in seen:
                continue
            seen.add((number[a], number[b]))
            left, right = self._operands(a), self._operands(b)
            theirs, mine = FORMS[graph.keys[a]], FORMS[graph.keys[b]]
            same_kind = theirs.name == mine.name and len(left) == len(right)
            differing = [(x, y) for x, y in zip(left, right, strict=False) if number[x] != number[y]]
            if not (same_kind and differing) or theirs.attributes != mine.attributes:
                found.append(pair)
            if same_kind:
                work.extend(reversed(differing))
        return found or [(reference, ours)]

    def _alone(self, node: int, program: Program) -> Part:
        name, loc = FORMS[self._graph.keys[node]].name, self.location(program, node)
        if program is self._ours:
            return Part(f"`{name}` is in ours only", node, None, self.text(node), "", loc, None)
        return Part(f"`{name}` is in the reference only", None, node, "", self.text(node), None, loc)

    def _pair(self, reference: int, ours: int) -> Part:
        theirs, mine = FORMS[self._graph.keys[reference]], FORMS[self._graph.keys[ours]]
        return Part(
            describe(theirs, mine),
            ours,
            reference,
            self.text(ours),
            self.text(reference),
            self.location(self._ours, ours),
            self.location(self._reference, reference),
        )


def describe(theirs: Form, mine: Form) -> str:
    """Say in words how two corresponding operations differ."""
    if theirs.name != mine.name:
        return f"ours has `{mine.name}` where the reference has `{theirs.name}`"
    for label, ours, reference in (
        ("attributes", _attributes(mine), _attributes(theirs)),
        ("operand kinds", " ".join(r or "_" for r in mine.roles), " ".join(r or "_" for r in theirs.roles)),
        ("operand types", ", ".join(mine.operand_types), ", ".join(theirs.operand_types)),
        ("result types", ", ".join(mine.result_types), ", ".join(theirs.result_types)),
    ):
        if ours != reference:
            return f"`{mine.name}` has other {label}: {ours or 'none'} instead of {reference or 'none'}"
    return f"`{mine.name}` is applied differently"


def _attributes(form: Form) -> str:
    return " ".join(f"{k}={v}" for k, v in form.attributes)


def render(numbering: Numbering, node: int, depth: int = DEPTH) -> str:
    """Print a node of the graph as a nested expression, cut at ``depth``."""
    graph = numbering.graph
    key = graph.keys[node]
    form = FORMS[key]
    if form.name == "constant":
        return (form.get("value") or "").partition(":")[2] or form.name
    if form.name == "parameter":
        return f"parameter {form.get('index')}"
    op = graph.ops[node]
    args = graph.args[node]
    if key in (MU, WHILE) or depth == 0:
        return f"{form.name}@{op.line}" if op is not None else form.name
    if form.name == "result":
        return f"{render(numbering, args[0], depth)}#{form.get('index')}"
    short = {GAMMA: "if", EXIT: "exit", BODY: "in", BRANCH[True]: "when", BRANCH[False]: "unless"}
    inner = ", ".join(render(numbering, a, depth - 1) for a in args)
    attributes = "".join(f" {k}={v}" for k, v in form.attributes if key not in BRANCH.values())
    return f"{short.get(key, form.name)}{attributes}({inner})"
