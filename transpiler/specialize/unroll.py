"""``for x in ct.static_iter(..)``: the items of a loop that is unrolled while translating."""

from __future__ import annotations

from collections.abc import Iterator

from transpiler.ir import hir
from transpiler.specialize.evaluate import Env, Evaluator
from transpiler.specialize.values import HoleError, TupleVal, Val, const, describe

STATIC_ITER = "cuda.tile.static_iter"
MAX_ITERATIONS = 1000


def is_static(s: hir.For) -> bool:
    """Is the loop to be unrolled?"""
    return _callee(s.iterable) == STATIC_ITER


def static_items(ev: Evaluator, s: hir.For, env: Env) -> tuple[Val, ...]:
    """Evaluate what the loop goes over; raises HoleError where that isn't known while translating."""
    assert isinstance(s.iterable, hir.Call)
    if (jump := next(_jumps(s.body), None)) is not None:
        ev.span = jump.span
        ev.refuse("`break`, `continue` and `return` can't leave a loop over ct.static_iter")
    ev.span = s.iterable.span
    given = tuple(TupleVal(_items(ev, a, env)) for a in s.iterable.args)
    found = ev.call_rule(STATIC_ITER, given, {})
    assert isinstance(found, TupleVal)
    if len(found.items) > MAX_ITERATIONS:
        ev.refuse(f"static_iter() over {len(found.items)} items: at most {MAX_ITERATIONS} are unrolled")
    return found.items


def _jumps(body: tuple[hir.Stmt, ...]) -> Iterator[hir.Stmt]:
    """The jumps of a list of statements, without those of loops in it."""
    for s in body:
        match s:
            case hir.Break() | hir.Continue() | hir.Return():
                yield s
            case hir.If():
                yield from _jumps(s.then)
                yield from _jumps(s.orelse)


def _callee(e: hir.Expr) -> str:
    return e.func.name if isinstance(e, hir.Call) and isinstance(e.func, hir.External) else ""


def _items(ev: Evaluator, e: hir.Expr, env: Env) -> tuple[Val, ...]:
    """The items of a tuple, or of range, enumerate, zip and reversed over such."""
    name = _callee(e)
    if isinstance(e, hir.Call) and not e.kwargs and name.startswith("builtins."):
        match name.removeprefix("builtins."):
            case "range" if 1 <= len(e.args) <= 3:
                bounds = [int(ev.decided(ev.eval(a, env), "a bound of static_iter's range")) for a in e.args]
                return tuple(const(i) for i in range(*bounds))
            case "enumerate" if len(e.args) == 1:
                return tuple(TupleVal((const(i), v)) for i, v in enumerate(_items(ev, e.args[0], env)))
            case "zip":
                return tuple(TupleVal(row) for row in zip(*(_items(ev, a, env) for a in e.args), strict=False))
            case "reversed" if len(e.args) == 1:
                return _items(ev, e.args[0], env)[::-1]
    value = ev.eval(e, env)
    if not isinstance(value, TupleVal):
        raise HoleError(
            "E0311", f"static_iter() over {describe(value)}", e.span, "use a tuple, range, enumerate or zip"
        )
    return value.items
