"""Refusals after cuda-tile: it exports Tile IR without checking it, and NVIDIA's other tools refuse some of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from transpiler.cubin import assemble
from transpiler.diagnostics import Diagnostic, Span, TranspileError
from transpiler.reference.export import ReferenceRejected

_LOCATION = re.compile(r'loc\("([^"]*)":(\d+):(\d+)\)')
_UNREADABLE = "failed to read provided Tile IR bytecode"
_ASSEMBLER_LIMIT = 120.0
_HELP = "cuTile Python can't run the kernel for this specialization"


def ill_formed(failure: TranspileError, kernel: str, own: Sequence[Diagnostic]) -> ReferenceRejected | None:
    """What a failed disassembly of the reference's bytecode says, None when it failed for another reason.

    ``own`` is why we refused the kernel too, if we did: it has a place where the disassembler names none.
    """
    found = unreadable(failure)
    if found is None:
        return None
    reason, place = found
    span = place or (own[0].span if own else Span("", 0, 0))
    message = f"cuda-tile compiles `{kernel}`, but to ill-formed Tile IR: {reason}"
    return ReferenceRejected(Diagnostic("E0221", message, _HELP, "error", span), "ill-formed Tile IR")


def unreadable(failure: TranspileError) -> tuple[str, Span | None] | None:
    """Why a disassembly says that bytecode is ill-formed, and where; None when it failed for another reason."""
    said = failure.diagnostic.message
    if failure.diagnostic.code != "E0652" or _UNREADABLE not in said:
        return None
    reasons = [re.sub(r"^(error: )?error at offset \d+: ", "", reason) for reason in re.findall(r"error: (.*)", said)]
    place = _LOCATION.search(said)
    span = Span(place[1], int(place[2]), int(place[3])) if place else None
    return reasons[0] if reasons else said, span


def assembler_refusal(bytecode: bytes, target: str, kernel: str, own: Diagnostic) -> Diagnostic | None:
    """Why tileiras refuses the reference's bytecode of a kernel that we refused too, None when it takes it.

    ``own`` is our reason, which has the better place.  Raises E0650 when there is no assembler.
    """
    try:
        assemble(bytecode, arch=target, timeout=_ASSEMBLER_LIMIT)
    except TranspileError as failure:
        if failure.diagnostic.code != "E0660":
            raise
        message = f"cuda-tile compiles `{kernel}`, but {failure.diagnostic.message}"
        return replace(own, code="E0221", message=f"{message}; {own.message}", help=_HELP)
    return None
