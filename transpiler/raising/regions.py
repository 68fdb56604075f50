"""Loops and branches.

What follows a branch that leaves the kernel goes into the other branch: cutile takes `return` at the end only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from transpiler.ir.tir import TERMINATORS, Block, Value
from transpiler.ir.types import PtrTy, TileTy, Type
from transpiler.raising.refusal import refused
from transpiler.raising.types import type_of
from transpiler.tileir.model import Op as TileOp
from transpiler.tileir.model import Region

if TYPE_CHECKING:
    from transpiler.raising.lift import Lifter


def body(low: Lifter, region: Region) -> Block:
    """The operations of a kernel, its `return` at the end; a loop that runs once where branches leave it in part."""
    low.once = any(_leaves_in_part(op) for op in region.ops)
    if low.once:
        low.loops.append([])
        block = _inside(low, (), lambda: _fill(low, region.ops, lambda: None), "break")
        low.loops.pop()
        low.emit("loop", (), ()).regions = (block,)
    else:
        _fill(low, region.ops, lambda: None)
    low.emit("return", (), ())
    return low.block


def _inside(low: Lifter, params: Sequence[Value], write: Callable[[], None], end: str) -> Block:
    """A block of its own; ``end`` is the terminator where none is written."""
    outer, low.block = low.block, Block(list(params))
    write()
    if not (low.block.ops and low.block.ops[-1].opcode in TERMINATORS):
        low.emit(end, (), ())
    found, low.block = low.block, outer
    return found


def _fill(low: Lifter, ops: Sequence[TileOp], after: Callable[[], None]) -> None:
    """Append operations, then what comes ``after`` them; a branch that leaves the kernel takes none of that."""
    for at, op in enumerate(ops):
        if not low.loops and op.name == "return":
            return
        if not low.loops and op.name == "if" and _leaves(op):
            _early_return(low, op, lambda rest=ops[at + 1 :]: _fill(low, rest, after))  # type: ignore[misc]
            return
        low.op(op)
    after()


def _leaves(op: TileOp) -> bool:
    """Is the kernel left from one of the branches, or from a branch in them?"""
    inner = [o for region in op.regions for o in region.ops]
    return any(o.name == "return" or (o.name == "if" and _leaves(o)) for o in inner)


def _leaves_in_part(op: TileOp) -> bool:
    """Is there a branch, or one in a branch, that may leave the kernel and may go on?"""
    if op.name != "if" or not _leaves(op):
        return False
    return sum(map(_goes_on, op.regions)) > 1 or any(_leaves_in_part(o) for r in op.regions for o in r.ops)


def _goes_on(region: Region) -> bool:
    return not (region.ops and region.ops[-1].name == "return")


def _early_return(low: Lifter, op: TileOp, after: Callable[[], None]) -> None:
    """``if c {return}; rest`` as ``if c {} else {rest}``."""
    goes_on = [_goes_on(region) for region in op.regions]
    condition, span = low.values[op.operands[0]], low.span
    regions = tuple(
        _inside(low, (), lambda r=region, on=on: _way(low, op, r, after if on else lambda: None), "yield")  # type: ignore[misc]
        for region, on in zip(op.regions, goes_on, strict=True)
    )
    low.span = span
    low.emit("if", (condition,), ()).regions = regions


def _way(low: Lifter, op: TileOp, region: Region, after: Callable[[], None]) -> None:
    """One branch, with what follows the `if` when it goes on."""
    ends = region.ops and region.ops[-1].name in TERMINATORS
    given = region.ops[-1].operands if ends and region.ops[-1].name == "yield" else ()

    def then() -> None:
        for result, index in zip(op.results, given, strict=bool(given)):
            low.values[result] = low.values[index]
        after()

    _fill(low, region.ops[:-1] if ends else region.ops, then)


# -- loops --------------------------------------------------------------------------------------------


def _for(low: Lifter, op: TileOp) -> None:
    if op.form.get("unsigned") is not None:
        low.refuse("an unsigned loop has no form in cutile 0.5")
    lower, upper, step, *inits = (low.values[i] for i in op.operands)
    bounds = [low.signed(v, True) for v in (lower, upper, step)]
    induction, *carried = op.regions[0].args
    params = [_param(low, induction, bounds[0]), *(_param(low, i, v) for i, v in zip(carried, inits, strict=True))]
    low.names_result(params[0])
    _loop_op(low, op, "for", [*bounds, *inits], params, params[1:])


def _loop(low: Lifter, op: TileOp) -> None:
    inits = [low.values[i] for i in op.operands]
    params = [_param(low, i, v) for i, v in zip(op.regions[0].args, inits, strict=True)]
    for index, param in zip(op.results, params, strict=False):
        if low.printed(index) != low.printed(op.regions[0].args[params.index(param)]):
            low.refuse("a loop that ends with values of other types than it carries has no form in cutile 0.5")
    if len(op.results) != len(params):
        low.refuse("a loop that ends with other values than it carries has no form in cutile 0.5")
    _loop_op(low, op, "loop", inits, params, params)


def _loop_op(
    low: Lifter, op: TileOp, opcode: str, operands: Sequence[Value], params: Sequence[Value], carried: Sequence[Value]
) -> None:
    span = low.span
    low.loops.append([v.ty for v in carried])
    region = _inside(low, params, lambda: _fill(low, op.regions[0].ops, lambda: None), "continue")
    low.loops.pop()
    low.span = span
    made = low.define(op, opcode, operands, [v.ty for v in carried])
    made.regions = (region,)


def _param(low: Lifter, index: int, init: Value) -> Value:
    """A region's parameter has the type of what it starts with."""
    v = Value(init.ty)
    low.values[index] = v
    return v


# -- branches -----------------------------------------------------------------------------------------


def _if(low: Lifter, op: TileOp) -> None:
    condition, span = low.values[op.operands[0]], low.span
    types: list[Type] = []
    outer, low.yields = low.yields, types
    regions = [
        _inside(low, (), lambda r=region: _fill(low, r.ops, lambda: None), "yield")  # type: ignore[misc]
        for region in op.regions
    ]
    low.yields = outer
    low.span = span
    if len(types) != len(op.results):
        types = [type_of(low.printed(i)) for i in op.results]
    made = low.define(op, "if", (condition,), types)
    made.regions = tuple(regions)


def _yield(low: Lifter, op: TileOp) -> None:
    """The first branch that goes on decides the signs of integers."""
    values = [low.values[i] for i in op.operands]
    if not low.yields:
        low.yields.extend(v.ty for v in values)
    low.emit("yield", [_fitted(low, v, ty) for v, ty in zip(values, low.yields, strict=True)], ())


def _jump(low: Lifter, op: TileOp) -> None:
    values = [low.values[i] for i in op.operands]
    if not low.loops:
        raise refused(f"`{op.name}` outside of a loop", low.span)
    types = low.loops[-1]
    low.emit(op.name, [_fitted(low, v, ty) for v, ty in zip(values, types, strict=True)], ())


def _return(low: Lifter, op: TileOp) -> None:
    """In the loop that runs once, its end; in another loop cutile takes `return`, if it isn't a counted one."""
    low.emit("break" if low.once and len(low.loops) == 1 else "return", (), ())


def _fitted(low: Lifter, v: Value, ty: Type) -> Value:
    if isinstance(ty, TileTy):
        return low.coerced(v, ty.dtype)
    if isinstance(ty, PtrTy) and v.ty != ty:
        low.refuse(f"a pointer as {v.ty} and as {ty} has no form in cutile 0.5")
    return v


HANDLERS: dict[str, Callable[[Lifter, TileOp], None]] = {
    "for": _for,
    "loop": _loop,
    "if": _if,
    "yield": _yield,
    "continue": _jump,
    "break": _jump,
    "return": _return,
}
__all__ = ["HANDLERS", "body"]
