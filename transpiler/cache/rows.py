"""Diagnostics as plain rows, and which results may be kept at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple
from typing import Any

from transpiler.diagnostics import Diagnostic, Span

_TRANSIENT = frozenset({"E0210", "E0211", "E0213", "E0650", "E0651", "E0652", "E0661", "E0662", "E0900", "E0901"})
"""What may be otherwise next time: time limits, crashes, tools that are missing or fail, our own mistakes."""


def cacheable(verdict: str, diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether a result would be the same again."""
    rows = list(diagnostics)
    return not any(row.code in _TRANSIENT for row in rows) and (verdict != "error" or bool(rows))


def to_row(one: Diagnostic) -> list[Any]:
    """Return a diagnostic as plain data."""
    return [one.code, one.message, one.help, one.severity, list(astuple(one.span))]


def from_row(row: Any) -> Diagnostic:
    """Return the diagnostic of a row."""
    code, message, help_text, severity, span = row
    return Diagnostic(code, message, help_text, severity, Span(*span))
