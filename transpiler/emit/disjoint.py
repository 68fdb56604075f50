"""Whether two entries of a kernel could both serve one call: a search for a call that fulfils the conditions of both.

A launch takes the first entry that applies, so that the order would decide what runs. The search tries, leaf by leaf,
values that tell conditions apart: those that conditions and other leaves name, their neighbours, and one of each kind.
What it finds is a real call; a call that needs other values is not found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transpiler.emit.abi import Argument, EntryAbi, Generic, KernelAbi
from transpiler.emit.ffi import tensor_type
from transpiler.ir.symbolic import Sym, evaluate, leaves_of
from transpiler.ir.tir import Condition
from transpiler.ir.types import DTYPE_TABLE, GENERIC_CLASS
from transpiler.specialize.conditions import DECISIONS, literals, necessary

_MAX_STEPS = 20_000
_ONE_OF_EACH: tuple[Any, ...] = (False, True, 0, 1, 2, 16, -1, 64, 0.5, 2.0, None)
_BY_RUST = {rust: name for name, (rust, *_) in DTYPE_TABLE.items()}
Values = dict[tuple[Any, ...], Any]


def shared_calls(abi: KernelAbi) -> Iterator[tuple[EntryAbi, EntryAbi, Values]]:
    """Yield pairs of a kernel's entries that could both be taken, with a call for which they could."""
    for one, other in itertools.combinations(abi.entries, 2):
        if one.body == other.body != "":
            continue  # one program, with or without a place for sizes of 1
        ways = itertools.product(*(e.alternatives or (e.conditions,) for e in (one, other)))
        found = next((call for mine, theirs in ways if (call := _call(one, mine, other, theirs)) is not None), None)
        if found is not None:
            yield one, other, found


def call_text(call: Mapping[tuple[Any, ...], Any]) -> str:
    """Return a found call as text: constants, element types and what is special about arrays."""
    parts = [f"{name[0]}={value!r}" for (op, *name), value in call.items() if op == "param"]
    parts += [f"{Sym(op, tuple(name))}={value}" for (op, *name), value in call.items() if op not in ("param", "rank")]
    return ", ".join(parts) or "any call"


@dataclass
class _Problem:
    """Conditions to fulfil, what each leaf may be, and the entries with a place for sizes of 1."""

    conditions: list[Condition]
    generics: list[Generic]
    domains: dict[Sym, tuple[Any, ...]]
    places: tuple[dict[Sym, bool], dict[Sym, bool]]
    leaves: list[Sym] = field(default_factory=list)
    steps: int = 0


def _call(
    one: EntryAbi, mine: Sequence[Condition], other: EntryAbi, theirs: Sequence[Condition]
) -> Values | None:  # fmt: skip
    known = {c.sym: c for c in mine}
    if any(c.sym in known and not known[c.sym].agrees(c.outcome) for c in theirs):
        return None
    types = _types(one, other)
    if types is None:
        return None
    places = (_places(one), _places(other))
    sizes = [Condition(sym, 1) for entry in (one, other) for sym in _ones(entry)]
    conditions = [*necessary(mine), *necessary(theirs), *sizes]
    problem = _Problem(conditions, [*one.generics, *other.generics], {}, places)
    syms = [c.sym for c in conditions] + [g.value for g in problem.generics]
    seen = list(dict.fromkeys(leaf for sym in syms for leaf in leaves_of(sym)))
    named = tuple(dict.fromkeys(value for c in conditions for value in (*literals(c.sym), c.outcome)))
    pinned = {c.sym: c.outcome for c in conditions}
    for leaf in seen:
        problem.domains[leaf] = (pinned[leaf],) if leaf in pinned else _domain(leaf, types, named)
    problem.leaves = sorted(seen, key=lambda leaf: len(problem.domains[leaf]))
    return _search(problem, 0, {})


# -- What a call may look like ------------------------------------------------------------------------


def _types(one: EntryAbi, other: EntryAbi) -> dict[str, tuple[str, ...]] | None:
    """The element types that both entries take of each parameter; None where they take none or other ranks."""
    found: dict[str, tuple[str, ...]] = {}
    theirs = {argument.source: argument for argument in other.arguments}
    for argument in one.arguments:
        match = theirs.get(argument.source)
        mine = _taken(argument, one)
        if match is None:
            found[argument.source] = mine[2]
            continue
        its = _taken(match, other)
        both = tuple(dtype for dtype in mine[2] if dtype in its[2])
        if mine[:2] != its[:2] or not both:
            return None
        found[argument.source] = both
    return {a.source: _taken(a, other)[2] for a in other.arguments} | found


def _taken(argument: Argument, entry: EntryAbi) -> tuple[str, int, tuple[str, ...]]:
    """Kind, rank and element types of an argument."""
    if argument.kind == "scalar":
        return "scalar", 0, (_BY_RUST[argument.rust_type],)
    element, extents = tensor_type(argument)
    rank = len(extents)
    if argument.items is not None:
        element, rank = argument.items
    generic = any(g.kind == "type" and g.name == element for g in entry.generics)
    return argument.kind, rank, tuple(GENERIC_CLASS) if generic else (_BY_RUST[element],)


def _extents(entry: EntryAbi) -> Iterator[tuple[Sym, str]]:
    for argument in entry.arguments:
        if argument.kind == "tensor":
            for axis, extent in enumerate(tensor_type(argument)[1]):
                yield Sym("dim", (argument.source, axis)), extent


def _places(entry: EntryAbi) -> dict[Sym, bool]:
    """Whether an entry's types have a place for an extent that is compiled in."""
    return {sym: extent != "-1" for sym, extent in _extents(entry)}


def _ones(entry: EntryAbi) -> Iterator[Sym]:
    return (sym for sym, extent in _extents(entry) if extent == "1")


def _domain(leaf: Sym, types: Mapping[str, tuple[str, ...]], named: Sequence[Any]) -> tuple[Any, ...]:
    match leaf.op:
        case "dtype":
            return types.get(leaf.args[0], ()) or tuple(v for v in named if isinstance(v, str))
        case "dim" | "stride":
            return None, 1
        case "rank":
            return tuple(range(9))
        case "overlaps":
            return False, True
        case "itemsize":
            return 1, 2, 4, 8
        case "div":
            return 1, 2, 4, 8, 16
    near = [v + d for v in named if type(v) is int for d in (1, -1)]
    # True and 1 are equal, and both are tried
    return tuple({(type(v), v): v for v in (*named, *_ONE_OF_EACH, *near)}.values())


# -- The search ---------------------------------------------------------------------------------------


def _search(problem: _Problem, depth: int, values: Values) -> Values | None:
    if depth == len(problem.leaves):
        return values if _undecided(problem, values) else None
    leaf = problem.leaves[depth]
    for value in _choices(problem.domains[leaf]):
        problem.steps += 1
        if problem.steps > _MAX_STEPS:
            return None
        trial = {**values, (leaf.op, *leaf.args): value}
        if _possible(problem, trial, leaf) and (found := _search(problem, depth + 1, trial)) is not None:
            return found
    return None


def _choices(domain: tuple[Any, ...]) -> tuple[Any, ...]:
    """A value that is pinned may be a bool or the int of the same value."""
    if len(domain) == 1 and isinstance(domain[0], int) and domain[0] in (0, 1):
        return domain[0], (int if isinstance(domain[0], bool) else bool)(domain[0])
    return domain


def _possible(problem: _Problem, values: Values, last: Sym) -> bool:
    """Whether all that is known with the last leaf's value holds."""

    def known(sym: Sym) -> bool:
        leaves = leaves_of(sym)
        return last in leaves and all((leaf.op, *leaf.args) in values for leaf in leaves)

    return all(_holds(c, values) for c in problem.conditions if known(c.sym)) and all(
        _valid(g, values) for g in problem.generics if known(g.value)
    )


def _holds(condition: Condition, values: Values) -> bool:
    """As ffi.rs tests it."""
    value = _value(condition.sym, values)
    if isinstance(condition.outcome, bool) and condition.sym.op in DECISIONS:
        return value is not _UNDEFINED and bool(value) is condition.outcome
    return condition.agrees(value)


def _valid(generic: Generic, values: Values) -> bool:
    value = _value(generic.value, values)
    if generic.kind == "type":
        return isinstance(value, str) and value in GENERIC_CLASS
    if value is None:
        return generic.value.op == "dim"
    if generic.no_bool and isinstance(value, bool):
        return False
    return isinstance(value, int) and -(2**31) <= value < 2**31


_UNDEFINED = object()


def _value(sym: Sym, values: Values) -> Any:
    try:
        return evaluate(sym, values)
    except (ArithmeticError, TypeError, ValueError):
        return _UNDEFINED


def _undecided(problem: _Problem, values: Values) -> bool:
    """Whether the sizes of 1 don't decide: an entry with a place for each of them is preferred."""
    ones = {sym for sym in problem.domains if sym.op == "dim" and values["dim", *sym.args] == 1}
    return all(places.get(sym, True) for places in problem.places for sym in ones)


__all__ = ["call_text", "shared_calls"]
