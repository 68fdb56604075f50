"""How every stage of filling a Hole ends: one of these models, and the text form for where a verdict crosses a process.

In text a verdict is the JSON of its model between ``<VALIDATOR_OUTPUT>`` and ``</VALIDATOR_OUTPUT>``, and a line
``VERDICT: OUTCOME`` that has to say the same; anything else is malformed.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from transpiler.agents.task import Answer
from transpiler.spec import Model


class Stage(StrEnum):
    """The stages, in order."""

    analyst = "analyst"
    writer = "writer"
    parser = "parser"
    compiler = "compiler"
    comparison = "comparison"
    validator = "validator"


class _Verdict(Model):
    """``detail`` is the smallest thing that is wrong; it goes back to the writer, or to the user."""

    detail: str = ""


class AnalystVerdict(_Verdict):
    """Is there a task?"""

    stage: Literal[Stage.analyst] = Stage.analyst
    outcome: Literal["ready", "not_fillable", "reference_refused", "environment_broken", "too_large"]
    tokens: int = 0


class WriterVerdict(_Verdict):
    """Did the client answer? ``tokens`` and ``cost`` (in US dollars) are what it took."""

    stage: Literal[Stage.writer] = Stage.writer
    outcome: Literal["answered", "malformed", "declined", "waiting", "too_slow", "unreachable", "budget_spent"]
    question: Literal["write", "comparison_repair", "format_repair"] = "write"
    tokens: int = 0
    cost: float | None = None
    replayed: bool = False


class ParserVerdict(_Verdict):
    """Is the answer a fragment of the kernel language that fits the construct?"""

    stage: Literal[Stage.parser] = Stage.parser
    outcome: Literal["well_formed", "refused"]


class CompilerVerdict(_Verdict):
    """Does the kernel compile with it? ``incomplete``: other Holes of its kernels are open."""

    stage: Literal[Stage.compiler] = Stage.compiler
    outcome: Literal["compiled", "does_not_compile", "over_limits", "incomplete"]
    culprit: str = ""


class ComparisonVerdict(_Verdict):
    """Is the kernel's Tile IR the reference's? ``culprit``: the construct whose line the difference is at."""

    stage: Literal[Stage.comparison] = Stage.comparison
    outcome: Literal["proved", "tested", "differs", "over_limits", "reference_refused", "environment_broken"]
    checks: tuple[str, ...] = ()
    culprit: str = ""


class ValidatorVerdict(_Verdict):
    """Does the override, read back from its file, give the same program again?"""

    stage: Literal[Stage.validator] = Stage.validator
    outcome: Literal["accepted", "not_reproducible"]
    overrides: tuple[str, ...] = ()


Verdict = Annotated[
    AnalystVerdict | WriterVerdict | ParserVerdict | CompilerVerdict | ComparisonVerdict | ValidatorVerdict,
    Field(discriminator="stage"),
]
VERDICT: TypeAdapter[Verdict] = TypeAdapter(Verdict)


class Reply(Model):
    """What an outside program says: an answer, or that it declines and why."""

    outcome: Literal["answered", "declined"]
    detail: str = ""
    answer: Answer | None = None


class MalformedError(ValueError):
    """The text has no block, or block and line don't say the same."""


_BLOCK = re.compile(r"<VALIDATOR_OUTPUT>\s*(.*?)\s*</VALIDATOR_OUTPUT>", re.DOTALL)
_LINE = re.compile(r"^VERDICT: ([A-Z_]+)\s*$", re.MULTILINE)
M = TypeVar("M", bound=BaseModel)


def to_text(verdict: BaseModel) -> str:
    """Write a model as text that crosses a process."""
    outcome = str(getattr(verdict, "outcome", "")).upper()
    return f"<VALIDATOR_OUTPUT>\n{verdict.model_dump_json(indent=1)}\n</VALIDATOR_OUTPUT>\nVERDICT: {outcome}\n"


def from_text(text: str, model: type[M]) -> M:
    """Read the last block of a text; raises MalformedError where it isn't there or isn't the model."""
    blocks, lines = _BLOCK.findall(text), _LINE.findall(text)
    if not blocks:
        raise MalformedError("there is no <VALIDATOR_OUTPUT> block")
    if not lines:
        raise MalformedError("there is no line `VERDICT: ...`")
    try:
        found = model.model_validate_json(blocks[-1])
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        raise MalformedError(f"the block isn't what was asked for: {'.'.join(map(str, first['loc']))}: {first['msg']}"
                             ) from None  # fmt: skip
    if str(getattr(found, "outcome", "")).upper() != lines[-1]:
        raise MalformedError(f"the block and the line `VERDICT: {lines[-1]}` don't say the same")
    return found
