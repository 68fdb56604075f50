"""The stages of one Hole's run: each looks at the run and ends in a verdict. What follows is the machine's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from transpiler.agents import tokens
from transpiler.agents.analyst import MAX_TOKENS, analyse
from transpiler.agents.bench import Bench, Work, crash_diagnostic
from transpiler.agents.calls import misused
from transpiler.agents.clients import Client, ClientError, ClientReply, FilesClient
from transpiler.agents.machine import Course
from transpiler.agents.prompt import Prompt, first_prompt, repair_prompt
from transpiler.agents.task import Answer, HoleTask
from transpiler.agents.transcript import Transcript
from transpiler.agents.verdicts import (
    AnalystVerdict,
    ComparisonVerdict,
    CompilerVerdict,
    ParserVerdict,
    Stage,
    ValidatorVerdict,
    Verdict,
    WriterVerdict,
)
from transpiler.codes import CHECKER_FAILED, INTERNAL, TRANSIENT
from transpiler.diagnostics import Diagnostic
from transpiler.ir import rust
from transpiler.ir.construct import Construct, HoleSite
from transpiler.overrides import ConstructKey, Override, ResultType
from transpiler.select.fragments import FragmentError, parse_body
from transpiler.translation import CheckPlan, KernelPlan, SiteOf, Translation, place_of
from transpiler.verify import CheckResult, CheckTask, rust_text
from transpiler.workers import Crash

_PLACEHOLDER = re.compile(r"\$(\w+)")
_KNOWN = re.compile(r"(?P<operand>\d+)|type(?P<typed>\d*)|(?:element|shape)(?P<tile>\d*)|dim(?P<of>\d*)_(?P<axis>\d)")


_BROKEN = TRANSIENT - CHECKER_FAILED
"""What ends a run. Where the checker itself fails at an answer, that is the answer's fault as far as a run goes."""


@dataclass
class Budget:
    """Tokens of the whole run and of one Hole, and the seconds that an answer may take."""

    run: int = 200_000
    hole: int = 40_000
    seconds: float = 120.0
    used: int = 0
    cost: float = 0.0


@dataclass
class Run:
    """One Hole on its way: what it is, its course, its task, the last answer and what it took.

    ``known`` is an override that may be right here: for other tables, or for the same call of other types.
    """

    construct: Construct
    sites: tuple[SiteOf, ...]
    model: str
    rules: str
    course: Course = field(default_factory=Course)
    task: HoleTask | None = None
    answer: Answer | None = None
    override: Override | None = None
    known: Override | None = None
    questions: int = 0
    tokens: int = 0
    cost: float = 0.0
    checks: tuple[str, ...] = ()

    @property
    def site(self) -> HoleSite:
        """The place that is shown."""
        return self.sites[0].site


@dataclass
class Desk:
    """What the stages work with. ``translate`` gives the operator's translation with candidates in the Holes' places,
    ``accept`` makes overrides files and says whether they give the same program again."""

    bench: Bench
    client: Client
    budget: Budget
    transcript: Transcript
    translate: Callable[[], Translation]
    accept: Callable[[Run], tuple[str, ...] | None]
    others: Callable[[str], bool]
    """Whether a construct is another Hole's that has a candidate."""


def analyst(run: Run, desk: Desk) -> Verdict:
    """The task, or why there is none."""
    found = analyse(desk.bench, desk.translate(), run.sites)
    run.task = found.task
    if found.task is None:
        problem = found.problem
        detail = problem.message if problem is not None else ""
        if problem is not None and problem.code in TRANSIENT - {INTERNAL}:
            return AnalystVerdict(outcome="environment_broken", detail=detail)
        return AnalystVerdict(outcome="reference_refused" if found.rejected else "not_fillable", detail=detail)
    size = tokens.count(first_prompt(found.task).whole)
    return AnalystVerdict(outcome="ready" if size <= MAX_TOKENS else "too_large", tokens=size)


def writer(run: Run, desk: Desk) -> Verdict:
    """One question to the client, or its answer from the transcript."""
    assert run.task is not None
    if run.known is not None:  # it asks nobody, so it doesn't count
        run.answer, run.model = Answer(rust=run.known.rust, results=run.known.results), run.known.model
        run.known = None
        run.course.asked["write"] -= 1
        return WriterVerdict(outcome="answered", replayed=True)
    run.model = desk.client.name
    run.questions += 1
    kind = run.course.question
    prompt = _prompt(run, kind)
    left = min(desk.budget.run - desk.budget.used, desk.budget.hole - run.tokens)
    size = tokens.count(prompt.whole)
    if size >= left:
        run.questions -= 1  # it isn't asked
        detail = f"the question has {size} tokens, {max(0, left)} are left"
        return WriterVerdict(outcome="budget_spent", question=kind, detail=detail)
    known = desk.transcript.find(desk.client.name, prompt)
    try:
        reply = known if known is not None else desk.client.ask(prompt, seconds=desk.budget.seconds, budget=left)
    except ClientError as trouble:
        _charge(run, desk, trouble.used, None)
        wrong = _last(run) if trouble.outcome == "waiting" else ""
        detail = f"{trouble.detail}; the last answer failed: {wrong}" if wrong else trouble.detail
        return WriterVerdict(outcome=trouble.outcome, question=kind, detail=detail, tokens=trouble.used)
    if known is None and desk.client.name != "hand":
        desk.transcript.asked(desk.client.name, prompt, reply)
    _charge(run, desk, reply.tokens, reply.cost)
    outcome, detail = _read(run, reply)
    return WriterVerdict(outcome=outcome, question=kind, detail=detail, tokens=reply.tokens, cost=reply.cost,
                         replayed=known is not None)  # fmt: skip


def _prompt(run: Run, kind: str) -> Prompt:
    assert run.task is not None
    if (wrong := _last(run)) == "":
        return first_prompt(run.task)
    said = run.answer.rust if run.answer is not None else ""
    return repair_prompt(run.task, run.questions, kind, said, wrong)


def _last(run: Run) -> str:
    """What was wrong with the last answer, "" before the first."""
    return next((v.detail for v in reversed(run.course.verdicts) if v.stage is not Stage.analyst and v.detail), "")


def _charge(run: Run, desk: Desk, used: int, cost: float | None) -> None:
    run.tokens += used
    desk.budget.used += used
    run.cost += cost or 0.0
    desk.budget.cost += cost or 0.0


def _read(run: Run, reply: ClientReply) -> tuple[Literal["answered", "malformed", "declined"], str]:
    if reply.reply is None:
        return "malformed", reply.malformed or "no reply"
    if reply.reply.outcome == "declined":
        return "declined", reply.reply.detail
    if reply.reply.answer is None:
        return "malformed", "the reply has no answer"
    run.answer = reply.reply.answer
    return "answered", ""


def parser(run: Run, desk: Desk) -> Verdict:
    """The answer as an override, or what of it isn't the kernel language."""
    del desk
    assert run.answer is not None
    try:
        run.override = candidate(run.construct, run.answer, run.rules, run.model)
    except FragmentError as refusal:
        where = f"line {refusal.line}, column {refusal.column}: " if refusal.line else ""
        return ParserVerdict(outcome="refused", detail=f"{where}{refusal}")
    return ParserVerdict(outcome="well_formed")


def candidate(construct: Construct, answer: Answer, rules: str, model: str) -> Override:
    """Make an override of an answer; raises FragmentError where it isn't a fragment or doesn't fit the construct."""
    body = parse_body(answer.rust)
    for name in _PLACEHOLDER.findall(answer.rust):
        if not _is_placeholder(construct, name):
            raise FragmentError(f"refused: `${name}` is no placeholder of a construct with {len(construct.operands)} "
                                "operands of these types")  # fmt: skip
    if (wrong := misused(body)) != "":
        raise FragmentError(f"refused: {wrong}")
    results = answer.results
    if construct.kind == "operation":
        results = ()
    elif not results:
        results = (ResultType(dtype="$0", shape="$0"),)
    for one in results:
        _check_type(construct, one)
    if not isinstance(body[-1], rust.Tail):
        raise FragmentError("refused: the fragment doesn't end in its value")
    key, text = ConstructKey.of(construct), answer.rust.strip()
    return Override(rules=rules, model=model, hole=key, results=results, rust=text).keyed()


def _is_placeholder(construct: Construct, name: str) -> bool:
    """Whether `$name` stands for something: an operand, its type, or what a tile among the operands has."""
    found = _KNOWN.fullmatch(name)
    if found is None:
        return False
    index = next((v for v in (found["operand"], found["typed"]) if v is not None), None)
    if index is not None:
        return not index or int(index) < len(construct.operands)
    operand = found["tile"] if found["tile"] is not None else found["of"]
    return not operand or _has(construct, int(operand), found["axis"])


def _check_type(construct: Construct, one: ResultType) -> None:
    from transpiler.ir.types import DTYPE_TABLE

    parts = [one.dtype, *([one.shape] if isinstance(one.shape, str) else [d for d in one.shape if isinstance(d, str)])]
    for part in parts:
        found = re.fullmatch(r"\$(\d+)(?:\.(\d+))?", part)
        if found is None and (part is not one.dtype or part not in DTYPE_TABLE):
            raise FragmentError(f"refused: `{part}` in the result's type is neither a dtype nor an operand")
        if found is not None and not _has(construct, int(found[1]), found[2]):
            raise FragmentError(f"refused: `{part}` in the result's type: there is no such operand or dimension")
    if not isinstance(one.shape, str) and any(isinstance(d, int) and not 0 < d <= 1 << 30 for d in one.shape):
        raise FragmentError("refused: a dimension of the result's type isn't a size")


def _has(construct: Construct, operand: int, axis: str | None) -> bool:
    if operand >= len(construct.operands):
        return False
    kind, _, rest = construct.operands[operand].partition(" ")
    rank = int(rest.rpartition(" ")[2] or 0) if rest else 0
    return kind == "tile" and (axis is None or int(axis) < rank)


@dataclass(frozen=True)
class _Using:
    """A check that a candidate takes part in."""

    kernel: KernelPlan
    check: CheckPlan


def _using(run: Run, translation: Translation) -> tuple[list[_Using], bool]:
    """The checks that the candidate takes part in and that have no Holes left, and whether others have."""
    assert run.override is not None
    mine = [_Using(k, c) for k in translation.plan.kernels for e in k.entries for c in e.checks
            if any(f.override == run.override.key for f in c.filled) or not e.name]  # fmt: skip
    mine = [u for u in mine if any(s.kernel == u.kernel.name and s.specialization == u.check.specialization
                                   for s in run.sites)]  # fmt: skip
    whole = [u for u in mine if not u.check.holes]
    return whole, len(whole) < len(mine)


def compiler(run: Run, desk: Desk) -> Verdict:
    """Compile the first check that has no other Holes."""
    translation = desk.translate()
    whole, _open = _using(run, translation)
    if not whole:
        return CompilerVerdict(outcome="incomplete", detail="other constructs of its kernels have no rule either")
    first = whole[0]
    if first.check.inputs is None:
        found = first.check.diagnostics[:1]
        blamed = _culprit(found, first, run, desk)
        return CompilerVerdict(outcome="does_not_compile", detail=_said(found), culprit=blamed)
    result = desk.bench.do(_work("compile", first, translation))
    if isinstance(result, Crash):
        place = place_of(translation.plan, first.kernel)
        return CompilerVerdict(outcome="over_limits", detail=crash_diagnostic(result, place).message)
    assert isinstance(result, CheckResult)
    if result.verdict == "error":
        return CompilerVerdict(outcome="does_not_compile", detail=_said(result.diagnostics),
                               culprit=_culprit(result.diagnostics, first, run, desk))  # fmt: skip
    return CompilerVerdict(outcome="compiled")


def comparison(run: Run, desk: Desk) -> Verdict:
    """Every check that has no other Holes has to be proved, or tested."""
    translation = desk.translate()
    whole, _open = _using(run, translation)
    verdicts, names = set(), []
    for one in whole:
        result = desk.bench.do(_work("check", one, translation))
        if isinstance(result, Crash):
            return ComparisonVerdict(outcome="over_limits", detail=f"comparing it ended the process: {result.how}")
        assert isinstance(result, CheckResult)
        if result.verdict == "differs" and (run.course.spent() or isinstance(desk.client, FilesClient)):
            result = _executed(one, translation, desk, result)
        if result.verdict == "rejected":
            continue
        if result.verdict not in ("proved", "tested"):
            codes = {d.code for d in result.diagnostics} if result.verdict == "error" else set()
            if codes & CHECKER_FAILED:
                return ComparisonVerdict(outcome="over_limits", detail=_said(result.diagnostics))
            broken = bool(codes & _BROKEN)
            blamed = _culprit(result.diagnostics, one, run, desk)
            outcome: Literal["environment_broken", "differs"] = "environment_broken" if broken else "differs"
            return ComparisonVerdict(outcome=outcome, detail=_said(result.diagnostics), culprit=blamed)
        verdicts.add(result.verdict)
        names.append(one.check.specialization.name)
    if not verdicts:
        return ComparisonVerdict(outcome="reference_refused", detail="the reference compiler refuses every check")
    run.checks = tuple(dict.fromkeys(names))
    return ComparisonVerdict(outcome="tested" if "tested" in verdicts else "proved", checks=run.checks)


def _executed(one: _Using, translation: Translation, desk: Desk, compared: CheckResult) -> CheckResult:
    """When nobody can be asked any more, a kernel that differs is executed: what agrees on every input is tested.

    A person is asked once a run, and may well have meant what is there.
    """
    result = desk.bench.do(_work("execute", one, translation))
    return result if isinstance(result, CheckResult) and result.verdict == "tested" else compared


def validator(run: Run, desk: Desk) -> Verdict:
    """The override's file, read back, gives the same program."""
    accepted = desk.accept(run)
    if accepted is None:
        return ValidatorVerdict(outcome="not_reproducible", detail="the override's file doesn't give the same program")
    return ValidatorVerdict(outcome="accepted", overrides=accepted)


def _work(what: Literal["compile", "check", "execute"], one: _Using, translation: Translation) -> Work:
    task = CheckTask(one.kernel.name, one.check.specialization, one.check.target, one.check.inputs,
                     place_of(translation.plan, one.kernel), one.check.diagnostics)  # fmt: skip
    return Work(what, rust_text(translation), translation.closures[one.kernel.name], task)


def _said(diagnostics: tuple[Diagnostic, ...]) -> str:
    """The first diagnostic: the smallest difference, or why it doesn't compile."""
    return diagnostics[0].message[:2_000] if diagnostics else "it failed without a message"


def _culprit(diagnostics: tuple[Diagnostic, ...], one: _Using, run: Run, desk: Desk) -> str:
    """Another Hole's construct, where the problem is on the line that its candidate fills and not on this one's."""
    line = diagnostics[0].span.line if diagnostics else 0
    there = {f.hole for f in one.check.filled if f.line == line}
    if not there or run.construct.digest in there:
        return ""
    return next((digest for digest in sorted(there) if desk.others(digest)), "")


STAGES: Mapping[Stage, Callable[[Run, Desk], Verdict]] = {
    Stage.analyst: analyst,
    Stage.writer: writer,
    Stage.parser: parser,
    Stage.compiler: compiler,
    Stage.comparison: comparison,
    Stage.validator: validator,
}
