"""Kernels as hypothesis draws them: a few uses of rows of the rule table and of constructs, then stores."""

from __future__ import annotations

import functools
from collections.abc import Callable

from hypothesis import strategies as st

from fuzz import arith, cast, control, flow, index, math_, memory, mma, reduce, shape, views
from fuzz.draw import Draw
from fuzz.families import Producer
from fuzz.kernel import Kernel
from fuzz.memory import store_value
from fuzz.writer import Writer
from transpiler.rules import Rule, table

PRODUCERS: dict[str, Producer] = {}
for family in (arith, cast, index, math_, memory, mma, reduce, shape, views):
    PRODUCERS |= family.PRODUCERS
CONSTRUCTS: dict[str, Callable[[Writer], None]] = {
    function.__name__: function for function in (
        control.assign, control.choice, control.branch, control.known_branch, control.counted_loop,
        control.while_loop, control.both_ways, control.static_loop, control.unpacking, control.star,
        control.module_constant, control.helper, control.early_return)
}  # fmt: skip
NOT_DRAWN: dict[str, str] = {}
"""Rows that no kernel can use here, with the reason."""


@functools.cache
def rows() -> tuple[Rule, ...]:
    """The rows that kernels are drawn from: all that have a mapping."""
    return tuple(row for row in table() if row.status == "exact" and row.key not in NOT_DRAWN)


def focuses() -> tuple[str, ...]:
    """What a kernel can be about: every row, every construct, and control flow."""
    return (*(row.key for row in rows()), *CONSTRUCTS, *flow.FOCUSES)


def step(w: Writer) -> None:
    """One use of a row, or one construct."""
    if w.frame.indent <= control.NESTING and w.draw.chance(25):
        w.draw.pick(tuple(CONSTRUCTS.values()))(w)
    else:
        _use(w, w.draw.pick(rows()))


def _use(w: Writer, row: Rule) -> None:
    made = PRODUCERS[row.key](w, row)
    if made is None:
        return
    if w.draw.chance(20):
        store_value(w, made)  # under no name of its own
        return
    v = w.let(made)
    if w.draw.chance(50):
        store_value(w, v)


@st.composite
def kernels(draw: st.DrawFn, focus: str) -> Kernel:
    """Well-typed kernels with a use of a row or construct; the reference takes most of them."""
    if focus in flow.FOCUSES:
        return flow.kernel(Draw(draw))
    w = Writer(Draw(draw))
    if w.draw.chance(15):
        w.hints["occupancy"] = str(w.draw.number(1, 4))
    if w.draw.chance(10):
        w.hints["num_ctas"] = str(w.draw.pick((1, 2, 4)))
    before, after = w.draw.pick((0, 0, 1, 2)), w.draw.pick((0, 0, 1, 2))
    for _ in range(before):
        step(w)
    if focus in CONSTRUCTS:
        CONSTRUCTS[focus](w)
    else:
        _use(w, next(row for row in rows() if row.key == focus))
    for _ in range(after):
        step(w)
    for v in list(w.frame.visible):
        if not w.draw.chance(25):
            store_value(w, v)
    return w.kernel()
