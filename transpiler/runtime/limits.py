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
from contextlib import AbstractContextManager, contextmanager, nullcontext
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


def _watch(limit: float, done: threading.Event) -> None:
    """End assemblers that have been there for longer than the limit."""
    seen: dict[tuple[int, str], float] = {}
    while not done.wait(_PERIOD):
        now = time.monotonic()
        seen = {one: seen.get(one, now) for one in _assemblers()}
        for (pid, started), since in seen.items():
            if now - since > limit and (pid, started) in _assemblers():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue


def _assemblers() -> list[tuple[int, str]]:
    """Return this process's assemblers: number and time of start, which together name a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = path.read_text(encoding="utf-8", errors="replace").partition(" (")
        except OSError:  # it has ended
            continue
        name, _, fields = rest.rpartition(") ")
        state, parent, *others = fields.split()
        if name == _ASSEMBLER and int(parent) == os.getpid() and state != "Z":
            found.append((int(number), others[17]))
    return found
