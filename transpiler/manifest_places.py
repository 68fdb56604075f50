"""Where things stand in manifests: the line and column of a key, for diagnostics about what it says."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transpiler.diagnostics import Span

_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.\"'-]+)\s*\]")
_KEY = re.compile(r"\s*([\w.\"'-]+)\s*=")
_MAX_DEPTH = 8


@dataclass(frozen=True)
class StatedSpecialization:
    """A specialization as a manifest file states it: the text it stands in and the way to it."""

    shown: str
    text: str
    loc: tuple[int | str, ...]

    def span(self, *inner: str) -> Span:
        """The place of a key in the specialization, or of the specialization where it doesn't have the key."""
        return place(self.text, (*self.loc, *inner), self.shown)


def stated_specializations(path: Path, shown: str, operator: str, kernel: str, name: str) -> list[StatedSpecialization]:
    """Find every specialization of a name that a manifest and its includes state for a kernel, in their order."""
    return [
        StatedSpecialization(one.shown, one.text, (*one.loc, "kernels", j, "specializations", k))
        for one in _operators(path, shown, operator, 0)
        for j, row in _named(one.row.get("kernels"), kernel)
        for k, _ in _named(row.get("specializations"), name)
    ]


def kernel_place(path: Path, shown: str, operator: str, kernel: str) -> Span:
    """Find where a manifest, or one that it includes, names a kernel of an operator."""
    for one in _operators(path, shown, operator, 0):
        for j, _ in _named(one.row.get("kernels"), kernel):
            return place(one.text, (*one.loc, "kernels", j, "name"), one.shown)
    return Span(shown, 1, 1)


def operator_places(path: Path, shown: str, operator: str) -> list[Span]:
    """Find every place where a manifest and its includes name an operator."""
    return [place(one.text, (*one.loc, "name"), one.shown) for one in _operators(path, shown, operator, 0)]


@dataclass(frozen=True)
class _StatedOperator:
    shown: str
    text: str
    loc: tuple[int | str, ...]
    row: dict[str, Any]


def _operators(path: Path, shown: str, operator: str, depth: int) -> Iterator[_StatedOperator]:
    text = path.read_text(encoding="utf-8")
    data = tomllib.loads(text)
    for inner in data.get("include", []) if depth < _MAX_DEPTH else []:
        yield from _operators(path.parent / inner, os.path.normpath(Path(shown).parent / inner), operator, depth + 1)
    for i, row in _named(data.get("operators"), operator):
        yield _StatedOperator(shown, text, ("operators", i), row)


def _named(rows: Any, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    return ((i, row) for i, row in enumerate(rows or ()) if row.get("name") == name)


def place(text: str, loc: tuple[int | str, ...], shown: str) -> Span:
    """Return the place in a TOML text that a path of keys and indices leads to: the key, or else its table."""
    wanted = [str(part) for part in loc]
    counts: dict[str, int] = {}
    best, best_line, inside = -1, 1, False
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header is not None:
            here = _table_path(header[2], header[1] == "[[", counts)
            depth = len(here) if wanted[: len(here)] == here else -1
            inside = depth >= 0
            if depth > best:
                best, best_line = depth, number
        elif (inside or best < 0) and (key := _KEY.match(line)):
            column = _column(line, key, wanted[max(best, 0) :])
            if column:
                return Span(shown, number, column)
    found = text.splitlines()[best_line - 1 : best_line]
    return Span(shown, best_line, len(found[0]) - len(found[0].lstrip()) + 1 if found else 1)


def _column(line: str, key: re.Match[str], rest: list[str]) -> int:
    """The column of the innermost of several nested keys on the line of the first; 0 where it is another key's."""
    parts = key[1].replace('"', "").replace("'", "").split(".")
    shared = min(len(rest), len(parts))
    if not shared or rest[:shared] != parts[:shared]:
        return 0
    at = key.start(1)
    for name in rest[shared:]:  # in the inline table that follows
        inner = re.compile(rf"[{{,]\s*[\"']?({re.escape(name)})[\"']?\s*=").search(line, at)
        if inner is None:
            break
        at = inner.start(1)
    return at + 1


def _table_path(header: str, repeated: bool, counts: dict[str, int]) -> list[str]:
    """Return a table's path with the indices that it has among its repeated parents."""
    path: list[str] = []
    names = header.split(".")
    for depth in range(1, len(names) + 1):
        key = ".".join(names[:depth])
        path.append(names[depth - 1])
        if depth == len(names) and repeated:
            counts[key] = counts.get(key, -1) + 1
            for inner in [name for name in counts if name.startswith(f"{key}.")]:
                del counts[inner]
        if key in counts:
            path.append(str(counts[key]))
    return path
