"""Move loads that a loop doesn't change to before it, where something waits for them.

The reference compiler moves everything that is invariant.  Where a value is computed doesn't show in it.
What waits for a load waits for each time that it is executed, though, and before the loop it is executed
even if the loop never runs.  So loads whose token is used are moved, with what they need, and those that are
the same as one of them; everything else stays where the author wrote it.
"""

from __future__ import annotations

from collections.abc import Hashable

from transpiler.ir.tir import EFFECTS, LOADS, Block, Kernel, Op, walk
from transpiler.passes.motion import Motion, carriers, defined, free


def move_loads(kernel: Kernel) -> None:
    """Move invariant loads out of loops, inner loops first; tokens must have been threaded."""
    used = {v for op in walk(kernel.body) for v in op.operands}
    loads = [op for op in walk(kernel.body) if op.opcode in LOADS]
    waited_for = {op for op in loads if op.results[-1] in used}
    if waited_for and len(waited_for) < len(loads):
        numbers = _numbers(kernel.body)
        same = {numbers[op] for op in waited_for}
        waited_for = {op for op in loads if numbers[op] in same}
    _visit(kernel.body, Motion(kernel), waited_for)


def _numbers(body: Block) -> dict[Op, int]:
    """Equal numbers for operations that give the same (value numbering, as far as it is needed here)."""
    numbers: dict[Op, int] = {}
    known: dict[Hashable, int] = {}
    for op in walk(body):  # what is used is defined earlier
        key: Hashable = op
        if op.results and not op.regions and op.opcode not in EFFECTS:
            operands = tuple((numbers[v.op], v.op.results.index(v)) if v.op is not None else v for v in op.operands)
            key = op.opcode, repr(sorted(op.attrs.items())), operands, str(op.results[0].ty)
        numbers[op] = known.setdefault(key, len(known))
    return numbers


def _visit(block: Block, motion: Motion, waited_for: set[Op]) -> None:
    for op in list(block.ops):
        for region in op.regions:
            _visit(region, motion, waited_for)
        loops = op.opcode in ("for", "loop", "if") and not op.is_body  # to the reference a kernel's body is no loop
        for region in op.regions if loops else ():
            at = block.ops.index(op)
            block.ops[at:at] = moved = _taken_out(op, region, motion, waited_for)
            for each in moved:  # it stands where the loop or branch stands now
                each.follows_return = op.follows_return
                motion.place(each, op)


def _taken_out(parent: Op, body: Block, motion: Motion, waited_for: set[Op]) -> list[Op]:
    """Remove the operations to move from a loop's body or a branch, in order."""
    inside = defined(body)
    around = set(parent.sites())
    movable: dict[Op, None] = {}
    for op in body.ops:
        leaves = motion.may_leave_branch(op) if parent.opcode == "if" else carriers(op) <= around
        if leaves and motion.harmless(op) and all(v not in inside or v.op in movable for v in free(op)):
            movable[op] = None
    wanted: dict[Op, None] = {}
    for op in reversed(movable):
        if op in wanted or op.opcode in ("for", "loop") or op in waited_for:
            wanted[op] = None
            wanted |= dict.fromkeys(v.op for v in free(op) if v.op in movable)
    body.ops = [op for op in body.ops if op not in wanted]
    return [op for op in movable if op in wanted]
