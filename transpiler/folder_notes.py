"""What is said of an output folder besides its checks: operators that were deleted, or that the library can't have."""

from __future__ import annotations

from collections.abc import Sequence

from transpiler.diagnostics import Diagnostic, Span
from transpiler.report.carets import SourceCache
from transpiler.report.output import complain
from transpiler.store import MANIFEST, Manifest, OutputFolder
from transpiler.translation import holed, left_out_text

WAY_OUT = "`transpile fill DIR` fills Holes; `transpile FILE.py --kernel NAME` translates the kernels without one alone"


def removal_notes(folder: OutputFolder) -> list[Diagnostic]:
    """Say which operators are forgotten because their folders were deleted; for a folder that was read or written."""
    place = Span((folder.path / MANIFEST).as_posix(), 1, 1)
    return [
        Diagnostic("W0822", f"`{name}` was deleted from {folder.path.as_posix()}: it is no operator of it any more",
                   "translate its source again to have it back", "warning", place)
        for name in folder.removed
    ]  # fmt: skip


def left_out_notes(folder: OutputFolder, manifest: Manifest) -> list[Diagnostic]:
    """Say which operators the library of a folder can't have, each with its kernels that have Holes."""
    way_out = WAY_OUT.replace("DIR", folder.path.as_posix())
    found = ((stored.plan.name, holed(stored.plan.kernels)) for stored in manifest.operators)
    return [
        Diagnostic("W0840", left_out_text(name, holes), way_out, "warning", next(iter(holes.values())).span)
        for name, holes in found if holes
    ]  # fmt: skip


def print_notes(notes: Sequence[Diagnostic]) -> None:
    """Print them on the standard error."""
    complain(notes, SourceCache(below=True))
