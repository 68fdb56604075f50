"""A pytest plugin that measures each distinct launch of TileGym's tests: ours beside the reference's.

Tests run with ``cutile-rs``. The first time that a kernel is launched with other sizes, types or constants, its
arguments are kept; after the test the launch is repeated with the reference's kernel and with ours in turn, under
CUPTI (torch.profiler), on the same arrays. What a kernel writes is put back before each launch.

Compiling takes longer than measuring, so there are two passes. With ``--compile-only`` several processes compile
both sides of every launch into caches on disk and compare the machine code; the second pass, alone on the GPU,
finds everything there. Operators that tune themselves take their first configuration.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cutile_kernels._runtime as runtime
import pytest
from cutile_kernels._runtime import tilegym as backend
from plugin import backend_of

ROUND = 50
"""Launches of each side in a round of profiling."""
PRECISION, BUDGET_US = 0.0015, 1.5e6
"""Rounds go on until the standard error of the ratio is this small, or this much time on the device is spent."""
GROUPS, OVERHEAD_US = 10, 300.0
"""Groups of samples whose spread is looked at; what a launch costs beside its time on the device."""
RESTORED = 2 << 30
"""Arrays that take more bytes together are not put back."""

backend.install()
torch: Any = importlib.import_module("torch")
ct: Any = importlib.import_module("cuda.tile")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device-log", help="where the times go")
    parser.addoption("--quota", type=int, default=8, help="configurations of a test file")
    parser.addoption("--compile-only", action="store_true", help="compile and compare, don't measure")
    parser.addoption("--codes", default="", help="folder with what a pass with --compile-only wrote")


@dataclass
class Launch:
    """A launch to repeat: the kernel, the grid, the arguments, and the arrays as they were before it."""

    kernel: Any
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    config: str
    file: str
    test: str
    saved: list[tuple[Any, Any]] = field(default_factory=list)
    cubins: list[bytes] = field(default_factory=list)


class Recorder:
    """Keeps the launches that are new."""

    def __init__(self, log: Path, quota: int, compile_only: bool, codes: Path | None) -> None:
        self._log = log.open("w", encoding="utf-8")
        self._quota, self._compile_only = quota, compile_only
        self._known: set[str] = set()
        self._new: list[Launch] = []
        self._codes = read_codes(codes)
        self._counts: dict[str, int] = {}
        self._launch = runtime.launch
        self._test = ""
        self._originals = originals()
        self.reference_cubins: list[bytes] = []

    # Recording

    def launch(self, stream: Any, grid: Sequence[int], kernel: Any, args: Sequence[Any], /, **options: Any) -> None:
        """Launch, and keep what is needed to do so again."""
        new = None
        if isinstance(kernel, runtime.Kernel) and self._test and kernel.symbol in self._originals and not options:
            config = describe(kernel, grid, args)
            if config not in self._known and self._room(self._test):
                self._known.add(config)
                new = Launch(kernel, tuple(grid), tuple(args), config, file_of(self._test), self._test, snapshot(args))
                new_cubins()
        self._launch(stream, grid, kernel, args, **options)
        if new is not None:
            new.cubins = new_cubins()
            self._new.append(new)

    def _room(self, test: str) -> bool:
        return self._counts.get(file_of(test), 0) + len(self._new) < self._quota

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self._test = item.nodeid
        yield
        self._test = ""
        new, self._new = self._new, []
        for launch in new:
            row = self._measured(launch)
            self._counts[launch.file] = self._counts.get(launch.file, 0) + ("error" not in row)
            self._log.write(json.dumps(row) + "\n")
            self._log.flush()
        torch.cuda.empty_cache()

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if not self._room(item.nodeid):
            pytest.skip("enough configurations of this file")

    # Measuring

    def _measured(self, launch: Launch) -> dict[str, Any]:
        row = {"file": launch.file, "test": launch.test, "config": launch.config}
        try:
            with torch.no_grad():
                return row | self._times(launch)
        except Exception as exc:
            return row | {"error": f"{type(exc).__name__}: {exc}"[:500]}

    def _times(self, launch: Launch) -> dict[str, Any]:
        module, name = self._originals[launch.kernel.symbol]
        original = getattr(sys.modules[module], name)
        if launch.kernel.hints:
            original = original.replace_hints(**launch.kernel.hints)
        stream = torch.cuda.current_stream()

        def reference() -> None:
            ct.launch(stream, launch.grid, original, launch.args)

        def ours() -> None:
            self._launch(stream, launch.grid, launch.kernel, launch.args)

        row: dict[str, Any] = {
            "operator": module.rpartition(".")[2],
            "machine_code": self._machine_code(launch, reference),
        }
        if self._compile_only:
            return row
        restore(launch.saved)
        reference()
        expected = [array.clone() for array, _ in launch.saved]
        restore(launch.saved)
        ours()
        pairs = zip(expected, launch.saved, strict=True)
        row["same_bits"] = all(equal_bits(theirs, array) for theirs, (array, _) in pairs) if expected else None
        return row | timed(reference, ours, launch.saved)

    def _machine_code(self, launch: Launch, reference: Any) -> str:
        """Compare the machine code that both sides compiled for this launch."""
        plan = json.dumps(launch.kernel.plan(launch.grid, launch.args))
        key = f"{launch.kernel.symbol} {plan}"
        if key not in self._codes:
            self.reference_cubins.clear()
            restore(launch.saved)
            reference()
            self._codes[key] = compared(self.reference_cubins, launch.cubins)
            self._log.write(json.dumps({"key": key, "code": self._codes[key]}) + "\n")
        return self._codes[key]


def read_codes(folder: Path | None) -> dict[str, str]:
    """What an earlier pass found about the machine code of launches."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("codes-*.jsonl")) if folder is not None else ():
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found |= {row["key"]: row["code"] for row in rows if "key" in row}
    return found


def first_config(space: Sequence[Any], *_: Any, **__: Any) -> Any:
    """Stand in for tuning: the first configuration is the best."""
    best = runtime.Measurement(config=space[0], mean_us=1.0, num_samples=1, error_margin_us=0.0)
    return runtime.TuningResult(best=best, successes=[best], failures=[])


def originals() -> dict[str, tuple[str, str]]:
    """The reference's module and name of each kernel, by its symbol."""
    found = {}
    for name, origin in backend._operators():
        bindings: Any = importlib.import_module(f"cutile_kernels.{name}._bindings")
        for value in vars(bindings).values():
            if isinstance(value, runtime.Kernel):
                found[value.symbol] = (origin, value.name)
    return found


def file_of(test: str) -> str:
    """The file of a test."""
    return test.partition("::")[0]


def describe(kernel: Any, grid: Sequence[int], args: Sequence[Any]) -> str:
    """A launch in one line: kernel, hints, arguments."""
    parts = []
    for parameter, value in zip(kernel.parameters, args, strict=True):
        parts.append(f"{parameter.name}={shown(value)}")
    hints = "".join(f" {name}={value}" for name, value in sorted(kernel.hints.items()))
    return f"{kernel.name}{hints} grid={'x'.join(map(str, grid))} {' '.join(parts)}"


def shown(value: Any) -> str:
    """An argument; arrays by type, shape and, unless they are contiguous, strides."""
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(shown, value)) + "]"
    if not hasattr(value, "data_ptr"):
        return repr(value)
    text = f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)}"
    return text if value.is_contiguous() else f"{text}@{list(value.stride())}"


def tensors(args: Sequence[Any]) -> list[Any]:
    """All arrays of a call, those of lists too."""
    found: list[Any] = []
    for value in args:
        if isinstance(value, list | tuple):
            found += tensors(value)
        elif hasattr(value, "data_ptr"):
            found.append(value.detach())
    return found


def snapshot(args: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Arrays and copies of them; nothing when they are too large."""
    arrays = tensors(args)
    if sum(array.numel() * array.element_size() for array in arrays) > RESTORED:
        return []
    writable = [array for array in arrays if array.numel() and 0 not in array.stride()]
    return [(array, array.clone()) for array in writable]


def restore(saved: Sequence[tuple[Any, Any]]) -> None:
    """Put arrays back."""
    for array, copy in saved:
        array.copy_(copy)


def equal_bits(a: Any, b: Any) -> bool:
    """Compare two arrays as bytes: NaNs are equal to themselves."""
    return bool(torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)))


def timed(reference: Any, ours: Any, saved: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """Measure until the ratio is known well enough; times are midmeans in microseconds.

    CUPTI's clock ticks every 32 ns, up to 3 % of a short kernel, so one sample or a median says little: the mean of
    the middle half of many samples does. How long to go on depends on the spread only, not on who is faster.
    """
    first = profiled(reference, ours, saved, 3)
    count = max(3, min(ROUND, int(BUDGET_US / 4 / max(map(statistics.median, first)))))
    times: tuple[list[float], list[float]] = ([], [])
    spent, error = 0.0, 1.0
    while error > PRECISION and spent < BUDGET_US:
        for side, new in zip(times, profiled(reference, ours, saved, count), strict=True):
            side += new
            spent += sum(new) + OVERHEAD_US * count
        error = ratio_error(*times)
    return {
        "reference_us": midmean(times[0]),
        "ours_us": midmean(times[1]),
        "samples": len(times[0]),
        "ratio_standard_error": error,
    }


def midmean(values: Sequence[float]) -> float:
    """The mean of the middle half of values."""
    middle = sorted(values)[len(values) // 4 : len(values) - len(values) // 4]
    return statistics.fmean(middle)


def ratio_error(reference: Sequence[float], ours: Sequence[float]) -> float:
    """The relative standard error of the ratio of both midmeans, from those of groups of samples."""
    groups = [
        midmean(reference[index::GROUPS]) / midmean(ours[index::GROUPS]) for index in range(min(GROUPS, len(ours)))
    ]
    return float(statistics.stdev(groups) / len(groups) ** 0.5)


def profiled(
    reference: Any, ours: Any, saved: Sequence[tuple[Any, Any]], count: int
) -> tuple[list[float], list[float]]:
    """Launch both in turn, each first every other time."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=activities) as profile:
        for index in range(count):
            for launch in (reference, ours) if index % 2 else (ours, reference):
                restore(saved)
                launch()
        torch.cuda.synchronize()
    times: tuple[list[float], list[float]] = ([], [])
    for event in profile.profiler.kineto_results.events():
        name = event.name()
        if event.device_type() != torch.autograd.DeviceType.CUDA or name.startswith(("Mem", "void ")) or "at::" in name:
            continue
        times[name.endswith("_entry")].append(event.duration_ns() / 1000)
    if not len(times[0]) == len(times[1]) == count:
        raise RuntimeError(f"{count} launches each, but CUPTI saw {len(times[0])} and {len(times[1])}")
    return times


# -- Machine code -------------------------------------------------------------------------------------

_seen: dict[Path, int] = {}


def new_cubins() -> list[bytes]:
    """Our machine code that came into the cache on disk, or was taken from it, since the last time."""
    paths = [path for path in Path(os.environ["CUTILE_KERNELS_CACHE"]).rglob("*") if path.is_file()]
    used = {path: path.stat().st_mtime_ns for path in paths}  # a hit refreshes it
    new = sorted(path for path, time in used.items() if _seen.get(path) != time)
    _seen.update(used)
    found = [path.read_bytes() for path in new]
    return [data[data.index(b"\x7fELF") :] for data in found if b"\x7fELF" in data]


def compared(reference: Sequence[bytes], ours: Sequence[bytes]) -> str:
    """Compare the code of two cubins; "unknown" when one side compiled nothing new."""
    from transpiler.cubin import differences, read_cubin

    if len(reference) != 1 or len(ours) != 1:
        return "unknown"
    return "differs" if differences(read_cubin(reference[0], None), read_cubin(ours[0], None)) else "identical"


# -- Hooks --------------------------------------------------------------------------------------------


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [item for item in items if backend_of(item) == "cutile-rs"]
    files = list(dict.fromkeys(file_of(item.nodeid) for item in items))
    kept.sort(key=lambda item: (files.index(file_of(item.nodeid)), "perf" not in item.name))
    items[:] = kept
    common: Any = importlib.import_module("tests.common")
    common.benchmark_framework = lambda name, function, **_: {name: (function(), {})[1]}
    common.benchmark = lambda function, **_: (function(), {})[1]


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return  # the process that hands out the tests
    log, codes = Path(config.getoption("--device-log")), config.getoption("--codes")
    compile_only = config.getoption("--compile-only")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    if compile_only:
        os.environ["CUTILE_KERNELS_CACHE"] += f"-{worker}"  # so that what is new in it is this process's
        log = log.with_name(f"codes-{worker}.jsonl")
    recorder = Recorder(log, config.getoption("--quota"), compile_only, Path(codes) if codes else None)
    config.pluginmanager.register(recorder, "recorder")
    runtime.launch, runtime.exhaustive_search = recorder.launch, first_config
    compile_module: Any = importlib.import_module("cuda.tile._compile")
    store, find = compile_module.cache_store, compile_module.cache_lookup

    def keep(folder: str, key: str, cubin: bytes, *more: Any) -> Any:
        recorder.reference_cubins.append(bytes(cubin))
        return store(folder, key, cubin, *more)

    def look(folder: str, key: str) -> Any:
        cubin = find(folder, key)
        if cubin is not None:
            recorder.reference_cubins.append(bytes(cubin))
        return cubin

    compile_module.cache_store, compile_module.cache_lookup = keep, look
