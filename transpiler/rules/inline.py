"""Rows whose lowering is Rust: what a promoted override becomes, for calls of one kind."""

from __future__ import annotations

from collections.abc import Sequence

from transpiler.ir.construct import Fragment, ResultType
from transpiler.rules.registry import Kind, Rule
from transpiler.select.fragments import parse_body
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.inline import described_call, inlined
from transpiler.specialize.values import Const, Val


def inline_rule(
    callee: str, signature: str, rust: str, *, operands: Sequence[str], arguments: Sequence[str],
    results: Sequence[ResultType], accepts: tuple[Kind, ...] = (), attribute: bool = False,
) -> Rule:  # fmt: skip
    """Declare a row for calls with these operands (kind, dtype, rank) and arguments, in the signature's order.

    ``arguments`` says how each parameter is passed: ``$0`` an operand, else the text of a compile-time value. Calls
    that aren't of this kind are Holes.
    """
    name = rust if "\n" not in rust else f"{callee}, in Rust"
    fragment = Fragment(name, "", tuple(results), parse_body(rust))

    def lower(ev: Evaluator, *args: Val, **kwargs: Val) -> Val:
        given = (*args, *kwargs.values())
        texts, types, values = described_call(ev, given)
        if texts != tuple(arguments) or types != tuple(operands):
            ev.hole("E0301", f"`{callee}` has no rule for these arguments")
        for v in given:
            if isinstance(v, Const):
                ev.decide(v)
        return inlined(ev, fragment, values)

    return Rule(callee, signature, f"`{name}`", lower, accepts, attribute=attribute)


__all__ = ["ResultType", "inline_rule"]
