"""Diagnostics as plain rows, and which results may be kept at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple
from typing import Any

from transpiler.diagnostics import Diagnostic, Span


def cacheable(verdict: str, diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether a result would be the same again."""
    from transpiler.codes import TRANSIENT

    rows = list(diagnostics)
    return not any(row.code in TRANSIENT for row in rows) and (verdict != "error" or bool(rows))


def to_row(one: Diagnostic) -> list[Any]:
    """Return a diagnostic as plain data."""
    return [one.code, one.message, one.help, one.severity, list(astuple(one.span))]


def from_row(row: Any) -> Diagnostic:
    """Return the diagnostic of a row."""
    code, message, help_text, severity, span = row
    return Diagnostic(code, message, help_text, severity, Span(*span))
