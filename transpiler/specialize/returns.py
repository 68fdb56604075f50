"""``return`` inside a loop of a helper function: the loop breaks, and what is around it is told.

``for ..: return v`` becomes ``$retval = v; $returning = True; break``, with ``if $returning: return $retval`` after the
loop (``break`` where that is inside another loop).  The reference compiler does the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from transpiler.diagnostics import Span
from transpiler.ir import hir
from transpiler.specialize.blocks import RETURNING, RETVAL


def lower_returns(f: hir.Function) -> hir.Function:
    """Rewrite a helper function so that no loop in it returns."""
    if not any(_returns(s) for s in hir.walk(f.body) if isinstance(s, (hir.For, hir.While))):
        return f
    start = _assign(RETURNING, hir.Const(False, span=f.span), f.span)
    return replace(f, body=(start, *_list(f.body, in_loop=False)))


def may_return_early(f: hir.Function) -> bool:
    """Does a branch or a loop of the function return?  The reference compiler makes a loop of such a function."""
    own = {id(s) for s in f.body}
    return any(isinstance(s, hir.Return) and id(s) not in own for s in hir.walk(f.body))


def _returns(loop: hir.Stmt) -> bool:
    assert isinstance(loop, (hir.For, hir.While))
    return any(isinstance(s, hir.Return) for s in hir.walk(loop.body))


def _only_returns(loop: hir.For | hir.While) -> bool:
    """Is it ``while True`` without a ``break``?"""
    endless = isinstance(loop, hir.While) and isinstance(loop.cond, hir.Const) and bool(loop.cond.value)
    return endless and not any(isinstance(s, hir.Break) for s in _own(loop.body))


def _own(body: tuple[hir.Stmt, ...]) -> Iterator[hir.Stmt]:
    """The statements of a loop's body, but for those of loops in it."""
    for s in body:
        yield s
        if isinstance(s, hir.If):
            yield from _own(s.then + s.orelse)


def _list(body: tuple[hir.Stmt, ...], *, in_loop: bool) -> tuple[hir.Stmt, ...]:
    return tuple(new for s in body for new in _statement(s, in_loop))


def _statement(s: hir.Stmt, in_loop: bool) -> tuple[hir.Stmt, ...]:
    match s:
        case hir.Return() if in_loop:
            return _break(s)
        case hir.If():
            return (replace(s, then=_list(s.then, in_loop=in_loop), orelse=_list(s.orelse, in_loop=in_loop)),)
        case hir.For() | hir.While() if _returns(s):
            found = hir.Return(hir.Local(RETVAL, span=s.span), span=s.span)
            leave = hir.Break(span=s.span) if in_loop else found
            told = leave if _only_returns(s) else hir.If(hir.Local(RETURNING, span=s.span), (leave,), span=s.span)
            return (replace(s, body=_list(s.body, in_loop=True)), told)
        case _:
            return (s,)


def _break(s: hir.Return) -> tuple[hir.Stmt, ...]:
    value = s.value if s.value is not None else hir.Const(None, span=s.span)
    return (
        replace(_assign(RETVAL, value, s.span), comments=s.comments, trailing=s.trailing),
        _assign(RETURNING, hir.Const(True, span=s.span), s.span),
        hir.Break(span=s.span),
    )


def _assign(name: str, value: hir.Expr, span: Span) -> hir.Assign:
    return hir.Assign(hir.Target(name, span=span), value, span=span)
