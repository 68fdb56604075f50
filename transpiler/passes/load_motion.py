"""Move loads that a loop doesn't change to before it, where something waits for them.

The reference compiler moves everything that is invariant.  Where a value is computed doesn't show in it.
What waits for a load waits for each time that it is executed, though, and before the loop it is executed
even if the loop never runs.  So loads whose token is used are moved, with what they need, and everything
else stays where the author wrote it.
"""

from __future__ import annotations

from transpiler.ir.tir import Block, Kernel, Op, Value, walk
from transpiler.passes.motion import LOADS, Motion, carriers, defined, free


def move_loads(kernel: Kernel) -> None:
    """Move invariant loads out of loops, inner loops first; tokens must have been threaded."""
    used = {v for op in walk(kernel.body) for v in op.operands}
    _visit(kernel.body, Motion(kernel), used)


def _visit(block: Block, motion: Motion, used: set[Value]) -> None:
    for op in list(block.ops):
        for region in op.regions:
            _visit(region, motion, used)
        for region in op.regions if op.opcode in ("for", "loop", "if") else ():
            at = block.ops.index(op)
            block.ops[at:at] = moved = _taken_out(op, region, motion, used)
            for each in moved:  # it stands where the loop or branch stands now
                each.follows_return = op.follows_return
                motion.place(each, op)


def _taken_out(parent: Op, body: Block, motion: Motion, used: set[Value]) -> list[Op]:
    """Remove the operations to move from a loop's body or a branch, in order."""
    inside = defined(body)
    around = set(parent.site.calls()) if parent.site is not None else set()
    movable: dict[Op, None] = {}
    for op in body.ops:
        leaves = motion.may_leave_branch(op) if parent.opcode == "if" else carriers(op) <= around
        if leaves and motion.harmless(op) and all(v not in inside or v.op in movable for v in free(op)):
            movable[op] = None
    wanted: dict[Op, None] = {}
    for op in reversed(movable):
        if op in wanted or op.opcode in ("for", "loop") or (op.opcode in LOADS and op.results[-1] in used):
            wanted[op] = None
            wanted |= dict.fromkeys(v.op for v in free(op) if v.op in movable)
    body.ops = [op for op in body.ops if op not in wanted]
    return [op for op in movable if op in wanted]
