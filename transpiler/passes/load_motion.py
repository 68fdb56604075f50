"""Move loads that a loop doesn't change to before it, where something waits for them.

The reference compiler moves everything that is invariant (Muchnick, Advanced Compiler Design and
Implementation, 1997, section 13.2).  Where a value is computed doesn't show in it.  What waits for a load
waits for each time that it is executed, though, and before the loop it is executed even if the loop never
runs.  So loads whose token is used are moved, with what they need, and everything else stays where the
author wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator

from transpiler.ir.tir import EFFECTS, TERMINATORS, Block, Kernel, Op, Value, walk

_LOADS = ("load_view", "load_ptr")


def move_loads(kernel: Kernel) -> None:
    """Move invariant loads out of loops, inner loops first; tokens must have been threaded."""
    used = {v for op in walk(kernel.body) for v in op.operands}
    _visit(kernel.body, used)


def _visit(block: Block, used: set[Value]) -> None:
    for op in list(block.ops):
        for region in op.regions:
            _visit(region, used)
        for region in op.regions if op.opcode in ("for", "loop", "if") else ():
            at = block.ops.index(op)
            block.ops[at:at] = moved = _taken_out(region, used, branch=op.opcode == "if")
            for each in moved:  # it stands where the loop or branch stands now
                each.follows_return = op.follows_return


def _taken_out(body: Block, used: set[Value], *, branch: bool) -> list[Op]:
    """Remove the operations to move from a loop's body or a branch, in order."""
    inside = _defined(body)
    movable: dict[Op, None] = {}
    for op in body.ops:
        stays = branch and not op.follows_return and op.opcode != "assume"
        if not stays and _harmless(op) and all(v not in inside or v.op in movable for v in _free(op)):
            movable[op] = None
    wanted: dict[Op, None] = {}
    for op in reversed(movable):
        if op in wanted or _waited_for(op, used):
            wanted[op] = None
            wanted |= dict.fromkeys(v.op for v in _free(op) if v.op in movable)
    body.ops = [op for op in body.ops if op not in wanted]
    return [op for op in movable if op in wanted]


def _defined(body: Block) -> set[Value]:
    """What a loop's body defines, parameters included."""
    return {*body.params, *(v for op in walk(body) for v in (*op.results, *(p for r in op.regions for p in r.params)))}


def _free(op: Op) -> Iterator[Value]:
    """The values from outside that an operation uses, those of its regions included."""
    own = {v for region in op.regions for v in _defined(region)}
    yield from op.operands
    yield from (v for region in op.regions for inner in walk(region) for v in inner.operands if v not in own)


def _harmless(op: Op) -> bool:
    """May the operation be executed elsewhere, or more often?"""
    if op.opcode in EFFECTS | TERMINATORS:
        return False
    if op.opcode == "if" and any(region.ops[-1].opcode != "yield" for region in op.regions):
        return False
    inner = [o for region in op.regions for o in walk(region)]
    return not any(o.opcode in EFFECTS or o.opcode == "return" or o.attrs.get("ordering") == "acquire"
                   for o in (op, *inner))  # fmt: skip


def _waited_for(op: Op, used: set[Value]) -> bool:
    """Is it a load whose token is used, or is there one in it?"""
    inner = (o for region in op.regions for o in walk(region))
    return any(o.opcode in _LOADS and o.results[-1] in used for o in (op, *inner))
