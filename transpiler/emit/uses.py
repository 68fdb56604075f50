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
        self._block(body, None)

    def _block(self, block: Block, loop: Op | None) -> None:
        for p in block.params:
            self.home[p], self.loop_of[p] = block, loop
        for op in block.ops:
            self.position[op] = len(self.position)
            self.block_of[op] = block
            for v in op.operands:
                self.users.setdefault(v, []).append(op)
            for r in op.results:
                self.home[r], self.loop_of[r] = block, loop
            for region in op.regions:
                self._block(region, op if op.opcode in ("for", "loop") else loop)
            self.end[op] = len(self.position) - 1

    def count(self, v: Value) -> int:
        """How often a value is used."""
        return len(self.users.get(v, ()))

    def used_after(self, v: Value, position: int) -> bool:
        """Is the value used by an operation that comes later?"""
        return any(self.position[op] > position for op in self.users.get(v, ()))
