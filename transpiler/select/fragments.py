"""Fragments: the Rust of an override as statements of the Rust IR.

The text comes from outside. ``transpiler._rust.parse_fragment`` refuses whatever isn't part of the kernel language;
what is left becomes Rust IR here, and is printed from that: no character of the text gets into kernel.rs as it was.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from transpiler.ir import rust
from transpiler.select.declarations import DECLARATIONS

_HOMES = ("let", "assign", "do", "tail")  # an `if` is printed as the value of one of these


class FragmentError(ValueError):
    """Why a text isn't a fragment; line and column count from 1 in the text, 0 means unknown."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line, self.column = line, column


@cache
def parse_body(text: str) -> tuple[rust.Stmt, ...]:
    """Parse a fragment, the last statement of which is its value; raises FragmentError for anything else.

    Variables of the fragment are ``rust.Var`` of their name, placeholders ``rust.Text`` (``$0``).
    """
    from transpiler import _rust

    try:
        tree = json.loads(_rust.parse_fragment(text, sorted(DECLARATIONS)))
    except _rust.CompileError as refusal:
        raise FragmentError(refusal.message, refusal.line, refusal.column) from None
    return _Reader().block(tree)


class _Reader:
    """From the parser's JSON to statements."""

    def __init__(self) -> None:
        self.locals: set[str] = set()

    def block(self, rows: list[Any]) -> tuple[rust.Stmt, ...]:
        return tuple(map(self.stmt, rows))

    def stmt(self, row: dict[str, Any]) -> rust.Stmt:
        if "for" in row:
            bounds = rust.Binary("..", self.expr(row["from"]), self.expr(row["to"]))
            self.locals.add(row["for"])
            return rust.For(row["for"], bounds, self.block(row["body"]))
        kind = next(k for k in _HOMES if k in row)
        value = self.value(row["value"] if kind in ("let", "assign") else row[kind])
        if kind == "let":
            self.locals.update(name for name in row["let"] if name is not None)
            return rust.Let(tuple(row["let"]), tuple(row["types"]), value, tuple(row["mut"]))
        if kind == "assign":
            return rust.Assign(row["assign"], value)
        return rust.Do(value) if kind == "do" else rust.Tail(value)

    def value(self, row: dict[str, Any]) -> rust.Expr:
        """An expression that may be a branch."""
        if "if" not in row:
            return self.expr(row)
        return rust.If(self.expr(row["if"]), self.block(row["then"]), self.block(row["else"]))

    def expr(self, row: dict[str, Any]) -> rust.Expr:
        match row:
            case {"text": str(text)}:
                return rust.Var(text) if text in self.locals else rust.Text(text)
            case {"call": str(func), "args": list(args)}:
                return rust.Call(func, tuple(map(self.expr, args)))
            case {"op": str(op), "left": left, "right": right}:
                return rust.Binary(op, self.expr(left), self.expr(right))
            case {"ref": inner}:
                return rust.Ref(self.expr(inner))
            case {"unsafe": inner}:
                return rust.Unsafe(self.expr(inner))
            case {"field": base, "index": index}:
                return rust.Index(self.expr(base), str(index), dot=True)
            case {"seq": list(items), "open": str(opened)}:
                return rust.Seq(tuple(map(self.expr, items)), opened, ")" if opened == "(" else "]")
            case {"neg": _}:
                raise FragmentError("refused: `-` before something else than a number; write negf(..) or negi(..)")
            case _:
                raise FragmentError("refused: an `if` inside another expression; give it a variable")
