"""Temporary folders that no interrupt and no termination leaves behind, whenever it comes."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Handle interrupts after the block.

    By handlers, not by a signal mask: a mask holds back only this thread's signals, and Python runs the handler of
    a signal that another thread got in the main thread all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts are raised in the main thread
        return
    came: list[int] = []
    held = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in held}
    try:
        for number in held:
            signal.signal(number, lambda n, _frame: came.append(n))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextlib.contextmanager
def temporary_folder(prefix: str, beside: Path | None = None) -> Iterator[Path]:
    """Make a folder, in ``beside`` or where temporary files belong; whatever is left of it is removed in the end."""
    made: list[Path] = []
    try:
        with signals_held():  # between making the folder and knowing its name there is no way to remove it
            made.append(Path(tempfile.mkdtemp(prefix=prefix, dir=beside)))
        yield made[0]
    finally:
        with signals_held():
            for folder in made:
                shutil.rmtree(folder, ignore_errors=True)
