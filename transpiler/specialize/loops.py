"""Partial evaluation of loops: what is carried, and the jumps out of an iteration with the values at each.

Tile IR's counted loop can't be left.  ``break`` in one becomes a flag: the remaining iterations go on at once.
``return`` in a counted loop, or in a loop inside of one, breaks and sets another flag, on which the kernel returns
after the loop.  The reference compiler does both the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from transpiler.ir import hir
from transpiler.ir import symbolic as sy
from transpiler.ir.tir import Block, Op, Value, walk
from transpiler.ir.types import BOOL, TileTy, sizes
from transpiler.specialize.arrays import leaves_of, rebound
from transpiler.specialize.blocks import RETVAL, BeforeEnd, Nested, agreed, assigned, blocks_of, handed_out, numeric
from transpiler.specialize.evaluate import Env, Evaluator, Reads
from transpiler.specialize.values import Const, HoleError, HoleVal, RangeVal, TupleVal, Undefined, Val, describe

Exit = Literal["fall", "continue", "break", "return"]


@dataclass
class Outcome:
    """How a list of statements ended, with the value of a ``return``."""

    exit: Exit = "fall"
    value: Val = field(default_factory=lambda: Const(None, sy.lit(None)))


@dataclass
class Jump:
    """A jump to the next iteration or out of the loop; ``own``: it hands over what the iteration began with."""

    op: Op
    env: Env
    exit: Exit
    own: bool = False


@dataclass
class LoopFrame:
    """The loop being built: its names, and the jumps out of nested branches with the values at each.

    ``once``: a function's body, which every ``return`` leaves.
    """

    kind: Literal["for", "while", "once"]
    names: tuple[str, ...]
    parent: LoopFrame | None
    jumps: list[Jump] = field(default_factory=list)
    reads: Reads = field(default_factory=dict)

    @property
    def counted(self) -> bool:
        """Is it a counted loop, or inside one?"""
        return self.kind == "for" or (self.parent is not None and self.parent.counted)

    def leave(self, ev: Evaluator, block: Block, outcome: Outcome, env: Env) -> None:
        """End a block with the jump that ``outcome`` means."""
        exit_, own = outcome.exit, False
        if exit_ == "return" and self.kind == "once":
            env = {**env, RETVAL: outcome.value}
        elif exit_ == "return" and not self.counted:
            block.ops.append(Op("return", span=ev.span, statement=ev.statement, site=ev.site))
            return
        elif exit_ == "return":
            own = True
        opcode = "continue" if exit_ in ("continue", "fall") or self.kind == "for" else "break"
        op = Op(opcode, span=ev.span, statement=ev.statement, site=ev.site)
        block.ops.append(op)
        self.jumps.append(Jump(op, env, exit_, own))

    def has(self, exit_: Exit) -> bool:
        """Does some jump mean ``exit_``?"""
        return any(j.exit == exit_ for j in self.jumps)


Run = Callable[[Evaluator, Sequence[hir.Stmt], Env, "LoopFrame | None"], Outcome]


@dataclass
class _Carried:
    """A name that a loop may carry: one entry a tile leaf; ``shape`` is what is rebuilt after the loop.

    ``inside`` is what it is where an iteration begins.
    """

    name: str
    init: Val
    params: list[Value]
    inits: list[Value]
    shape: Val
    inside: Val = field(default_factory=HoleVal)


def evaluate_loop(ev: Evaluator, s: hir.For | hir.While, env: Env, parent: LoopFrame | None, run: Run) -> Value | None:
    """Evaluate a loop; returns the flag that says after it whether the kernel is to return, if it may."""
    if isinstance(s, hir.While):
        return _loop(ev, s, env, LoopFrame("while", assigned(s.body), parent), [], [], run)
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
        return None
    assert s.target.name is not None
    induction = Value(it.start.ty, s.target.name)
    # A variable that is bound before the loop keeps its last value; it begins each iteration as the induction variable.
    names = tuple(n for n in assigned((s,)) if n != s.target.name or n in env)
    return _loop(ev, s, env, LoopFrame("for", names, parent), [it.start, it.stop, it.step], [induction], run)


def _loop(
    ev: Evaluator, s: hir.For | hir.While, env: Env, frame: LoopFrame, bounds: list[Value], leading: list[Value],
    run: Run,
) -> Value | None:  # fmt: skip
    carried = [_carry(ev, n, env.get(n, Undefined("it is assigned in the loop only"))) for n in frame.names]
    comments, ev.pending_comments = ev.pending_comments, []
    trailing, ev.pending_trailing = ev.pending_trailing, None
    body_env: Env = dict(env)
    for c in carried:
        body_env[c.name] = c.inside = _rebuild(c.init, iter(c.params)) if c.params else c.init
    body_env |= {v.hint: v for v in leading}
    span, statement = ev.span, ev.statement
    before, ev.reads = ev.reads, {}
    with Nested(ev) as block:
        begins = not isinstance(s, hir.While) or _while_head(ev, s, body_env, frame)
        outcome = run(ev, s.body, body_env, frame) if begins else Outcome("break")
        frame.leave(ev, block, outcome, body_env)
    frame.reads, ev.reads = ev.reads, before | ev.reads
    ev.span, ev.statement, ev.pending_comments, ev.pending_trailing = span, statement, comments, trailing
    return _close_loop(ev, env, frame, bounds, leading, carried, block)


def _while_head(ev: Evaluator, s: hir.While, env: Env, frame: LoopFrame) -> bool:
    """Leave the loop where the condition doesn't hold; returns whether an iteration can begin."""
    cond = ev.eval(s.cond, env)
    known = ev.known_truth(cond)
    if known is not None:
        return known
    yes, no = Block(ops=[Op("yield", span=s.span)]), Block()
    frame.leave(ev, no, Outcome("break"), dict(env))
    ev.emit("if", (ev.truth(cond),)).regions = (yes, no)
    return True


def close_once(ev: Evaluator, env: Env, frame: LoopFrame, block: Block) -> Val:
    """Emit the loop that is a function's body; returns what the function returns."""
    init = Undefined("nothing is returned")
    _close_loop(ev, env, frame, [], [], [_Carried(RETVAL, init, [], [], init)], block)
    return env[RETVAL]


def _carry(ev: Evaluator, name: str, init: Val) -> _Carried:
    inits = list(_leaf_tiles(ev, init))
    return _Carried(name, init, [Value(ev.type_of(v), name.lstrip("$")) for v in inits], inits, init)


def _leaf_tiles(ev: Evaluator, v: Val) -> Iterator[Value]:
    if isinstance(v, TupleVal):
        for i in v.items:
            yield from _leaf_tiles(ev, i)
    elif numeric(v):
        yield ev.tile(v)


def _rebuild(v: Val, leaves: Iterator[Value]) -> Val:
    """``v`` with each numeric leaf replaced by the next of ``leaves``."""
    if isinstance(v, TupleVal):
        return TupleVal(tuple(_rebuild(i, leaves) for i in v.items))
    return next(leaves) if numeric(v) else v


def _close_loop(
    ev: Evaluator, env: Env, frame: LoopFrame, bounds: list[Value], leading: list[Value], carried: list[_Carried],
    block: Block,
) -> Value | None:  # fmt: skip
    """Decide what is carried, emit the loop and bind the names after it; returns the flag of ``return``."""
    params: list[Value] = list(leading)
    inits: list[Value] = []
    outs: list[list[Value]] = [[] for _ in frame.jumps]
    after: list[tuple[_Carried, int]] = []  # with the index of its first result
    unchanged: dict[Value, Value] = {}
    for c in carried:
        finals = _given(c, frame)
        if finals and all(_same(f, c.init, c) for f in finals):
            unchanged.update(zip(c.params, c.inits, strict=True))
            continue
        if any(map(_unmapped, finals)):  # of what type it is, only the construct without a mapping knows
            unchanged.update(zip(c.params, c.inits, strict=True))
            env[c.name] = HoleVal()
            continue
        if (array := rebound(ev, c.name, c.init, c.inside, finals, frame.reads)) is not None:
            unchanged.update(zip(c.params, c.inits, strict=True))
            env[c.name] = array
            continue
        leaves = _loop_leaves(ev, c, frame, block)
        if leaves is None:
            last = _returned_constant(c, frame) or (finals[-1] if finals else c.init)
            env[c.name] = last if not numeric(last) and not isinstance(last, TupleVal) else _after_only(c, last)
            continue
        after.append((c, len(inits)))
        params.extend(c.params)
        inits.extend(c.inits)
        for out, values in zip(outs, leaves, strict=True):
            out.extend(values)
    returned = _flag(ev, frame, "return", "returned", params, inits, outs)
    done = _flag(ev, frame, "break", "done", params, inits, outs) if frame.kind == "for" else None
    for jump, out in zip(frame.jumps, outs, strict=True):
        jump.op.operands = tuple(out)
    _substitute(block, unchanged)
    if done is not None:
        _skip_the_rest(ev, block, done, params[len(leading) :])
    block.params = params
    op = ev.emit("for" if frame.kind == "for" else "loop", (*bounds, *inits), [v.ty for v in inits])
    op.regions = (block,)
    op.is_body = frame.kind == "once" and ev.site is None
    for r, p in zip(op.results, params[len(leading) :], strict=True):
        r.hint = p.hint
    for c, first in after:
        constant = _constant_after(ev, c, frame)
        env[c.name] = (
            _rebuild(c.shape, iter(op.results[first:])) if constant is None else handed_out(constant, op.results[first])
        )
    return op.results[params.index(returned) - len(leading)] if returned is not None else None


def _flag(
    ev: Evaluator, frame: LoopFrame, exit_: Exit, hint: str, params: list[Value], inits: list[Value],
    outs: list[list[Value]],
) -> Value | None:  # fmt: skip
    """Carry whether the loop was left by ``exit_`` (a ``return`` counts as a ``break``); None if it never is."""
    meant: tuple[Exit, ...] = (exit_,) if exit_ == "return" else (exit_, "return")
    if frame.kind == "once" or not any(frame.has(e) for e in meant):
        return None
    param = Value(TileTy(BOOL), hint)
    params.append(param)
    inits.append(ev.constant(False, BOOL))
    yes = ev.constant(True, BOOL)
    for jump, out in zip(frame.jumps, outs, strict=True):
        out.append(yes if jump.exit in meant else param)
    return param


def _skip_the_rest(ev: Evaluator, block: Block, done: Value, params: list[Value]) -> None:
    """An iteration after the loop was left does nothing."""
    yes = Block(ops=[Op("continue", tuple(params), span=ev.span, statement=ev.statement)])
    no = Block(ops=[Op("yield", span=ev.span, statement=ev.statement)])
    block.ops.insert(0, Op("if", (done,), regions=(yes, no), span=ev.span, statement=ev.statement, site=ev.site))


def _same(final: Val, init: Val, c: _Carried) -> bool:
    """Is the name unchanged by the body (same constant, or its own parameter)?"""
    if final is init or (isinstance(final, Const) and final == init):
        return True
    return len(c.params) == 1 and final is c.params[0]


def _unmapped(v: Val) -> bool:
    """Does a value come from a construct that has no mapping?"""
    return isinstance(v, HoleVal) or (isinstance(v, TupleVal) and any(map(_unmapped, v.items)))


def _given(c: _Carried, frame: LoopFrame, *exits: Exit) -> list[Val]:
    """What a name is where the loop jumps, by any of ``exits`` (none: by any)."""
    return [j.env.get(c.name, c.init) for j in frame.jumps if not j.own and (not exits or j.exit in exits)]


def _returned_constant(c: _Carried, frame: LoopFrame) -> Const | None:
    """What a helper function returns wherever it returns in the loop, if that is always the same and no number."""
    given = _given(c, frame, "break", "return")
    first = next((v for v in given if isinstance(v, Const)), None) if c.name == RETVAL else None
    return first if first is not None and all(v == first or isinstance(v, Undefined) for v in given) else None


def _constant_after(ev: Evaluator, c: _Carried, frame: LoopFrame) -> Val | None:
    """The constant that a name is after the loop, whichever way it was left; inside it is carried all the same."""
    ways = [c.init, *_given(c, frame)] if frame.kind == "for" else _given(c, frame, "break", "return")
    return agreed(ev, ways) if ways and all(map(numeric, ways)) else None


def _template(c: _Carried, frame: LoopFrame) -> Val | None:
    """What a name that is first assigned in the loop is after it, or None if that isn't defined."""
    leaving = _given(c, frame, "break", "return")
    given = [v for v in leaving if numeric(v) or isinstance(v, TupleVal)]
    if not given or (c.name != RETVAL and (frame.kind == "for" or len(given) < len(leaving))):
        return None
    return given[0]


def _loop_leaves(ev: Evaluator, c: _Carried, frame: LoopFrame, block: Block) -> list[list[Value]] | None:
    """The values that each jump carries, or None if the name can't be carried."""
    if not c.params:  # first assigned in the loop: carried from a dummy
        template = _template(c, frame) if isinstance(c.init, Undefined) else None
        if template is None:
            return None
        c.shape = template
        for v in list(_leaf_tiles(ev, template)):
            ty = ev.type_of(v)
            c.params.append(Value(ty, c.name.lstrip("$")))
            c.inits.append(ev.undefined(ty))
    result = []
    for jump in frame.jumps:
        final = jump.env.get(c.name, c.init)
        values = list(c.params) if jump.own else _leaves_at(ev, c, final, jump.op, block)
        if values is None:
            _check_unused(ev, c, block)
            return None
        result.append(values)
    return result


def _leaves_at(ev: Evaluator, c: _Carried, final: Val, jump: Op, block: Block) -> list[Value] | None:
    home = next(b for b in blocks_of(block) if jump in b.ops)
    if isinstance(final, Undefined):
        return list(c.params)
    if not (numeric(final) or isinstance(final, TupleVal)):
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
    numbers = (leaf for leaf in leaves_of(v) if numeric(leaf))  # what else is in a tuple isn't rebound
    for item, ty in zip(numbers, types, strict=False):
        if isinstance(item, Const) and isinstance(ty, TileTy):
            yield ev.number(item, ty.dtype, item.sym)
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
