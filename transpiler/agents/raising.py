"""Filling Holes from the reference's own Tile IR, operation by operation, for one specialization."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transpiler.agents.command import FillOptions


def run(options: FillOptions) -> int:
    """Fill the Holes of a folder and write what was accepted as overrides of kind ``raised``."""
    del options
    from transpiler.cli import not_built

    raise not_built("`transpile fill --raise`", "it")
