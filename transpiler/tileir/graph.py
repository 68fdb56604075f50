"""Build the value graph of an entry: gated SSA, in which only data, memory and control facts are left.

Pure operations become floating nodes; program order, names, duplicates and dead code are gone.

- ``for``/``loop`` become a loop node (``loop.for``: control context, lower bound, upper bound, step;
  ``loop.while``: context and exit condition) and a ``mu`` node (initial value, next value) for each
  carried value; the induction variable is ``loop.index`` of the loop node; a loop's result is
  ``loop.exit`` of the loop node and the value at exit.  The context is an operand of the loop node, so
  a nested loop with its parent's bounds is another loop.
- ``if`` becomes ``gamma`` (condition, then, else) for each result.
- The control context of an effect is a chain of ``entry``, ``loop.body`` (a loop) and ``branch`` (a
  context, a condition, its polarity).  ``return``, ``continue`` and ``break`` in a branch put the rest
  of the block into the context in which it is reached; so does a loop in which there is a ``return``.
- A ``weak`` load is a value: it depends on its address, mask, padding and token.  Every other memory
  operation, ``print`` and ``assert`` is an effect, and depends on its context as well.  So does the token
  that a load hands over (``load.token``): it stands for this execution of the load, not for its value.
- ``assume`` is transparent; its predicate is kept beside the graph, for the node and for each use.

Regions of ``reduce`` and ``scan`` become expressions over ``lambda.arg`` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from transpiler.diagnostics import Span, TranspileError, error
from transpiler.tileir.model import Entry, Form, Hints, Op, Region
from transpiler.tileir.ops.schema import REGION_LAMBDAS, SCHEMAS, Kind

ENTRY = Form("entry").key
BODY = Form("loop.body").key
BRANCH = {True: Form("branch", (("taken", "true"),)).key, False: Form("branch", (("taken", "false"),)).key}
GAMMA = Form("gamma").key
MU = Form("mu").key
EXIT = Form("loop.exit").key
WHILE = Form("loop.while").key
LOAD_TOKEN = Form("load.token").key
TRUE = Form("constant", (("value", "i1:true"),), (), ("tile<i1>",), ("tile<i1>",)).key
FALSE = Form("constant", (("value", "i1:false"),), (), ("tile<i1>",), ("tile<i1>",)).key
_CASTS = ("bitcast", "reshape", "broadcast")
INITIAL = -1
"""The operand position of a carried value's initial value: which place it has among others says nothing."""
_PROJECT: list[int] = []


def projection(index: int) -> int:
    """Return the form key of "result ``index`` of an operation with several results"."""
    while len(_PROJECT) <= index:
        _PROJECT.append(Form("result", (("index", str(len(_PROJECT))),)).key)
    return _PROJECT[index]


@dataclass(slots=True)
class Outcome:
    """How a region ends: a terminator with its values, or a decision between two outcomes."""

    kind: str
    values: tuple[int, ...] = ()
    condition: int = -1
    then: Outcome | None = None
    orelse: Outcome | None = None
    kinds: frozenset[str] = frozenset()
    """The kinds of terminators that can be reached."""

    def __post_init__(self) -> None:
        self.kinds = self.then.kinds | self.orelse.kinds if self.then and self.orelse else frozenset((self.kind,))

    def arms(self) -> tuple[Outcome, Outcome]:
        """Return both sides of a decision."""
        assert self.then is not None and self.orelse is not None
        return self.then, self.orelse


@dataclass
class Graph:
    """Nodes of one or several programs, in an order in which operands come first (``mu`` apart)."""

    keys: list[int] = field(default_factory=list)
    args: list[tuple[int, ...]] = field(default_factory=list)
    varying: list[bool] = field(default_factory=list)
    """Whether the node depends on a ``mu`` or on a ``loop.while``."""
    ops: list[Op | None] = field(default_factory=list)
    mus: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """mu -> (loop node, initial value, next value)."""
    whiles: dict[int, int] = field(default_factory=dict)
    """loop.while node -> its condition to stay in the loop."""

    def add(self, key: int, args: tuple[int, ...] = (), op: Op | None = None) -> int:
        """Append a node and return its index."""
        index = len(self.keys)
        self.keys.append(key)
        self.args.append(args)
        varying = self.varying
        flag = False
        for arg in args:
            if varying[arg]:
                flag = True
                break
        varying.append(flag)
        self.ops.append(op)
        return index


@dataclass
class Program:
    """One entry's part of the graph."""

    entry: Entry
    effects: list[int] = field(default_factory=list)
    load_tokens: list[int] = field(default_factory=list)
    guarded: list[tuple[int, int]] = field(default_factory=list)
    """(node, control context) of each value that is undefined behaviour where it shouldn't be computed."""
    loops: list[int] = field(default_factory=list)
    """Each ``loop.while`` node."""
    views: list[tuple[int, int]] = field(default_factory=list)
    """(node, control context) of each tensor view."""
    hinted: list[tuple[int, Hints, int]] = field(default_factory=list)
    """(node, its hints, control context) of each memory operation."""
    facts: list[tuple[int, str, int]] = field(default_factory=list)
    """(assumed node, predicate, control context)."""
    uses: list[tuple[int, int, tuple[str, ...]]] = field(default_factory=list)
    """(using node, operand position or INITIAL, predicates stated on the operand as it is used)."""
    params: dict[int, int] = field(default_factory=dict)
    """Parameter index in the reference's numbering -> node; only parameters that are used."""
    equivalences: dict[str, int] = field(default_factory=dict)


def build(graph: Graph, entry: Entry, parameter_map: dict[int, int] | None = None) -> Program:
    """Add the entry to the graph; ``parameter_map`` gives each parameter's index in the reference.

    Raises E0687 for control flow that the graph has no meaning for.
    """
    return _Builder(graph, entry, parameter_map).run()


class _Builder:
    def __init__(self, graph: Graph, entry: Entry, parameter_map: dict[int, int] | None) -> None:
        self._graph = graph
        self._entry = entry
        self._map = parameter_map
        self._program = Program(entry)
        self._nodes: list[int] = [-1] * len(entry.values)
        self._assumed: dict[int, tuple[str, ...]] = {}
        self._depth = 0
        self._merged: dict[tuple[int, str, int], tuple[int, Outcome]] = {}
        """Results of :meth:`_merge`; the outcome is kept so that its id stays its own."""
        self._tests: dict[tuple[int, str], tuple[bool | tuple[int, bool], Outcome]] = {}

    def run(self) -> Program:
        for position, value in enumerate(self._entry.params):
            index = position if self._map is None else self._map.get(position, -1 - position)
            form = Form("parameter", (("index", str(index)),), (), (), (self._entry.values[value].type,))
            self._nodes[value] = self._program.params[index] = self._graph.add(form.key)
        context = self._graph.add(ENTRY)
        outcome = self._block(self._entry.body, context, "return")
        if outcome.kinds != {"return"}:
            raise error("E0687", f"`{self._entry.name}` ends with {sorted(outcome.kinds)}")
        return self._program

    def _fail(self, op: Op, why: str) -> TranspileError:
        return error("E0687", f"{why} (`{op.name}`)", Span(self._entry.name, op.line, 1))

    def _block(self, region: Region, context: int, fallthrough: str) -> Outcome:
        """Add a region's operations; ``fallthrough`` is how it ends when it has no terminator."""
        pending: list[Outcome] = []
        last: Outcome | None = None
        for op in region.ops:
            name = op.name
            if name in ("if", "loop"):
                outcome = self._if(op, context) if name == "if" else self._loop(op, context)
                if "yield" not in outcome.kinds:
                    last = outcome
                    break
                if len(outcome.kinds) > 1:
                    pending.append(outcome)
                    self._count("early-exit")
                    context = self._reached(context, outcome, "yield")
            elif name in ("yield", "continue", "break", "return"):
                last = Outcome(name, tuple([self._nodes[v] for v in op.operands]))
                break
            elif name == "for":
                self._for(op, context)
            else:
                self._plain(op, context)
        outcome = last or Outcome(fallthrough)
        for branch in reversed(pending):
            outcome = _mapped(branch, {"yield": outcome}, {})
        return outcome

    def _if(self, op: Op, context: int) -> Outcome:
        """Add a branch; its results are what it yields."""
        condition = self._nodes[op.operands[0]]
        then = self._block(op.regions[0], self._branch(context, condition, True), "yield")
        orelse = self._block(op.regions[1], self._branch(context, condition, False), "yield")
        outcome = Outcome("if", (), condition, then, orelse)
        if "yield" in outcome.kinds:
            for i, value in enumerate(op.results):
                self._nodes[value] = self._merge(outcome, "yield", i)
            if self._assumed:
                self._carry_assumed(op, sum("yield" in arm.kinds for arm in (then, orelse)))
        return outcome

    def _carry_assumed(self, op: Op, arms: int) -> None:
        """A result that is what every arm that goes on hands over carries what is stated of it on each."""
        yields = [region.ops[-1].operands for region in op.regions if region.ops and region.ops[-1].name == "yield"]
        if len(yields) != arms:
            return
        for result, *values in zip(op.results, *yields, strict=True):
            stated = [self._assumed.get(v, ()) for v in values]
            if all(stated) and all(self._nodes[v] == self._nodes[result] for v in values):
                self._assumed[result] = tuple(p for p in stated[0] if all(p in other for other in stated[1:]))

    def _count(self, name: str) -> None:
        self._program.equivalences[name] = self._program.equivalences.get(name, 0) + 1

    def _branch(self, context: int, condition: int, taken: bool) -> int:
        return self._graph.add(BRANCH[taken], (context, condition))

    def _reached(self, context: int, outcome: Outcome, kind: str) -> int:
        """Return the context in which ``outcome`` ends with ``kind``."""
        test = self._test(outcome, kind)
        if isinstance(test, bool):
            return context if test else self._branch(context, self._graph.add(TRUE), False)
        node, taken = test
        return self._branch(context, node, taken)

    def _test(self, outcome: Outcome, kind: str) -> bool | tuple[int, bool]:
        """Return whether ``outcome`` ends with ``kind``: known, or a condition node and its polarity."""
        if outcome.kind != "if":
            return outcome.kind == kind
        at = (id(outcome), kind)
        if at not in self._tests:
            then, orelse = (self._test(arm, kind) for arm in outcome.arms())
            test: bool | tuple[int, bool]
            if isinstance(then, bool) and isinstance(orelse, bool):
                test = then if then == orelse else (outcome.condition, then)
            else:
                node = self._graph.add(GAMMA, (outcome.condition, self._boolean(then), self._boolean(orelse)))
                test = node, True
            self._tests[at] = test, outcome
        return self._tests[at][0]

    def _boolean(self, test: bool | tuple[int, bool]) -> int:
        """Materialize a test as a node."""
        if isinstance(test, bool):
            return self._graph.add(TRUE if test else FALSE)
        node, taken = test
        return node if taken else self._graph.add(GAMMA, (node, self._boolean(False), self._boolean(True)))

    def _merge(self, outcome: Outcome, kind: str, index: int) -> int:
        """Return the ``index``-th value that ``outcome`` hands over when it ends with ``kind``; -1 if it never does."""
        if outcome.kind != "if":
            if outcome.kind != kind:
                return -1
            if index >= len(outcome.values):
                raise error("E0687", f"`{kind}` hands over {len(outcome.values)} values where more are expected")
            return outcome.values[index]
        at = (id(outcome), kind, index)
        if at not in self._merged:
            then, orelse = outcome.arms()
            left, right = self._merge(then, kind, index), self._merge(orelse, kind, index)
            both = left >= 0 and right >= 0
            node = self._graph.add(GAMMA, (outcome.condition, left, right)) if both else max(left, right)
            self._merged[at] = node, outcome
        return self._merged[at][0]

    def _for(self, op: Op, context: int) -> None:
        graph, nodes = self._graph, self._nodes
        head = Form("loop.for", op.form.attributes, (), op.form.operand_types)
        bounds = tuple([nodes[v] for v in op.operands[:3]])
        loop = graph.add(head.key, (context, *bounds), op)
        self._note_uses(loop, op.operands[:3], offset=1)
        index, *carried = op.regions[0].args
        nodes[index] = graph.add(Form("loop.index", (), (), (), op.form.operand_types).key, (loop,))
        mus = self._carry(op, loop, op.operands[3:], carried)
        outcome = self._block(op.regions[0], graph.add(BODY, (loop,)), "continue")
        if outcome.kinds != {"continue"}:
            raise self._fail(op, f"a loop body that ends with {sorted(outcome.kinds)}")
        self._close(outcome, loop, mus)
        for mu, result in zip(mus, op.results, strict=True):
            nodes[result] = graph.add(EXIT, (loop, mu), op)

    def _carry(self, op: Op, loop: int, inits: tuple[int, ...], args: list[int]) -> list[int]:
        """Add a mu node for each carried value; its next value is filled in by :meth:`_close`."""
        if len(inits) != len(args):
            raise self._fail(op, "a loop with other numbers of initial and carried values")
        mus: list[int] = []
        for init, arg in zip(inits, args, strict=True):
            start = self._nodes[init]
            mu = self._graph.add(MU, (loop, start), op)
            self._graph.varying[mu] = True
            self._graph.mus[mu] = (loop, start, -1)
            self._nodes[arg] = mu
            self._note_uses(mu, (init,), INITIAL)
            mus.append(mu)
        return mus

    def _close(self, outcome: Outcome, loop: int, mus: list[int]) -> None:
        for i, mu in enumerate(mus):
            following = self._merge(outcome, "continue", i)
            start = self._graph.mus[mu][1]
            self._graph.mus[mu] = (loop, start, following if following >= 0 else start)

    def _loop(self, op: Op, context: int) -> Outcome:
        """Add a loop; returns how it ends as the block around it sees that: it goes on, or it returned."""
        graph = self._graph
        if "continue" not in _ends(op.regions[0], "continue"):
            return self._once(op, context)
        loop = graph.add(WHILE, (context,), op)
        graph.varying[loop] = True
        self._program.loops.append(loop)
        mus = self._carry(op, loop, op.operands, list(op.regions[0].args))
        outcome = self._block(op.regions[0], graph.add(BODY, (loop,)), "continue")
        if not outcome.kinds <= {"continue", "break", "return"}:
            raise self._fail(op, f"a loop body that ends with {sorted(outcome.kinds)}")
        self._close(outcome, loop, mus)
        graph.whiles[loop] = self._boolean(self._test(outcome, "continue"))
        for i, result in enumerate(op.results):
            value = self._merge(outcome, "break", i)
            self._nodes[result] = graph.add(EXIT, (loop, value if value >= 0 else graph.add(TRUE)), op)
        if "return" not in outcome.kinds:
            return Outcome("yield")
        yes, no = Outcome("exit", (graph.add(TRUE),)), Outcome("exit", (graph.add(FALSE),))
        exits = _mapped(outcome, {"return": yes, "break": no}, {})
        returned = graph.add(EXIT, (loop, self._merge(exits, "exit", 0)), op)
        return Outcome("if", (), returned, Outcome("return"), Outcome("yield"))

    def _once(self, op: Op, context: int) -> Outcome:
        """Add a loop that never goes on to a second iteration: it is its body."""
        self._count("single-iteration")
        for init, arg in zip(op.operands, op.regions[0].args, strict=True):
            self._nodes[arg] = self._nodes[init]
        outcome = _renamed(self._block(op.regions[0], context, "continue"), "break", "yield", {})
        for i, result in enumerate(op.results):
            value = self._merge(outcome, "yield", i)
            self._nodes[result] = value if value >= 0 else self._graph.add(TRUE)
        return outcome

    def _note_uses(self, node: int, operands: Sequence[int], offset: int = 0) -> None:
        """Remember the predicates stated on the operands as this operation sees them."""
        assumed = self._assumed
        if assumed:
            for position, value in enumerate(operands):
                if assumed.get(value):
                    self._program.uses.append((node, position + offset, assumed[value]))

    def _plain(self, op: Op, context: int) -> None:
        nodes, form = self._nodes, op.form
        operands = tuple([nodes[v] for v in op.operands])
        traits = _traits(form)
        if traits.simple and len(op.results) == 1:  # nine of ten operations
            node = nodes[op.results[0]] = self._graph.add(form.key, operands, op)
            if form.name in _CASTS and form.operand_types == form.result_types:  # the same value: identity-cast
                self._assumed[op.results[0]] = self._assumed.get(op.operands[0], ())
            else:
                self._note_uses(node, op.operands)
                if form.name == "make_tensor_view":
                    self._program.views.append((node, context))
            return
        if self._depth and not traits.effect and (traits.guarded or traits.kind == "assume"):
            raise self._fail(op, "what may be undefined in the body of a reduction")
        if traits.kind == "assume":
            self._assume(op, operands[0], context)
            return
        if form.name in REGION_LAMBDAS:
            operands += self._lambda(op)
        if traits.effect:
            if self._depth:
                raise self._fail(op, "an effect in the body of a reduction")
            operands = (context, *operands)
        node = self._graph.add(form.key, operands, op)
        self._note_uses(node, op.operands, offset=int(traits.effect))
        if traits.kind == "memory":
            self._program.hinted.append((node, form.hints, context))
        if traits.guarded:
            self._program.guarded.append((node, context))
        if traits.effect:
            self._program.effects.append(node)
        self._results(op, node, traits, context)

    def _results(self, op: Op, node: int, traits: _Traits, context: int) -> None:
        """Give an operation's results their nodes: its own, or parts of it."""
        nodes, results = self._nodes, op.results
        if len(results) == 1:
            nodes[results[0]] = node
        elif traits.kind == "memory" and not traits.effect:
            nodes[results[0]] = node
            nodes[results[1]] = token = self._graph.add(LOAD_TOKEN, (node, context), op)
            self._program.load_tokens.append(token)
        else:
            for i, value in enumerate(results):
                nodes[value] = self._graph.add(projection(i), (node,), op)

    def _assume(self, op: Op, source: int, context: int) -> None:
        predicate = op.form.get("assumption") or ""
        value, result = op.operands[0], op.results[0]
        self._nodes[result] = source
        self._assumed[result] = (*self._assumed.get(value, ()), predicate)
        self._program.facts.append((source, predicate, context))

    def _lambda(self, op: Op) -> tuple[int, ...]:
        """Return the body of a reduction as nodes over its arguments."""
        self._depth += 1
        region = op.regions[0]
        for i, arg in enumerate(region.args):
            place = (("depth", str(self._depth)), ("index", str(i)))
            form = Form("lambda.arg", place, (), (), (self._entry.values[arg].type,))
            self._nodes[arg] = self._graph.add(form.key)
        outcome = self._block(region, self._graph.add(ENTRY), "yield")
        self._depth -= 1
        if outcome.kind != "yield":
            raise self._fail(op, f"a reduction body that ends with {sorted(outcome.kinds)}")
        return outcome.values


class _Traits(NamedTuple):
    """What the graph needs to know of an operation's form."""

    kind: Kind
    effect: bool
    guarded: bool
    """A value that is undefined behaviour where it shouldn't be computed."""
    simple: bool
    """Nothing but a value of its operands."""


@lru_cache(maxsize=8192)
def _traits(form: Form) -> _Traits:
    kind = SCHEMAS[form.name].kind
    effect = kind == "effect" or (kind == "memory" and not is_weak_load(form))
    guarded = not effect and may_fault(form)
    simple = kind in ("pure", "token") and not guarded and form.name not in REGION_LAMBDAS
    return _Traits(kind, effect, guarded, simple)


def is_weak_load(form: Form) -> bool:
    """Say whether an operation is a load that no other thread may interfere with."""
    return form.name in ("load_view_tko", "load_ptr_tko") and form.get("ordering") == "weak"


def may_fault(form: Form) -> bool:
    """Say whether computing a value where the program doesn't may be undefined behaviour.

    A load may be out of bounds, or race with a store of another branch; an integer division may be by zero.
    """
    return form.name in ("load_view_tko", "load_ptr_tko", "divi", "remi")


def _ends(region: Region, fallthrough: str) -> set[str]:
    """Return the kinds of terminators that a region can end with; ``fallthrough`` where it has none."""
    found: set[str] = set()
    for op in region.ops:
        if op.name == "if":
            kinds = _ends(op.regions[0], "yield") | _ends(op.regions[1], "yield")
            found |= kinds - {"yield"}
            if "yield" not in kinds:
                return found
        elif op.name in ("yield", "continue", "break", "return"):
            return found | {op.name}
    return found | {fallthrough}


def _mapped(outcome: Outcome, new: dict[str, Outcome], memo: dict[int, Outcome]) -> Outcome:
    """Put another outcome wherever ``outcome`` ends with one of the kinds in ``new``."""
    if outcome.kind != "if":
        return new.get(outcome.kind, outcome)
    if not outcome.kinds & new.keys():
        return outcome
    found = memo.get(id(outcome))
    if found is None:
        then, orelse = outcome.arms()
        arms = _mapped(then, new, memo), _mapped(orelse, new, memo)
        found = memo[id(outcome)] = Outcome("if", (), outcome.condition, *arms)
    return found


def _renamed(outcome: Outcome, old: str, new: str, memo: dict[int, Outcome]) -> Outcome:
    """Call one kind of ending by another name; what it hands over stays."""
    if outcome.kind != "if":
        return Outcome(new, outcome.values) if outcome.kind == old else outcome
    found = memo.get(id(outcome))
    if found is None:
        then, orelse = outcome.arms()
        arms = _renamed(then, old, new, memo), _renamed(orelse, old, new, memo)
        found = memo[id(outcome)] = Outcome("if", (), outcome.condition, *arms)
    return found
