"""Diagnostics: coded messages with a source span, a reason and a way out.

Every failure a user can cause ends in exactly one :class:`Diagnostic`.  Code that
cannot go on raises :class:`TranspileError`, which carries it to the command line.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, order=True)
class Span:
    """A place in a source file: 1-based line, 1-based column, end exclusive."""

    file: str
    line: int
    column: int
    end_line: int = 0
    end_column: int = 0


NO_SPAN = Span("", 0, 0)


@dataclass(frozen=True)
class Diagnostic:
    """One message of the contract in design.md (``D``)."""

    code: str
    message: str
    help: str = ""
    severity: Severity = "error"
    span: Span = NO_SPAN

    def to_json(self) -> dict[str, object]:
        """Return the contract's JSON object: code, severity, message, help, file, line, column."""
        row = asdict(self)
        del row["span"]
        return row | {"file": self.span.file, "line": self.span.line, "column": self.span.column}


class TranspileError(Exception):
    """A failure that ends the current unit of work (a file, a kernel or a check)."""

    def __init__(self, diagnostic: Diagnostic, *, status: int = 2) -> None:
        super().__init__(f"{diagnostic.code}: {diagnostic.message}")
        self.diagnostic = diagnostic
        self.status = status


def error(code: str, message: str, span: Span = NO_SPAN, *, help: str = "", status: int = 2) -> TranspileError:
    """Build a :class:`TranspileError` for ``raise error("E0101", ...)``."""
    return TranspileError(Diagnostic(code, message, help, "error", span), status=status)
