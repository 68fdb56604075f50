"""Exhaustive search over configurations, with the interface of ``cuda.tile.tune``."""

from __future__ import annotations

import heapq
import importlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .kernel import Kernel, translated

T = TypeVar("T")
_WARM_UP = 3
_BATCH = 5
_MIN_SAMPLES, _MAX_SAMPLES = 5, 1000
_MAX_MEASURED_US = 5_000_000
_RELATIVE, _ABSOLUTE_US = 0.01, 0.5  # margins at which a measurement is good enough
_TOP = 5  # so many configurations are measured well before others are given up
_HELD_CYCLES, _TRIES = 400_000, 4  # how long the device is held up, about 0.2 ms; doubled with each try


class LaunchTimeoutError(RuntimeError):
    """A configuration's first run took longer than ``single_run_timeout_sec``."""


@dataclass(frozen=True, kw_only=True)
class Measurement(Generic[T]):
    """A configuration and its time; the margin is half of the 95 % confidence interval."""

    config: T
    mean_us: float
    num_samples: int
    error_margin_us: float


@dataclass(frozen=True, kw_only=True)
class TuningResult(Generic[T]):
    """All measurements, the best one, and the configurations that failed: (config, exception type, message)."""

    best: Measurement[T]
    successes: Sequence[Measurement[T]]
    failures: Sequence[tuple[T, type[BaseException], str]]

    def summary(self, *, top_k: int = 10, bottom_k: int = 2) -> str:
        """Return the fastest and slowest configurations, one a line."""
        ranked = sorted(self.successes, key=lambda m: m.mean_us)
        kept = ranked if len(ranked) <= top_k + bottom_k else [*ranked[:top_k], *ranked[len(ranked) - bottom_k :]]
        lines = [f"{len(self.successes)} succeeded, {len(self.failures)} failed"]
        lines += [f"{m.config}: {m.mean_us:.1f}±{m.error_margin_us:.1f} us ({m.num_samples} samples)" for m in kept]
        lines += [f"{config}: {kind.__name__}: {message}" for config, kind, message in self.failures[:top_k]]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


def exhaustive_search(
    search_space: Sequence[T],
    stream: Any,
    grid_fn: Callable[[T], Sequence[int]],
    kernel: Any,
    args_fn: Callable[[T], Sequence[Any]],
    hints_fn: Callable[[T], dict[str, Any]] | None = None,
    *,
    quiet: bool = False,
    single_run_timeout_sec: float | None = None,
    flush_l2: bool = True,
) -> TuningResult[T]:
    """Measure configurations as ``cuda.tile.tune`` does; raises ValueError when none could be launched.

    ``kernel`` is a kernel, or a function from a configuration to one. Kernels that were not translated are left
    to ``cuda.tile.tune``. A first run of more than ``single_run_timeout_sec`` seconds makes the configuration a
    failure; it isn't ended, as that would take another process. What ``grid_fn``, ``kernel`` and ``hints_fn`` raise,
    and hints that there aren't, are raised; what a launch raises is among the failures.
    """
    if not search_space:
        raise ValueError("the search space is empty")
    chosen = [kernel if isinstance(kernel, Kernel) else _kernel_of(kernel, config) for config in search_space]
    if not all(isinstance(one, Kernel) for one in chosen):
        from cuda.tile.tune import exhaustive_search as search

        options = {"quiet": quiet, "single_run_timeout_sec": single_run_timeout_sec, "flush_l2": flush_l2}
        theirs: TuningResult[T] = search(search_space, stream, grid_fn, kernel, args_fn, hints_fn, **options)
        return theirs
    timer = _Timer(stream, flush_l2)
    candidates = []
    for one, config in zip(chosen, search_space, strict=True):
        hinted = one.replace_hints(**(hints_fn(config) if hints_fn is not None else {}))
        candidates.append(_Candidate(config, hinted, grid_fn(config), args_fn, timer))
    result = _Search(candidates, single_run_timeout_sec).result()
    if not quiet:
        print(result)
    return result


class _Search(Generic[T]):
    """Measures what may be the fastest until it is known well; takes samples in the order of ``cuda.tile.tune``."""

    def __init__(self, candidates: Sequence[_Candidate[T]], timeout: float | None) -> None:
        self._candidates, self._timeout = candidates, timeout
        self._done: list[_Candidate[T]] = []
        self._running: list[tuple[float, float, int, _Candidate[T]]] = []  # a heap: the fastest first
        self._failures: list[tuple[T, type[BaseException], str]] = []

    def result(self) -> TuningResult[T]:
        """Measure; raises ValueError when every configuration failed."""
        for order, candidate in enumerate(self._candidates):
            self._sample(candidate, order, first=True)
        while len(self._done) < _TOP and self._running:
            *_, order, candidate = heapq.heappop(self._running)
            self._sample(candidate, order)
        self._give_up_the_slow()
        if not self._done:
            reasons = "\n".join(f"{config}: {kind.__name__}: {said}" for config, kind, said in self._failures[:10])
            raise ValueError(f"no configuration of {self._candidates[0].kernel!r} could be launched:\n{reasons}")
        successes = tuple(one.measurement() for one in self._done)
        best = min(successes, key=lambda m: m.mean_us)  # of equal ones the first that was known
        return TuningResult(best=best, successes=successes, failures=tuple(self._failures))

    def _sample(self, candidate: _Candidate[T], order: int, *, first: bool = False) -> None:
        try:
            if first:
                candidate.warm_up(self._timeout)
            candidate.sample()
        except Exception as exc:  # a configuration that fails is reported, not raised
            self._failures.append((candidate.config, type(exc), str(exc)))
            return
        if candidate.is_known():
            self._done.append(candidate)
        else:
            heapq.heappush(self._running, (candidate.mean, candidate.margin, order, candidate))

    def _give_up_the_slow(self) -> None:
        """Measure the others as long as they may be among the fastest."""
        if not self._done:
            return
        slowest = sorted(one.mean for one in self._done)[:_TOP][-1]
        for *_, candidate in self._running:
            try:
                candidate.sample_while_below(slowest)
            except Exception as exc:
                self._failures.append((candidate.config, type(exc), str(exc)))
            else:
                self._done.append(candidate)


def _kernel_of(kernel: Any, config: Any) -> Any:
    """Return the kernel for a configuration: a kernel of cuda.tile has hints to replace, a function has not."""
    return translated(kernel if hasattr(kernel, "replace_hints") else kernel(config))


@dataclass
class _Candidate(Generic[T]):
    """A configuration, and the mean and spread of its samples so far (Welford's recurrence), in microseconds."""

    config: T
    kernel: Kernel
    grid: Sequence[int]
    args_fn: Callable[[T], Sequence[Any]]
    timer: _Timer
    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    margin: float = 0.0

    def warm_up(self, timeout: float | None) -> None:
        """Run a few times; the first run may take ``timeout`` seconds from when it is enqueued on."""
        for index in range(_WARM_UP):
            self.timer.run(self.kernel, self.grid, self.args_fn(self.config), None if index else timeout)

    def sample(self) -> None:
        """Take a few samples."""
        for _ in range(min(_BATCH, _MAX_SAMPLES - self.count)):
            self.add(self.timer.run(self.kernel, self.grid, self.args_fn(self.config)))

    def add(self, sample: float) -> None:
        """Add a sample."""
        self.count += 1
        before = sample - self.mean
        self.mean += before / self.count
        self.squares += before * (sample - self.mean)
        if self.count > 1:
            self.margin = 1.96 * math.sqrt(self.squares / (self.count - 1) / self.count)

    def is_known(self) -> bool:
        """Whether the mean is known well enough, or enough was measured."""
        return self.count >= _MIN_SAMPLES and (
            self.margin <= max(_RELATIVE * self.mean, _ABSOLUTE_US)
            or self.count >= _MAX_SAMPLES
            or self.mean * self.count > _MAX_MEASURED_US
        )

    def sample_while_below(self, slowest: float) -> None:
        """Take samples as long as the mean may turn out to be below another one."""
        while not self.is_known() and self.mean - self.margin < slowest:
            self.sample()

    def measurement(self) -> Measurement[T]:
        """Return what is known."""
        return Measurement(config=self.config, mean_us=self.mean, num_samples=self.count, error_margin_us=self.margin)


class _Timer:
    """Measures single launches on the device.

    The reference puts flush, event, kernel and event into a graph, so that its launching costs the device no time.
    Lists can't be in graphs, so here the device is held up while the same four are enqueued: a sample for which the
    host was too slow is taken again.
    """

    def __init__(self, stream: Any, flush_l2: bool) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._stream, self._filler = stream, None
        if flush_l2:
            device = self._torch.cuda.current_device()
            size = int(getattr(self._torch.cuda.get_device_properties(device), "L2_cache_size", 1 << 26))
            self._filler = self._torch.empty(max(size, 1024), dtype=self._torch.uint8, device="cuda")

    def run(self, kernel: Kernel, grid: Sequence[int], args: Sequence[Any], timeout: float | None = None) -> float:
        """Return the time of one launch in microseconds; raises LaunchTimeoutError after ``timeout`` seconds."""
        cuda = self._torch.cuda
        with cuda.stream(self._stream):
            for attempt in range(_TRIES):
                start, end = (cuda.Event(enable_timing=True) for _ in range(2))
                cuda._sleep(_HELD_CYCLES << attempt)
                if self._filler is not None:
                    self._filler.fill_(0x5A)
                start.record(self._stream)
                kernel.launch(self._stream, grid, args)
                end.record(self._stream)
                late = start.query()
                self._wait(end, timeout)
                if not late:
                    break
        return float(start.elapsed_time(end)) * 1000.0

    @staticmethod
    def _wait(end: Any, timeout: float | None) -> None:
        if timeout is None:
            end.synchronize()
            return
        limit = time.monotonic() + timeout
        while not end.query():
            if time.monotonic() > limit:
                raise LaunchTimeoutError(f"a launch took more than {timeout} seconds")
            time.sleep(min(0.001, timeout / 10))
