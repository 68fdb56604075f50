"""Diagnostics for people: the message, the source line with carets under it, and the way out.

error[E0301]: `cuda.tile.frobnicate` has no rule
  --> softmax.py:12:9
   |
12 |     x = ct.frobnicate(a)
   |         ^^^^^^^^^^^^^^^^
   = help: transpile explain E0301
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from rich.cells import cell_len
from rich.text import Text

from transpiler.diagnostics import Diagnostic, Span

Sources = Callable[[str], list[str] | None]
"""Finds the lines of a file by the path that diagnostics show; None when there is no such file."""
_STYLE = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_MAX_WIDTH = 160


class SourceCache:
    """The lines of files by the path that diagnostics show; paths that aren't known are tried as they are.

    ``below``: only those that lead to a place below this folder; the paths are those of a file that anybody may have
    written.
    """

    def __init__(self, paths: dict[str, Path] | None = None, *, below: bool = False) -> None:
        self._paths = dict(paths or {})
        self._below = below
        self._roots: list[Path] = []
        self._lines: dict[str, list[str] | None] = {}

    def add_tree(self, display: str, path: Path) -> None:
        """Say where the file shown as ``display`` lies, and so the files beside it."""
        self.add(display, path)
        if path.as_posix().endswith(f"/{display}"):
            self._roots.append(Path(path.as_posix()[: -len(display)]))

    def add(self, display: str, path: Path) -> None:
        """Say where the file shown as ``display`` lies."""
        self._paths[display] = path
        self._lines.pop(display, None)

    def __call__(self, display: str) -> list[str] | None:
        """Return the file's lines, or None."""
        if display not in self._lines:
            places = [self._paths.get(display, Path(display)), *(root / display for root in self._roots)]
            if self._below and (Path(display).is_absolute() or ".." in Path(display).parts):
                places = []
            self._lines[display] = next((lines for p in places if (lines := _read(p)) is not None), None)
        return self._lines[display]


def _read(path: Path) -> list[str] | None:
    try:
        return path.read_text(encoding="utf-8-sig").split("\n") if path.is_file() else None
    except (OSError, UnicodeDecodeError, ValueError):
        return None


def render(diagnostic: Diagnostic, sources: Sources = SourceCache()) -> Text:  # noqa: B008
    """Return one diagnostic as styled text, without a line end."""
    style = _STYLE[diagnostic.severity]
    first, *rest = diagnostic.message.splitlines() or [""]
    text = Text()
    text.append(f"{diagnostic.severity}[{diagnostic.code}]", style)
    text.append(f": {first}", "bold")
    gutter = 0
    if diagnostic.span.file:
        gutter = _place(text, diagnostic.span, sources, style)
    for line in rest:
        text.append(f"\n{' ' * gutter} = {line}" if line.strip() else "")
    for number, line in enumerate(diagnostic.help.splitlines()):
        text.append(f"\n{' ' * gutter} = ", "bold blue").append("help: " if not number else "      ", "bold")
        text.append(line)
    return text


def render_all(diagnostics: Iterable[Diagnostic], sources: Sources) -> list[Text]:
    """Render diagnostics, each only once."""
    return [render(diagnostic, sources) for diagnostic in dict.fromkeys(diagnostics)]


def _place(text: Text, span: Span, sources: Sources, style: str) -> int:
    """Append the place and, where the file is at hand, its line with carets; returns the width of line numbers."""
    width = len(str(span.line))
    where = f"{span.file}:{span.line}:{span.column}" if span.line else span.file
    text.append(f"\n{' ' * width}--> ", "bold blue").append(where)
    lines = sources(span.file) if span.line else None
    if lines is None or span.line > len(lines):
        return width
    line = lines[span.line - 1].replace("\t", " ")
    start = max(span.column - 1, 0)
    end = span.end_column - 1 if span.end_line == span.line else len(line.rstrip())
    if not span.end_line:
        end = start + 1
    text.append(f"\n{' ' * width} |\n{span.line} | ", "bold blue").append(line[:_MAX_WIDTH])
    if start < _MAX_WIDTH and line.strip():
        pad = " " * cell_len(line[:start])
        carets = "^" * max(1, cell_len(line[start : min(end, _MAX_WIDTH)]))
        text.append(f"\n{' ' * width} | ", "bold blue").append(f"{pad}{carets}", style)
    return width
