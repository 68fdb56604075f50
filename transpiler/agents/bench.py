"""Checking what somebody wrote, in a process of its own with limits: compile, compare, and the reference's operations.

The process has a bound on memory, on processor time and on wall time; one that passes a bound is ended and replaced,
and the answer that it was at has failed. Nothing is run but the in-process compiler and the judge.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from transpiler.agents.operations import Operations, operations_of
from transpiler.diagnostics import NO_SPAN, Diagnostic, Span, TranspileError
from transpiler.internal import internal_error
from transpiler.reference.closure import Closure
from transpiler.verify import CheckResult, CheckTask, Judge, RustText
from transpiler.workers import Crash, Pool

MEMORY = 12 << 30  # of addresses: the compiler's threads reserve a stack of 512 MiB each
PROCESSOR_SECONDS = 900  # of the process, over all answers
WALL_SECONDS = 60.0


@dataclass(frozen=True)
class Limits:
    """Bounds of the process; ``wall`` is for one task."""

    memory: int = MEMORY
    processor: int = PROCESSOR_SECONDS
    wall: float = WALL_SECONDS


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Work:
    """One thing to do with a check: ``compile`` our side, ``check`` both, ``execute`` both as well, or list the
    reference's operations."""

    what: Literal["compile", "check", "execute", "reference"]
    rust: RustText | None
    closure: Closure
    task: CheckTask
    lines: Span = NO_SPAN


Outcome = CheckResult | Operations


class Bench:
    """Does work in a limited process that is kept between answers."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        from transpiler.batch import preload

        preload()
        self._limits = limits
        self._pool = Pool(1, lambda: _start(limits), time_limit=limits.wall)

    def __enter__(self) -> Bench:
        self._pool.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def do(self, work: Work) -> Outcome | Crash:
        """Do one thing; a process that died or took too long gives a Crash."""
        self._pool.submit(work)
        for _task, result in self._pool.results():
            done: Outcome | Crash = result
        return done


@contextlib.contextmanager
def _start(limits: Limits) -> Iterator[Callable[[Work], Outcome]]:
    for kind, bound in ((resource.RLIMIT_AS, limits.memory), (resource.RLIMIT_CPU, limits.processor),
                        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 64 << 20)):  # fmt: skip
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (bound if hard == resource.RLIM_INFINITY else min(bound, hard), hard))
    with Judge(time_limit=limits.wall) as judge:
        yield lambda work: _do(judge, work)


def _do(judge: Judge, work: Work) -> Outcome:
    try:
        if work.what == "reference":
            return _operations(judge, work)
        assert work.rust is not None and work.task.inputs is not None
        if work.what == "compile":
            judge.compile(work.rust, work.task.inputs, work.task.target)
            return CheckResult("proved")
        return judge.check(work.rust, work.closure, replace(work.task, execute=work.what == "execute"))
    except TranspileError as failure:
        rejected = type(failure).__name__ == "ReferenceRejected"
        return CheckResult("rejected" if rejected else "error", (failure.diagnostic,))
    except Exception as exc:
        return CheckResult("error", (internal_error(exc, work.task.place),))


def _operations(judge: Judge, work: Work) -> Operations:
    """The reference's operations of the work's lines."""
    from transpiler import toolkit
    from transpiler.tileir import parse_entry

    export = judge.exporter.export(work.closure, work.task.specialization, work.task.target)
    return operations_of(parse_entry(toolkit.disassemble(export.bytecode, debug=True)), work.lines)


def crash_diagnostic(crash: Crash, place: Span) -> Diagnostic:
    """Say what became of an answer that took too much."""
    return Diagnostic("E0901", f"checking it ended the process: {crash.how}", "write something smaller", "error", place)
