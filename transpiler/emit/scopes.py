"""Names for variables: the author's where no two variables that are needed at once share one.

Rust lets a later ``let`` shadow an earlier one, so a name is free again once its variable isn't
needed any more; a variable needed anywhere in a loop is needed until the loop ends, if it was made
before it.  One more limit is cutile's: in a block that mentions a variable from outside of it, no
``let`` may give that name another type (0.5 then takes that type for the earlier mentions too).
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
    type: str = ""
    depth: int = 0  # how many blocks it is declared in


class _Intervals:
    """Walks statements in order of execution, numbering them."""

    def __init__(self) -> None:
        self.position = 0
        self.of: dict[Key, _Interval] = {}
        self.order: list[Key] = []
        self.starts: list[int] = []  # where the blocks around begin
        self.apart: dict[Key, list[Key]] = {}  # variables whose names a variable in an inner block must not have

    def define(self, key: Key, type_text: str = "") -> None:
        if key in self.of:
            self.of[key].last = self.position
            return
        mine = self.of[key] = _Interval(self.position, self.position, type_text, len(self.starts))
        self.order.append(key)
        if mine.depth:
            self.apart[key] = [k for k, other in self.of.items() if self._mentioned_before(other, mine)]

    def _mentioned_before(self, outer: _Interval, inner: _Interval) -> bool:
        """Is a variable of another type mentioned in the block that it is outside of and ``inner`` is declared in?"""
        return outer.depth < inner.depth and outer.type != inner.type and outer.last >= self.starts[outer.depth]

    def mention(self, e: rust.Expr) -> None:
        for x in rust.subexpressions(e):
            if isinstance(x, rust.Var) and x.key in self.of:
                self.of[x.key].last = self.position

    def block(self, body: tuple[rust.Stmt, ...]) -> None:
        for stmt in body:
            self.stmt(stmt)

    def inner(self, body: tuple[rust.Stmt, ...], induction: Key | None = None) -> None:
        self.starts.append(self.position + 1)
        if induction is not None:
            self.define(induction, "i32")
        self.block(body)
        self.starts.pop()

    def stmt(self, stmt: rust.Stmt) -> None:
        self.position += 1
        start = self.position
        for e in rust.expressions_of(stmt):
            self.mention(e)
        for block in rust.blocks_of(stmt):
            self.inner(block, stmt.var if isinstance(stmt, rust.For) else None)
        if isinstance(stmt, rust.For | rust.Loop):
            self.position += 1
            for interval in self.of.values():
                if interval.first < start and interval.last >= start:
                    interval.last = self.position
        elif isinstance(stmt, rust.Let | rust.Assign):
            self.position += bool(rust.blocks_of(stmt))
            types = stmt.types if isinstance(stmt, rust.Let) else ("",)
            for key, text in zip(stmt.vars if isinstance(stmt, rust.Let) else (stmt.var,), types, strict=True):
                if key is not None:
                    self.define(key, text)


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
        taken |= {names[k] for k in walk.apart.get(key, ()) if k in names}
        taken |= set(reserved)
        name = unique(base, taken)
        if mine.last == 0 and key in params:
            name = unique(f"_{name}", taken)
        names[key] = name
        holders.setdefault(name, []).append(key)
    return names
