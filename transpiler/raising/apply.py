"""Raised overrides in a translation: a kernel with Holes gets the program that the reference's Tile IR holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from transpiler import passes
from transpiler.emit.entry import EmittedEntry, emit_entry
from transpiler.ir import hir
from transpiler.ir.construct import Construct, FilledSite, HoleSite
from transpiler.ir.symbolic import leaves_of
from transpiler.ir.tir import Kernel
from transpiler.ir.trace import RuleTrace
from transpiler.overrides import Override
from transpiler.raising.hole import HoleRaiser
from transpiler.raising.lift import Names
from transpiler.raising.raise_kernel import About, exact_conditions, raise_kernel
from transpiler.raising.refusal import refused
from transpiler.select import Table
from transpiler.selection import Selection
from transpiler.spec import Specialization
from transpiler.specialize.kernel import specialize
from transpiler.tileir.parse import parse_entry

_LIMIT = 100


def missing_rules(sites: tuple[HoleSite, ...]) -> tuple[str, ...]:
    """What each Hole lacks a rule for, in the words of its diagnostic, each once."""
    return tuple(dict.fromkeys(f"{s.diagnostic.code}: {s.diagnostic.message}" for s in sites))


def raised_entry(
    holed: tuple[Kernel, EmittedEntry], override: Override, one: Specialization, target: str, names: Names, forms: Table
) -> tuple[Kernel, EmittedEntry]:
    """Return the program of an override and its entry, in the place of one with Holes; E0610 for what has no form."""
    kernel, emitted = holed
    about = About.of(kernel, names)
    entry = parse_entry(override.body, f"override {override.key}")
    raised = raise_kernel(entry, about, one, one.target or target)
    raised.comments = (*_marks("raised:", [override], one), *raised.comments)
    made = emit_entry(raised, "", forms)
    for d in (d for d in made.diagnostics if d.severity == "error"):
        raise refused(f"an operation can't be raised: {d.message}", d.span)
    filled = tuple(_filled(site, override) for site in emitted.sites)
    # no rule made it, so that it counts for none
    return raised, replace(made, filled=filled, trace=RuleTrace())


def filled_entry(
    program: hir.Program, kernel: str, overrides: Sequence[Override], one: Specialization, target: str,
    selection: Selection,
) -> tuple[Kernel, EmittedEntry]:  # fmt: skip
    """Return a kernel's program with the overrides in the place of its Holes; E0610 where some can't be filled."""
    keys = {o.hole.value(): o.key for o in overrides if o.hole is not None}
    entry = parse_entry(overrides[0].body, f"override {overrides[0].key}")
    filler = HoleRaiser(entry, one.target or target, keys)
    left = passes.run(specialize(program, kernel, one, selection.rules, selection.fragments, filler))
    pinned = tuple(exact_conditions(one, divisors=True))
    leaves = {c.sym for c in pinned}
    left.conditions = (*(c for c in left.conditions if not leaves.issuperset(leaves_of(c.sym))), *pinned)
    lines = ", ".join(dict.fromkeys(str(f.line) for f in left.filled if f.kind == "raised"))
    left.comments = (*_marks(f"raised in part: line {lines} is", overrides, one), *left.comments)
    made = emit_entry(left, "", selection.forms, selection.fragments)
    for d in (*left.holes, *(d for d in made.diagnostics if d.severity == "error")):
        raise refused(f"the kernel has other Holes, too: {d.message}", d.span)
    return left, made


def _filled(site: HoleSite, override: Override) -> FilledSite:
    span = site.diagnostic.span
    construct: Construct = site.construct
    return FilledSite(construct, override.key, override.model, span.file, span.line, "raised")


def _marks(what: str, overrides: Sequence[Override], one: Specialization) -> tuple[str, ...]:
    """The comment above a raised entry."""
    missing = dict.fromkeys(text for override in overrides for text in override.missing)
    head = f"{what} made of the reference's Tile IR for the specialization `{one.name}`; what rules lack:"
    return (head, *(_short(f"  {text}") for text in missing))


def _short(text: str) -> str:
    flat = " ".join(text.split("\n"))
    return flat if len(flat) <= _LIMIT else flat[: _LIMIT - 3] + "..."


__all__ = ["filled_entry", "missing_rules", "raised_entry"]
