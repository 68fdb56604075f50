"""Filling an operator's Holes, one after another, until none is left that can be filled.

Filling one Hole shows the next: what used its result was silently unmapped before. Holes of one kernel are compared
together, as a kernel is only compared whole; until then an answer that passes its own stages is parked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from transpiler.agents.bench import Bench
from transpiler.agents.clients import Client
from transpiler.agents.context import sites_of
from transpiler.agents.machine import Stop, advance
from transpiler.agents.stages import STAGES, Budget, Desk, Run
from transpiler.agents.transcript import Transcript
from transpiler.agents.verdicts import Stage, Verdict
from transpiler.ir.construct import Construct
from transpiler.jobs import OperatorJob
from transpiler.overrides import Evidence, Override, load_overrides, overrides_folder
from transpiler.pipeline import translate
from transpiler.selection import Selection
from transpiler.temporary import temporary_folder
from transpiler.translation import SiteOf, Translation

_KEPT = 4
Told = Callable[[Run, Verdict], None]
"""Hears every verdict."""


@dataclass(frozen=True)
class Tools:
    """What all operators of a run share: the output folder, the bench, the client, the budget and the transcript."""

    out: Path
    bench: Bench
    client: Client
    budget: Budget
    transcript: Transcript
    told: Told = lambda _run, _verdict: None
    kernel: str | None = None


class Filler:
    """The Holes of one operator. ``ended`` says what ended the whole run, if something did."""

    def __init__(self, job: OperatorJob, tools: Tools) -> None:
        self.tools = tools
        self.runs: dict[str, Run] = {}
        self.ended = ""
        self._job = job
        self._rules = job.selection.digest
        # raised overrides would hide the Holes; where both fill one, Rust that somebody wrote goes first
        self._known = tuple(o for o in job.selection.overrides if o.rules == self._rules and o.kind == "rust")
        self._stale = [o for o in job.selection.overrides if o.rules != self._rules and o.kind == "rust"]
        self._translations: dict[tuple[tuple[Override, ...], frozenset[str] | None], Translation] = {}

    def fill(self) -> list[Run]:
        """Go on until no Hole is left that can be filled; returns every Hole's run in order."""
        with_holes = {site.kernel for site in sites_of(self.translation(), self.tools.kernel)}
        self._job = replace(self._job, kernels=tuple(k for k in self._job.kernels if k.name in with_holes))
        self._translations.clear()  # the others needn't be translated again for every answer
        while not self.ended and (run := self._next()) is not None:
            desk = Desk(self.tools.bench, self.tools.client, self.tools.budget, self.tools.transcript,
                        lambda run=run: self.translation(run),  # type: ignore[misc]
                        self._accept, lambda digest: self._parked(digest) is not None)  # fmt: skip
            advance(run.course, lambda stage, run=run, desk=desk: STAGES[stage](run, desk),  # type: ignore[misc]
                    lambda verdict, run=run: self._told(run, verdict), self._passed_on)  # type: ignore[misc]  # fmt: skip
            if isinstance(run.course.step, Stop):
                run.override = None
                self.ended = run.course.step.reason if run.course.step.run else ""
        return list(self.runs.values())

    def translation(self, run: Run | None = None) -> Translation:
        """The operator with every override and candidate there is; of a run, only the kernels that it is about."""
        candidates = (run.override for run in self.runs.values())
        return self._translate((*self._known, *(c for c in candidates if c is not None)), run)

    def _translate(self, overrides: Iterable[Override], run: Run | None) -> Translation:
        used, names = tuple(overrides), frozenset(s.kernel for s in run.sites) if run is not None else None
        if (used, names) not in self._translations:
            while len(self._translations) >= _KEPT:
                del self._translations[next(iter(self._translations))]
            self._translations[used, names] = translate(self._part(used, names))
        return self._translations[used, names]

    def _part(self, overrides: tuple[Override, ...], names: frozenset[str] | None) -> OperatorJob:
        kernels = tuple(k for k in self._job.kernels if names is None or k.name in names)
        selection = Selection(self._job.selection.without, overrides)
        return replace(self._job, kernels=kernels, selection=selection)

    # Which Hole comes next

    def _next(self) -> Run | None:
        again = next((run for run in self.runs.values() if isinstance(run.course.step, Stage)), None)
        if again is not None:
            return again
        found: dict[str, list[SiteOf]] = {}
        for site in sites_of(self.translation(), self.tools.kernel):
            found.setdefault(site.site.construct.digest, []).append(site)
        for digest, sites in found.items():
            if digest not in self.runs and not self._hopeless(sites):
                construct = sites[0].site.construct
                self.runs[digest] = Run(construct, tuple(sites), self.tools.client.name, self._rules,
                                        known=self._likely(construct))  # fmt: skip
                return self.runs[digest]
        return None

    def _likely(self, construct: Construct) -> Override | None:
        """An override for the construct under other tables, or for the same call with operands of other types."""
        for one in self._stale:
            if one.hole is not None and one.hole.value() == construct:
                return one
        accepted = (run.override for run in self.runs.values() if run.course.step == "accepted")
        for other in (*accepted, *self._known):
            hole = other.hole if other is not None else None
            if hole is not None and (hole.kind, hole.name, hole.arguments) == (
                "call",
                construct.name,
                construct.arguments,
            ):
                return other
        return None

    def _hopeless(self, sites: Iterable[SiteOf]) -> bool:
        """Whether each check that meets the Hole has another one that was given up."""
        stopped = {d for d, run in self.runs.items() if isinstance(run.course.step, Stop)}
        there = {(s.kernel, s.specialization.name) for s in self.translation().sites
                 if s.site.construct.digest in stopped}  # fmt: skip
        return all((s.kernel, s.specialization.name) in there for s in sites)

    # Verdicts

    def _told(self, run: Run, verdict: Verdict) -> None:
        task = run.task.digest if run.task is not None else ""
        self.tools.transcript.verdict(task, run.construct.digest, verdict)
        self.tools.told(run, verdict)

    def _parked(self, digest: str) -> Run | None:
        run = self.runs.get(digest)
        return run if run is not None and run.course.step == "parked" else None

    def _passed_on(self, verdict: Verdict) -> bool:
        other = self._parked(getattr(verdict, "culprit", ""))
        if other is None:
            return False
        other.course.take(verdict)
        other.override = None
        if isinstance(other.course.step, Stop):
            self.ended = other.course.step.reason if other.course.step.run else ""
        return True

    # Acceptance

    def _accept(self, run: Run) -> tuple[str, ...] | None:
        """Write the overrides of a run and of the parked ones it was compared with, if they give the same again."""
        before = self.translation(run)
        group = [run, *self._companions(run, before)]
        made = [_with_evidence(one, run) for one in group]
        with _folder(self.tools.out) as stage:
            for override in made:
                (stage / f"{override.key}.toml").write_text(override.to_toml(), encoding="utf-8")
            others = [r.override for r in self.runs.values() if r.override is not None and r not in group]
            read = load_overrides(stage)
            names = frozenset(s.kernel for s in run.sites)
            meant, again = (translate(self._part((*self._known, *others, *some), names)) for some in (made, read))
            if again.files != before.files or again.plan != meant.plan:
                return None
            _move(stage, overrides_folder(self.tools.out))
        for one, override in zip(group, made, strict=True):
            one.override = override
            if one is not run:
                one.course.step = "accepted"
        return tuple(override.key for override in made)

    def _companions(self, run: Run, translation: Translation) -> list[Run]:
        assert run.override is not None
        checks = [c for k in translation.plan.kernels for e in k.entries for c in e.checks
                  if not c.holes and any(f.override == run.override.key for f in c.filled)]  # fmt: skip
        there = dict.fromkeys(f.hole for c in checks for f in c.filled)
        return [one for digest in there if (one := self._parked(digest)) is not None]


def _with_evidence(one: Run, run: Run) -> Override:
    assert one.override is not None
    verdict = "tested" if any(v.outcome == "tested" for v in run.course.verdicts[-1:]) else "proved"
    cost = round(one.cost, 6) if one.cost else None
    evidence = Evidence.model_validate({"verdict": verdict, "checks": run.checks, "tokens": one.tokens, "cost": cost})
    return one.override.model_copy(update={"evidence": evidence})


def _folder(out: Path) -> AbstractContextManager[Path]:
    """A folder on the same disk, which nothing reads."""
    home = out / "_agents"
    home.mkdir(parents=True, exist_ok=True)
    return temporary_folder(".candidates-", home)


def _move(stage: Path, into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for path in sorted(stage.glob("*.toml")):
        os.replace(path, into / path.name)
