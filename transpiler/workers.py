"""A pool of forked workers for tasks that may crash: a dead worker costs its task, never the run.

Each worker keeps its own state between tasks (a warm reference exporter, parsed modules).  The most expensive
waiting task goes to the next free worker; of tasks that share what they need, a worker goes on with those that it has
begun with, and leaves others' to them as long as there is something else to do.  Interrupts are the parent's: it
ends the workers and goes on to raise.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from transpiler.temporary import signals_held, temporary_folder

Handler = Callable[[Any], Any]
Start = Callable[[], AbstractContextManager[Handler]]
_GRACE = 3.0
_SIGNALS = {signal.SIGINT, signal.SIGTERM}
_CONTEXT = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Crash:
    """What stands in the place of a result when the worker died, or took too long."""

    how: str


class Pool:
    """Runs tasks in ``count`` workers; every worker makes its handler with ``start``."""

    def __init__(self, count: int, start: Start, *, time_limit: float | None = None) -> None:
        self._count, self._start, self._limit = count, start, time_limit
        self._waiting: list[_Waiting] = []
        self._workers: list[_Worker] = []
        self._ending = contextlib.ExitStack()
        self._folder = Path()
        self.done = 0

    def __enter__(self) -> Pool:
        try:
            with signals_held():
                self._folder = self._ending.enter_context(temporary_folder("transpile-"))
                self._ending.callback(self._end)
                for _ in range(self._count):
                    self._workers.append(self._worker())
        except BaseException:  # what came while they started
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, task: Any, cost: float = 1.0, needs: str | None = None) -> None:
        """Queue a task; may be called while results are read.

        ``needs`` names what a worker has to make first for such a task and keeps for the next one (None: nothing).
        """
        self._waiting.append(_Waiting(task, cost, needs))

    def results(self) -> Iterator[tuple[Any, Any]]:
        """Yield (task, result or Crash) as workers finish, until nothing is queued or running."""
        while True:
            for worker in self._workers:
                if worker.task is None and self._waiting:
                    worker.give(self._next(worker))
            running = {worker.connection: worker for worker in self._workers if worker.task is not None}
            if not running:
                return
            ready = wait(list(running), timeout=1.0)
            finished = [running[c] for c in ready if isinstance(c, Connection)]
            for worker in finished or self._overdue():
                task, result = worker.take() if finished else worker.stop(f"it took more than {self._limit:g} s")
                if isinstance(result, Crash):
                    with signals_held():
                        self._workers[self._workers.index(worker)] = self._worker()
                self.done += 1
                yield task, result

    def _next(self, worker: _Worker) -> _Waiting:
        """Take the best task for a worker from the queue; the earlier one of two that are equally good."""
        others = {other.has for other in self._workers if other is not worker}

        def rank(waiting: _Waiting) -> tuple[int, float]:
            if waiting.needs is None:
                return 3, waiting.cost
            return 2 if waiting.needs == worker.has else waiting.needs not in others, waiting.cost

        best = max(self._waiting, key=rank)
        self._waiting.remove(best)
        return best

    def _worker(self) -> _Worker:
        open_ends = [worker.connection for worker in self._workers if not worker.connection.closed]
        return _Worker(self._start, open_ends, self._folder)

    def _overdue(self) -> list[_Worker]:
        if self._limit is None:
            return []
        now = time.monotonic()
        return [w for w in self._workers if w.task is not None and now - w.since > self._limit]

    def close(self) -> None:
        """End the workers, politely, then by force, and remove what they left of temporary files."""
        with signals_held():
            self._ending.close()

    def _end(self) -> None:
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            worker.join()


@dataclass(frozen=True, eq=False)
class _Waiting:
    """A task in the queue."""

    task: Any
    cost: float
    needs: str | None


class _Worker:
    """A worker process and the task it is at."""

    def __init__(self, start: Start, others: Sequence[Connection], folder: Path) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        inherited = [*others, self.connection]
        self.process = _CONTEXT.Process(target=_serve, args=(theirs, inherited, start, folder), daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.task: Any = None
        self.has: str | None = None
        """What it has made for its last task that needed something."""
        self.since = 0.0

    def give(self, waiting: _Waiting) -> None:
        self.task, self.since, self.has = waiting.task, time.monotonic(), waiting.needs or self.has
        with contextlib.suppress(OSError):  # a dead worker is noticed when its answer is read
            self.connection.send(waiting.task)

    def take(self) -> tuple[Any, Any]:
        """Read the answer; the process may have died instead."""
        task, self.task = self.task, None
        try:
            return task, self.connection.recv()
        except (EOFError, OSError):
            self.process.join(_GRACE)
            code = self.process.exitcode
            how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit status {code}"
            self.terminate()
            return task, Crash(how)

    def stop(self, why: str) -> tuple[Any, Crash]:
        task, self.task = self.task, None
        self.terminate()
        self.join()
        return task, Crash(why)

    def terminate(self) -> None:
        self.connection.close()
        if self.process.is_alive():
            self.process.terminate()

    def join(self) -> None:
        self.process.join(_GRACE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _serve(connection: Connection, inherited: Sequence[Connection], start: Start, folder: Path) -> None:
    """Do tasks until the parent closes its end; the parent's ends, inherited by the fork, would keep it open.

    Temporary files go to ``folder``, which the parent removes, or the last worker where the parent was killed.
    """
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    gc.freeze()  # the parent's objects live as long as we do
    gc.set_threshold(100_000, 20, 20)  # programs are graphs without cycles; collecting often only costs
    for parents_end in inherited:
        parents_end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    with _removed_when_empty(folder):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        _do_tasks(connection, start)


@contextlib.contextmanager
def _removed_when_empty(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _do_tasks(connection: Connection, start: Start) -> None:
    with start() as handle:
        while True:
            try:
                task = connection.recv()
            except (EOFError, OSError):
                return
            result = handle(task)
            try:
                connection.send(result)
            except (BrokenPipeError, ConnectionResetError):  # interrupted: nobody waits for this answer
                return


def _leave(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))
