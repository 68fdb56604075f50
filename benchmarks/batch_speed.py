"""How fast is ``transpile batch`` beside the reference compiler alone? Both are measured in one run.

    python benchmarks/batch_speed.py [CORPUS] [-j N] [--rounds R] [--json OUT]

The reference's side is what a user of cuda-tile alone would do: one fresh process a kernel that exports all its
checks, N at a time.  Ours is the whole batch as a process of its own, translation, compilation and comparison
included, without cubins.  The rounds alternate the two; the best of each counts; each batch is followed by one
with nothing changed.  All packages, ours and cuda-tile, have their bytecode, as pip leaves them.  Then come warm
checks a second of either side in one process, and the peak memory of all processes of a batch together.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from transpiler import toolkit
from transpiler.cache.folder import PATH_VARIABLE
from transpiler.jobs import OperatorJob, corpus_jobs
from transpiler.pipeline import translate
from transpiler.reference.closure import Closure, extract_closure
from transpiler.reference.export import ReferenceRejected, export_in_fresh_process
from transpiler.reference.source import SourceTree
from transpiler.spec import Specialization
from transpiler.translation import check_keys
from transpiler.verify import CheckTask, Judge, rust_text, tasks_of
from transpiler.workers import usable_cores

LIMIT = 2.0
"""The batch may take this many times what the reference's exports take."""
UNCHANGED_LIMIT = 1.0
"""Seconds for a second run with nothing changed."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of the corpus, ready to be exported."""

    closure: Closure
    specializations: tuple[Specialization, ...]
    target: str


def kernels_of(jobs: list[OperatorJob]) -> list[Kernel]:
    """Extract every kernel's closure (outside of what is measured), the one with most checks first."""
    found = []
    for job in jobs:
        tree = SourceTree(job.path, job.display)
        for kernel in job.kernels:
            found.append(Kernel(extract_closure(tree, kernel.name), kernel.specializations, job.target))
    return sorted(found, key=lambda kernel: -len(kernel.specializations))


def child_cpu() -> float:
    """CPU seconds of all processes that this one has started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def reference_seconds(kernels: list[Kernel], workers: int) -> tuple[float, float]:
    """Export all checks of every kernel, one fresh process a kernel, ``workers`` at a time: wall and CPU seconds."""
    started, cpu = time.perf_counter(), child_cpu()
    with ThreadPoolExecutor(workers) as pool:
        runs = [pool.submit(export_in_fresh_process, k.closure, k.specializations, k.target) for k in kernels]
        for run in runs:
            run.result()
    return time.perf_counter() - started, child_cpu() - cpu


@dataclass(frozen=True)
class Batch:
    """One batch: wall and CPU seconds, peak memory in MiB, and its own report."""

    seconds: float
    cpu: float
    peak: float
    report: dict[str, object]


def batch(corpus: str, workers: int, folder: Path) -> Batch:
    """Run ``transpile batch`` as a process, with DIR and the cache in a folder: empty for a first run."""
    out = folder / "out.json"
    command = [sys.executable, "-m", "transpiler.cli", "batch", corpus, "-j", str(workers), "--json", str(out),
               "-o", str(folder / "out")]  # fmt: skip
    environment = os.environ | {PATH_VARIABLE: str(folder / "cache")}
    started, cpu = time.perf_counter(), child_cpu()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    meter = MemoryMeter(child.pid)
    child.wait()
    seconds = time.perf_counter() - started
    peak = meter.stop()
    if not out.is_file():
        raise SystemExit(f"{' '.join(command)} failed with status {child.returncode}")
    return Batch(seconds, child_cpu() - cpu, peak, json.loads(out.read_text()))


@contextlib.contextmanager
def fresh() -> Iterator[Path]:
    """Make an empty folder for a run."""
    with tempfile.TemporaryDirectory(prefix="batch-speed-") as folder:
        yield Path(folder)


class MemoryMeter:
    """Watches the memory of a process and everything below it (shared pages counted once)."""

    def __init__(self, pid: int) -> None:
        self._pid, self._peak, self._ended = pid, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.25):
            self._peak = max(self._peak, sum(_proportional_mib(pid) for pid in _tree(self._pid)))

    def stop(self) -> float:
        """Return the peak in MiB."""
        self._ended.set()
        self._thread.join()
        return self._peak


def _tree(root: int) -> list[int]:
    """Return a process and its descendants."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                parent = int(Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            parents.setdefault(parent, []).append(int(entry))
    found = [root]
    for pid in found:
        found.extend(parents.get(pid, []))
    return found


def _proportional_mib(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def warm_rates(jobs: list[OperatorJob]) -> dict[str, float]:
    """Checks a second in one process, everything loaded: the reference's export, our compiler, whole checks."""
    seconds = {"reference exports": 0.0, "our compilations": 0.0, "whole checks": 0.0}
    count = 0
    with Judge() as judge:
        for job in jobs:
            made = translate(job)
            rust = rust_text(made)
            tasks = [task for _, task, decided in tasks_of(made.plan, check_keys(made.plan)) if decided is None]
            for task in tasks[:1]:
                judge.check(rust, made.closures[task.kernel], task)
            for task in tasks:
                if task.inputs is not None and _timed(judge, made.closures[task.kernel], rust, task, seconds):
                    count += 1
    return {what: count / spent if spent else 0.0 for what, spent in seconds.items()}


def _timed(judge: Judge, closure: Closure, rust: object, task: CheckTask, seconds: dict[str, float]) -> bool:
    from transpiler.verify import RustText

    assert isinstance(rust, RustText) and task.inputs is not None
    marks = [time.perf_counter()]
    try:
        judge.exporter.export(closure, task.specialization, task.target)
    except ReferenceRejected:
        return False
    marks.append(time.perf_counter())
    judge.compile(rust, task.inputs, task.target)
    marks.append(time.perf_counter())
    judge.check(rust, closure, task)
    marks.append(time.perf_counter())
    for what, start, end in zip(seconds, marks, marks[1:], strict=False):
        seconds[what] += end - start
    return True


def main() -> int:
    """Measure, print, and fail when the batch is too slow."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", nargs="?", default="tilegym-core")
    parser.add_argument("-j", "--jobs", type=int, default=usable_cores())
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    compileall.compile_dir(Path(toolkit.__file__).parent, quiet=1)
    jobs = corpus_jobs(options.corpus)
    kernels = kernels_of(jobs)
    checks = sum(len(kernel.specializations) for kernel in kernels)
    print(f"{options.corpus}: {len(jobs)} operators, {len(kernels)} kernels, {checks} checks, {options.jobs} workers")
    reference, batches, again = [], [], []
    for number in range(options.rounds):
        seconds, cpu = reference_seconds(kernels, options.jobs)
        reference.append(seconds)
        print(f"round {number + 1}: reference alone {seconds:.1f} s ({cpu:.1f} s of CPU)", flush=True)
        with fresh() as folder:
            batches.append(one := batch(options.corpus, options.jobs, folder))
            again.append(second := batch(options.corpus, options.jobs, folder))
        print(f"round {number + 1}: batch {one.seconds:.1f} s ({one.cpu:.1f} s of CPU); "
              f"unchanged {second.seconds:.2f} s ({second.cpu:.2f} s of CPU)", flush=True)  # fmt: skip
    best = min(batches, key=lambda one: one.seconds)
    ratio = best.seconds / min(reference)
    rates = warm_rates(jobs)
    unchanged = min(one.seconds for one in again)
    print(f"batch / reference alone: {ratio:.2f} (limit {LIMIT})")
    print(f"unchanged corpus: {unchanged:.2f} s (limit {UNCHANGED_LIMIT})")
    print("warm, one process: " + ", ".join(f"{rate:.1f} {what}/s" for what, rate in rates.items()))
    print(f"peak memory of a batch: {max(one.peak for one in batches):.0f} MiB")
    if options.json is not None:
        row = {"corpus": options.corpus, "workers": options.jobs, "checks": checks, "reference_seconds": reference,
               "batch_seconds": [one.seconds for one in batches], "ratio": ratio,
               "unchanged_seconds": [one.seconds for one in again], "warm_checks_a_second": rates,
               "peak_mib": max(one.peak for one in batches), "totals": best.report["totals"],
               "versions": toolkit.versions()}  # fmt: skip
        options.json.write_text(json.dumps(row, indent=2) + "\n")
    return 0 if ratio <= LIMIT and unchanged <= UNCHANGED_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
