"""Mistakes of transpile itself, as a diagnostic: never a traceback for a user who can't do anything with it."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

from transpiler.diagnostics import NO_SPAN, Diagnostic, Span

DEBUG = "TRANSPILE_DEBUG"
_SPLIT = "split expressions into statements, and chains of `elif` into functions"
_PACKAGE = Path(__file__).resolve().parent


def internal_error(exc: BaseException, place: Span = NO_SPAN) -> Diagnostic:
    """Describe an unexpected exception (E0900): what, and where in transpile; TRANSPILE_DEBUG=1 prints all of it.

    E0902 where Python's own limit of nesting was reached. An interrupt that somebody made another exception of (making
    a class does) is raised again.
    """
    _raise_interrupt(exc)
    if os.environ.get(DEBUG):
        traceback.print_exception(exc)
    if isinstance(exc, RecursionError):
        return Diagnostic("E0902", "the kernel is nested too deeply", _SPLIT, "error", place)
    said = str(exc).strip().partition("\n")[0][:300]
    message = f"internal error: {type(exc).__name__}{f': {said}' if said else ''}{_where(exc)}"
    return Diagnostic("E0900", message, f"please report it with the output of a run with {DEBUG}=1", "error", place)


def _raise_interrupt(exc: BaseException | None) -> None:
    while exc is not None:
        if isinstance(exc, KeyboardInterrupt | SystemExit):
            raise exc
        exc = exc.__cause__ or exc.__context__


def _where(exc: BaseException) -> str:
    """Return the innermost place in this package."""
    for frame in reversed(traceback.extract_tb(exc.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(_PACKAGE):
            return f" (at {path.relative_to(_PACKAGE).as_posix()}:{frame.lineno})"
    return ""
