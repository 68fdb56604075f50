"""Fragments: the Rust of an override as statements of the Rust IR."""

from __future__ import annotations

from transpiler.ir import rust
from transpiler.select.forms import parse


def parse_body(text: str) -> tuple[rust.Stmt, ...]:
    """Parse a fragment, the last statement of which is its value; raises ValueError for anything else."""
    return (rust.Tail(parse(text.strip())),)
