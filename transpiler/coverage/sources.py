"""The kernels' Python beside their Rust: lines, their highlighting, and which line comes from which.

Everything is numbers and short strings, because a page holds the sources of a whole corpus.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pygments.lexer import Lexer
from pygments.lexers import PythonLexer, RustLexer
from pygments.token import Comment, Keyword, Name, Number, String

from transpiler.ir.trace import RuleTrace
from transpiler.report.carets import Sources
from transpiler.translation import KernelPlan, OperatorPlan, Translation, read_lines

_CLASSES = (
    (Comment, "c"), (String, "s"), (Number, "n"), (Keyword, "k"), (Name.Function, "f"), (Name.Decorator, "d"),
    (Name.Builtin, "b"), (Name.Class, "b"),
)  # fmt: skip
_ITEM = re.compile(r"^    (?:pub )?(?:unsafe )?(?:const )?fn (\w+)")
_CALL = re.compile(r"\b([a-z_]\w*)(?:::<[^()]*>)?\(")
Line = list[str]
"""A line's text, and its highlighting where it has one: ``4 k2 1 n3`` are lengths, with a class in front."""


def operator_sources(translation: Translation, sources: Sources) -> dict[str, Any]:
    """Return what the page shows of one operator.

    ``rust`` are the lines of kernel.rs, ``from`` says for each the [file, line] of Python, or 0; ``files`` are display
    paths; ``python`` has for each file its lines by number.  A kernel has its ``entries`` (name and line ranges of
    kernel.rs), the ``parts`` of Python files that it uses, and its ``uses``: by place, rows of the rule tables.
    """
    return _Operator(translation, sources).shown()


@dataclass(frozen=True)
class _Item:
    """A function of kernel.rs, from its comments and attributes to its end, and what it calls."""

    first: int
    last: int
    calls: frozenset[str]


class _Operator:
    """The two texts of one operator, and what connects them."""

    def __init__(self, translation: Translation, sources: Sources) -> None:
        self.plan, self.traces = translation.plan, translation.traces
        self.rust = translation.text.removesuffix("\n").split("\n")
        self.places = _places(self.plan, len(self.rust))
        self.items = _items(self.rust)
        used = {file for file, _ in self.places} | {use.file for t in self.traces.values() for use in t.counts}
        self.files = sorted({*used, self.plan.source} - {""})
        self.python = [sources(file) or [] for file in self.files]
        self.statements = [_statements(lines) for lines in self.python]

    def shown(self) -> dict[str, Any]:
        kernels = {kernel.name: self.kernel(kernel) for kernel in self.plan.kernels}
        numbers: list[set[int]] = [set() for _ in self.files]
        for kernel in kernels.values():
            for file, first, last in kernel["parts"]:
                numbers[file] |= set(range(first, last + 1))
        return {
            "files": self.files,
            "rust": _highlighted(self.rust, RustLexer(stripnl=False, ensurenl=False)),
            "from": [[self.files.index(file), line] if file else 0 for file, line in self.places],
            "python": [_numbered(*pair) for pair in zip(self.python, numbers, strict=True)],
            "kernels": kernels,
        }

    def kernel(self, kernel: KernelPlan) -> dict[str, Any]:
        trace = self.traces.get(kernel.name, RuleTrace())
        used = {(use.file, use.line) for use in trace.counts if use.file} | {(self.plan.source, kernel.line)}
        entries = []
        for entry in kernel.entries:
            items = [self.items[name] for name in self.reached(entry.name)]
            for item in items:
                used |= {place for place in self.places[item.first - 1 : item.last] if place[0]}
            if entry.name:
                entries.append([entry.name, entry.condition, [[item.first, item.last] for item in items]])
        return {"entries": entries, "parts": self.parts(used), "uses": self.uses(trace)}

    def reached(self, entry: str) -> list[str]:
        """The functions that an entry calls, itself among them, in the order of the text."""
        found: set[str] = set()
        waiting = [entry]
        while waiting:
            name = waiting.pop()
            if name in self.items and name not in found:
                found.add(name)
                waiting.extend(self.items[name].calls)
        return sorted(found, key=lambda name: self.items[name].first)

    def parts(self, used: Iterable[tuple[str, int]]) -> list[list[int]]:
        """The top-level statements around the places, as file, first and last line."""
        found = set()
        for file, line in used:
            index = self.files.index(file)
            found |= {(index, first, last) for first, last in self.statements[index] if first <= line <= last}
        return [list(part) for part in sorted(found)]

    def uses(self, trace: RuleTrace) -> dict[str, list[list[Any]]]:
        """By place: the table (r, c or f), the row and how often it was used there."""
        rows: dict[str, dict[tuple[str, str], int]] = {}
        for use, count in trace.counts.items():
            if use.file:
                row = rows.setdefault(f"{self.files.index(use.file)}:{use.line}", {})
                key = (use.table[0], use.name)
                row[key] = row.get(key, 0) + count
        return {place: [[*key, row[key]] for key in sorted(row)] for place, row in sorted(rows.items())}


def _places(plan: OperatorPlan, count: int) -> list[tuple[str, int]]:
    """The place of each line of kernel.rs ("" and 0 where there is none)."""
    changes = read_lines(plan.lines)
    out: list[tuple[str, int]] = []
    place = ("", 0)
    for line in range(1, count + 1):
        place = changes.get(line, place)
        out.append(place)
    return out


def _items(rust: Sequence[str]) -> dict[str, _Item]:
    out: dict[str, _Item] = {}
    for number, text in enumerate(rust, 1):
        match = _ITEM.match(text)
        if match is None:
            continue
        first = number
        while first > 1 and rust[first - 2].startswith(("    //", "    #[")):
            first -= 1
        ends = (n for n in range(number, len(rust) + 1) if rust[n - 1] == "    }")
        last = number if text.endswith((";", "}")) else next(ends, number)
        out[match[1]] = _Item(first, last, frozenset(_CALL.findall("\n".join(rust[number - 1 : last]))) - {match[1]})
    return out


def _statements(lines: Sequence[str]) -> list[tuple[int, int]]:
    """First and last line of every top-level statement, decorators included."""
    try:
        body = ast.parse("\n".join(lines)).body
    except (SyntaxError, ValueError):
        return []
    decorators = [[d.lineno for d in getattr(node, "decorator_list", ())] for node in body]
    return [(min(node.lineno, *above, node.lineno), node.end_lineno or node.lineno)
            for node, above in zip(body, decorators, strict=True)]  # fmt: skip


def _numbered(lines: Sequence[str], numbers: set[int]) -> dict[int, Line]:
    """Highlighted lines by their number; the whole file is lexed, so that strings over several lines are right."""
    made = _highlighted(lines, PythonLexer(stripnl=False, ensurenl=False)) if numbers else []
    return {number: line for number, line in enumerate(made, 1) if number in numbers}


def _highlighted(lines: Sequence[str], lexer: Lexer) -> list[Line]:
    out: list[list[tuple[str, str]]] = [[]]  # runs of (class, text)
    for token, value in lexer.get_tokens("\n".join(lines)):
        kind = next((name for known, name in _CLASSES if token[: len(known)] == known), "")
        for index, piece in enumerate(value.split("\n")):
            if index:
                out.append([])
            if piece and out[-1] and (out[-1][-1][0] == kind or piece.isspace()):
                out[-1][-1] = (out[-1][-1][0], out[-1][-1][1] + piece)
            elif piece:
                out[-1].append((kind, piece))
    return [_line(runs) for runs in out[: len(lines)]]


def _line(runs: Sequence[tuple[str, str]]) -> Line:
    text = "".join(piece for _, piece in runs)
    if not any(kind for kind, _ in runs):
        return [text]
    return [text, " ".join(f"{kind}{len(piece)}" for kind, piece in runs)]
