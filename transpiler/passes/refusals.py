"""Refuse operations that are defined for no operands of their type, where something needs them.

The reference compiler types such an operation (``ct.cdiv`` of floats, ``**`` of integers) and finds out that it
has no machine operation for it when it writes its bytecode: after dead code is gone.
"""

from __future__ import annotations

from transpiler.diagnostics import error
from transpiler.ir.tir import Kernel, walk

_HELP = "cuTile Python rejects this program; correct the kernel"


def refuse_live(kernel: Kernel) -> None:
    """Raise E0401 for the first operation that isn't defined and is still there."""
    for op in walk(kernel.body):
        if op.opcode == "refused":
            raise error("E0401", op.attrs["message"], op.span, help=_HELP, status=1)
