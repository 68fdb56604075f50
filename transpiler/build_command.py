"""``transpile build``: the library of a folder, and what people see while cargo is at it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from transpiler import toolkit
from transpiler.diagnostics import error
from transpiler.folder_notes import WAY_OUT, left_out_notes, print_notes, removal_notes
from transpiler.report.terminal import console
from transpiler.runtime.build import build, say
from transpiler.runtime.errors import BuildError, MissingToolError
from transpiler.store import OutputFolder

_KEPT = "the library that was there before is still there, if there was one"


def run_build(path: Path) -> int:
    """Build a folder's library if a source changed."""
    left_out = _prepare_library(OutputFolder(path))
    try:
        done = build(path, watch=_shown)
    except MissingToolError as missing:
        raise error(missing.diagnostic, missing.message, help=missing.help) from None
    except BuildError as failed:
        raise error("E0840", str(failed), help=_KEPT, status=1) from None
    where = done.path.as_posix()
    print(f"built {where} in {done.seconds:.1f} s" if done.built else f"{where} is up to date")
    return 3 if left_out else 0


def _prepare_library(folder: OutputFolder) -> bool:
    """Take deleted operators out of the crate, and say what the library doesn't have; returns whether that is so."""
    manifest = folder.load()
    if folder.removed:
        from transpiler.emit.extras import render_crate_files

        folder.write([], toolkit.versions(), render_crate_files)
    left_out = left_out_notes(folder, manifest)
    print_notes([*removal_notes(folder), *left_out])
    if left_out and len(left_out) == len(manifest.operators):
        raise error("E0845", f"there is nothing to build in {folder.path.as_posix()}: every operator has a Hole",
                    help=WAY_OUT, status=3)  # fmt: skip
    return bool(left_out)


@contextlib.contextmanager
def _shown(library: Path) -> Iterator[Callable[[str], None]]:
    """Say that it is built; on a terminal also what cargo is at, how many crates that makes, and the time so far."""
    with say(library) as quiet:
        if sys.stderr is None or not sys.stderr.isatty():
            yield quiet
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
            task, crates = progress.add_task("cargo starts", total=None), 0

            def tell(crate: str) -> None:
                nonlocal crates
                crates += bool(crate)
                what = f"compiling {crate} (crate {crates})" if crate else "downloading crates"
                progress.update(task, description=what)

            yield tell
