"""What the reference compiler also does to a program and bits depend on, in its order."""

from __future__ import annotations

from transpiler.ir.tir import Kernel
from transpiler.passes.dce import eliminate_dead_code
from transpiler.passes.divisibility import state_divisors
from transpiler.passes.fma import fuse_multiply_add
from transpiler.passes.load_motion import move_loads
from transpiler.passes.loop_split import split_loops
from transpiler.passes.refusals import refuse_live
from transpiler.passes.token_order import order_tokens


def run(kernel: Kernel) -> Kernel:
    """All passes, in place; returns the kernel."""
    eliminate_dead_code(kernel)
    state_divisors(kernel)
    order_tokens(kernel)
    eliminate_dead_code(kernel)
    move_loads(kernel)
    fuse_multiply_add(kernel)
    split_loops(kernel)
    eliminate_dead_code(kernel, last=True)
    refuse_live(kernel)
    return kernel
