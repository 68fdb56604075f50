"""Runs TileGym's benchmark scripts with both backends; a process that :mod:`pipeline` starts and watches.

    python pipeline_worker.py BENCHMARKS LOG [--rounds N] [--launches N] [--script-limit SECONDS] [--warm] SCRIPT..

Sizes, inputs and checks of results are the script's own, and so is the timer that it calls. What is ours is the order:
a script's function is called once with each side, its timer only remembers what it was to measure, and then both are
measured in turns. While it's cutile-rs' turn, everything that the script or TileGym knows as the reference's
operators, kernels and launch is ours, by whatever way it is reached.

LOG gets a line of JSON before each step and after each configuration, and tells which are done already.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import importlib
import json
import math
import os
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

REFERENCE, OURS = "cutile", "cutile-rs"
OUTLIER = 0.95
"""A configuration that is slower than this is measured once more, with twice the rounds."""
POISONED = 3
"""The exit status when the device has to be given up after an error."""
_GENERATED = "# Generated from "


class Timing(NamedTuple):
    """What a script wanted measured: "cupti" or "do_bench", and the call that returns milliseconds."""

    timer: str
    measure: Callable[[], Any]


class MeasurementError(Exception):
    """A script's function that returned without measuring, or measured several things."""


class Stopwatch:
    """Stands in for the timers that scripts use: calls what is to be measured once and says that it took 1 ms."""

    def __init__(self) -> None:
        self.timings: list[Timing] = []
        self.problem: Exception | None = None

    def instead_of(self, timer: str, original: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """Return the stand-in for a timer, which is called with the options in the end."""

        def remember(fn: Callable[[], Any], *args: Any, **given: Any) -> Any:
            try:
                fn()
                _synchronize()
            except Exception as exc:
                self.problem = exc  # a script may hide it
                raise
            self.timings.append(Timing(timer, functools.partial(original, fn, *args, **(given | options))))
            quantiles = given.get("quantiles")
            return [1.0] * len(quantiles) if quantiles else 1.0

        return remember

    def only(self, call: Callable[[], Any]) -> tuple[float, Timing]:
        """Call a script's function; returns what it makes of 1 ms (work per ms) and what it wanted measured."""
        self.timings, self.problem = [], None
        value = call()
        work = float(value[0] if isinstance(value, tuple) else value)
        if self.problem is not None:
            raise self.problem
        if len(self.timings) != 1 or not math.isfinite(work):
            raise MeasurementError(f"{len(self.timings)} measurements, result {work}")
        return work, self.timings[0]


class Switch:
    """Puts our operators in the reference's places and takes them away again."""

    def __init__(self, twins: Mapping[str, types.ModuleType], launch: Callable[..., Any], cuda_tile: Any) -> None:
        self._modules = dict(twins)
        self._launch, self._cuda_tile, self._author = launch, cuda_tile, cuda_tile.launch
        self._twins: dict[int, object] = {}
        for name, ours in twins.items():
            reference = importlib.import_module(name)
            self._twins[id(reference)] = ours
            for key, value in vars(reference).items():
                of_it = isinstance(value, types.FunctionType | type) and value.__module__ == name
                if of_it and hasattr(ours, key):
                    self._twins[id(value)] = getattr(ours, key)

    @contextlib.contextmanager
    def ours(self, script: dict[str, Any]) -> Iterator[None]:
        """While it lasts, the names of a script and of TileGym mean cutile-rs."""
        changed: list[tuple[dict[Any, Any], Any, Any]] = []
        try:
            for place in self._places(script):
                for key, value in list(place.items()):
                    if id(value) in self._twins:
                        changed.append((place, key, value))
                        place[key] = self._twins[id(value)]
            changed += self._registered()
            changed.append((vars(self._cuda_tile), "launch", self._cuda_tile.launch))
            self._cuda_tile.launch = self._launch
            yield
        finally:
            for place, key, value in reversed(changed):
                place[key] = value

    @contextlib.contextmanager
    def theirs(self) -> Iterator[None]:
        """While it lasts, the reference's launches aren't counted: that would take time."""
        counted = self._cuda_tile.launch
        self._cuda_tile.launch = self._author
        try:
            yield
        finally:
            self._cuda_tile.launch = counted

    def _places(self, script: dict[str, Any]) -> list[dict[Any, Any]]:
        packages = [
            vars(module) for name, module in list(sys.modules.items())
            if name.startswith("tilegym.ops") and name not in self._modules
        ]  # fmt: skip
        tables = [value for key, value in script.items() if isinstance(value, dict) and not key.startswith("__")]
        return [script, *tables, *packages, sys.modules]

    def _registered(self) -> list[tuple[dict[Any, Any], Any, Any]]:
        """An operator that cutile-rs lacks is no operator then: nothing must be taken from the reference."""
        registry: dict[str, dict[str, Any]] = importlib.import_module("tilegym.backend.dispatcher")._REGISTRY
        changed: list[tuple[dict[Any, Any], Any, Any]] = []
        for name, backends in registry.items():
            if REFERENCE in backends:
                changed.append((backends, REFERENCE, backends[REFERENCE]))
                backends[REFERENCE] = backends.get(OURS) or functools.partial(_missing, name)
        return changed


def _missing(name: str, *_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError(f"{OURS} has no implementation of {name!r}")


class Log:
    """Appends lines of JSON, and knows the configurations that have an outcome."""

    def __init__(self, path: Path) -> None:
        self._path = path
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
        self.done = {(row["file"], row["config"]) for row in rows if "config" in row and "step" not in row}

    def write(self, row: dict[str, Any]) -> None:
        """Append a line; it is in the file when this returns."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if "config" in row and "step" not in row:
            self.done.add((row["file"], row["config"]))


class Runner:
    """Measures the configurations of the script that is being run."""

    def __init__(self, log: Log, stopwatch: Stopwatch, switch: Switch, counted: Callable[[], tuple[int, int]]) -> None:
        self.log, self._stopwatch, self._switch, self._counted = log, stopwatch, switch, counted
        self.script, self.deadline, self.postponed, self.measured = "", math.inf, False, 0
        self.rounds, self.warm = 3, False

    def report(self, benchmarks: Any) -> Callable[[Callable[..., Any]], Any]:
        """Stand in for triton.testing.perf_report."""
        many = [one for one in (benchmarks if isinstance(benchmarks, list) else [benchmarks]) if one is not None]

        def decorate(function: Callable[..., Any]) -> Any:
            return types.SimpleNamespace(run=lambda **_: self.run(function, many))

        return decorate

    def run(self, function: Callable[..., Any], benchmarks: Sequence[Any]) -> None:
        """Measure all configurations of a script's function that have no outcome yet."""
        for benchmark in benchmarks:
            for config, arguments in configurations(function.__name__, benchmark):
                if (self.script, config) in self.log.done:
                    continue
                if self.measured and time.monotonic() > self.deadline:  # each turn makes progress
                    self.postponed = True
                    return
                row = self._one(function, arguments, config)
                self.log.write({"file": self.script, "config": config} | row)
                self.measured += 1
                gc.collect()
                _torch().cuda.empty_cache()

    def _one(self, function: Callable[..., Any], arguments: dict[str, Any], config: str) -> dict[str, Any]:
        script = function.__globals__
        call = functools.partial(function, **arguments)
        self._step(config, REFERENCE)
        before = self._counted()
        try:
            work, theirs = self._stopwatch.only(call)
        except Exception as exc:
            _check_device(self.log, self.script, config, "not_run", exc)
            return {"not_run": _text(exc)}
        launched = self._counted()[0] > before[0]
        self._step(config, OURS)
        before = self._counted()
        try:
            with self._switch.ours(script):
                _, ours = self._stopwatch.only(call)
            if launched and self._counted()[1] == before[1]:
                return {"error": f"nothing of {OURS} was launched"}
            if self.warm:
                return {"not_run": "not measured"}
            self._step(config, "measuring")
            return self._pair(work, theirs, ours, script)
        except Exception as exc:
            _check_device(self.log, self.script, config, "error", exc)
            return {"error": _text(exc)}

    def _pair(self, work: float, theirs: Timing, ours: Timing, script: dict[str, Any]) -> dict[str, Any]:
        row = paired(work, *self._turns(theirs, ours, script, self.rounds))
        if row["ratio"] < OUTLIER:
            again = paired(work, *self._turns(theirs, ours, script, 2 * self.rounds))
            row = again | {"first": row}
        return {"timer": theirs.timer} | row

    def _turns(
        self, theirs: Timing, ours: Timing, script: dict[str, Any], rounds: int
    ) -> tuple[list[float], list[float]]:
        """Milliseconds of both sides; who begins takes turns, too."""
        a: list[float] = []
        b: list[float] = []
        for turn in range(rounds):
            for reference in (turn % 2 == 0, turn % 2 == 1):
                if reference:
                    with self._switch.theirs():
                        a.append(_first(theirs.measure()))
                else:
                    with self._switch.ours(script):
                        b.append(_first(ours.measure()))
        return a, b

    def _step(self, config: str, step: str) -> None:
        self.log.write({"file": self.script, "config": config, "step": step})


def configurations(name: str, benchmark: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each configuration of a triton.testing.Benchmark for each of its lines that is the reference's.

    Yields a text that names it and the arguments of the script's function.
    """
    lines = [(value, title) for value, title in zip(benchmark.line_vals, benchmark.line_names, strict=True)
             if REFERENCE in str(title).casefold()]  # fmt: skip
    for x in benchmark.x_vals:
        values = x if isinstance(x, list | tuple) else [x] * len(benchmark.x_names)
        arguments = dict(zip(benchmark.x_names, values, strict=True)) | dict(benchmark.args)
        text = " ".join([name, *(f"{key}={str(value).removeprefix('torch.')}" for key, value in arguments.items())])
        for value, title in lines:
            suffix = f" line={title}" if len(lines) > 1 else ""
            yield text + suffix, arguments | {benchmark.line_arg: value}


def paired(work: float, theirs: Sequence[float], ours: Sequence[float]) -> dict[str, Any]:
    """Samples as the script states them (work per time, of the reference's work) and the ratio of their medians.

    The ratio is above 1 where cutile-rs is faster.
    """
    return {
        "cutile": [work / ms for ms in theirs],
        "cutile_rs": [work / ms for ms in ours],
        "ratio": statistics.median(theirs) / statistics.median(ours),
    }


def _first(measured: Any) -> float:
    """A timer's milliseconds; of quantiles, scripts ask for the median first."""
    return float(measured[0] if isinstance(measured, list | tuple) else measured)


def _text(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {exc}"[:600]


def _torch() -> Any:
    return importlib.import_module("torch")


def _synchronize() -> None:
    _torch().cuda.synchronize()


def _check_device(log: Log, script: str, config: str, kind: str, exc: Exception) -> None:
    """Give the process up if no launch can succeed in it any more."""
    try:
        _synchronize()
    except Exception:
        log.write({"file": script, "config": config, kind: _text(exc)})
        sys.stdout.flush()
        os._exit(POISONED)


def twins(installed: Sequence[str]) -> dict[str, types.ModuleType]:
    """The host modules of cutile-rs' operators by the names of the modules that they were made from."""
    found = {}
    for name in installed:
        module = importlib.import_module(f"cutile_kernels.{name}.host")
        first = Path(str(module.__file__)).read_text(encoding="utf-8").partition("\n")[0]
        if first.startswith(_GENERATED):
            path = first.removeprefix(_GENERATED).partition(" by ")[0]
            found[path.removesuffix(".py").replace("/", ".")] = module
    return found


def prepare(log: Log, launches: int) -> Runner:
    """Import everything, put the stand-ins in their places."""
    testing: Any = importlib.import_module("triton.testing")
    cuda_tile: Any = importlib.import_module("cuda.tile")
    importlib.import_module("tilegym.ops")
    runtime: Any = importlib.import_module("cutile_kernels._runtime")
    backend: Any = importlib.import_module("cutile_kernels._runtime.tilegym")
    reference_launch, counts = cuda_tile.launch, [0]

    def counted(*args: Any, **options: Any) -> Any:
        counts[0] += 1
        return reference_launch(*args, **options)

    def launch(stream: Any, grid: Any, kernel: Any, args: Any, **options: Any) -> Any:
        if not isinstance(kernel, runtime.Kernel):
            raise TypeError(f"{kernel!r} isn't a kernel of {OURS}")
        return runtime.launch(stream, grid, kernel, args, **options)

    stopwatch = Stopwatch()
    switch = Switch(twins(backend.install()), launch, cuda_tile)
    cuda_tile.launch = counted
    for name in ("do_bench", "do_bench_cudagraph"):
        setattr(testing, name, stopwatch.instead_of("do_bench", getattr(testing, name)))
    with contextlib.suppress(ModuleNotFoundError):
        utils: Any = importlib.import_module("bench_utils")
        original = utils.profile_with_l2flush
        utils.profile_with_l2flush = stopwatch.instead_of("cupti", original, warmup=5, rep=launches)
    runner = Runner(log, stopwatch, switch, lambda: (counts[0], runtime.launch_count()))
    testing.perf_report = runner.report
    return runner


def run_script(runner: Runner, benchmarks: Path, script: str, limit: float) -> None:
    """Run one script as its author does; what keeps it from running is its outcome."""
    runner.script, runner.deadline, runner.postponed, runner.measured = script, time.monotonic() + limit, False, 0
    runner.log.write({"file": script, "config": "", "step": "starting"})
    path = benchmarks / script
    try:
        code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
        exec(code, {"__name__": "__main__", "__file__": str(path)})
    except (Exception, SystemExit) as exc:
        runner.log.write({"file": script, "config": "", "not_run": _text(exc)})
    runner.log.write({"file": script, "postponed" if runner.postponed else "ended": True})


def main() -> None:
    """Run the scripts in their order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmarks", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("scripts", nargs="+", metavar="SCRIPT")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--launches", type=int, default=20, help="of one measurement by CUPTI")
    parser.add_argument("--script-limit", type=float, default=math.inf)
    parser.add_argument("--warm", action="store_true", help="only compile and launch")
    options = parser.parse_args()
    sys.path.insert(0, str(options.benchmarks.resolve()))
    runner = prepare(Log(options.log), options.launches)
    runner.rounds, runner.warm = options.rounds, options.warm
    for script in options.scripts:
        run_script(runner, options.benchmarks.resolve(), script, options.script_limit)


if __name__ == "__main__":
    main()
