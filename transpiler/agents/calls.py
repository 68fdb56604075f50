"""Calls in an answer against the declarations: how many arguments and generics each has.

cutile's in-process compiler looks at neither closely: it ignores generics that are too many, and rustc, which builds
the accepted crate, doesn't.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from transpiler.agents.signatures import functions
from transpiler.ir import rust

_OPEN, _CLOSE = "(<[{", ")>]}"


@dataclass(frozen=True)
class _Counts:
    arguments: int
    generics: int


def misused(body: tuple[rust.Stmt, ...]) -> str:
    """What the first call that doesn't fit its declaration is; "" where all fit."""
    for call in _calls(body):
        name, _, rest = call.func.partition("::")
        known = _declared().get(name)
        if known is None:
            continue  # Some
        given = len(_split(rest[1:-1])) if rest else 0
        if all(len(call.args) != one.arguments for one in known):
            return f"`{name}` takes {_either(known)} arguments, {len(call.args)} are given"
        if given and all(given != one.generics for one in known):
            return f"`{name}` has {known[0].generics} generics, {given} are given"
    return ""


def _calls(body: tuple[rust.Stmt, ...]) -> Iterator[rust.Call]:
    for stmt in rust.walk(body):
        for e in rust.expressions_of(stmt):
            yield from (part for part in rust.subexpressions(e) if isinstance(part, rust.Call))


def _either(known: tuple[_Counts, ...]) -> str:
    return " or ".join(map(str, sorted({one.arguments for one in known})))


@cache
def _declared() -> dict[str, tuple[_Counts, ...]]:
    found: dict[str, dict[_Counts, None]] = {}
    for one in functions():
        found.setdefault(one.name, {})[_counts(one.signature)] = None
    return {name: tuple(counts) for name, counts in found.items()}


def _counts(signature: str) -> _Counts:
    """Of ``fn name<generics>(parameters) -> result``: lifetimes and `impl` stand for nothing that is written."""
    rest = signature.replace("->", "").partition("fn ")[2]
    start = next(at for at, c in enumerate(rest) if c in "<(")
    generics: list[str] = []
    if rest[start] == "<":
        end = _closing(rest, start)
        generics = [g for g in _split(rest[start + 1 : end]) if not g.startswith("'")]
        start = rest.index("(", end)
    return _Counts(len(_split(rest[start + 1 : _closing(rest, start)])), len(generics))


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at ``start`` closes."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in _OPEN) - (text[at] in _CLOSE)
        if depth == 0:
            return at
    raise ValueError(text)


def _split(text: str) -> list[str]:
    """The items of a list, by the commas that no bracket is around."""
    items, depth, current = [], 0, ""
    for c in text:
        depth += (c in _OPEN) - (c in _CLOSE)
        if c == "," and depth == 0:
            items.append(current)
            current = ""
        else:
            current += c
    return [item.strip() for item in (*items, current) if item.strip()]
