"""Optimistic value numbering of a graph that holds both programs.

The algorithm is the partition of Alpern, Wegman and Zadeck, *Detecting equality of variables in
programs* (POPL 1988), computed by hashing as in Simpson, *Value-driven redundancy elimination* (Rice,
1996): assume that all loop-carried values (``mu``) of a loop are equal, and equal to their initial
values; number every other node by its form and its operands' numbers; split the carried values whose
initial or next numbers differ; repeat until nothing splits.  The partition at the end is consistent
with every equation of the graph, so by induction over the number of iterations (and over the operands
of everything else) values with one number are equal in every execution.  Rewritings may be added to
the numbering as long as each is an equality of values: the induction uses only that.

Why one number for values of two different loops is right: a loop node is (control context, bounds) or
(control context, exit condition).  Loops with equal nodes run the same iterations, so "the carried
value in iteration i" of one can be compared with that of the other; the context says in which
iteration of the loops around.

Loops are taken to end: a loop without an effect that nothing needs is dead code, as in Tile IR's own
compiler.

Memory.  Tile IR orders memory operations of a thread by tokens alone (specification, 7.5: control,
data and address dependencies order nothing), so program order is not part of the graph, and tokens
are.  Everything that touches memory, but for the value of a ``weak`` load, is numbered with its control
context and, among operations that would get one number in a program, with its ordinal: two atomic
additions are two events.  That holds for the token of a ``weak`` load too: what waits for one execution
of a load doesn't wait for another.

The value of a ``weak`` load is numbered by address, mask, padding, view and token alone.  Let ours load
with one number where the reference loads, perhaps more often.  A store to the address that is ordered
before the reference's load is ordered before each of ours, which have the same token.  One that is
ordered after it waits for its token; then ours may have no other executions of the load than the
reference has, and what waits for one waits for the same one.  Any other store to the address would race
with the reference's load, which is undefined (7.10, 7.12.2).  So all of them read what the reference
reads.  Loading in a context in which the reference doesn't, or more often although something waits for
the load, is not covered by this and is reported (:mod:`.liveness`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transpiler.tileir.graph import MU, WHILE, Graph, Program
from transpiler.tileir.model import FORMS, Form

Rewrite = Callable[["Numbering", int, tuple[int, ...]], "int | None"]


class Numbering:
    """The value numbers of all nodes, and for each number its definition."""

    def __init__(self, graph: Graph, programs: Sequence[Program], rewrites: dict[str, tuple[Rewrite, ...]]) -> None:
        self.graph = graph
        self.programs = programs
        self.number: list[int] = [-1] * len(graph.keys)
        self.definitions: list[tuple[int, tuple[int, ...]]] = []
        self.applied: dict[str, int] = {}
        self._rewrites = rewrites
        self._by_key: dict[int, tuple[Rewrite, ...]] = {}
        self._table: dict[tuple[int, tuple[int, ...]], int] = {}
        self._effect_owner: dict[int, int] = {}
        for side, program in enumerate(programs):
            for node in (*program.effects, *program.load_tokens):
                self._effect_owner[node] = side
        self._ordinals: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self._real: set[int] = set()
        self._class: dict[int, int] = dict.fromkeys([*graph.mus, *graph.whiles], 0)
        self._run()

    def cons(self, key: int, args: tuple[int, ...]) -> int:
        """Return the number of the expression, rewritten if an equivalence applies."""
        at = (key, args)
        number = self._table.get(at)
        if number is None:
            rewrites = self._by_key.get(key)
            if rewrites is None:
                rewrites = self._by_key[key] = self._rewrites.get(FORMS[key].name, ())
            for rewrite in rewrites:
                number = rewrite(self, key, args)
                if number is not None:
                    break
            else:
                number = len(self.definitions)
                self.definitions.append(at)
            self._table[at] = number
        return number

    def form(self, number: int) -> Form:
        """Return the form of the expression that a number stands for."""
        return FORMS[self.definitions[number][0]]

    def args(self, number: int) -> tuple[int, ...]:
        """Return the operands of the expression that a number stands for."""
        return self.definitions[number][1]

    def count(self, equivalence: str) -> None:
        """Note that a named equivalence was used."""
        self.applied[equivalence] = self.applied.get(equivalence, 0) + 1

    def _run(self) -> None:
        graph = self.graph
        fixed = [n for n, varying in enumerate(graph.varying) if not varying]
        moving = [n for n, varying in enumerate(graph.varying) if varying]
        self._evaluate(fixed)
        table, definitions = self._table, self.definitions
        applied, ordinals = self.applied, self._ordinals
        while True:
            self._table, self.definitions = dict(table), list(definitions)
            self.applied, self._ordinals = dict(applied), dict(ordinals)
            self._evaluate(moving)
            if not self._split():
                return

    def _evaluate(self, nodes: list[int]) -> None:
        keys, args, number = self.graph.keys, self.graph.args, self.number
        owner, table, cons = self._effect_owner, self._table, self.cons
        for node in nodes:
            key = keys[node]
            if key == MU:
                number[node] = self._carried(node)
            elif key == WHILE:
                number[node] = cons(key, (-1 - self._class[node], number[args[node][0]]))
            else:
                operands = tuple([number[a] for a in args[node]])
                if node in owner:
                    number[node] = self._effect(key, operands, owner[node])
                else:
                    found = table.get((key, operands))
                    number[node] = cons(key, operands) if found is None else found

    def _carried(self, mu: int) -> int:
        loop, start, _ = self.graph.mus[mu]
        if mu not in self._real:
            return self.number[start]
        return self.cons(MU, (-1 - self._class[mu], self.number[loop]))

    def _effect(self, key: int, operands: tuple[int, ...], side: int) -> int:
        """Number an effect: the n-th of equal ones in each program is the same event."""
        at = (side, key, operands)
        ordinal = self._ordinals[at] = self._ordinals.get(at, -1) + 1
        return self.cons(key, operands if not ordinal else (*operands, -1 - ordinal))

    def _split(self) -> bool:
        """Refine the classes of carried values and while-loops; say whether anything changed."""
        number, graph = self.number, self.graph
        moved = (m for m, (_, start, after) in graph.mus.items() if number[start] != number[after])
        fresh = [m for m in moved if m not in self._real]
        if fresh:
            self._real.update(fresh)
            self._class = dict.fromkeys(self._class, 0)
            return True
        groups: dict[object, int] = {}
        classes: dict[int, int] = {}
        for mu, (loop, start, after) in graph.mus.items():
            if mu in self._real:
                signature: object = (self._class[mu], number[loop], number[start], number[after])
                classes[mu] = groups.setdefault(signature, len(groups))
        carried = len(groups)
        for loop, condition in graph.whiles.items():
            signature = (self._class[loop], number[loop], number[condition], "while")
            classes[loop] = groups.setdefault(signature, len(groups)) - carried
        before = len({(self._class[m], m in graph.whiles) for m in classes})
        self._class.update(classes)
        return len(groups) != before
