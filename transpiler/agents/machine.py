"""The state machine of one Hole: stages, what follows each verdict, and what bounds it. All of it is on this screen.

    analyst -> writer -> parser -> compiler -> comparison -> validator -> accepted
                 ^          |          |            |            |
                 +----------+----------+------------+------------+   while CAPS allow another question

A stage is a function from a Hole's run to a verdict (:mod:`transpiler.agents.stages`). ROUTES says what follows each
verdict: a stage, another question (:class:`Ask`), parking (the kernel has other Holes that are open), or the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from transpiler.agents.verdicts import Stage, Verdict

Question = Literal["write", "comparison_repair", "format_repair"]
CAPS: Mapping[Question, int] = {"write": 2, "comparison_repair": 1, "format_repair": 1}


@dataclass(frozen=True)
class Ask:
    """Go back to the writer with what is wrong: the first of these questions that is left."""

    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Stop:
    """An item of the STOP list. ``run``: it ends the whole run, not only this Hole's."""

    reason: str
    run: bool = False


Next = Stage | Ask | Stop | Literal["accepted", "parked"]
STOP = {
    "environment broken": Stop("environment broken", run=True),
    "budget spent": Stop("budget spent"),
    "client unreachable": Stop("client unreachable", run=True),
    "reference refused": Stop("reference refused"),
    "not fillable": Stop("not fillable"),
    "task too large": Stop("task too large"),
    "declined": Stop("declined"),
    "waiting": Stop("waiting for an answer"),
    "questions spent": Stop("questions spent"),
    "not reproducible": Stop("not reproducible"),
}
ROUTES: Mapping[tuple[Stage, str], Next] = {
    (Stage.analyst, "ready"): Stage.writer,
    (Stage.analyst, "not_fillable"): STOP["not fillable"],
    (Stage.analyst, "reference_refused"): STOP["reference refused"],
    (Stage.analyst, "environment_broken"): STOP["environment broken"],
    (Stage.analyst, "too_large"): STOP["task too large"],
    (Stage.writer, "answered"): Stage.parser,
    (Stage.writer, "malformed"): Ask(("format_repair", "write")),
    (Stage.writer, "too_slow"): Ask(("write",)),
    (Stage.writer, "declined"): STOP["declined"],
    (Stage.writer, "waiting"): STOP["waiting"],
    (Stage.writer, "unreachable"): STOP["client unreachable"],
    (Stage.writer, "budget_spent"): STOP["budget spent"],
    (Stage.parser, "well_formed"): Stage.compiler,
    (Stage.parser, "refused"): Ask(("format_repair", "write")),
    (Stage.compiler, "compiled"): Stage.comparison,
    (Stage.compiler, "does_not_compile"): Ask(("write",)),
    (Stage.compiler, "over_limits"): Ask(("write",)),
    (Stage.compiler, "incomplete"): "parked",
    (Stage.comparison, "proved"): Stage.validator,
    (Stage.comparison, "tested"): Stage.validator,
    (Stage.comparison, "differs"): Ask(("comparison_repair", "write")),
    (Stage.comparison, "over_limits"): Ask(("write",)),
    (Stage.comparison, "reference_refused"): STOP["reference refused"],
    (Stage.comparison, "environment_broken"): STOP["environment broken"],
    (Stage.validator, "accepted"): "accepted",
    (Stage.validator, "not_reproducible"): STOP["not reproducible"],
}


@dataclass
class Course:
    """Where a Hole's run is: the next step, the questions asked so far, the verdicts in order."""

    step: Next = Stage.analyst
    asked: dict[Question, int] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    question: Question = "write"

    def take(self, verdict: Verdict) -> None:
        """Move on after a verdict."""
        self.verdicts.append(verdict)
        step = ROUTES[verdict.stage, verdict.outcome]
        self.step = self._ask(step) if isinstance(step, Ask) or step is Stage.writer else step

    def spent(self) -> bool:
        """Whether no question is left after a difference."""
        step = ROUTES[Stage.comparison, "differs"]
        return isinstance(step, Ask) and all(self.asked.get(q, 0) >= CAPS[q] for q in step.questions)

    def _ask(self, step: Ask | Stage) -> Next:
        questions: tuple[Question, ...] = step.questions if isinstance(step, Ask) else ("write",)
        for question in questions:
            if self.asked.get(question, 0) < CAPS[question]:
                self.asked[question] = self.asked.get(question, 0) + 1
                self.question = question
                return Stage.writer
        return STOP["questions spent"]


def advance(
    course: Course, stage: Callable[[Stage], Verdict], told: Callable[[Verdict], None],
    passed_on: Callable[[Verdict], bool] = lambda _verdict: False,
) -> None:  # fmt: skip
    """Run stages until the course stands still; ``told`` hears each verdict before anything follows from it.

    ``passed_on``: whether another Hole's answer is to blame; that one goes on with the verdict, this one is parked.
    """
    while isinstance(course.step, Stage):
        verdict = stage(course.step)
        told(verdict)
        if passed_on(verdict):
            course.verdicts.append(verdict)
            course.step = "parked"
        else:
            course.take(verdict)
