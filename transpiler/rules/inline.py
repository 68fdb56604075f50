"""Rows whose lowering is Rust: what promoted overrides become. One row a callee, with a variant a kind of call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from transpiler.ir.construct import Fragment, ResultType
from transpiler.rules.registry import Kind, Rule
from transpiler.select.fragments import parse_body
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.inline import described_call, inlined
from transpiler.specialize.values import Const, Val


@dataclass(frozen=True)
class Variant:
    """Rust for calls with these operands (kind, dtype, rank) and arguments, in the signature's order.

    ``arguments`` says how each parameter is passed: ``$0`` an operand, else the text of a compile-time value.
    """

    callee: str
    signature: str
    rust: str
    operands: tuple[str, ...]
    arguments: tuple[str, ...]
    results: tuple[ResultType, ...]
    accepts: tuple[Kind, ...] = ()
    attribute: bool = False

    @property
    def fragment(self) -> Fragment:
        """The Rust, under its own text as a name."""
        name = self.rust if "\n" not in self.rust else f"{self.callee}, in Rust"
        return Fragment(name, "", self.results, parse_body(self.rust))


def rules_of(variants: Iterable[Variant]) -> tuple[Rule, ...]:
    """Return a row for the variants of each callee; calls that no variant is for are Holes."""
    found: dict[tuple[str, str, tuple[Kind, ...], bool], list[Variant]] = {}
    for one in variants:
        found.setdefault((one.callee, one.signature, one.accepts, one.attribute), []).append(one)
    return tuple(
        Rule(callee, signature, "; ".join(f"`{v.fragment.key}`" for v in mine), _lowering(callee, mine), accepts,
             attribute=attribute)
        for (callee, signature, accepts, attribute), mine in found.items()
    )  # fmt: skip


def _lowering(callee: str, variants: Sequence[Variant]) -> Callable[..., Val]:
    def lower(ev: Evaluator, *args: Val, **kwargs: Val) -> Val:
        given = (*args, *kwargs.values())
        texts, types, values = described_call(ev, given)
        mine = next((v for v in variants if (v.arguments, v.operands) == (texts, types)), None)
        if mine is None:
            ev.hole("E0301", f"`{callee}` has no rule for these arguments")
        for v in given:
            if isinstance(v, Const):
                ev.decide(v)
        return inlined(ev, mine.fragment, values)

    return lower


__all__ = ["ResultType", "Variant", "rules_of"]
