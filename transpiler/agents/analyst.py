"""The analyst: from a Hole to a task, without a model. What is asked holds the Hole and nothing of the rest.

A task has the Python lines of the construct, its types, the operations that the reference compiler makes of these
lines, the functions of cutile that may say the same, and the coding rules that matter for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from transpiler.agents import tokens
from transpiler.agents.bench import Bench, Work, crash_diagnostic
from transpiler.agents.coding_rules import relevant, situation
from transpiler.agents.operations import Operations
from transpiler.agents.signatures import candidates
from transpiler.agents.task import HoleTask, Typed
from transpiler.agents.unfillable import unasked, unfillable
from transpiler.diagnostics import Diagnostic, Span
from transpiler.overrides import ConstructKey
from transpiler.reference.closure import Closure
from transpiler.translation import KernelPlan, SiteOf, Translation
from transpiler.verify import CheckTask
from transpiler.workers import Crash

MAX_TOKENS = 5_000
"""Of the first question, instructions included."""
_MAX_LINES = 40


@dataclass(frozen=True)
class Found:
    """A Hole's task, or why there is none: the construct can't be filled, or the reference has a problem."""

    task: HoleTask | None
    problem: Diagnostic | None = None
    rejected: bool = False


def analyse(bench: Bench, translation: Translation, sites: Sequence[SiteOf]) -> Found:
    """Make the task of one construct from the places where it was met (the first one is shown)."""
    first = sites[0]
    met = first.site.diagnostic
    kernel = next(k for k in translation.plan.kernels if k.name == first.kernel)
    closure = translation.closures.get(kernel.name)
    if closure is None:
        return Found(None, unasked(first.site))
    result = bench.do(Work("reference", None, closure, _check(kernel, first, translation), met.span))
    if isinstance(result, Crash):
        return Found(None, crash_diagnostic(result, met.span))
    if not isinstance(result, Operations):
        return Found(None, next(iter(result.diagnostics), met), result.verdict == "rejected")
    if (problem := unfillable(first.site, result)) is not None:
        return Found(None, problem)
    return Found(_fitted(_task(translation, closure, sites, result)))


def _check(kernel: KernelPlan, site: SiteOf, translation: Translation) -> CheckTask:
    target = next((c.target for e in kernel.entries for c in e.checks if c.specialization == site.specialization), "")
    return CheckTask(kernel.name, site.specialization, target, None, Span(translation.plan.source, kernel.line, 1))


def _task(translation: Translation, closure: Closure, sites: Sequence[SiteOf], found: Operations) -> HoleTask:
    first = sites[0].site
    construct, span = first.construct, first.diagnostic.span
    inputs = tuple(Typed(name=f"${i}", author=n, type=t) for i, (n, t) in enumerate(first.inputs))
    made = first.results if first.results is not None else tuple(("", text) for text in found.results)
    outputs = tuple(Typed(name=f"result {i}", author=n, type=t) for i, (n, t) in enumerate(made))
    types = (*(v.type for v in inputs), *(v.type for v in outputs))
    task = HoleTask(
        digest="",
        hole=ConstructKey.of(construct),
        code=first.diagnostic.code,
        reason=first.diagnostic.message,
        operator=translation.plan.name,
        kernel=sites[0].kernel,
        file=span.file,
        line=span.line,
        specializations=tuple(dict.fromkeys(s.specialization.name for s in sites)),
        python=python_lines(closure, span),
        inputs=inputs,
        outputs=outputs,
        reference=found.text,
        signatures=candidates(construct, found.names),
        rules=relevant(situation(construct, found.names, types)),
    )
    return digested(task)


def python_lines(closure: Closure, span: Span) -> tuple[str, ...]:
    """Return the lines of a span from the kernel's closure, each with its number before it."""
    wanted = range(span.line, (span.end_line or span.line) + 1)
    out: dict[int, str] = {}
    for module in closure.modules:
        if module.display != span.file:
            continue
        for segment in module.segments:
            for number, text in enumerate(segment.text.split("\n"), segment.line):
                if number in wanted:
                    out[number] = text
    return tuple(f"{number} | {out[number]}" for number in sorted(out))[:_MAX_LINES]


def digested(task: HoleTask) -> HoleTask:
    """Return the task with its digest, which names it in transcripts and recorded answers."""
    data = task.model_dump_json(exclude={"digest"})
    return task.model_copy(update={"digest": hashlib.sha256(data.encode()).hexdigest()[:16]})


def _fitted(task: HoleTask) -> HoleTask:
    """Leave out what matters least until the task has no more than MAX_TOKENS tokens."""
    from transpiler.agents.prompt import first_prompt

    def small(one: HoleTask) -> bool:
        return tokens.count(first_prompt(one).whole) <= MAX_TOKENS

    for part in ("specializations", "signatures", "reference"):
        while not small(task) and len(getattr(task, part)) > 1:
            kept = getattr(task, part)[: max(1, len(getattr(task, part)) * 3 // 4)]
            task = task.model_copy(update={part: kept})
    return digested(task)
