"""Raised overrides in a translation: a kernel with Holes gets the program that the reference's Tile IR holds."""

from __future__ import annotations

from dataclasses import replace

from transpiler.emit.entry import EmittedEntry, emit_entry
from transpiler.ir.construct import Construct, FilledSite, HoleSite
from transpiler.ir.tir import Kernel
from transpiler.ir.trace import RuleTrace
from transpiler.overrides import Override
from transpiler.raising.lift import Names
from transpiler.raising.raise_kernel import About, raise_kernel
from transpiler.raising.refusal import refused
from transpiler.select import Table
from transpiler.spec import Specialization
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
    raised.comments = (*_marks(override, one), *raised.comments)
    made = emit_entry(raised, "", forms)
    for d in (d for d in made.diagnostics if d.severity == "error"):
        raise refused(f"an operation can't be raised: {d.message}", d.span)
    filled = tuple(_filled(site, override) for site in emitted.sites)
    # no rule made it, so that it counts for none
    return raised, replace(made, filled=filled, trace=RuleTrace())


def _filled(site: HoleSite, override: Override) -> FilledSite:
    span = site.diagnostic.span
    construct: Construct = site.construct
    return FilledSite(construct, override.key, override.model, span.file, span.line, "raised")


def _marks(override: Override, one: Specialization) -> tuple[str, ...]:
    """The comment above a raised entry."""
    lines = [f"raised: made of the reference's Tile IR for the specialization `{one.name}`, not by rules, which lack"]
    return (*lines, *(_short(f"  {text}") for text in override.missing))


def _short(text: str) -> str:
    flat = " ".join(text.split("\n"))
    return flat if len(flat) <= _LIMIT else flat[: _LIMIT - 3] + "..."


__all__ = ["missing_rules", "raised_entry"]
