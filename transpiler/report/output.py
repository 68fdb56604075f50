"""How results leave a command: diagnostics with their source lines, the table, the totals, JSON."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from transpiler.diagnostics import Diagnostic, error
from transpiler.report.carets import SourceCache, render_all
from transpiler.report.model import UNUSABLE, Report, diagnostic, unusable
from transpiler.report.terminal import console, print_kernels, totals_line

_SHOWN = 20
ALWAYS_SAID = frozenset({"W0275", "W0276", "W0277"})
"""Warnings that are printed beside errors too: something else was checked than the manifest asks for."""


def complain(diagnostics: Iterable[Diagnostic], sources: SourceCache) -> None:
    """Print every diagnostic once for its place, with its source line; warnings where there is nothing worse."""
    seen: dict[tuple[str, ...], Diagnostic] = {}
    found = list(diagnostics)
    hidden = any(one.severity == "error" for one in found)
    for one in found:
        if one.severity == "warning" and hidden:
            continue
        first = one.message.partition("\n")[0]
        seen.setdefault((one.code, first, one.span.file, str(one.span.line), str(one.span.column)), one)
    rows = list(seen.values())
    err = console(sys.stderr)
    for text in render_all(rows[:_SHOWN], sources):
        err.print(text, soft_wrap=True)
    if len(rows) > _SHOWN:
        err.print(f"and {len(rows) - _SHOWN} more diagnostics; --json or --format json has them all")


def finish(report: Report, diagnostics: Iterable[Diagnostic], json: Path | None, sources: SourceCache) -> None:
    """Write the JSON, and print diagnostics, table and totals."""
    to_stdout = json is not None and str(json) == "-"
    if json is not None and not to_stdout:
        write_whole(json, report.to_json())
    found = list(diagnostics)
    complain((one for one in found if one.code in ALWAYS_SAID), sources)
    complain((one for one in found if one.code != UNUSABLE and one.code not in ALWAYS_SAID), sources)
    complain_of_unusable(report, sources)
    out = console(sys.stderr if to_stdout else sys.stdout)
    print_kernels(out, report)
    out.print(totals_line(report), soft_wrap=True)
    if to_stdout:
        sys.stdout.write(report.to_json())


def complain_of_unusable(report: Report, sources: SourceCache) -> None:
    """Print the warnings about kernels of which nothing can be used, whatever else was printed."""
    complain((diagnostic(row) for row in unusable(report)), sources)


def source_cache(paths: Mapping[str, Path], report: Report) -> SourceCache:
    """Find sources, given by operator, by the paths that the report shows."""
    cache = SourceCache()
    for operator in report.operators:
        if operator.name in paths:
            cache.add_tree(operator.source, paths[operator.name])
    return cache


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all (E0823); a device or pipe is written to, and links are followed."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        _write_into(path, text)
        return
    shown, path = path, Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as exc:
        raise error("E0823", f"can't write {shown.as_posix()}: {exc.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _write_into(path: Path, text: str) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            file.write(text)
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise error("E0823", f"can't write {path.as_posix()}: {exc.strerror}") from None
