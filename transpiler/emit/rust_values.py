"""Symbolic expressions as Rust: what ffi.rs evaluates at every launch.

The text calls the functions of ``rust_runtime/support/src/py.rs``, which compute as Python does, so that a
condition decides the same in the launcher as it did in the specializer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from transpiler.diagnostics import error
from transpiler.emit.naming import snake, unique
from transpiler.ir.rust_text import literal
from transpiler.ir.symbolic import LEAVES, OPERATORS, Sym, leaves_of
from transpiler.ir.tir import Condition
from transpiler.specialize.conditions import DECISIONS

Leaf = Callable[[Sym], str]
"""Writes a leaf of an expression."""

_INTEGERS = range(-(2**127), 2**127)
# Operators whose Rust function has another name (Rust's keywords, or clearer beside others).
_FUNCTIONS = {"mod": "modulo", "or_": "bit_or", "xor": "bit_xor", "and_": "bit_and", "where": "choose"}
_OF_SLICES = frozenset({"min", "max"})


def to_rust(sym: Sym, leaf: Leaf) -> str:
    """Write an expression as Rust text of type ``impl Into<py::Value>``."""
    if sym.op == "lit":
        return _literal(sym.args[0])
    if sym.op in LEAVES:
        return leaf(sym)
    assert sym.op in OPERATORS, sym.op
    if sym.op == "in":
        return f"py::is_in({to_rust(sym.args[0], leaf)}, {_slice(sym.args[1:], leaf)})"
    if sym.op in _OF_SLICES:
        return f"py::{sym.op}({_slice(sym.args, leaf)})"
    return f"py::{_FUNCTIONS.get(sym.op, sym.op)}({', '.join(to_rust(a, leaf) for a in sym.args)})"


def _literal(value: Any) -> str:
    match value:
        case None:
            return "py::Value::None"
        case bool():
            return str(value).lower()
        case int():
            return str(value) if value in _INTEGERS else "py::Value::Undefined"
        case float():
            return _float(value)
        case str():
            return literal(value, ascii_only=True)
    raise error("E0620", f"a constant of type {type(value).__name__} can't be passed to Rust")


def _float(value: float) -> str:
    if math.isnan(value):
        return "f64::NAN"
    if math.isinf(value):
        return "f64::INFINITY" if value > 0 else "f64::NEG_INFINITY"
    text = repr(value)
    return text if "." in text or "e" in text else f"{text}.0"


def _slice(items: Iterable[Sym], leaf: Leaf) -> str:
    """Write ``&[..]`` of values; literals are wrapped, the rest are values already."""
    return f"&[{', '.join(_wrapped(item, leaf) for item in items)}]"


def _wrapped(item: Sym, leaf: Leaf) -> str:
    text = to_rust(item, leaf)
    if item.op != "lit" or text.startswith("py::"):
        return text
    value = item.args[0]
    variant = {bool: "Bool", int: "Int", float: "Float", str: "Text"}[type(value)]
    return f"py::Value::{variant}({text})"


# -- Conditions ---------------------------------------------------------------------------------------


def condition(one: Condition, leaf: Leaf) -> str:
    """Write a decision as a Rust ``bool``."""
    text = to_rust(one.sym, leaf)
    if isinstance(one.outcome, bool) and one.sym.op in DECISIONS:
        return f"py::{'holds' if one.outcome else 'fails'}({text})"
    return f"py::same({text}, {_literal(one.outcome)})"


def conjunction(conditions: Sequence[Condition], leaf: Leaf) -> str:
    """Write that all conditions hold, in their order; ``true`` when there are none."""
    return " && ".join(condition(c, leaf) for c in conditions) or "true"


# -- Closures -----------------------------------------------------------------------------------------


class Scope:
    """How a closure over ``call`` reads what an expression is made of.

    ``places`` has the position of each parameter among those of its kind in the call.
    """

    def __init__(self, places: Mapping[str, tuple[str, int]]) -> None:
        self._places = places

    def read(self, leaf: Sym) -> str:
        """Write the expression that reads a leaf from the call."""
        name = str(leaf.args[0])
        kind, index = self._places.get(name, ("", 0))
        axis = f", {leaf.args[-1]}" if leaf.op in ("dim", "stride", "div") else ""
        match leaf.op, kind:
            case "param", "constant":
                return f"call.constant({index})"
            case "dtype", "scalar":
                return f"call.scalar_dtype({index})"
            case (("dtype" | "rank" | "itemsize" | "dim" | "stride" | "overlaps"), "array"):
                return f"call.{leaf.op}({index}{axis})"
            case "div", "array":
                what = str(leaf.args[1])
                return f"call.address_divisor({index})" if what == "ptr" else f"call.{what}_divisor({index}{axis})"
        raise error("E0620", f"`{leaf}` can't be read when the kernel is launched")

    def closure(self, syms: Iterable[Sym], body: Callable[[Leaf], str]) -> str:
        """Write ``|call| ..``: what is read gets a name, unless the body is nothing else."""
        leaves = list(dict.fromkeys(leaf for sym in syms for leaf in leaves_of(sym)))
        names: dict[Sym, str] = {}
        for leaf in leaves:
            names[leaf] = unique(_variable(leaf), {*names.values(), "call"})
        text = body(names.__getitem__)
        if not leaves:
            return f"|_| {text}"
        if len(leaves) == 1 and text.count(names[leaves[0]]) == 1:
            return f"|call| {body(self.read)}"
        lets = " ".join(f"let {name} = {self.read(leaf)};" for leaf, name in names.items())
        return f"|call| {{ {lets} {text} }}"


def _variable(leaf: Sym) -> str:
    name = snake(str(leaf.args[0])).strip("_") or "value"
    if leaf.op == "div":
        return snake(f"{name}_{leaf.args[1]}{leaf.args[2]}_divisor")
    suffix = {"param": "", "dim": "_d", "stride": "_s"}.get(leaf.op, f"_{leaf.op}")
    return snake(name + suffix + "".join(str(a) for a in leaf.args[1:]))
