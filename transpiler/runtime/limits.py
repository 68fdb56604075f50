"""A limit for the assembler's time, with the interface of ``cuda.tile.compiler_timeout``.

cutile 0.5 starts ``tileiras`` and waits as long as it takes, and there are kernels on which it takes many minutes: a
tuner would wait for one bad configuration. So a thread looks after this process's assemblers and ends those that run
for too long; the launch then fails with COMPILE, which ``exhaustive_search`` counts among its failures.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

_ASSEMBLER = "tileiras"
_PERIOD = 0.1  # seconds between two looks


@contextmanager
def compiler_timeout(timeout_sec: float) -> Iterator[None]:
    """Give every assembler that this process starts at most so many seconds; cuda.tile's own limit holds as well.

    Linux only: elsewhere the assembler has no limit. Of nested limits the shortest holds.
    """
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(timeout_sec, done), name="compiler_timeout", daemon=True)
    watcher.start()
    try:
        with _limit_of_cuda_tile(timeout_sec):
            yield
    finally:
        done.set()
        watcher.join()


def _limit_of_cuda_tile(seconds: float) -> AbstractContextManager[object]:
    """cuda.tile's limit, where it is loaded: kernels that were not translated are compiled by it."""
    limit = getattr(sys.modules.get("cuda.tile"), "compiler_timeout", None)
    return nullcontext() if limit is None else limit(seconds)


@dataclass(frozen=True)
class _Process:
    """A process; number and time of start together name it."""

    number: int
    started: str
    parent: int
    name: str


def _watch(limit: float, done: threading.Event) -> None:
    """End assemblers that have been there for longer than the limit, and what they run: it holds their pipes."""
    seen: dict[_Process, float] = {}
    while not done.wait(_PERIOD):
        now, running = time.monotonic(), _processes()
        mine = [p for p in running if p.name == _ASSEMBLER and p.parent == os.getpid()]
        seen = {one: seen.get(one, now) for one in mine}
        for assembler in [one for one, since in seen.items() if now - since > limit]:
            for process in _with_descendants(assembler, running):
                with suppress(ProcessLookupError):
                    os.kill(process.number, signal.SIGKILL)


def _with_descendants(first: _Process, running: list[_Process]) -> list[_Process]:
    found = [first]
    for one in found:
        found += [p for p in running if p.parent == one.number]
    return found


def _processes() -> list[_Process]:
    """Return what runs on this machine, as Linux tells; nothing elsewhere."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = path.read_text(encoding="utf-8", errors="replace").partition(" (")
        except OSError:  # it has ended
            continue
        name, _, fields = rest.rpartition(") ")
        state, parent, *others = fields.split()
        if state != "Z":
            found.append(_Process(int(number), others[17], int(parent), name))
    return found
