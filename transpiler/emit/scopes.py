"""Names for variables: the author's where no two variables that are needed at once share one.

Rust lets a later ``let`` shadow an earlier one, so a name is free again once its variable isn't
needed any more; a variable needed anywhere in a loop is needed until the loop ends, if it was made
before it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

from transpiler.emit.naming import snake, unique
from transpiler.ir import rust

Key = Hashable


@dataclass
class _Interval:
    """Positions of the first definition and the last mention."""

    first: int
    last: int


class _Intervals:
    """Walks statements in order of execution, numbering them."""

    def __init__(self) -> None:
        self.position = 0
        self.of: dict[Key, _Interval] = {}
        self.order: list[Key] = []

    def define(self, key: Key) -> None:
        if key in self.of:
            self.of[key].last = self.position
            return
        self.of[key] = _Interval(self.position, self.position)
        self.order.append(key)

    def mention(self, e: rust.Expr) -> None:
        for x in rust.subexpressions(e):
            if isinstance(x, rust.Var) and x.key in self.of:
                self.of[x.key].last = self.position

    def block(self, body: tuple[rust.Stmt, ...]) -> None:
        for stmt in body:
            self.stmt(stmt)

    def stmt(self, stmt: rust.Stmt) -> None:
        self.position += 1
        start = self.position
        for e in rust.expressions_of(stmt):
            self.mention(e)
        if isinstance(stmt, rust.For) and stmt.var is not None:
            self.define(stmt.var)
        for block in rust.blocks_of(stmt):
            self.block(block)
        if isinstance(stmt, rust.For | rust.Loop):
            self.position += 1
            for interval in self.of.values():
                if interval.first < start and interval.last >= start:
                    interval.last = self.position
        elif isinstance(stmt, rust.Let | rust.Assign):
            self.position += bool(rust.blocks_of(stmt))
            for key in stmt.vars if isinstance(stmt, rust.Let) else (stmt.var,):
                if key is not None:
                    self.define(key)


def name_variables(
    body: tuple[rust.Stmt, ...], hints: Mapping[Key, str], params: Collection[Key], reserved: Collection[str]
) -> dict[Key, str]:
    """A name for every variable of a function; ``params`` are its parameters, ``reserved`` names that it calls."""
    walk = _Intervals()
    for key in params:
        walk.define(key)
    walk.block(body)
    names: dict[Key, str] = {}
    holders: dict[str, list[Key]] = {}
    for key in walk.order:
        mine = walk.of[key]
        base = snake(hints[key])
        if re.sub(r"_\d+$", "", base) in reserved:  # a function's variants are its name and a number
            base = f"{base}_value"
        taken = {
            name
            for name, keys in holders.items()
            if any(walk.of[k].first < mine.last and mine.first < walk.of[k].last for k in keys)
            or (key in params and any(k in params for k in keys))
        }
        taken |= set(reserved)
        name = unique(base, taken)
        if mine.last == 0 and key in params:
            name = unique(f"_{name}", taken)
        names[key] = name
        holders.setdefault(name, []).append(key)
    return names
