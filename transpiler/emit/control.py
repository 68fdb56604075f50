"""Control flow: structured SSA to Rust loops, branches and mutable variables.

A loop-carried value is a ``let mut``; a value that a branch or an iteration yields is assigned to it
where it is made, if what the variable holds isn't needed any more, else where the block ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transpiler.emit.lower import Key, LoopState, Lowering
from transpiler.ir import rust
from transpiler.ir.symbolic import leaves_of
from transpiler.ir.tir import Block, Op, Value
from transpiler.ir.types import I32, I64, TileTy, TokenTy, Type

Pairs = list[tuple[Key, rust.Expr]]
_ZERO = rust.call("const_i32", rust.Text("0"))
_NESTED_VALUES = 6
"""How many branches may be values of each other: rustfmt and cutile take twice as long for each."""


# -- blocks -------------------------------------------------------------------------------------------


def nested(low: Lowering, body: Callable[[], None]) -> tuple[rust.Stmt, ...]:
    """The statements that ``body`` writes."""
    low.flush()
    outer, low.block = low.block, []
    line = low.line
    body()
    low.flush()
    statements, low.block = tuple(low.block), outer
    low.line = max(line, low.line)
    return statements


def aim(low: Lowering, block: Block, values: Sequence[Value], keys: Sequence[Key | None]) -> None:
    """Make the values that a block ends with go directly into the variables that take them."""
    for v, key in zip(values, keys, strict=True):
        if key is None or low.uses.home.get(v) is not block or v in block.params or list(values).count(v) > 1:
            continue
        if low.author(v) in ("", low.variables[key].hint) or isinstance(v.ty, TokenTy):
            low.targets[v] = key


def hand_over(low: Lowering, values: Sequence[Value], keys: Sequence[Key | None], op: Op) -> None:
    """Assign values to variables, all at once."""
    exprs = low.take(values)
    pairs = [(k, e) for k, e in zip(keys, exprs, strict=True) if k is not None and e != rust.Var(k)]
    for key, e in _sequence(low, pairs, op):
        low.variables[key].mutable = True
        low.emit(rust.Assign(key, e, low.note(op)))


def _mentions(e: rust.Expr, key: Key) -> bool:
    return any(isinstance(x, rust.Var) and x.key == key for x in rust.subexpressions(e))


def _sequence(low: Lowering, pairs: Pairs, op: Op) -> Pairs:
    """An order of a parallel assignment; a cycle is broken with a temporary."""
    out: Pairs = []
    rest = list(pairs)
    while rest:
        free = next((p for p in rest if not any(_mentions(e, p[0]) for k, e in rest if k != p[0])), None)
        if free is not None:
            rest.remove(free)
            out.append(free)
            continue
        key = rest[0][0]
        variable = low.variables[key]
        saved = (op, "old", key)
        low.variable(saved, f"old_{variable.hint}", variable.type)
        low.emit(rust.Let((saved,), (variable.type,), rust.Var(key), note=low.note(op)))
        rest = [(k, _rename(e, key, saved) if k != key else e) for k, e in rest]
    return out


def _rename(e: rust.Expr, old: Key, new: Key) -> rust.Expr:
    if isinstance(e, rust.Var):
        return rust.Var(new) if e.key == old else e
    return rust.map_children(e, lambda c: _rename(c, old, new))


# -- loops --------------------------------------------------------------------------------------------


def _changes(op: Op, i: int, lead: int) -> bool:
    """Is carried value ``i`` ever something else than its own parameter?"""
    body = op.regions[0]
    param = body.params[lead + i]
    return any(jump.operands[i] is not param for jump in jumps_of(body))


def jumps_of(body: Block) -> list[Op]:
    """The ``continue`` and ``break`` operations that belong to a loop's body."""
    out = []
    for op in body.ops:
        if op.opcode in ("continue", "break"):
            out.append(op)
        elif op.opcode == "if":
            for region in op.regions:
                out += jumps_of(region)
    return out


def _slots(low: Lowering, op: Op, inits: Sequence[Value], lead: int) -> list[Key | None]:
    """A variable for each carried value."""
    body = op.regions[0]
    plans: list[Key | None] = []
    for i, init in enumerate(inits):
        param = body.params[lead + i]
        if not _changes(op, i, lead):
            low.flush()
            low.bound[param] = low.bound[init]
            plans.append(None)
        else:
            plans.append(_slot(low, op, init, param))
    return plans


def _slot(low: Lowering, op: Op, init: Value, param: Value) -> Key:
    bound = low.bound.get(init)
    if isinstance(bound, rust.Var) and _reusable(low, op, init, param, bound.key):
        key = bound.key
        variable = low.variables[key]
        variable.hint = variable.hint if variable.hint and not low.author(param) else low.author(param) or variable.hint
        variable.mutable = True
        low.hold(param, key)
        return key
    (e,) = low.take([init])
    key = param
    hint = low.author(param) or low.author(init) or "carried"
    low.variable(key, hint, low.generics.type(param.ty), param).key  # noqa: B018
    low.variables[key].mutable = True
    low.emit(rust.Let((key,), (low.variables[key].type,), e, note=low.note(op)))
    low.dummies |= op.opcode == "loop" and not low.uses.count(param)  # the initial value is never read
    return key


def _reusable(low: Lowering, op: Op, init: Value, param: Value, key: Key) -> bool:
    """Can the variable of the initial value itself be carried?"""
    uses = low.uses
    variable = low.variables.get(key)
    return (
        variable is not None
        and low.assignable(key)
        and uses.count(init) == 1
        and uses.home.get(init) is uses.block_of[op]
        and uses.loop_of.get(variable.values[-1]) is uses.loop_of[init]  # it isn't one for all iterations of a loop
        and (low.author(init) in ("", low.author(param)) or low.author(param) == "" or isinstance(init.ty, TokenTy))
        and not low.live(key, op)
        and not any(uses.used_inside(v, op) for v in variable.values)
    )


def _finish_loop(low: Lowering, op: Op, plans: Sequence[Key | None], inits: Sequence[Value]) -> None:
    for r, key, init in zip(op.results, plans, inits, strict=True):
        if key is None:
            low.bound[r] = low.bound[init]
        else:
            low.hold(r, key)


def _for(low: Lowering, op: Op) -> None:
    lower, upper, step = op.operands[:3]
    inits = op.operands[3:]
    body = op.regions[0]
    ty = lower.ty
    assert isinstance(ty, TileTy)
    if ty.dtype not in (I32, I64) or (ty.dtype == I64 and not _literal(step)):
        steps = " whose step isn't written out" if ty.dtype == I64 else ""
        low.hole(op, "E0603", f"a loop over {ty.dtype}{steps} can't be written in cutile 0.5")
        return
    bounds = low.take([lower, upper, step])
    low.flush()
    note = low.note(op)
    plans = _slots(low, op, inits, 1)
    induction = body.params[0]
    raw: Key | None = ("induction", op) if low.uses.count(induction) else None

    def write() -> None:
        if raw is not None:
            low.variable(raw, low.author(induction) or "i", ty.dtype.rust)
            low.let(induction, rust.call("scalar_to_tile", rust.Var(raw)), op)
        _body(low, body, plans)

    statements = _iteration(low, op, plans, write)
    low.emit(rust.For(raw, _range(bounds, step), statements, note))
    _finish_loop(low, op, plans, inits)


def _range(bounds: Sequence[rust.Expr], step: Value) -> rust.Expr:
    low, high, by = bounds
    assert isinstance(step.ty, TileTy)
    to = f"to_{step.ty.dtype.rust}"
    span = rust.Binary("..", rust.call(to, low), rust.call(to, high))
    literal = _literal(step)
    if literal and step.constant == 1 and step.ty.dtype == I32:  # a wide loop needs its step for its type
        return span
    amount: rust.Expr = (
        rust.Text(str(step.constant)) if literal else rust.Binary("as", rust.call("to_i32", by), rust.Text("usize"))
    )
    return rust.Method(span, "step_by", (amount,))


def _literal(v: Value) -> bool:
    return v.constant is not None and v.op is not None and not leaves_of(v.op.attrs["sym"])


def _body(low: Lowering, body: Block, plans: list[Key | None]) -> None:
    for jump in jumps_of(body):
        aim(low, low.uses.block_of[jump], jump.operands, plans)
    low.ops(body)


def _loop(low: Lowering, op: Op) -> None:
    body = op.regions[0]
    low.flush()
    note = low.note(op)
    plans = _slots(low, op, op.operands, 0)
    low.dummies |= all(jump.opcode == "break" for jump in jumps_of(body))  # what it is left with may not be read
    head = _While(low, op, plans)
    statements = _iteration(low, op, plans, lambda: head.write(body))
    low.emit(rust.Loop(statements, head.cond, note))
    _finish_loop(low, op, plans, op.operands)


def _iteration(low: Lowering, op: Op, plans: list[Key | None], write: Callable[[], None]) -> tuple[rust.Stmt, ...]:
    """The statements of a loop's body; what they need outside of the loop is written first."""
    state = LoopState(op, plans)
    low.loops.append(state)
    statements = nested(low, write)
    low.loops.pop()
    for stmt in state.hoisted:
        low.emit(stmt)
    return statements


@dataclass
class _While:
    """Writes a ``loop``, as ``while`` if it begins with its condition."""

    low: Lowering
    op: Op
    plans: list[Key | None]
    cond: rust.Expr | None = None

    def write(self, body: Block) -> None:
        low = self.low
        head = next((i for i, o in enumerate(body.ops) if o.opcode == "if"), None)
        if head is None or not self._is_head(body, body.ops[head]):
            _body(low, body, self.plans)
            return
        before, rest = Block(body.params, body.ops[:head]), Block(body.params, body.ops[head + 1 :])
        for jump in jumps_of(rest):
            aim(low, low.uses.block_of[jump], jump.operands, self.plans)
        low.ops(before)
        if low.block or len(low.pending) > 1:
            low.ops(Block([], [body.ops[head]]))
        else:
            (cond,) = low.take(body.ops[head].operands)
            self.cond = rust.call("to_bool", cond)
        low.ops(rest)

    def _is_head(self, body: Block, op: Op) -> bool:
        """``if c {} else { break }`` with the carried values unchanged."""
        yes, no = op.regions
        return (
            not op.results
            and [o.opcode for o in yes.ops] == ["yield"]
            and [o.opcode for o in no.ops] == ["break"]
            and no.ops[0].operands == tuple(body.params)
        )


def _jump(low: Lowering, op: Op) -> None:
    """``continue`` or ``break``; the last one of a loop's own body says nothing."""
    loop = low.loops[-1]
    hand_over(low, op.operands, loop.keys, op)
    if op.opcode == "continue" and low.uses.block_of[op] is loop.op.regions[0]:
        return
    low.emit(rust.Jump(op.opcode, low.note(op)))


# -- branches -----------------------------------------------------------------------------------------


def _if(low: Lowering, op: Op) -> None:
    (cond,) = low.take(op.operands)
    low.flush()
    note = low.note(op)
    falls = [region.ops[-1].opcode == "yield" for region in op.regions]
    plans = _Plans(low, op, falls)
    plans.make()
    if plans.jumps:
        low.frozen.append(_local_to_the_loop(low, plans.keys))
    outer, low.values = low.values, low.values + (plans.value is not None)
    blocks = [
        nested(low, lambda r=region: _branch(low, op, r, plans))  # type: ignore[misc]
        for region in op.regions
    ]
    low.values = outer
    if plans.jumps:
        low.frozen.pop()
    e = rust.If(rust.call("to_bool", cond), *blocks)
    if plans.value is None:
        low.emit(rust.Do(e, note))
    else:
        r = op.results[plans.value]
        target = low.targets.get(r)
        # In cutile 0.5 the branches and loops around don't hand on what the right-hand side of an assignment assigns.
        if target is not None and not low.live(target, op, r) and not any(map(_assigned_outside, blocks)):
            low.emit(rust.Assign(target, e, note))
            low.hold(r, target)
        else:
            key = low.define(r, None)
            low.emit(rust.Let((key,), (low.variables[key].type,), e, note=note))
    for r, key in zip(op.results, plans.keys, strict=True):
        if key is not None:
            low.hold(r, key)


def _assigned_outside(block: Sequence[rust.Stmt]) -> set[Key]:
    """The variables from outside of a block that it assigns."""
    own: set[Key | None] = set()
    found: set[Key] = set()
    for stmt in block:
        found |= {key for inner in rust.blocks_of(stmt) for key in _assigned_outside(inner)} - own
        if isinstance(stmt, rust.Assign):
            found |= {stmt.var} - own
        elif isinstance(stmt, rust.Let):
            own.update(stmt.vars)
    return found


def _local_to_the_loop(low: Lowering, besides: Sequence[Key | None]) -> frozenset[Key]:
    """Variables that are declared in the innermost loop's body."""
    return frozenset(k for k, v in low.variables.items() if v.depth == len(low.loops) and k not in besides)


def _branch(low: Lowering, op: Op, region: Block, plans: _Plans) -> None:
    end = region.ops[-1]
    keys = plans.keys_of(end) if end.opcode == "yield" else []
    if end.opcode == "yield":
        aim(low, region, end.operands, keys)
        if plans.value is not None:
            low.tails.add(end.operands[plans.value])
    low.ops(Block(region.params, region.ops[:-1]))
    if end.opcode != "yield":
        low.ops(Block([], [end]))
        return
    low.comments.extend(c.text for c in end.comments)
    if plans.value is None:
        hand_over(low, end.operands, keys, end)
        return
    last = end.operands[plans.value]
    others = [(v, k) for v, k in zip(end.operands, keys, strict=True) if k is not None]
    if not others:
        (tail,) = low.take([last])
    else:
        _keep_for_tail(low, last, others, end)
        hand_over(low, [v for v, _ in others], [k for _, k in others], end)
        (tail,) = low.take([last])
    low.flush()
    low.block.append(rust.Tail(tail, low.note(end)))


def _keep_for_tail(low: Lowering, last: Value, others: Sequence[tuple[Value, Key]], end: Op) -> None:
    """Copy what a branch ends with out of a variable that is assigned before."""
    held = low.bound.get(last)
    if held is None or not any(_mentions(held, k) for v, k in others if low.bound.get(v) != rust.Var(k)):
        return
    low.flush()
    key = (end, "tail")
    low.variable(key, low.author(last) or "result", low.generics.type(last.ty))
    low.emit(rust.Let((key,), (low.variables[key].type,), held, note=low.note(end)))
    low.hold(last, key)


class _Plans:
    """Where each result of an ``if`` goes: a variable (``keys``), or the value of the expression (``value``)."""

    def __init__(self, low: Lowering, op: Op, falls: list[bool]) -> None:
        self.low, self.op, self.falls = low, op, falls
        self.keys: list[Key | None] = [None] * len(op.results)
        self.value: int | None = None
        self.initial: dict[int, rust.Expr] = {}  # what a variable made for a result holds before the branch
        self.yields = [r.ops[-1].operands for r, f in zip(op.regions, falls, strict=True) if f]
        self.jumps = any(jumps_of(r) for r in op.regions)

    def make(self) -> None:
        """Choose."""
        rest = []
        for i, r in sorted(enumerate(self.op.results), key=lambda each: each[1] not in self.low.targets):
            if not all(self.falls) and (known := self.low.bound.get(self.yields[0][i])) is not None:
                self.low.bound[r] = known  # only one branch goes on, and what it hands over exists already
                continue
            key = self._existing(i)
            if key is None:
                rest.append(i)
            else:
                self.keys[i] = key
                self.low.variables[key].mutable = True
        rest.sort()
        if self.jumps:
            # The type of the expression is that of its first branch, and the rest has to live outside of the loop.
            if rest and self.falls[0]:
                self.value = rest.pop()
            for i in rest:
                self._new_variable(i, hoisted=True)
            return
        if len(rest) == 1 and self.low.values < _NESTED_VALUES:
            self.value = rest[0]
            return
        outside = [i for i in rest if self._outside(i) is not None]
        inside = [i for i in rest if i not in outside]
        if inside and self.low.values < _NESTED_VALUES:
            self.value = inside.pop()
        for i in outside + inside:
            self._new_variable(i)

    def _existing(self, i: int) -> Key | None:
        """A variable that one branch leaves as it is, and whose old value nobody needs later."""
        low, op = self.low, self.op
        r = op.results[i]
        target = low.targets.get(r)
        if target is not None and target not in self.keys and not low.live(target, op, r):
            values = low.variables[target].values
            if not any(ys[j] in values for ys in self.yields for j in range(len(ys)) if j != i):
                return target
        reserved = {low.targets.get(other) for other in op.results if other is not r}
        for y in (ys[i] for ys in self.yields):
            e = low.bound.get(y)
            if not isinstance(e, rust.Var) or e.key not in low.variables or e.key in self.keys:
                continue
            variable = low.variables[e.key]
            same = low.author(r) in ("", variable.hint) or isinstance(r.ty, TokenTy)
            here = all(low.uses.loop_of.get(v) is low.uses.loop_of[r] for v in (y, variable.values[-1]))
            elsewhere = any(ys[j] in variable.values for ys in self.yields for j in range(len(ys)) if j != i)
            free = low.assignable(e.key) and e.key not in reserved
            free = free and not (self.jumps and variable.depth == len(low.loops))
            if same and here and not elsewhere and variable.values and free and not low.live(e.key, op):
                return e.key
        return None

    def _outside(self, i: int) -> rust.Expr | None:
        """A yielded value that exists before the ``if``."""
        for ys in self.yields:
            if ys[i] in self.low.bound and not isinstance(ys[i].ty, TokenTy):
                return self.low.bound[ys[i]]
            if ys[i] in self.low.bound:
                return self.low.bound[ys[i]]
        return None

    def _new_variable(self, i: int, *, hoisted: bool = False) -> None:
        low, r = self.low, self.op.results[i]
        e = None if hoisted else self._outside(i)
        key = (self.op, "result", i)
        low.variable(key, low.author(r) or "result", low.generics.type(r.ty))
        variable = low.variables[key]
        variable.mutable = True
        let = rust.Let((key,), (variable.type,), self._dummy(r.ty) if e is None else e)
        if hoisted:
            variable.depth -= 1
            low.loops[-1].hoisted.append(let)
        else:
            low.emit(let)
            if e is not None:
                self.initial[i] = e
        self.keys[i] = key

    def keys_of(self, end: Op) -> list[Key | None]:
        """The variables that a branch has to assign: those that don't hold its value already."""
        bound = [self.low.bound.get(v) for v in end.operands]
        return [None if i in self.initial and bound[i] == self.initial[i] else k for i, k in enumerate(self.keys)]

    def _dummy(self, ty: Type) -> rust.Expr:
        """Something of the type, for a variable that is always assigned before it is read."""
        if isinstance(ty, TokenTy):
            return rust.call("new_token_unordered")
        assert isinstance(ty, TileTy)
        self.low.dummies = True
        name, zero = ("const_f", "0.0") if ty.dtype.category == "float" else ("const_i", "0")
        return (
            _ZERO
            if ty == TileTy(I32)
            else rust.call(name, rust.Text(zero), rust.shape(self.low.generics.dims(ty.shape)))
        )


def _return(low: Lowering, op: Op) -> None:
    """The end of the kernel says nothing; elsewhere cutile 0.5 has it in a loop that no counted loop is around."""
    low.flush()
    if low.uses.block_of[op] is low.body:
        return
    if not low.loops or any(state.op.opcode == "for" for state in low.loops):
        low.hole(op, "E0605", "`return` here can't be written in cutile 0.5")
        return
    low.emit(rust.Jump("return", low.note(op)))


HANDLERS: dict[str, Callable[[Lowering, Op], None]] = {
    "for": _for,
    "loop": _loop,
    "if": _if,
    "continue": _jump,
    "break": _jump,
    "return": _return,
}
