"""Doing jobs in parallel: translate operators, then check them, with as many workers as wanted.

A worker that dies costs the checks it was at; a failing operator costs itself.  The result doesn't depend on the
order in which workers finish.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from transpiler.diagnostics import Diagnostic, Span, TranspileError
from transpiler.internal import internal_error
from transpiler.jobs import OperatorJob
from transpiler.launchable import settled
from transpiler.reference.closure import Closure
from transpiler.shards import Wanted
from transpiler.translation import CheckKey, Failure, OperatorPlan, Timing, Translation, check_keys
from transpiler.verify import CheckResult, CheckTask, Judge, RustText, rust_text, tasks_of
from transpiler.workers import Crash, Pool, Start

if TYPE_CHECKING:
    from transpiler.cache.checks import CheckMemo

_CHUNK = 6
_ASSEMBLING_CHUNK = 2
_TRANSLATE_FIRST = 1e6
_TIME_LIMIT = 900.0
Progress = Callable[[int, str], None]
"""Called with the number of checks just done and what they belong to."""


@dataclass(frozen=True)
class Options:
    """How to run: with checks or without, machine code, workers, which checks (None: all), what is known already."""

    verify: bool = True
    cubins: tuple[str, ...] = ()
    workers: int = 1
    wanted: Wanted | None = None
    time_limit: float = 120.0
    memo: CheckMemo | None = None
    execute: bool = False


@dataclass
class Results:
    """What a run gave, by operator."""

    translations: dict[str, Translation] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    checks: dict[CheckKey, CheckResult] = field(default_factory=dict)
    timing: Timing = field(default_factory=Timing)

    def plans(self) -> list[OperatorPlan]:
        """The plans of what could be translated, by name."""
        return [self.translations[name].plan for name in sorted(self.translations)]


@dataclass(frozen=True)
class _Translate:
    job: OperatorJob


@dataclass(frozen=True)
class _Check:
    """Some checks of one kernel."""

    rust: RustText
    closure: Closure
    checks: tuple[tuple[CheckKey, CheckTask], ...]


def run_jobs(jobs: Sequence[OperatorJob], options: Options, progress: Progress = lambda _n, _what: None) -> Results:
    """Translate every job and do its checks; failures become results."""
    results = Results(timing=Timing(workers=options.workers))
    with _pool(options) as pool:
        for job in jobs:
            pool.submit(_Translate(job), _TRANSLATE_FIRST + job.check_count)
        _collect(pool, results, options, progress)
    verdicts = {key: result.verdict for key, result in results.checks.items()}
    results.translations = {name: settled(one, verdicts) for name, one in results.translations.items()}
    return results


def run_checks(
    translations: Sequence[Translation], options: Options, progress: Progress = lambda _n, _what: None
) -> Results:
    """Do the checks of operators translated before."""
    results = Results(timing=Timing(workers=options.workers))
    with _pool(options) as pool:
        for translation in translations:
            results.translations[translation.plan.name] = translation
            _submit_checks(pool, results, translation, options, progress)
        _collect(pool, results, options, progress)
    return results


def _collect(pool: Pool | _Inline, results: Results, options: Options, progress: Progress) -> None:
    for task, result in pool.results():
        if isinstance(task, _Translate):
            name = task.job.name
            if isinstance(result, Translation):
                results.translations[name] = result
                _submit_checks(pool, results, result, options, progress)
            else:
                results.failures[name] = result if isinstance(result, Failure) else _crashed(task.job, result)
                progress(task.job.check_count, name)
        else:
            found = _lost(task, result) if isinstance(result, Crash) else result
            results.checks.update(found)
            for key, one in found.items():
                results.timing.add(one.reference_seconds, one.equivalences)
                if options.memo is not None:
                    options.memo.store(key, one)
            progress(len(found), task.checks[0][0].operator)


def _submit_checks(
    pool: Pool | _Inline, results: Results, translation: Translation, options: Options, progress: Progress
) -> None:
    """Queue the checks of an operator in chunks of one kernel; what is decided already needs no worker."""
    rust, groups = rust_text(translation), OrderedDict[int, list[tuple[CheckKey, CheckTask]]]()
    for key, task, decided in tasks_of(translation.plan, check_keys(translation.plan)):
        kernel = translation.plan.kernels[key.kernel].name
        if task.unmapped and options.verify and kernel in translation.closures:
            decided = None  # the reference may have something to say
        if options.wanted is not None and (key.operator, kernel, task.specialization.name) not in options.wanted:
            continue
        if decided is None and options.verify and options.memo is not None:
            decided = options.memo.find(key, rust, translation.closures[kernel], task)
        if decided is not None:
            results.checks[key] = decided
            results.timing.add(0.0, decided.equivalences)
            progress(1, key.operator)
        elif not options.verify and task.problems and task.inputs is None:
            results.checks[key] = CheckResult("error", task.problems)
        elif options.verify:
            groups.setdefault(key.kernel, []).append((key, task))
    size = _ASSEMBLING_CHUNK if options.cubins else _CHUNK
    entries = sum(len(kernel.entries) for kernel in translation.plan.kernels)
    weight = len(translation.text) / max(1, entries)  # a check takes as long as the text it compiles
    for index, checks in groups.items():
        closure = translation.closures[translation.plan.kernels[index].name]
        for start in range(0, len(checks), size):
            chunk = tuple(checks[start : start + size])
            pool.submit(_Check(rust, closure, chunk), weight * (len(checks) - start), translation.plan.name)


def _crashed(job: OperatorJob, result: object) -> Failure:
    how = result.how if isinstance(result, Crash) else str(result)
    message = f"translating {job.shown} ended the worker process: {how}"
    return failure(job, Diagnostic("E0901", message, "please report it", "error", Span(job.shown, 1, 1)))


def failure(job: OperatorJob, diagnostic: Diagnostic) -> Failure:
    """Say that nothing of a job could be translated."""
    kernels = tuple((kernel.name, kernel.specializations) for kernel in job.kernels)
    return Failure(job.name, job.shown, diagnostic, kernels, job.target)


def _lost(task: _Check, crash: Crash) -> dict[CheckKey, CheckResult]:
    """Results for checks whose worker died; one check alone is named as the cause."""
    among = "" if len(task.checks) == 1 else f" (or one of {len(task.checks) - 1} others done with it)"
    out = {}
    for key, one in task.checks:
        message = f"checking `{one.kernel}` [{one.specialization.name}]{among} ended the worker process: {crash.how}"
        out[key] = CheckResult("error", (Diagnostic("E0901", message, "please report it", "error", one.place),))
    return out


# The worker's side


@contextlib.contextmanager
def _worker(options: Options) -> Iterator[Callable[[object], object]]:
    """A worker's handler, with one warm judge."""
    with Judge(cubins=options.cubins, time_limit=options.time_limit, execute=options.execute) as judge:

        def handle(task: object) -> object:
            if isinstance(task, _Translate):
                return _translate(task.job)
            assert isinstance(task, _Check)
            following = [*(one for _, one in task.checks[1:]), None]
            return {
                key: _check(judge, task, one, after) for (key, one), after in zip(task.checks, following, strict=True)
            }

        yield handle


def _translate(job: OperatorJob) -> Translation | Failure:
    from transpiler.pipeline import translate

    try:
        return translate(job)
    except TranspileError as exc:
        return failure(job, exc.diagnostic)
    except Exception as exc:
        return failure(job, internal_error(exc, Span(job.shown, 1, 1)))


def _check(judge: Judge, task: _Check, one: CheckTask, following: CheckTask | None) -> CheckResult:
    try:
        return judge.check(task.rust, task.closure, one, following)
    except Exception as exc:
        return CheckResult("error", (internal_error(exc, one.place),))


def _pool(options: Options) -> contextlib.AbstractContextManager[Pool | _Inline]:
    def start() -> contextlib.AbstractContextManager[Callable[[object], object]]:
        return _worker(options)

    if options.workers <= 1:
        return _inline(start)
    preload()
    return Pool(options.workers, start, time_limit=_TIME_LIMIT)


def preload() -> None:
    """Import what every worker needs before they are forked."""
    import transpiler._rust
    import transpiler.pipeline
    import transpiler.reference.export
    import transpiler.tileir  # noqa: F401


class _Inline:
    """The pool's interface without processes: tasks are done where results are read."""

    def __init__(self, handle: Callable[[object], object]) -> None:
        self._handle = handle
        self._waiting: list[object] = []

    def submit(self, task: object, cost: float = 1.0, needs: str | None = None) -> None:
        del cost, needs
        self._waiting.append(task)

    def results(self) -> Iterator[tuple[Any, Any]]:
        while self._waiting:
            task = self._waiting.pop(0)
            yield task, self._handle(task)


@contextlib.contextmanager
def _inline(start: Start) -> Iterator[_Inline]:
    with start() as handle:
        yield _Inline(handle)
