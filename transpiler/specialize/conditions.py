"""Path conditions as text, and their values under a specialization."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from transpiler.ir.symbolic import LEAVES, OPERATORS, Sym, leaves_of, to_python
from transpiler.ir.tir import Condition
from transpiler.ir.types import DTYPE_TABLE
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ScalarSpec, Specialization

ALWAYS = "always"
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_FLOATS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
Leaves = dict[tuple[Any, ...], Any]


def condition_text(conditions: Iterable[Condition]) -> str:
    """Return a conjunction of decisions as Python text; ``always`` when there are none."""
    known = tuple(conditions)
    pinned = {c.sym for c in known if _pins(c)}
    parts = list(dict.fromkeys(_one(c) for c in known if _pins(c) or not pinned.issuperset(leaves_of(c.sym))))
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


def _pins(condition: Condition) -> bool:
    """Whether a decision gives a leaf one value, so that decisions over it alone say nothing more."""
    return condition.sym.op in LEAVES


def _one(condition: Condition) -> str:
    sym, outcome = condition.sym, condition.outcome
    if outcome is True:
        return to_python(sym)
    if outcome is False:
        return _negated(sym)
    if sym.op in ("dim", "stride"):
        return f"{sym} {'is dynamic' if outcome is None else f'== {outcome}'}"
    return to_python(Sym("eq", (sym, Sym("lit", (outcome,)))))


def _negated(sym: Sym) -> str:
    if sym.op in _OPPOSITE:
        return to_python(Sym(_OPPOSITE[sym.op], sym.args))
    if sym.op == "not":
        return to_python(sym.args[0])
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
