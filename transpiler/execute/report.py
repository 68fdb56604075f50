"""What executing a check means for its verdict, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from transpiler.diagnostics import Diagnostic, Span
from transpiler.execute.agree import Agreement, Counterexample, Side, SideFinding
from transpiler.report.model import Executed, Verdict
from transpiler.tileir.model import Entry, Loc, Op

HAZARDS = {"bounds": "W0721", "uninitialized": "W0722", "race": "W0723", "undefined": "W0724", "assumption": "W0724"}
"""Kind of finding -> code."""
_HELP = {
    "W0721": "if the inputs are ones that the kernel is called with, check the index before the access",
    "W0722": "write the array before it is read, or pass it initialized",
    "W0723": "order the accesses by tokens, use atomics, or give each tile block elements of its own",
    "W0724": "if the inputs are ones that the kernel is called with, exclude the case before the operation",
}
Place = Callable[[Loc], Span]


@dataclass(frozen=True)
class Sides:
    """Both entries, and how to find the Python line of a place in ours."""

    ours: Entry
    reference: Entry
    python: Place
    visible: bool
    """Whether all differences of the graphs are ones that show in results: facts and hints don't."""


def judged(
    verdict: Verdict, diagnostics: Sequence[Diagnostic], agreement: Agreement, sides: Sides, place: Span
) -> tuple[Verdict, tuple[Diagnostic, ...], Executed]:
    """Return the verdict after executing, all diagnostics, and the row of the report."""
    row = Executed(inputs=agreement.tried, valid=agreement.valid, exact=agreement.exact,
                   regions=list(agreement.regions), seconds=round(agreement.seconds, 3),
                   reason=agreement.reason)  # fmt: skip
    said = list(diagnostics)
    if agreement.counterexample is not None:
        alarm = verdict == "proved"
        said.append(_difference(agreement.counterexample, "E0709" if alarm else "E0708", sides, place))
        verdict = "error" if alarm else verdict
    elif agreement.valid and verdict == "differs" and sides.visible:
        verdict = "tested"
        said = [replace(d, severity="note", message=_tested(d, agreement)) for d in said]
    said += _hazards(agreement.findings, sides, place)
    if not agreement.valid:
        message = f"not executed: no inputs were found on which the kernel is defined ({agreement.reason})"
        said.append(Diagnostic("W0720", message, "", "note", place))
    return verdict, tuple(said), row


def _tested(difference: Diagnostic, agreement: Agreement) -> str:
    bits = "with equal bits" if agreement.exact == agreement.valid else "within the operations' tolerances"
    return f"{difference.message}\nexecuted on {agreement.valid} inputs: both sides agree, {bits}"


def _difference(found: Counterexample, code: str, sides: Sides, place: Span) -> Diagnostic:
    """Describe a counterexample: inputs, both values, both lines."""
    at = found.difference
    rows = ["the sides compute different results" if code == "E0708" else
            "executing contradicts the comparison of graphs: the judge or the interpreter is wrong"]  # fmt: skip
    rows.append(f"inputs:    {found.inputs.describe()}, {found.inputs.values} values")
    if at.array:
        rows.append(f"element:   {at.array}[{', '.join(map(str, at.index))}]")
        rows.append(f"ours:      {at.ours}{_written(sides.ours, at.ours_op)}")
        rows.append(f"reference: {at.reference}{_written(sides.reference, at.reference_op)}")
    else:
        rows.append(at.message)
    span = place
    if at.reference_op is not None and (loc := sides.reference.location(at.reference_op)) is not None:
        span = loc.in_python
    elif at.ours_op is not None and (loc := sides.ours.location(at.ours_op)) is not None:
        span = sides.python(loc)
    help_text = "if kernel.rs was changed by hand, look at the change; otherwise please report this"
    return Diagnostic(code, "\n".join(rows), help_text, "error", span)


def _written(entry: Entry, op: Op | None) -> str:
    if op is None:
        return "  (never written)"
    loc = entry.location(op)
    return f"  ({loc.file}:{loc.line})" if loc is not None else f"  (line {op.line} of the Tile IR)"


def _hazards(findings: Iterable[SideFinding], sides: Sides, place: Span) -> list[Diagnostic]:
    """One warning a hazard; the same one on both sides, which is the kernel's own, is said once."""
    merged: dict[tuple[str, str, str], tuple[SideFinding, set[Side], Span]] = {}
    for one in findings:
        span = _span(one, sides, place)
        key = (one.finding.kind, f"{span.file}:{span.line}", one.finding.op)
        known = merged.setdefault(key, (one, set(), span))
        known[1].add(one.side)
    said = []
    for one, both, span in merged.values():
        code = HAZARDS[one.finding.kind]
        side = "both sides" if len(both) == 2 else "our side" if one.side == "ours" else "the reference"
        x, y, z = one.finding.block
        message = f"{side}, tile block ({x}, {y}, {z}): `{one.finding.op}` {one.finding.message}"
        said.append(Diagnostic(code, message, _HELP[code], "warning", span))
    return said


def _span(one: SideFinding, sides: Sides, place: Span) -> Span:
    if one.finding.loc is None:
        return place
    if one.side == "reference":
        return one.finding.loc.in_python
    spans = [sides.python(loc) for loc in one.finding.callers]
    return next((span for span in spans if span.file == place.file), sides.python(one.finding.loc))
