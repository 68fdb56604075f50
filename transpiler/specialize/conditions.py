"""Path conditions as text, and their values under a specialization."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transpiler.ir.symbolic import LEAVES, OPERATORS, Sym, leaves_of, to_python
from transpiler.ir.tir import Condition
from transpiler.ir.types import DTYPE_TABLE
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ScalarSpec, Specialization

ALWAYS = "always"
DECISIONS = frozenset({"or", "and", "not", "eq", "ne", "lt", "le", "gt", "ge", "in", "bool", "is_bool", "overlaps"})
"""Expressions of which a decision tests the truth; of others it tests the value."""
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_FLOATS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
Leaves = dict[tuple[Any, ...], Any]


def condition_text(conditions: Iterable[Condition]) -> str:
    """Return a conjunction of decisions as Python text; ``always`` when there are none."""
    parts = list(dict.fromkeys(map(_one, necessary(conditions))))
    if len(parts) == 1:
        return parts[0]
    return " and ".join(f"({p})" if " or " in p else p for p in parts) or ALWAYS


def alternatives_text(common: Sequence[Condition], alternatives: Sequence[Sequence[Condition]]) -> str:
    """Return ``common`` and, where there are several ways to get there, what is left of each of them."""
    rest = [condition_text([c for c in path if c not in common]) for path in alternatives]
    rest = list(dict.fromkeys(rest))
    if not rest or ALWAYS in rest:
        return condition_text(common)
    either = rest[0] if len(rest) == 1 else " or ".join(f"({text})" if " and " in text else text for text in rest)
    if not common:
        return either
    return f"{condition_text(common)} and " + (f"({either})" if len(rest) > 1 else either)


def necessary(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Leave out what follows from the others: decisions over leaves that have one value, or over known truths."""
    known = tuple(dict.fromkeys(conditions))
    pinned = {c.sym: c.outcome for c in known if c.sym.op in LEAVES}
    truths = {c.sym: c.outcome for c in known if isinstance(c.outcome, bool) and c.sym.op not in ("and", "or", "not")}
    return tuple(c for c in known if c.sym in pinned or not (_pinned(c.sym, pinned) or _follows(c, truths)))


def _pinned(sym: Sym, pinned: Mapping[Sym, Any]) -> bool:
    """Whether an expression has one value: a leaf's does not say whether it is True or 1."""
    leaves = leaves_of(sym)
    return all(leaf in pinned and not (sym.op == "is_bool" and pinned[leaf] in (0, 1)) for leaf in leaves)


def _follows(condition: Condition, truths: Mapping[Sym, bool]) -> bool:
    """Whether a combination of truths that are decided one by one can only be what it is."""
    return condition.sym.op in ("and", "or", "not") and _truth(condition.sym, truths) is not None


def _truth(sym: Sym, truths: Mapping[Sym, bool]) -> bool | None:
    if sym.op not in ("and", "or", "not"):
        return truths.get(sym)
    said = [_truth(arg, truths) for arg in sym.args]
    if sym.op == "not":
        return None if said[0] is None else not said[0]
    decisive = sym.op == "or"
    return decisive if decisive in said else None if None in said else not decisive


def bare(sym: Sym) -> Sym:
    """An expression of which only the truth counts, without the calls of bool()."""
    if sym.op == "bool":
        return bare(sym.args[0])
    return Sym(sym.op, tuple(map(bare, sym.args))) if sym.op in ("and", "or", "not") else sym


def _one(condition: Condition) -> str:
    sym, outcome = condition.sym, condition.outcome
    if isinstance(outcome, bool) and sym.op in DECISIONS:
        return to_python(bare(sym)) if outcome else _negated(bare(sym))
    if sym.op in ("dim", "stride"):
        return f"{sym} {'is dynamic' if outcome is None else f'== {outcome}'}"
    return to_python(Sym("eq", (sym, Sym("lit", (outcome,)))))


def _negated(sym: Sym) -> str:
    if sym.op in _OPPOSITE:
        return to_python(Sym(_OPPOSITE[sym.op], sym.args))
    if sym.op == "not":
        return to_python(sym.args[0])
    if sym.op == "is_bool":
        return to_python(sym).replace(" is ", " is not ", 1)
    if sym.op == "in":
        return to_python(sym).replace(" in (", " not in (", 1)
    return to_python(Sym("not", (sym,)))


def leaf_values(specialization: Specialization) -> Leaves:
    """Return what the leaves of symbolic expressions are under a specialization (see ``symbolic.evaluate``)."""
    leaves: Leaves = {}
    for name, param in specialization.params.items():
        match param:
            case ConstantSpec(value=value):
                leaves["param", name] = _FLOATS.get(value, value) if isinstance(value, str) else value
            case ScalarSpec(dtype=dtype):
                leaves["dtype", name] = dtype
            case ArraySpec():
                _array_leaves(leaves, name, param)
            case ListSpec(element=element):
                _array_leaves(leaves, name, element)
    return leaves


def _array_leaves(leaves: Leaves, name: str, array: ArraySpec) -> None:
    leaves["dtype", name] = array.dtype
    leaves["itemsize", name] = DTYPE_TABLE[array.dtype][1] // 8
    leaves["rank", name] = array.ndim
    leaves["overlaps", name] = array.may_alias_internally
    leaves["div", name, "ptr", 0] = array.base_addr_divisible_by
    for axis in range(array.ndim):
        leaves["dim", name, axis] = array.shape_constant[axis]
        leaves["stride", name, axis] = array.stride_constant[axis]
        leaves["div", name, "dim", axis] = array.shape_divisible_by[axis]
        leaves["div", name, "stride", axis] = array.stride_divisible_by[axis]


def literals(sym: Sym) -> tuple[Any, ...]:
    """Return the literals in an expression, in order of first use."""
    if sym.op == "lit":
        return sym.args
    if sym.op in LEAVES:
        return ()
    assert sym.op in OPERATORS, sym.op
    return tuple(dict.fromkeys(value for arg in sym.args for value in literals(arg)))
