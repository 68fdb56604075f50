"""Promotion: an accepted override as a row of the rule tables and a case, for a maintainer to review."""

from __future__ import annotations

from pathlib import Path

from transpiler.diagnostics import error


def promote(override: Path, into: Path) -> list[Path]:
    """Write the row and the case into a checkout; E0874 where something is in the way."""
    raise error("E0874", f"{override.as_posix()} can't be promoted into {into.as_posix()} yet")
