"""Source text to syntax: a cheap outline of the module, and LibCST trees of the statements that are needed.

The outline comes from ``ast`` (names, imports, line numbers); only the top-level statements that a
kernel reaches are parsed again by LibCST, which keeps comments and gives exact positions.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import libcst as cst

from transpiler.diagnostics import Span, error
from transpiler.frontend.depth import too_deep
from transpiler.frontend.positions import Place, positions_of
from transpiler.identifiers import identifier

Kind = Literal["import", "function", "constant", "other"]


@dataclass(frozen=True)
class Binding:
    """One way in which a module-level name gets its value."""

    name: str
    kind: Kind
    node: ast.stmt
    conditional: bool = False
    module: str = ""  # imports: the absolute module name
    attribute: str = ""  # `from module import attribute`; empty for `import module`
    missing: bool = False  # a relative import that leaves the package
    value: ast.expr | None = None  # constants: the expression


@dataclass(frozen=True)
class Piece:
    """A top-level statement as a LibCST module of its own, with the positions of its nodes."""

    module: cst.Module
    positions: Mapping[int, Place]
    offset: int
    file: str
    comments: Sequence[tuple[int, int, str]] = ()
    spellings: Mapping[int, str] = field(default_factory=dict)
    """How names were spelled that aren't as Python reads them, by the ``id`` of their nodes."""

    def span(self, node: cst.CSTNode) -> Span:
        """The place of a node in the file."""
        line, column, end_line, end_column = self.positions[id(node)]
        return Span(self.file, line + self.offset, column + 1, end_line + self.offset, end_column + 1)

    def comments_in(self, node: cst.CSTNode) -> list[str]:
        """Every comment between the start and the end of a node, in source order, with its ``#``."""
        line, column, end_line, end_column = self.positions[id(node)]
        first, last = (bisect_left(self.comments, (*at, "")) for at in ((line, column), (end_line, end_column)))
        return [text for _, _, text in self.comments[first:last]]


@dataclass
class SourceFile:
    """A module: its text, the outline, and the pieces parsed so far."""

    key: str
    path: Path
    display: str
    text: str
    tree: ast.Module
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    functions: list[tuple[ast.FunctionDef, ...]] = field(default_factory=list)
    _pieces: dict[int, Piece] = field(default_factory=dict)

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.key if self.path.name == "__init__.py" else self.key.rpartition(".")[0]

    @cached_property
    def lines(self) -> list[str]:
        """The text's lines, without their ends."""
        return self.text.split("\n")

    @cached_property
    def changed(self) -> frozenset[str]:
        """Module-level names that a function changes through a ``global`` statement."""
        if "global " not in self.text:
            return frozenset()
        functions = (n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
        return frozenset(name for function in functions for name in _changed_by(function))

    @cached_property
    def _extents(self) -> list[tuple[int, int]]:
        """First and last line of each top-level statement; statements that share a line are one."""
        found: list[tuple[int, int]] = []
        for node in self.tree.body:
            first, last = first_line(node), node.end_lineno or node.lineno
            if found and first <= found[-1][1]:
                found[-1] = (found[-1][0], max(last, found[-1][1]))
            else:
                found.append((first, last))
        return found

    def piece(self, line: int) -> Piece:
        """Parse the top-level statement that covers ``line``, with the comments that belong to it."""
        index = next(i for i, (first, last) in enumerate(self._extents) if first <= line <= last)
        if index not in self._pieces:
            first, last = self._with_comments(index)
            self._pieces[index] = _parse_piece(self.lines[first - 1 : last], first - 1, self.display)
        return self._pieces[index]

    def forget_pieces(self) -> None:
        """Drop the LibCST trees, which are large."""
        self._pieces.clear()

    def _with_comments(self, index: int) -> tuple[int, int]:
        first, last = self._extents[index]
        before = self._extents[index - 1][1] if index else 0
        after = self._extents[index + 1][0] if index + 1 < len(self._extents) else len(self.lines) + 1
        while first - 1 > before and self.lines[first - 2].startswith("#"):
            first -= 1
        for number in range(last + 1, after):
            text = self.lines[number - 1]
            if text.startswith("#"):
                break
            if text.strip():
                last = number
        return first, last


_FORM_FEED = re.compile(r"^\f+", re.MULTILINE)  # before a statement Python ignores it, and others don't


def first_line(node: ast.stmt) -> int:
    """The line on which a statement starts, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _changed_by(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names that a function declares ``global`` and binds."""
    declared: set[str] = set()
    bound: set[str] = set()
    for node in (inner for statement in function.body for inner in ast.walk(statement)):
        match node:
            case ast.Global(names=names):
                declared.update(names)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias():
                bound.add((node.asname or node.name).partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
    return declared & bound


def _parse_piece(lines: list[str], offset: int, file: str) -> Piece:
    text = "\n".join(lines) + "\n"
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as exc:  # the outline was fine: LibCST is stricter here
        span = Span(file, exc.raw_line + offset, exc.raw_column + 1)
        raise error("E0102", f"LibCST can't parse this statement: {exc.message}", span,
                    help="write it in a simpler form") from None  # fmt: skip
    positions, comments = positions_of(module)
    return Piece(module, positions, offset, file, comments, {} if text.isascii() else read_names(module))


def read_names(root: cst.CSTNode) -> dict[int, str]:
    """Give every name of a tree the form that it has in Python (``ast`` does so); returns the spellings that changed.

    In place, for positions go by the identity of nodes.
    """
    found: dict[int, str] = {}
    rest = [root]
    while rest:
        node = rest.pop()
        rest += node.children
        if isinstance(node, cst.Name) and not node.value.isascii():
            found[id(node)] = node.value
            object.__setattr__(node, "value", identifier(node.value))
    return found


def read_source(path: Path, display: str) -> str:
    """Read a source file as UTF-8 text with plain line ends."""
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        return _FORM_FEED.sub("", text)
    except OSError as exc:
        raise error("E0101", f"can't read {display}: {exc.strerror}", Span(display, 1, 1),
                    help="give the path of a Python file that you may read") from None  # fmt: skip
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        column = exc.start - (exc.object.rfind(b"\n", 0, exc.start) + 1) + 1
        raise error("E0102", f"{display} is not UTF-8 text ({exc.reason})", Span(display, line, column),
                    help="save the file as UTF-8") from None  # fmt: skip


def parse_source(key: str, path: Path, display: str) -> SourceFile:
    """Read a module and make its outline."""
    text = read_source(path, display)
    try:
        tree = ast.parse(text, display)
    except SyntaxError as exc:
        span = Span(display, exc.lineno or 1, exc.offset or 1, exc.end_lineno or 0, exc.end_offset or 0)
        raise error("E0102", f"not valid Python: {exc.msg}", span, help="fix the syntax error") from None
    except (RecursionError, MemoryError):
        raise too_deep([(display, text)]) from None
    except ValueError as exc:
        raise error("E0102", f"not valid Python: {exc}", Span(display, 1, 1),
                    help="give a Python source file") from None  # fmt: skip
    source = SourceFile(key, path, display, text, tree)
    _Outline(source).body(tree.body, conditional=False)
    _functions(source, tree.body, ())
    return source


class _Outline:
    """Collects the module-level bindings, those under ``if``, ``try`` and ``with`` too."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source

    def body(self, body: list[ast.stmt], *, conditional: bool) -> None:
        for node in body:
            self._visit(node, conditional)

    def _visit(self, node: ast.stmt, conditional: bool) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                kind: Kind = "function" if isinstance(node, ast.FunctionDef) else "other"
                self._add(Binding(node.name, kind, node, conditional))
            case ast.Import() | ast.ImportFrom():
                for binding in import_bindings(node, self._source.package, conditional):
                    if binding.name == "*":
                        self._source.stars.append(binding.module)
                    else:
                        self._add(binding)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                self._assignment(node, conditional)
            case _:
                self._other(node)

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, conditional: bool) -> None:
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            values = {} if isinstance(node, ast.AugAssign) else dict(_pairs(target, node.value))
            for name in stored_names(target):
                kind: Kind = "constant" if name in values else "other"
                self._add(Binding(name, kind, node, conditional, value=values.get(name)))

    def _other(self, node: ast.stmt) -> None:
        """Descend into a compound statement; its own targets (for, with, except) are bindings too."""
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.stmt():
                    self._visit(child, True)
                case ast.ExceptHandler() | ast.match_case():
                    self.body(child.body, conditional=True)
                case ast.expr():
                    for name in stored_names(child):
                        self._add(Binding(name, "other", node, True))
                case ast.withitem(optional_vars=ast.expr() as target):
                    for name in stored_names(target):
                        self._add(Binding(name, "other", node, True))
                case _:
                    pass

    def _add(self, binding: Binding) -> None:
        self._source.bindings.setdefault(binding.name, []).append(binding)


def import_bindings(node: ast.Import | ast.ImportFrom, package: str, conditional: bool = False) -> list[Binding]:
    """The names that an import statement binds (``*`` for a star import)."""
    found = []
    if isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            found.append(Binding(name, "import", node, conditional, alias.name if alias.asname else name))
        return found
    parts = package.split(".") if package else []
    missing = node.level > max(len(parts), 1)
    base = parts[: len(parts) - (node.level - 1)] if node.level else []
    module = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        name = alias.asname or alias.name
        if module:
            found.append(Binding(name, "import", node, conditional, module, alias.name, missing))
        else:  # `from . import x` in a file without a package: a file beside it
            found.append(Binding(name, "import", node, conditional, alias.name, "", missing))
    return found


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr]]:
    """Names and the expressions assigned to them, item by item where two displays face each other."""
    match target, value:
        case ast.Name(id=name), ast.expr():
            yield name, value
        case ast.Tuple(elts=names) | ast.List(elts=names), ast.Tuple(elts=items) | ast.List(elts=items):
            if len(names) == len(items) and not any(isinstance(e, ast.Starred) for e in (*names, *items)):
                for inner, item in zip(names, items, strict=True):
                    yield from _pairs(inner, item)
        case _:
            pass


def stored_names(node: ast.AST) -> list[str]:
    """The names that an expression or target assigns to."""
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _functions(source: SourceFile, body: list[ast.stmt], outer: tuple[ast.FunctionDef, ...]) -> None:
    """Index every function, nested ones too, with the functions around it."""
    for node in body:
        inner = outer
        if isinstance(node, ast.FunctionDef):
            inner = (*outer, node)
            source.functions.append(inner)
        for name in ("body", "orelse", "finalbody"):
            _functions(source, getattr(node, name, []), inner)
        for handler in getattr(node, "handlers", []):
            _functions(source, handler.body, inner)
