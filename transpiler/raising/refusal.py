"""The one way in which raising says no: E0610, which names the operation and the limit."""

from __future__ import annotations

from transpiler.diagnostics import NO_SPAN, Span, TranspileError, error

CODE = "E0610"


def refused(why: str, span: Span = NO_SPAN) -> TranspileError:
    """Say why something can't be raised; the lifter adds the operation's name and place."""
    return error(CODE, why, span, help="the kernel needs a rule, or a version of cutile that can say this", status=3)
