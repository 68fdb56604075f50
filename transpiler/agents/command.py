"""``transpile fill`` and ``transpile promote``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FillOptions:
    """``transpile fill``; ``raised``: from the reference's Tile IR."""

    folder: Path
    raised: bool = False
    kernel: str | None = None
    source: Path | None = None
    json: Path | None = None
    jobs: int = 0


def run_fill(options: FillOptions) -> int:
    """Fill the Holes of a folder; returns the exit status of the contract."""
    if options.raised:
        from transpiler.agents import raising

        return raising.run(options)
    from transpiler.cli import not_built

    raise not_built("`transpile fill`", "it")


def run_promote(override: Path, into: Path) -> int:
    """Make a rule row and a case of an override."""
    del override, into
    from transpiler.cli import not_built

    raise not_built("`transpile promote`", "it")
