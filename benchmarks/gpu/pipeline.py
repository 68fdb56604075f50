"""TileGym's own benchmark scripts with both backends in one run, compared: results/pipeline.json.

    python pipeline.py --out DIR [--state EARLIER.jsonl..] [--limit SECONDS] [SCRIPT..]

The scripts run in a process of their own (pipeline_worker.py), which is watched: a configuration that hangs or crashes
is a row with an error, and a new process goes on after it. DIR/pipeline.jsonl says what is done. A later call, on
another machine too, takes that file as --state and measures the rest. DIR/pipeline.json is the result so far.

A row is a configuration of a script that `cutile` runs. What `cutile` doesn't run is in "not_run", with the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import machine

HERE = Path(__file__).resolve().parent
BENCHMARKS = HERE / "tests/benchmark"
FOLDERS = ("", "experimental")
TIMERS = ("cupti", "do_bench")
ROW = ("file", "config", "timer", "cutile", "cutile_rs", "ratio", "first", "error")
POLL = 0.1
GRACE = 60.0
"""Seconds that a process may take to import everything before it says anything."""

Row = dict[str, Any]


def main() -> int:
    """Measure what is left, write the result, print a summary; the exit status is 1 when a row has an error."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    log: Path = options.out / "pipeline.jsonl"
    rows = read([*options.state, *([log] if log.is_file() else [])])
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    names = options.scripts or scripts(options.benchmarks)
    with _environment(options.caches) as environment:
        watch = Watch(log, command(options, log), environment, options.config_limit)
        end = time.monotonic() + options.limit
        if options.compile > 0:
            warm(unfinished(names, read([log])), options, environment, end)
        problem = watch.run(names, end)
    result = summary(names, read([log]), _commit(options.commit))
    machine.write(options.out / "pipeline.json", result)
    print(table(result))
    if problem is not None:
        print(problem, file=sys.stderr)
    return int(problem is not None or result["errors"] > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "scripts", nargs="*", metavar="SCRIPT", help="relative to the benchmarks; all of them otherwise"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--benchmarks", type=Path, default=BENCHMARKS)
    parser.add_argument("--state", type=Path, nargs="*", default=[], help="what earlier calls left; it isn't repeated")
    parser.add_argument("--limit", type=float, default=540, help="seconds for this call")
    parser.add_argument("--script-limit", type=float, default=120, help="seconds after which it is the next one's turn")
    parser.add_argument("--config-limit", type=float, default=60, help="seconds for one step of a configuration")
    parser.add_argument("--rounds", default="3", help="measurements of each side")
    parser.add_argument("--launches", default="20", help="launches of a measurement by CUPTI")
    parser.add_argument("--compile", type=int, default=0, metavar="N", help="processes that compile before that")
    parser.add_argument("--compile-limit", type=float, default=150, help="seconds for that")
    parser.add_argument("--caches", type=Path, help="folder for machine code; it is found again by a later call")
    parser.add_argument("--commit", help="of the kernels' sources; the packed one otherwise")
    return parser.parse_args()


def scripts(benchmarks: Path) -> list[str]:
    """The benchmark scripts of a folder and its `experimental`."""
    return [str(path.relative_to(benchmarks)) for folder in FOLDERS
            for path in sorted((benchmarks / folder).glob("bench_*.py")) if path.name != "bench_utils.py"]  # fmt: skip


def command(options: argparse.Namespace, log: Path) -> list[str]:
    """The worker's command, without scripts."""
    return [
        sys.executable, str(HERE / "pipeline_worker.py"), str(options.benchmarks), str(log),
        "--rounds", options.rounds, "--launches", options.launches, "--script-limit", str(options.script_limit),
    ]  # fmt: skip


@contextlib.contextmanager
def _environment(caches: Path | None) -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = caches.resolve() if caches is not None else Path(temporary)
        yield os.environ | {
            "DISABLE_FALLBACK": "1",
            "TILEGYM_DISABLE_AUTOTUNE": os.environ.get("TILEGYM_DISABLE_AUTOTUNE", "1"),
            "CUTILE_KERNELS_CACHE": f"{folder}/ours",
            "CUDA_TILE_CACHE_DIR": f"{folder}/theirs",
            "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE / "kernels"), os.environ.get("PYTHONPATH", "")]),
        }


def read(logs: Iterable[Path]) -> list[Row]:
    """Lines of earlier calls; one that was cut off in the middle is left out."""
    rows = []
    for log in logs:
        for line in log.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                rows.append(json.loads(line))
    return rows


def unfinished(names: Sequence[str], rows: Iterable[Row]) -> list[str]:
    """Scripts that have configurations left, as far as is known; those that had no turn come first."""
    ended = {row["file"] for row in rows if row.get("ended")}
    begun = {row["file"] for row in rows}
    return sorted((name for name in names if name not in ended), key=lambda name: name in begun)


class Watch:
    """Runs the worker, again and again, until everything has an outcome or the time is over."""

    def __init__(self, log: Path, command: Sequence[str], environment: dict[str, str], config_limit: float) -> None:
        self._log, self._command, self._environment, self._limit = log, command, environment, config_limit

    def run(self, names: Sequence[str], end: float) -> str | None:
        """Run scripts until a moment of time.monotonic(); returns why nothing can be run, if so."""
        while (left := unfinished(names, read([self._log]))) and time.monotonic() < end:
            known = len(read([self._log]))
            why = self._process(left, end)
            rows = read([self._log])[known:]
            if why is not None and not rows:
                return f"the worker doesn't start: {why}"
            if why is not None:
                self._blame(rows[-1], why)
        return None

    def _process(self, names: Sequence[str], end: float) -> str | None:
        """Run the worker; returns what is wrong when it didn't come to its end, but for the time being over."""
        process = subprocess.Popen(
            [*self._command, *names], env=self._environment, start_new_session=True, stderr=subprocess.PIPE, text=True
        )
        size, since, limit = self._size(), time.monotonic(), GRACE
        errors = ""
        try:
            while True:
                try:
                    _, errors = process.communicate(timeout=POLL)
                    break
                except subprocess.TimeoutExpired:
                    pass
                now = time.monotonic()
                if self._size() != size:
                    size, since, limit = self._size(), now, self._limit
                if now > end:
                    return None
                if now - since > limit:
                    return f"no answer for {limit:.0f} s"
        finally:
            _kill(process)
        return None if process.returncode == 0 else f"the process ended with {process.returncode}: {errors[-300:]}"

    def _size(self) -> int:
        return self._log.stat().st_size if self._log.is_file() else 0

    def _blame(self, last: Row, why: str) -> None:
        """Write what was being done when the process ended down as its cause."""
        if "step" not in last:
            return  # it said itself what was wrong
        kind = "not_run" if last["step"] in ("starting", "cutile") else "error"
        blamed = [{"file": last["file"], "config": last["config"], kind: f"{last['step']}: {why}"}]
        if last["step"] == "starting":
            blamed.append({"file": last["file"], "ended": True})
        with self._log.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in blamed)


def _kill(process: subprocess.Popen[str]) -> None:
    """End a worker with whatever it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def warm(names: Sequence[str], options: argparse.Namespace, environment: dict[str, str], end: float) -> None:
    """Compile in parallel what the scripts launch, so that measuring finds machine code."""
    end = min(end, time.monotonic() + options.compile_limit)
    with tempfile.TemporaryDirectory() as folder:
        started = []
        for index in range(options.compile):
            share = names[index :: options.compile]
            if share:
                log = Path(folder) / f"{index}.jsonl"
                shutil.copy(options.out / "pipeline.jsonl", log)
                started.append(subprocess.Popen(
                    [*command(options, log), "--warm", *share], env=environment, start_new_session=True,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
                ))  # fmt: skip
        for process in started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))
        for process in started:
            _kill(process)


def _commit(given: str | None) -> str:
    packed = HERE / "commit"
    return given or (packed.read_text(encoding="utf-8").strip() if packed.is_file() else "unknown")


def summary(names: Sequence[str], rows: Sequence[Row], commit: str) -> dict[str, Any]:
    """The result: rows in the scripts' order, the last outcome of each configuration, and the figures over all."""
    outcomes = {(row["file"], row["config"]): row for row in rows if "config" in row and "step" not in row}
    ordered = sorted(
        outcomes.values(), key=lambda row: names.index(row["file"]) if row["file"] in names else len(names)
    )
    kept = [{key: row[key] for key in ROW if key in row} for row in ordered if "not_run" not in row]
    ratios = {timer: [row["ratio"] for row in kept if row.get("timer") == timer] for timer in TIMERS}
    worst = min((row for row in kept if "ratio" in row), key=lambda row: float(row["ratio"]), default=None)
    return {
        "commit": commit,
        "geomean": {timer: statistics.geometric_mean(some) if some else None for timer, some in ratios.items()},
        "worst": {key: worst[key] for key in ("file", "config", "ratio")} if worst is not None else None,
        "errors": sum("error" in row for row in kept),
        "unfinished": unfinished(names, rows),
        "not_run": [row for row in ordered if "not_run" in row],
        "rows": kept,
    }


def table(result: dict[str, Any]) -> str:
    """One line a script, then the totals."""
    lines = [f"{'script':48} rows  errors  geomean   worst"]
    by_file: dict[str, list[Row]] = {}
    for row in result["rows"]:
        by_file.setdefault(row["file"], []).append(row)
    for file, rows in by_file.items():
        ratios = [row["ratio"] for row in rows if "ratio" in row]
        figures = f"{statistics.geometric_mean(ratios):8.4f} {min(ratios):7.3f}" if ratios else f"{'-':>8} {'-':>7}"
        lines.append(f"{file:48} {len(rows):4} {len(rows) - len(ratios):7} {figures}")
    figures = ", ".join(f"{timer} {_figure(result['geomean'][timer])}" for timer in TIMERS)
    worst = result["worst"]
    told = f"{worst['ratio']:.4f} ({worst['file']}: {worst['config']})" if worst is not None else "-"
    lines.append(f"{len(result['rows'])} rows, {result['errors']} errors, {len(result['not_run'])} that cutile doesn't "
                 f"run; geomean {figures}; worst {told}")  # fmt: skip
    if result["unfinished"]:
        lines.append(f"not finished: {' '.join(result['unfinished'])}")
    return "\n".join(lines)


def _figure(mean: float | None) -> str:
    return "-" if mean is None or math.isnan(mean) else f"{mean:.4f}"


if __name__ == "__main__":
    sys.exit(main())
