"""Partial evaluation of statements: branches and early exits, and the SSA form they end in.

A branch on a constant is decided; a branch at run time becomes an ``if`` whose results are the
names that it assigns.  In a loop a branch that leaves ends in a jump, and what follows it goes on
after the ``if``.  In a function what follows moves into the branch that goes on (``if c: return``
becomes ``if c {..} else {rest}``), as cutile has no ``return`` in a branch; a function in which that
would write something twice becomes a loop that runs once, and is left with ``break``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transpiler.ir import hir
from transpiler.ir import symbolic as sy
from transpiler.ir.tir import Block, Comment, Op, Value
from transpiler.rules.constructs import STATEMENTS
from transpiler.specialize.blocks import RETVAL, Into, Nested, assigned
from transpiler.specialize.branches import emit_if, emit_one_sided_if
from transpiler.specialize.evaluate import Env, Evaluator
from transpiler.specialize.loops import LoopFrame, Outcome, close_once, evaluate_loop
from transpiler.specialize.returns import lower_returns
from transpiler.specialize.unroll import is_static, static_items
from transpiler.specialize.values import Const, HoleError, HoleVal, Ref, TupleVal, Undefined, Val, describe


class NeedsLoopError(Exception):
    """A function leaves early from inside a branch that may go on: it has to be specialized as a loop."""

    def __init__(self, function: tuple[str, str]) -> None:
        super().__init__(".".join(function))
        self.function = function


def run_function(ev: Evaluator, f: hir.Function, env: Env) -> Val:
    """Evaluate a function body in ``env``; returns its value."""
    outer, ev.function, arms, ev.arms = ev.function, (f.module, f.name), ev.arms, 0
    try:
        if ev.function in ev.once:
            return _run_once(ev, f, env)
        return run(ev, f.body, env, None).value
    finally:
        ev.function, ev.arms = outer, arms


def run_helper(ev: Evaluator, f: hir.Function, env: Env) -> Val:
    """Evaluate the body of a helper function in ``env``; returns its value."""
    return run_function(ev, lower_returns(f), env)


def _run_once(ev: Evaluator, f: hir.Function, env: Env) -> Val:
    """A function as a loop that runs once: every ``return`` leaves it."""
    frame = LoopFrame("once", (RETVAL,), None)
    env[RETVAL] = Undefined("nothing is returned")
    with Nested(ev) as block:
        outcome = run(ev, f.body, env, frame)
        frame.leave(ev, block, Outcome("return", outcome.value), env)
    return close_once(ev, env, frame, block)


def run(ev: Evaluator, body: Sequence[hir.Stmt], env: Env, frame: LoopFrame | None) -> Outcome:
    """Evaluate statements in order, updating ``env``."""
    for i, s in enumerate(body):
        _open_statement(ev, s)
        rest = tuple(body[i + 1 :])
        outcome: Outcome | None = None
        match s:
            case hir.If():
                outcome = _if(ev, s, rest, env, frame)
            case hir.For() if is_static(s):
                _unrolled(ev, s, env, frame)
            case hir.For() | hir.While():
                returned = evaluate_loop(ev, s, env, frame, run)
                if returned is not None:  # the loop was left by a `return`
                    outcome = _branch(ev, returned, (hir.Return(span=s.span),), (), rest, env, frame)
            case hir.Return(value):
                return Outcome("return", _guarded(ev, value, env) if value is not None else Outcome().value)
            case hir.Continue():
                return Outcome("continue")
            case hir.Break():
                return Outcome("break")
            case _:
                _simple(ev, s, env)
        if outcome is not None:
            return outcome
    return Outcome()


def _open_statement(ev: Evaluator, s: hir.Stmt) -> None:
    ev.statement += 1
    ev.span = s.span
    if type(s) in STATEMENTS:
        ev.construct(STATEMENTS[type(s)])
    ev.pending_comments.extend(Comment(text, ev.site) for text in s.comments)
    ev.pending_trailing = Comment(s.trailing, ev.site) if s.trailing else None


def _guarded(ev: Evaluator, e: hir.Expr, env: Env) -> Val:
    """Evaluate; an unmapped construct becomes a Hole."""
    try:
        return ev.eval(e, env)
    except HoleError as hole:
        ev.record_hole(hole)
        return HoleVal()


def _simple(ev: Evaluator, s: hir.Stmt, env: Env) -> None:
    match s:
        case hir.Assign(target, value):
            ev.construct("assignment" if target.name is not None else "unpacking")
            assign(ev, target, _guarded(ev, value, env), env)
        case hir.ExprStmt(value):
            _guarded(ev, value, env)
        case hir.Hole(code, what):
            ev.opaque = True
            ev.record_hole(HoleError(code, f"{what} has no mapping", s.span))
        case _:
            raise AssertionError(s)


def assign(ev: Evaluator, target: hir.Target, value: Val, env: Env) -> None:
    """Bind names; remember the author's name on values and derived constants."""
    if target.name is not None:
        env[target.name] = value
        _name(ev, target.name, value)
        return
    if isinstance(value, HoleVal):
        for t in target.items:
            assign(ev, t, value, env)
        return
    if not isinstance(value, TupleVal) or len(value.items) != len(target.items):
        ev.refuse(f"can't unpack {describe(value)} into {len(target.items)} names")
    for t, v in zip(target.items, value.items, strict=True):
        assign(ev, t, v, env)


def _name(ev: Evaluator, name: str, value: Val) -> None:
    if isinstance(value, Value):
        own = value.op is None or value.op.site == ev.site
        if not own:
            value.names.setdefault(ev.site, name.lstrip("$"))
        elif value.hint == "":
            value.hint = name.lstrip("$")
    elif isinstance(value, Const) and isinstance(value.value, int) and value.sym.op not in sy.LEAVES:
        ev.const_names.setdefault(value.sym, name)


def _unrolled(ev: Evaluator, s: hir.For, env: Env, frame: LoopFrame | None) -> None:
    """The body of a loop over ``ct.static_iter``, once for each item."""
    ev.construct("for, when translating")
    try:
        items = static_items(ev, s, env)
    except HoleError as hole:
        ev.record_hole(hole)
        for n in assigned((s,)):
            env[n] = HoleVal()
        return
    for item in items:
        assign(ev, s.target, item, env)
        run(ev, s.body, env, frame)


# -- branches -----------------------------------------------------------------------------------------


def _if(ev: Evaluator, s: hir.If, rest: tuple[hir.Stmt, ...], env: Env, frame: LoopFrame | None) -> Outcome | None:
    """None: go on after the ``if``; an Outcome: the enclosing list of statements is finished."""
    try:
        cond = ev.eval(s.cond, env)
        known = ev.known_truth(cond)
        runtime = ev.truth(cond) if known is None else None
    except HoleError as hole:
        ev.record_hole(hole)
        for n in assigned(s.then + s.orelse):
            env[n] = HoleVal()
        return None
    ev.construct("if, at run time" if known is None else "if, when translating")
    if runtime is not None:
        return _branch(ev, runtime, s.then, s.orelse, rest, env, frame)
    # A branch at run time in the side taken may leave early: it needs what follows.
    return run(ev, (s.then if known else s.orelse) + rest, env, frame)


def _branch(
    ev: Evaluator, cond: Value, then: tuple[hir.Stmt, ...], orelse: tuple[hir.Stmt, ...],
    rest: tuple[hir.Stmt, ...], env: Env, frame: LoopFrame | None,
) -> Outcome | None:  # fmt: skip
    """A branch at run time."""
    names = assigned(then + orelse)
    first = _arm(ev, then, env, frame)
    if frame is not None and first.outcome.exit != "fall":
        # What the other side does is what follows, as in the reference compiler.
        _leave(ev, first, frame)
        other = Block(ops=[Op("yield", span=ev.span, statement=ev.statement)])
        ev.emit("if", (cond,)).regions = (first.block, other)
        outcome = run(ev, orelse, env, frame)
        return None if outcome.exit == "fall" else outcome
    second = _arm(ev, orelse, env, frame)
    arms = (first, second)
    if frame is not None and second.outcome.exit != "fall":
        _leave(ev, second, frame)
        values = [first.value(n) for n in names]
        merged = emit_one_sided_if(ev, cond, [a.block for a in arms], 0, values, names)
    elif frame is None and any(a.outcome.exit == "return" for a in arms):
        return _return(ev, cond, arms, rest, names, env)
    else:
        merged = emit_if(ev, cond, [a.block for a in arms], [[a.value(n) for n in names] for a in arms], names)
    for n, v in zip(names, merged, strict=True):
        env[n] = v
    return None


class _Arm:
    """One side of a branch as it was evaluated."""

    def __init__(self, block: Block, env: Env, outcome: Outcome) -> None:
        self.block, self.env, self.outcome = block, env, outcome

    def value(self, name: str) -> Val:
        return self.env.get(name, Undefined("it is assigned in one branch only"))


def _arm(ev: Evaluator, body: tuple[hir.Stmt, ...], env: Env, frame: LoopFrame | None) -> _Arm:
    """Evaluate one side of a branch into a block of its own."""
    span, statement = ev.span, ev.statement
    comments, ev.pending_comments = ev.pending_comments, []
    trailing, ev.pending_trailing = ev.pending_trailing, None
    own = dict(env)
    ev.arms += 1
    with Nested(ev) as block:
        outcome = run(ev, body, own, frame)
    ev.arms -= 1
    ev.span, ev.statement, ev.pending_comments, ev.pending_trailing = span, statement, comments, trailing
    return _Arm(block, own, outcome)


def _leave(ev: Evaluator, arm: _Arm, frame: LoopFrame) -> None:
    with Into(ev, arm.block):
        frame.leave(ev, arm.block, arm.outcome, arm.env)


def _return(
    ev: Evaluator, cond: Value, arms: tuple[_Arm, _Arm], rest: tuple[hir.Stmt, ...], names: tuple[str, ...], env: Env
) -> Outcome:
    """At least one side returns; what follows moves into the other one."""
    going = next((a for a in arms if a.outcome.exit == "fall"), None)
    if going is not arms[0]:  # what the other side does is what follows, as in the reference compiler
        for op in arms[1].block.ops:
            op.follows_return = ev.site
    if going is not None:
        span, statement, own = ev.span, ev.statement, len(going.block.ops)
        with Into(ev, going.block):
            outcome = run(ev, rest, going.env, None)
        ev.span, ev.statement = span, statement
        for op in going.block.ops[own:]:
            op.follows_return = ev.site
        if outcome.exit == "fall":
            if ev.arms and ev.function is not None:
                raise NeedsLoopError(ev.function)
            outcome = Outcome("return")
        going.outcome = outcome
    values = [a.outcome.value for a in arms]
    (value,) = emit_if(ev, cond, [a.block for a in arms], [[v] for v in values], ())
    ev.block.ops[-1].returns = ev.site is not None
    for n in names:
        env[n] = Undefined("the function has returned")
    return Outcome("return", value)


def if_expression(ev: Evaluator, cond: Value, e: hir.IfExp, env: Env) -> Val:
    """``a if c else b`` with a runtime condition."""
    return _expression_branch(ev, cond, lambda: ev.eval(e.then, env), lambda: ev.eval(e.orelse, env))


def short_circuit(ev: Evaluator, left: Value, e: hir.BoolOp, env: Env) -> Val:
    """``left and right`` / ``left or right`` with a runtime left operand."""

    def right() -> Val:
        return ev.as_bool(ev.eval(e.right, env))

    branches = (right, lambda: left) if e.op == "and" else (lambda: left, right)
    return _expression_branch(ev, left, *branches)


def _expression_branch(ev: Evaluator, cond: Value, *branches: Callable[[], Val]) -> Val:
    blocks, values = [], []
    for branch in branches:
        with Nested(ev) as block:
            values.append([branch()])
        blocks.append(block)
    return emit_if(ev, cond, blocks, values, [])[0]


__all__ = ["NeedsLoopError", "Ref", "run_function", "run_helper"]
