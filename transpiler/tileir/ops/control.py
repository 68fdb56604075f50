"""Structured control flow: loops, branches, and how regions end.

A control operation's function takes the environment (all values of the entry) and returns a signal, the
terminator that is left for an operation further out to handle, or None.
"""

from __future__ import annotations

from typing import Any

from transpiler.tileir.elements import BITS, dtype_of
from transpiler.tileir.model import tile_type
from transpiler.tileir.ops.row import MANY, Function, rows
from transpiler.tileir.ops.site import Env, Signal, Site


def _for(site: Site) -> Function:
    """Count from the lower to the upper bound; ``continue`` hands the carried values to the next iteration."""
    low, high, step, *inits = site.op.operands
    body, machine = site.regions[0], site.machine
    element = tile_type(site.operand_types[0]).element
    dtype = dtype_of(element)
    wrap = (1 << BITS[element]) - 1 if site.has("unsigned") else -1
    index, carried = body.args[0], body.args[1:]

    def run(env: Env) -> Signal | None:
        at, end, by = (int(env[v]) & wrap for v in (low, high, step))
        if by <= 0:
            machine.report("undefined", site.op, f"the step of a loop is {by}, it has to be positive")
            end = at
        values: tuple[Any, ...] = tuple([env[v] for v in inits])
        while at < end:
            machine.step()
            env[index] = dtype.type(at if at <= wrap >> 1 or wrap < 0 else at - wrap - 1)
            for arg, value in zip(carried, values, strict=True):
                env[arg] = value
            signal = body.run(env)
            if signal is not None:
                if signal[0] == "return":
                    return signal
                values = signal[1]
                if signal[0] == "break":
                    break
            at += by
        for result, value in zip(site.op.results, values, strict=True):
            env[result] = value
        return None

    return run


def _loop(site: Site) -> Function:
    """Repeat until ``break``, whose operands are the results."""
    inits, body, machine = site.op.operands, site.regions[0], site.machine

    def run(env: Env) -> Signal | None:
        values: tuple[Any, ...] = tuple([env[v] for v in inits])
        while True:
            machine.step()
            for arg, value in zip(body.args, values, strict=True):
                env[arg] = value
            signal = body.run(env)
            if signal is None:
                continue
            if signal[0] == "return":
                return signal
            values = signal[1]
            if signal[0] == "break":
                break
        for result, value in zip(site.op.results, values, strict=True):
            env[result] = value
        return None

    return run


def _if(site: Site) -> Function:
    """Run one of two regions; ``yield`` gives the results, every other terminator is handed on."""
    (condition,), (then, orelse) = site.op.operands, site.regions
    results = site.op.results

    def run(env: Env) -> Signal | None:
        signal = (then if env[condition] else orelse).run(env)
        if signal is None:
            return None
        if signal[0] != "yield":
            return signal
        for result, value in zip(results, signal[1], strict=True):
            env[result] = value
        return None

    return run


def _terminator(site: Site) -> Function:
    """Leave the region with values."""
    name, operands = site.name, site.op.operands

    def run(env: Env) -> Signal:
        return name, tuple([env[v] for v in operands])

    return run


ROWS = {
    **rows("for", (3, MANY), "unsigned", make=_for, kind="control", results=(0, MANY), regions=1),
    **rows("loop", (0, MANY), make=_loop, kind="control", results=(0, MANY), regions=1),
    **rows("if", 1, make=_if, kind="control", results=(0, MANY), regions=2),
    **rows("yield continue break return", (0, MANY), make=_terminator, kind="control", results=(0, 0)),
}
