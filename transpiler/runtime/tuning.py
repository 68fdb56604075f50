"""Exhaustive search over configurations, with the interface of ``cuda.tile.tune``."""

from __future__ import annotations

import importlib
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .kernel import Kernel, translated

T = TypeVar("T")
_WARM_UP = 3
_BATCH = 10
_MAX_BATCHES = 20
_TOLERANCE = 0.02  # relative error at which a measurement is good enough


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
    **options: Any,
) -> TuningResult[T]:
    """Measure every configuration and return all results; raises ValueError when none could be launched.

    ``kernel`` is a kernel, or a function from a configuration to one. Kernels that were not translated are left
    to ``cuda.tile.tune``. Of the options, ``flush_l2`` is followed, the others change nothing here.
    """
    if not search_space:
        raise ValueError("the search space is empty")
    chosen = {i: kernel if isinstance(kernel, Kernel) else _kernel_of(kernel, c) for i, c in enumerate(search_space)}
    if not all(isinstance(one, Kernel) for one in chosen.values()):
        from cuda.tile.tune import exhaustive_search as search

        found: TuningResult[T] = search(search_space, stream, grid_fn, kernel, args_fn, hints_fn, **options)
        return found
    flush = _l2_flusher() if options.get("flush_l2", True) else None
    successes: list[Measurement[T]] = []
    failures: list[tuple[T, type[BaseException], str]] = []
    for i, config in enumerate(search_space):
        try:
            hinted = chosen[i].replace_hints(**(hints_fn(config) if hints_fn is not None else {}))
            successes.append(_measure(config, hinted, stream, grid_fn(config), args_fn, flush))
        except Exception as exc:  # as cuda.tile.tune: a configuration that fails is reported, not raised
            failures.append((config, type(exc), str(exc)))
    if not successes:
        reasons = "\n".join(f"{config}: {kind.__name__}: {message}" for config, kind, message in failures[:10])
        raise ValueError(f"no configuration of {kernel!r} could be launched:\n{reasons}")
    return TuningResult(best=min(successes, key=lambda m: m.mean_us), successes=successes, failures=failures)


def _kernel_of(kernel: Any, config: Any) -> Any:
    """Return the kernel for a configuration: a kernel of cuda.tile has hints to replace, a function has not."""
    return translated(kernel if hasattr(kernel, "replace_hints") else kernel(config))


def _measure(
    config: T, kernel: Kernel, stream: Any, grid: Sequence[int], args_fn: Callable[[T], Sequence[Any]],
    flush: Callable[[], None] | None,
) -> Measurement[T]:  # fmt: skip
    """Time a configuration in batches until the mean is known well enough."""
    torch: Any = importlib.import_module("torch")
    given = args_fn(config)
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UP):
            kernel.launch(stream, grid, given)
        samples: list[float] = []
        for _ in range(_MAX_BATCHES):
            samples += [_timed(torch, kernel, stream, grid, given, flush) for _ in range(_BATCH)]
            mean, margin = statistics.fmean(samples), _margin(samples)
            if margin <= _TOLERANCE * mean:
                break
    return Measurement(config=config, mean_us=mean, num_samples=len(samples), error_margin_us=margin)


def _timed(
    torch: Any, kernel: Kernel, stream: Any, grid: Sequence[int], args: Sequence[Any], flush: Callable[[], None] | None
) -> float:
    """Return the time of one launch on the device, in microseconds."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    if flush is not None:
        flush()
    start.record(stream)
    kernel.launch(stream, grid, args)
    end.record(stream)
    end.synchronize()
    return float(start.elapsed_time(end)) * 1000.0


def _margin(samples: Sequence[float]) -> float:
    return 1.96 * statistics.stdev(samples) / math.sqrt(len(samples)) if len(samples) > 1 else math.inf


def _l2_flusher() -> Callable[[], None]:
    """Return a function that fills the L2 cache with something else."""
    torch: Any = importlib.import_module("torch")
    size = int(getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "L2_cache_size", 1 << 26))
    filler = torch.empty(max(size, 1), dtype=torch.int8, device="cuda")

    def flush() -> None:
        filler.zero_()

    return flush
