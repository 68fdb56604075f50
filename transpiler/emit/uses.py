"""Where the values of a function are defined and used: positions in program order."""

from __future__ import annotations

from transpiler.ir.tir import Block, Op, Value


class Uses:
    """Positions of operations, users of values, and the block and innermost loop around each."""

    def __init__(self, body: Block) -> None:
        self.position: dict[Op, int] = {}  # of the operation itself
        self.end: dict[Op, int] = {}  # of the last operation inside it
        self.users: dict[Value, list[Op]] = {}
        self.home: dict[Value, Block] = {}
        self.block_of: dict[Op, Block] = {}
        self.loop_of: dict[Value, Op | None] = {}  # the innermost loop that a value is defined in
        self.branches: dict[Op, dict[Op, int]] = {}  # the `if`s around an operation -> the branch that it is in
        self._block(body, None, {})

    def _block(self, block: Block, loop: Op | None, branches: dict[Op, int]) -> None:
        for p in block.params:
            self.home[p], self.loop_of[p] = block, loop
        for op in block.ops:
            self.position[op] = len(self.position)
            self.block_of[op] = block
            self.branches[op] = branches
            for v in op.operands:
                self.users.setdefault(v, []).append(op)
            for r in op.results:
                self.home[r], self.loop_of[r] = block, loop
            for i, region in enumerate(op.regions):
                inner = {**branches, op: i} if op.opcode == "if" else branches
                self._block(region, op if op.opcode in ("for", "loop") else loop, inner)
            self.end[op] = len(self.position) - 1

    def count(self, v: Value) -> int:
        """How often a value is used."""
        return len(self.users.get(v, ()))

    def used_inside(self, v: Value, op: Op) -> bool:
        """Is the value used by an operation inside ``op``?"""
        return any(self.position[op] < self.position[user] <= self.end[op] for user in self.users.get(v, ()))

    def used_after(self, v: Value, op: Op) -> bool:
        """Is the value used by an operation that may come after ``op`` and all that is inside it?"""
        end, here = self.end[op], self.branches[op]
        return any(
            self.position[user] > end and all(i == here.get(c, i) for c, i in self.branches[user].items())
            for user in self.users.get(v, ())
        )
