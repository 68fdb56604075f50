"""What a piece of Rust in the place of a construct can't mend, and what to do instead."""

from __future__ import annotations

from transpiler.agents.operations import Operations
from transpiler.diagnostics import Diagnostic
from transpiler.frontend.constructs import CONSTRUCTS
from transpiler.ir.construct import HoleSite

_RAISE = "`transpile fill DIR --raise` takes the kernel from the reference's own Tile IR instead"
_WHY: dict[str, tuple[str, str]] = {
    "E0304": ("tensors of cutile 0.5 count in i32, so no Rust can index an array with 64 bits",
              "use arrays whose sizes and strides fit in 32 bits"),
    "E0603": ("loops of cutile 0.5 count in i32, or in i64 by a step that is written out", "count in int32"),
    "E0605": ("cutile 0.5 takes `return` only at the end, and in a `while` that no `for` is around",
              "move the rest into the other branch"),
}  # fmt: skip
_NO_VALUE = "Rust can only stand for values of the tile program"
_ORDERED = "tokens order it with memory, and the Rust of a call is given no tokens"


def unfillable(site: HoleSite, found: Operations) -> Diagnostic | None:
    """Why no task is made of a Hole, and the way out; None where a piece of Rust can fill it.

    Rust stands for a value: for a call, an attribute, or an operation of the tile program, whose tokens are operands.
    """
    met, kind = site.diagnostic, site.construct.kind
    if kind == "call" and found.ordered:
        return _refusal(met, f"the reference makes `{found.ordered[0]}` of it: {_ORDERED}", f"{_own_help(met)}{_RAISE}")
    if kind == "call" and not found.own and not site.inputs:
        return _refusal(met, f"the reference makes no operation of it, it is known while compiling; {_NO_VALUE}",
                        f"{_own_help(met)}{_RAISE}")  # fmt: skip
    if kind in ("call", "operation"):
        return None
    why, way = _WHY.get(met.code, ("Rust can stand for a call, an attribute or an operation, and this is none", ""))
    return _refusal(met, why, way or f"{_own_help(met)}{_RAISE}")


def unasked(site: HoleSite) -> Diagnostic:
    """That the reference can't be asked: what the kernel uses isn't known without running its module."""
    met = site.diagnostic
    return _refusal(met, "the reference compiler can't be given the kernel with all that it uses",
                    f"{_own_help(met)}give what it uses one value at module level")  # fmt: skip


def _refusal(met: Diagnostic, why: str, way: str) -> Diagnostic:
    return Diagnostic(met.code, f"{met.message}: {why}; {way}", way, "error", met.span)


def _own_help(met: Diagnostic) -> str:
    """What the Hole's own diagnostic says to do, where it says more than where to read on."""
    construct = CONSTRUCTS.get(met.code)
    own = construct.help if construct is not None else "" if met.help.startswith("transpile ") else met.help
    return f"{own}; or " if own else ""
