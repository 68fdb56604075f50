"""The reference compiler's operations that come from some lines of Python, as a task shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from transpiler.diagnostics import Span
from transpiler.tileir.model import Entry, Loc, Op, Region, walk
from transpiler.tileir.ops.schema import SCHEMAS
from transpiler.tileir.printer import print_operation

_COMBINING = ("reduce", "scan")


@dataclass(frozen=True)
class Operations:
    """Names, printed text, and the types that come out of them.

    ``own``: whether they come from the construct itself, not only from its lines.
    ``ordered``: those among them that tokens order, which a pure piece of Rust has no operands for.
    """

    names: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    own: bool = False


def operations_of(entry: Entry, span: Span) -> Operations:
    """The operations of a span: those at its start, which are the construct's own; else those inside; else its lines.

    The reference gives an operation the place where its expression starts, and counts columns from 0. What comes from
    the lines alone is shown, but nothing is said of what it gives or how it is ordered.
    """
    last = span.end_line or span.line
    placed = ((op, loc) for op in _outer(entry.body) if (loc := entry.location(op)) is not None)
    lines = [(op, loc) for op, loc in placed if _same(loc.file, span.file) and span.line <= loc.line <= last]
    start = [op for op, loc in lines if _place(loc) == (span.line, span.column)]
    own = start or [op for op, loc in lines if _within(span, *_place(loc))]
    found = own or [op for op, _ in lines]
    ordered = (op.name for op in own if SCHEMAS[op.name].kind in ("memory", "effect"))
    return Operations(
        tuple(op.name for op in found), tuple(_printed(entry, found)), tuple(_given(entry, own)),
        tuple(dict.fromkeys(ordered)), bool(own),
    )  # fmt: skip


def _outer(region: Region) -> Iterator[Op]:
    """Every operation but those in the body of a reduction or scan, which are printed with it."""
    for op in region.ops:
        yield op
        if op.name not in _COMBINING:
            for inner in op.regions:
                yield from _outer(inner)


def _printed(entry: Entry, found: Iterable[Op]) -> Iterator[str]:
    """Lines in which what the operations make is called v, and what they take from elsewhere in."""
    inside = [inner for op in found for inner in (op, *_combined(op))]
    made = {value for op in inside for value in (*op.results, *(a for r in op.regions for a in r.args))}
    names: dict[int, str] = {}
    counts = {"v": 0, "in": 0}

    def name(value: int) -> str:
        if value not in names:
            kind = "v" if value in made else "in"
            names[value] = f"%{kind}{counts[kind]}"
            counts[kind] += 1
        return names[value]

    for op in found:
        yield from print_operation(entry, op, name, whole=op.name in _COMBINING)


def _combined(op: Op) -> Iterator[Op]:
    for region in op.regions if op.name in _COMBINING else ():
        yield from walk(region)


def _given(entry: Entry, own: Iterable[Op]) -> Iterator[str]:
    """The types of what other operations use; where none does, of what these don't use themselves."""
    mine = {id(inner) for op in own for inner in (op, *_combined(op))}
    elsewhere = {v for op in walk(entry.body) if id(op) not in mine for v in op.operands}
    used = {v for op in own for v in op.operands}
    results = [v for op in own if op.name != "constant" for v in op.results]
    given = [v for v in results if v in elsewhere] or [v for v in results if v not in used]
    yield from (entry.values[v].type for v in given)


def _same(a: str, b: str) -> bool:
    return Path(a).name == Path(b).name


def _place(loc: Loc) -> tuple[int, int]:
    return loc.line, loc.column + 1


def _within(span: Span, line: int, column: int) -> bool:
    """Whether a place is inside of a span."""
    after = (line, column) >= (span.line, span.column)
    return after and (not span.end_line or (line, column) < (span.end_line, span.end_column))
