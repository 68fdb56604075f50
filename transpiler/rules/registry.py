"""The rule table: one declarative row for everything a kernel can call.

A row names its callee (``cuda.tile.load``, ``operator.add``, ``Tile.astype``, ``Array.shape``),
its signature, what it accepts, how it lowers to TIR and a line of documentation.  A construct
without a mapping is a row too, with the reason.  Overlapping rows are refused at start-up.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from transpiler.ir.tir import Value
from transpiler.ir.types import TileTy
from transpiler.specialize.values import ArrayVal, Const, ListVal, TiledViewVal, TupleVal, Val

if TYPE_CHECKING:
    from transpiler.specialize.evaluate import Evaluator

Kind = Literal["tile", "const", "number", "array", "list", "view", "tuple", "any"]
Lower = Callable[..., Any]


@dataclass(frozen=True)
class Rule:
    """One row.

    ``signature`` is Python's parameter list; defaults are Python literals and arrive as constants.
    ``accepts`` restricts the kinds of the leading operands (an empty tuple accepts anything).
    ``attribute`` rows are properties, read without a call.
    """

    callee: str
    signature: str
    doc: str
    lower: Lower | None = None
    accepts: tuple[Kind, ...] = ()
    status: Literal["exact", "unsupported"] = "exact"
    reason: str = ""
    attribute: bool = False
    family: str = ""

    @property
    def key(self) -> str:
        """A unique, stable name for reports: the callee, with its operand kinds where it has several rows."""
        return self.callee + (f"({', '.join(self.accepts)})" if self.accepts else "")


def unsupported(callee: str, reason: str, signature: str = "*args, **kwargs", **extra: Any) -> Rule:
    """A row for a construct without a mapping."""
    return Rule(callee, signature, reason, status="unsupported", reason=reason, **extra)


def kind_of(v: Val) -> Kind:
    """The kind of an operand, for matching rows."""
    match v:
        case Value():
            return "tile" if isinstance(v.ty, TileTy) else "any"
        case Const():
            return "number" if isinstance(v.value, (bool, int, float)) else "const"
        case ArrayVal():
            return "array"
        case ListVal():
            return "list"
        case TiledViewVal():
            return "view"
        case TupleVal():
            return "tuple"
        case _:
            return "any"


def _matches(want: Kind, got: Kind) -> bool:
    return want == "any" or want == got or (want == "tile" and got == "number") or (want == "const" and got == "number")


class Table:
    """All rows, by callee."""

    def __init__(self, rows: Iterable[Rule]) -> None:
        self.rows: dict[str, list[Rule]] = {}
        self.signatures: dict[Rule, inspect.Signature] = {}
        for row in rows:
            self._add(row)

    def _add(self, row: Rule) -> None:
        for other in self.rows.setdefault(row.callee, []):
            if _overlap(row, other):
                raise ValueError(f"two rules match {row.callee}: {other.key} and {row.key}")
        self.rows[row.callee].append(row)
        self.signatures[row] = _signature(row.signature)

    def __iter__(self) -> Any:
        return (row for rows in self.rows.values() for row in rows)

    def find(self, callee: str, args: tuple[Val, ...]) -> Rule | None:
        """The row for a call, or None."""
        kinds = tuple(kind_of(a) for a in args)
        for row in self.rows.get(callee, ()):
            if len(kinds) >= len(row.accepts) and all(map(_matches, row.accepts, kinds)):
                return row
        return None

    def bind(self, row: Rule, args: tuple[Val, ...], kwargs: dict[str, Val]) -> inspect.BoundArguments:
        """Bind arguments; raises TypeError as a Python call does. Defaults become constants."""
        bound = self.signatures[row].bind(*args, **kwargs)
        bound.apply_defaults()
        return bound


def _overlap(a: Rule, b: Rule) -> bool:
    """Could one list of operands match both rows?"""

    def exclusive(x: Kind, y: Kind) -> bool:
        groups: dict[Kind, frozenset[str]] = {
            "tile": frozenset({"tile", "number"}), "const": frozenset({"const", "number"}),
            "number": frozenset({"number"}), "array": frozenset({"array"}), "list": frozenset({"list"}),
            "view": frozenset({"view"}), "tuple": frozenset({"tuple"}),
        }  # fmt: skip
        return "any" not in (x, y) and not groups[x] & groups[y]

    return not any(map(exclusive, a.accepts, b.accepts))


def _signature(text: str) -> inspect.Signature:
    from transpiler.specialize.values import const

    scope: dict[str, Any] = {}
    exec(f"def f({text}): ...", scope)  # our own table's text, at import
    sig = inspect.signature(scope["f"])
    return sig.replace(
        parameters=[p if p.default is p.empty else p.replace(default=const(p.default)) for p in sig.parameters.values()]
    )


def call(ev: Evaluator, row: Rule, bound: inspect.BoundArguments) -> Val:
    """Run a row's lowering."""
    assert row.lower is not None
    result: Val = row.lower(ev, *bound.args, **bound.kwargs)
    return result
