"""Partial evaluation of statements: branches, loops, early exits, and the SSA form they end in.

A branch on a constant is decided; a branch at run time becomes an ``if`` whose results are the
names that it assigns.  When a branch leaves early, the statements after the ``if`` move into the
branches that go on (so ``if c: return`` becomes ``if c {..} else {rest}``), which keeps control
flow structured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from transpiler.ir import hir
from transpiler.ir import symbolic as sy
from transpiler.ir.tir import Block, Op, Value, walk
from transpiler.ir.types import DType, TileTy, sizes
from transpiler.rules.constructs import STATEMENTS
from transpiler.specialize.evaluate import Env, Evaluator
from transpiler.specialize.values import (
    Const,
    DTypeVal,
    HoleError,
    HoleVal,
    RangeVal,
    Ref,
    TupleVal,
    Undefined,
    Val,
    describe,
)

Exit = Literal["fall", "continue", "break", "return"]


@dataclass
class Outcome:
    """How a list of statements ended, with the value of a ``return``."""

    exit: Exit = "fall"
    value: Val = field(default_factory=lambda: Const(None, sy.lit(None)))


@dataclass
class LoopFrame:
    """The loop being built: its names, and the jumps out of nested branches with the values at each."""

    kind: Literal["for", "while"]
    names: tuple[str, ...]
    jumps: list[tuple[Op, Env]] = field(default_factory=list)


def run_function(ev: Evaluator, f: hir.Function, env: Env) -> Val:
    """Evaluate a function body in ``env``; returns its value."""
    outcome = run(ev, f.body, env, None)
    return outcome.value


def run(ev: Evaluator, body: Sequence[hir.Stmt], env: Env, frame: LoopFrame | None) -> Outcome:
    """Evaluate statements in order, updating ``env``."""
    for i, s in enumerate(body):
        _open_statement(ev, s)
        match s:
            case hir.If():
                outcome = _if(ev, s, tuple(body[i + 1 :]), env, frame)
                if outcome is not None:
                    return outcome
            case hir.Return(value):
                return Outcome("return", _guarded(ev, value, env) if value is not None else Outcome().value)
            case hir.Continue():
                return Outcome("continue")
            case hir.Break():
                return Outcome("break")
            case _:
                _simple(ev, s, env)
    return Outcome()


def _open_statement(ev: Evaluator, s: hir.Stmt) -> None:
    ev.statement += 1
    ev.span = s.span
    if type(s) in STATEMENTS:
        ev.construct(STATEMENTS[type(s)])
    if ev.site is None or not s.comments:
        ev.pending_comments.extend(s.comments)
    ev.pending_trailing = s.trailing


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
        case hir.For():
            _for(ev, s, env)
        case hir.While():
            _while(ev, s, env)
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
        if value.op is not None and value.op.site != ev.site and value.alias == "":
            value.alias = name
        if value.hint == "":
            value.hint = name
    elif isinstance(value, Const) and isinstance(value.value, int) and value.sym.op not in sy.LEAVES:
        ev.const_names.setdefault(value.sym, name)


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
    if runtime is None:
        taken = s.then if known else s.orelse
        if jumps(taken):  # a branch at run time in it may leave early: it needs what follows
            return run(ev, taken + rest, env, frame)
        run(ev, taken, env, frame)
        return None
    if jumps(s.then) or jumps(s.orelse):
        return _branch(ev, runtime, s.then + rest, s.orelse + rest, env, frame)
    _branch(ev, runtime, s.then, s.orelse, env, frame)
    return None


def _branch(
    ev: Evaluator, cond: Value, then: tuple[hir.Stmt, ...], orelse: tuple[hir.Stmt, ...], env: Env,
    frame: LoopFrame | None,
) -> Outcome:  # fmt: skip
    """A runtime branch over two lists of statements."""
    blocks, envs, outcomes = [], [], []
    span, statement = ev.span, ev.statement
    comments, ev.pending_comments = ev.pending_comments, []
    trailing, ev.pending_trailing = ev.pending_trailing, ""
    for body in (then, orelse):
        branch_env = dict(env)
        with Nested(ev) as block:
            outcomes.append(run(ev, body, branch_env, frame))
        blocks.append(block)
        envs.append(branch_env)
    ev.span, ev.statement, ev.pending_comments, ev.pending_trailing = span, statement, comments, trailing
    return _merge_branches(ev, cond, blocks, envs, outcomes, env, assigned(then + orelse), frame)


def _merge_branches(
    ev: Evaluator, cond: Value, blocks: list[Block], envs: list[Env], outcomes: list[Outcome], env: Env,
    names: tuple[str, ...], frame: LoopFrame | None,
) -> Outcome:  # fmt: skip
    exits = [o.exit for o in outcomes]
    if "return" in exits and frame is not None:
        ev.record_hole(HoleError("E0310", "`return` inside a loop", ev.span, "restructure the loop"))
    leaves = [x in ("break",) or (x == "continue" and exits[0] != exits[1]) for x in exits]
    if frame is not None and any(leaves) and "break" in exits:
        return _merge_with_jump(ev, cond, blocks, envs, exits, env, names, frame)
    values: list[list[Val]] = [[e.get(n, Undefined("it is assigned in one branch only")) for n in names] for e in envs]
    if "return" in exits:
        for vals, o in zip(values, outcomes, strict=True):
            vals.append(o.value)
    merged = _emit_if(ev, cond, blocks, values, names)
    for n, v in zip(names, merged, strict=False):
        env[n] = v
    if "return" in exits:
        return Outcome("return", merged[-1])
    return Outcome("fall")


def _merge_with_jump(
    ev: Evaluator, cond: Value, blocks: list[Block], envs: list[Env], exits: list[Exit], env: Env,
    names: tuple[str, ...], frame: LoopFrame,
) -> Outcome:  # fmt: skip
    """At least one branch breaks: it ends in a jump; the other one (if any) goes on."""
    going = [i for i, x in enumerate(exits) if x != "break"]
    for i in range(2):
        if i not in going:
            jump = Op("break", span=ev.span, statement=ev.statement)
            blocks[i].ops.append(jump)
            frame.jumps.append((jump, envs[i]))
    if not going:
        ev.emit("if", (cond,)).regions = tuple(blocks)
        return Outcome("break")
    kept = envs[going[0]]
    other = blocks[going[0]]
    ops, other.ops = other.ops, [Op("yield", span=ev.span, statement=ev.statement)]
    ev.emit("if", (cond,)).regions = tuple(blocks)
    ev.block.ops.extend(ops)  # the branch that goes on is what follows
    for n in names:
        if n in kept:
            env[n] = kept[n]
    return Outcome("fall" if exits[going[0]] == "continue" else exits[going[0]])


def _emit_if(
    ev: Evaluator, cond: Value, blocks: list[Block], values: list[list[Val]], names: Sequence[str]
) -> list[Val]:
    """Emit ``if``; returns the merged values (results, or values that both branches agree on)."""
    merger = _Merger(ev, blocks)
    merged = [merger.merge(a, b) for a, b in zip(*values, strict=True)]
    op = ev.emit("if", (cond,), [r.ty for r in merger.results])
    for v in merger.results:
        index = merger.results.index(v)
        op.results[index].hint = next((n for n, m in zip(names, merged, strict=False) if m is v), "")
    for block, outs in zip(blocks, merger.outputs, strict=True):
        block.ops.append(Op("yield", tuple(outs), span=ev.span, statement=ev.statement, site=ev.site))
    op.regions = tuple(blocks)
    new = dict(zip(merger.results, op.results, strict=True))
    return [_replace(m, new) for m in merged]


class _Merger:
    """Joins the values of two branches; creates a placeholder result where they differ."""

    def __init__(self, ev: Evaluator, blocks: list[Block]) -> None:
        self.ev, self.blocks = ev, blocks
        self.results: list[Value] = []
        self.outputs: tuple[list[Value], list[Value]] = ([], [])

    def merge(self, a: Val, b: Val) -> Val:
        if a is b or a == b:
            return a
        for v in (a, b):
            if isinstance(v, (HoleVal, Undefined)):
                return v
        if isinstance(a, TupleVal) and isinstance(b, TupleVal) and len(a.items) == len(b.items):
            return TupleVal(tuple(map(self.merge, a.items, b.items)))
        if _numeric(a) and _numeric(b):
            return self._numbers(a, b)
        if isinstance(a, DTypeVal) and isinstance(b, DTypeVal) and self.ev.same_dtype(a.dtype, b.dtype):
            return a
        return Undefined(f"it is {describe(a)} in one branch and {describe(b)} in the other")

    def _numbers(self, a: Val, b: Val) -> Val:
        dtype = self._dtype(a, b)
        pair = []
        for block, v in zip(self.blocks, (a, b), strict=True):
            with Into(self.ev, block):
                pair.append(_typed(self.ev, v, dtype))
        ta, tb = (self.ev.type_of(p) for p in pair)
        if ta.dtype.name != tb.dtype.name or sizes(ta.shape) != sizes(tb.shape):
            return Undefined(f"it is {ta} in one branch and {tb} in the other")
        self.ev.unify(ta.dtype, tb.dtype)
        for x, y in zip(ta.shape, tb.shape, strict=True):
            self.ev.decide_equal(x.sym, y.sym, True)
        result = Value(ta)
        self.results.append(result)
        for out, p in zip(self.outputs, pair, strict=True):
            out.append(p)
        return result

    def _dtype(self, a: Val, b: Val) -> DType | None:
        for v, other in ((a, b), (b, a)):
            if isinstance(v, Value) and isinstance(other, Const):
                return self.ev.promote_constant(self.ev.type_of(v).dtype, other.value)
        return None


def _typed(ev: Evaluator, v: Val, dtype: DType | None) -> Value:
    if isinstance(v, Const) and dtype is not None:
        return ev.constant(v.value, dtype, sym=v.sym)
    return ev.tile(v)


def _numeric(v: Val) -> bool:
    return (isinstance(v, Value) and isinstance(v.ty, TileTy)) or (
        isinstance(v, Const) and isinstance(v.value, (bool, int, float))
    )


def _replace(v: Val, new: dict[Value, Value]) -> Val:
    if isinstance(v, Value):
        return new.get(v, v)
    if isinstance(v, TupleVal):
        return TupleVal(tuple(_replace(i, new) for i in v.items))
    return v


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
    return _emit_if(ev, cond, blocks, values, [])[0]


# -- loops --------------------------------------------------------------------------------------------


@dataclass
class _Carried:
    """A name that a loop may carry: one entry a tile leaf."""

    name: str
    init: Val
    params: list[Value]
    inits: list[Value]


def _for(ev: Evaluator, s: hir.For, env: Env) -> None:
    try:
        it = ev.eval(s.iterable, env)
        if not isinstance(it, RangeVal):
            ev.hole("E0311", f"a loop over {describe(it)}", "loop over range(...)")
        if s.target.name is None:
            ev.hole("E0311", "a loop with several targets")
    except HoleError as hole:
        ev.record_hole(hole)
        for n in assigned((s,)):
            env[n] = HoleVal()
        return
    if any(isinstance(x, hir.Break) for x in _own_jumps(s.body)):
        ev.record_hole(HoleError("E0312", "`break` inside a for loop", s.span, "use while"))
    assert s.target.name is not None
    induction = Value(it.start.ty, s.target.name)
    _loop(ev, s, env, "for", [it.start, it.stop, it.step], [induction], {s.target.name: induction})


def _while(ev: Evaluator, s: hir.While, env: Env) -> None:
    _loop(ev, s, env, "while", [], [], {})


def _loop(
    ev: Evaluator, s: hir.For | hir.While, env: Env, kind: Literal["for", "while"], bounds: list[Value],
    leading: list[Value], bindings: Env,
) -> None:  # fmt: skip
    names = tuple(n for n in assigned(s.body) if n not in bindings)
    carried = [_carry(ev, n, env.get(n, Undefined("it is assigned in the loop only"))) for n in names]
    comments, ev.pending_comments = ev.pending_comments, []
    trailing, ev.pending_trailing = ev.pending_trailing, ""
    body_env: Env = {**env, **bindings}
    for c in carried:
        body_env[c.name] = _rebuild(c.init, iter(c.params)) if c.params else c.init
    frame = LoopFrame(kind, names)
    span, statement = ev.span, ev.statement
    with Nested(ev) as block:
        if isinstance(s, hir.While):
            _while_head(ev, s, body_env, frame)
        outcome = run(ev, s.body, body_env, frame)
        end = Op("break" if outcome.exit == "break" else "continue", span=ev.span, statement=ev.statement, site=ev.site)
        block.ops.append(end)
    frame.jumps.append((end, body_env))
    ev.span, ev.statement, ev.pending_comments, ev.pending_trailing = span, statement, comments, trailing
    _close_loop(ev, env, "for" if kind == "for" else "loop", bounds, leading, carried, frame, block)


def _while_head(ev: Evaluator, s: hir.While, env: Env, frame: LoopFrame) -> None:
    cond = ev.eval(s.cond, env)
    if ev.known_truth(cond) is True:
        return
    yes, no = Block(), Block()
    yes.ops.append(Op("yield", span=s.span))
    jump = Op("break", span=s.span)
    no.ops.append(jump)
    frame.jumps.append((jump, dict(env)))
    ev.emit("if", (ev.truth(cond),)).regions = (yes, no)


def _carry(ev: Evaluator, name: str, init: Val) -> _Carried:
    inits = list(_leaf_tiles(ev, init))
    return _Carried(name, init, [Value(ev.type_of(v), name) for v in inits], inits)


def _leaf_tiles(ev: Evaluator, v: Val) -> Iterator[Value]:
    if isinstance(v, TupleVal):
        for i in v.items:
            yield from _leaf_tiles(ev, i)
    elif _numeric(v):
        yield ev.tile(v)


def _rebuild(v: Val, leaves: Iterator[Value]) -> Val:
    """``v`` with each numeric leaf replaced by the next of ``leaves``."""
    if isinstance(v, TupleVal):
        return TupleVal(tuple(_rebuild(i, leaves) for i in v.items))
    return next(leaves) if _numeric(v) else v


def _close_loop(
    ev: Evaluator, env: Env, opcode: str, bounds: list[Value], leading: list[Value], carried: list[_Carried],
    frame: LoopFrame, block: Block,
) -> None:  # fmt: skip
    """Decide what is carried, emit the loop and bind the names after it."""
    params: list[Value] = list(leading)
    inits: list[Value] = []
    outs: list[list[Value]] = [[] for _ in frame.jumps]
    after: list[tuple[str, Val, int]] = []  # name, shape of the value, index of its first result
    for c in carried:
        finals = [e.get(c.name, c.init) for _, e in frame.jumps]
        last = finals[-1]
        if all(_same(f, c.init, c) for f in finals):
            _substitute(block, dict(zip(c.params, c.inits, strict=True)))
            continue
        leaves = _loop_leaves(ev, c, finals, frame, block)
        if leaves is None:
            env[c.name] = last if not _numeric(last) and not isinstance(last, TupleVal) else _after_only(c, last)
            continue
        after.append((c.name, c.init if c.params else last, len(inits)))
        params.extend(c.params)
        inits.extend(c.inits)
        for out, values in zip(outs, leaves, strict=True):
            out.extend(values)
    for (jump, _), out in zip(frame.jumps, outs, strict=True):
        jump.operands = tuple(out)
    block.params = params
    op = ev.emit(opcode, (*bounds, *inits), [v.ty for v in inits])
    op.regions = (block,)
    for r, p in zip(op.results, params[len(leading) :], strict=True):
        r.hint = p.hint
    for name, shape, first in after:
        env[name] = _rebuild(shape, iter(op.results[first:]))


def _same(final: Val, init: Val, c: _Carried) -> bool:
    """Is the name unchanged by the body (same constant, or its own parameter)?"""
    if final is init or (isinstance(final, Const) and final == init):
        return True
    return len(c.params) == 1 and final is c.params[0]


def _loop_leaves(
    ev: Evaluator, c: _Carried, finals: list[Val], frame: LoopFrame, block: Block
) -> list[list[Value]] | None:
    """The values that each jump carries, or None if the name can't be carried."""
    if not c.params:  # first assigned in the loop: carried from a dummy, which dead code elimination may drop
        if not isinstance(c.init, Undefined) or not all(isinstance(f, Value) for f in finals[-1:]):
            return None
        last = finals[-1]
        if not isinstance(last, Value) or not isinstance(last.ty, TileTy):
            return None
        ty = ev.type_of(last)
        c.params, c.inits = [Value(ty, c.name)], [ev.constant(0, ty.dtype, ty.shape)]
    result = []
    for (jump, _), final in zip(frame.jumps, finals, strict=True):
        values = _leaves_at(ev, c, final, jump, block)
        if values is None:
            _check_unused(ev, c, block)
            return None
        result.append(values)
    return result


def _leaves_at(ev: Evaluator, c: _Carried, final: Val, jump: Op, block: Block) -> list[Value] | None:
    home = next(b for b in _blocks(block) if jump in b.ops)
    if isinstance(final, Undefined) and len(c.params) == 1:
        return list(c.params)
    if not (_numeric(final) or isinstance(final, TupleVal)):
        return None
    with BeforeEnd(ev, home):
        raw = list(_typed_leaves(ev, final, [p.ty for p in c.params]))
    if len(raw) != len(c.params):
        return None
    for v, p in zip(raw, c.params, strict=True):
        a, b = ev.type_of(v), ev.type_of(p)
        if a.dtype.name != b.dtype.name or sizes(a.shape) != sizes(b.shape):
            return None
        ev.unify(a.dtype, b.dtype)
        for x, y in zip(a.shape, b.shape, strict=True):
            ev.decide_equal(x.sym, y.sym, True)
    return raw


def _typed_leaves(ev: Evaluator, v: Val, types: list[object]) -> Iterator[Value]:
    flat = [v] if not isinstance(v, TupleVal) else list(v.items)
    for item, ty in zip(flat, types, strict=False):
        if isinstance(item, Const) and isinstance(ty, TileTy):
            yield ev.constant(item.value, ty.dtype, (), item.sym)
        else:
            yield ev.tile(item)


def _check_unused(ev: Evaluator, c: _Carried, block: Block) -> None:
    used = {v for op in walk(block) for v in op.operands}
    if any(p in used for p in c.params):
        ev.refuse(f"the type of `{c.name}` changes from one iteration to the next")


def _after_only(c: _Carried, last: Val) -> Val:
    if isinstance(last, Const):
        return last
    return Undefined("its type changes in the loop" if c.params else "it is assigned in the loop only")


def _substitute(block: Block, new: dict[Value, Value]) -> None:
    if new:
        for op in walk(block):
            op.operands = tuple(new.get(v, v) for v in op.operands)


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in block.ops:
        for r in op.regions:
            yield from _blocks(r)


# -- helpers ------------------------------------------------------------------------------------------


class Nested:
    """Emit into a fresh block."""

    def __init__(self, ev: Evaluator) -> None:
        self.ev = ev

    def __enter__(self) -> Block:
        self.outer, self.ev.block = self.ev.block, Block()
        return self.ev.block

    def __exit__(self, *_: object) -> None:
        self.ev.block = self.outer


class Into:
    """Emit at the end of an existing block."""

    def __init__(self, ev: Evaluator, block: Block) -> None:
        self.ev, self.block = ev, block

    def __enter__(self) -> None:
        self.outer, self.ev.block = self.ev.block, self.block

    def __exit__(self, *_: object) -> None:
        self.ev.block = self.outer


class BeforeEnd:
    """Emit just before a block's terminator."""

    def __init__(self, ev: Evaluator, block: Block) -> None:
        self.ev, self.block = ev, block

    def __enter__(self) -> None:
        self.end = self.block.ops.pop()
        self.outer, self.ev.block = self.ev.block, self.block

    def __exit__(self, *_: object) -> None:
        self.block.ops.append(self.end)
        self.ev.block = self.outer


def assigned(body: Sequence[hir.Stmt]) -> tuple[str, ...]:
    """Names that the statements assign, in order of first assignment."""
    names: dict[str, None] = {}

    def target(t: hir.Target) -> None:
        if t.name is not None:
            names.setdefault(t.name)
        for i in t.items:
            target(i)

    for s in hir.walk(tuple(body)):
        if isinstance(s, (hir.Assign, hir.For)):
            target(s.target)
    return tuple(names)


def _own_jumps(body: Sequence[hir.Stmt]) -> Iterator[hir.Stmt]:
    """``break``/``continue``/``return`` that belong to this list, not to a loop inside it."""
    for s in body:
        match s:
            case hir.Break() | hir.Continue() | hir.Return():
                yield s
            case hir.If():
                yield from _own_jumps(s.then)
                yield from _own_jumps(s.orelse)
            case hir.For() | hir.While():
                yield from (x for x in _own_jumps(s.body) if isinstance(x, hir.Return))
            case _:
                pass


def jumps(body: Sequence[hir.Stmt]) -> bool:
    """Can the statements leave the enclosing list?"""
    return next(_own_jumps(body), None) is not None


__all__ = ["Ref", "run_function"]
