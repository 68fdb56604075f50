"""Constructs that no rule maps, over a run: how often each came up, what fills it, what that took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from transpiler.batch import Results
from transpiler.coverage.model import HoleKindRow
from transpiler.ir.construct import Construct
from transpiler.overrides import Override

_PLACES = 20


@dataclass
class _Met:
    """What is known of one construct: the checks that met it open and filled, and where."""

    construct: Construct | None = None
    name: str = ""
    code: str = ""
    open: set[tuple[str, str, str]] = field(default_factory=set)
    filled: set[tuple[str, str, str]] = field(default_factory=set)
    raised: set[tuple[str, str, str]] = field(default_factory=set)
    overrides: dict[str, str] = field(default_factory=dict)
    places: set[tuple[str, int]] = field(default_factory=set)


def hole_rows(results: Results, overrides: Sequence[Override]) -> list[HoleKindRow]:
    """Return a row a construct, what came up most often first; a check is counted once."""
    met: dict[str, _Met] = {}
    for name, translation in sorted(results.translations.items()):
        for site in translation.sites:
            one = met.setdefault(site.site.construct.digest, _Met())
            span = site.site.diagnostic.span
            one.construct, one.code = site.site.construct, site.site.diagnostic.code
            one.open.add((name, site.kernel, site.specialization.name))
            one.places.add((span.file, span.line))
        for kernel in translation.plan.kernels:
            for check in (c for e in kernel.entries for c in e.checks):
                for filled in check.filled:
                    one = met.setdefault(filled.hole, _Met())
                    place = (name, kernel.name, check.specialization.name)
                    one.name = filled.name
                    one.filled.add(place)
                    if filled.kind == "raised":
                        one.raised.add(place)
                    one.overrides[filled.override] = filled.model
                    one.places.add((translation.plan.source, filled.line))
    known = {override.key: override for override in overrides}
    rows = [_row(digest, one, known) for digest, one in met.items()]
    return sorted(rows, key=lambda row: (-row.uses, -len(row.kernels), row.name, row.digest))


def _row(digest: str, one: _Met, known: dict[str, Override]) -> HoleKindRow:
    used = [known[key] for key in sorted(one.overrides) if key in known]
    evidence = [override.evidence for override in used if override.evidence is not None]
    stated = next((override.hole for override in used if override.hole is not None), None)
    kind = one.construct.kind if one.construct is not None else stated.kind if stated is not None else "other"
    checks = one.open | one.filled
    name = one.construct.name if one.construct is not None else one.name
    return HoleKindRow(
        digest=digest, name=name, kind=kind, code=one.code, uses=len(checks), open=len(one.open),
        filled=len(one.filled), raised=len(one.raised),
        kernels=sorted({f"{operator}.{kernel}" for operator, kernel, _ in checks}), overrides=sorted(one.overrides),
        models=sorted(set(one.overrides.values())), tokens=sum(e.tokens for e in evidence),
        cost=round(sum(e.cost or 0.0 for e in evidence), 6),
        places=[f"{file}:{line}" for file, line in sorted(one.places)][:_PLACES],
    )  # fmt: skip
