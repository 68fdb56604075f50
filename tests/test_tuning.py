"""The search over configurations takes the samples that the reference takes, and chooses what it chooses."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transpiler.runtime import Kernel, Library, exhaustive_search, tuning
from transpiler.runtime.tuning import LaunchTimeoutError

_theirs: Any = importlib.import_module("cuda.tile.tune._tune")


class _Clock:
    """Times of launches by configuration, the same for both searches; some configurations fail, at some launch."""

    def __init__(self, seed: int, count: int) -> None:
        draw = random.Random(seed)
        self.asked: list[int] = []
        self._draws = [random.Random(draw.random()) for _ in range(count)]
        self._means = [draw.choice([5.0, 40.0, 41.0, 300.0, 2e6]) for _ in range(count)]
        self._spread = [draw.choice([0.0, 0.01, 0.1, 0.5]) for _ in range(count)]
        self._fails = [draw.choice([None, None, None, 0, 4, 9]) for _ in range(count)]
        self._turns = [0] * count

    def time(self, config: int) -> float:
        self.asked.append(config)
        self._turns[config] += 1
        fails = self._fails[config]
        if fails is not None and self._turns[config] > fails:
            raise RuntimeError(f"{config} fails")
        return max(0.1, self._draws[config].gauss(self._means[config], self._spread[config] * self._means[config]))


def _ours(clock: _Clock, count: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    class Timer:
        def __init__(self, *_: Any) -> None:
            pass

        def run(self, _kernel: Kernel, _grid: Any, args: tuple[int], _timeout: float | None = None) -> float:
            return clock.time(args[0])

    monkeypatch.setattr(tuning, "_Timer", Timer)
    kernel = Kernel("op_none", "none", [], library=_Library(Path()))
    return exhaustive_search(range(count), 0, lambda _: (1,), kernel, lambda config: (config,), quiet=True)


class _Library(Library):
    def declare(self, symbols: Any) -> None:
        """Nothing is loaded."""


def _reference(clock: _Clock, count: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    def benchmark(_stream: Any, _grid: Any, _kernel: Any, args: tuple[int], _flush: bool) -> float:
        return clock.time(args[0])

    class Unchanged:
        def replace_hints(self) -> Unchanged:
            return self

    monkeypatch.setattr(_theirs, "_benchmark", benchmark)
    search = _theirs.exhaustive_search
    return search(range(count), 0, lambda _: (1,), lambda _: Unchanged(), lambda config: (config,), quiet=True)


def _outcome(search: Callable[..., Any], clock: _Clock, count: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    try:
        found = search(clock, count, monkeypatch)
    except ValueError:
        return "none could be launched"
    rows = [(one.config, one.num_samples, pytest.approx(one.mean_us), pytest.approx(one.error_margin_us, abs=1e-9))
            for one in found.successes]  # fmt: skip
    return found.best.config, rows, [(config, kind, said) for config, kind, said in found.failures]


@pytest.mark.parametrize("seed", range(40))
def test_samples_and_choice_are_those_of_the_reference(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1 + seed % 13
    ours, theirs = _Clock(seed, count), _Clock(seed, count)
    assert _outcome(_ours, ours, count, monkeypatch) == _outcome(_reference, theirs, count, monkeypatch)
    assert ours.asked == theirs.asked


class _Event:
    """An event that has happened after so many questions; notes what is done."""

    def __init__(self, log: list[str], late: list[bool], questions: int) -> None:
        self._log, self._late, self._questions = log, late, questions

    def record(self, _stream: Any) -> None:
        self._log.append("record")

    def query(self) -> bool:
        if self._late:
            return self._late.pop(0)
        self._questions -= 1
        return self._questions < 0

    def synchronize(self) -> None:
        self._log.append("wait")

    def elapsed_time(self, _other: Any) -> float:
        return 0.012


def _timer(log: list[str], late: list[bool], questions: int = 0) -> tuple[tuning._Timer, Any]:
    from contextlib import nullcontext
    from types import SimpleNamespace as Made

    cuda = Made(stream=lambda _: nullcontext(), Event=lambda **_: _Event(log, late, questions),
                _sleep=lambda cycles: log.append(f"hold {cycles}"))  # fmt: skip
    timer = tuning._Timer.__new__(tuning._Timer)
    timer._torch, timer._stream = Made(cuda=cuda), 0
    timer._filler = Made(fill_=lambda value: log.append(f"flush {value}"))
    return timer, Made(launch=lambda *_: log.append("launch"))


def test_a_sample_for_which_the_host_was_too_slow_is_taken_again() -> None:
    log: list[str] = []
    timer, kernel = _timer(log, [True, False])
    assert timer.run(kernel, (1,), ()) == pytest.approx(12.0)
    once = ["flush 90", "record", "launch", "record", "wait"]
    assert log == ["hold 400000", *once, "hold 800000", *once]


def test_a_first_run_that_takes_too_long_fails() -> None:
    timer, kernel = _timer([], [False], questions=1_000_000)
    with pytest.raises(LaunchTimeoutError, match=r"more than 0\.01 seconds"):
        timer.run(kernel, (1,), (), 0.01)
