"""Host time of one launch, ours beside ``ct.launch``, in one process with the order alternated: launch_time.json.

    python launch_time.py --out DIR

The time is that of the call alone: the kernels do nothing to speak of, and the stream is empty before each round.
With ``--first`` a process says how long its first launch took (with a cold or a warm cache of machine code on disk).
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine

NAMES = {1: "one", 3: "three", 8: "eight"}
LISTS = (4, 16)  # arrays in each of the three lists, as group_gemm has them
ROUNDS, LAUNCHES = 200, 100


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--first", choices=("ours", "reference"))
    options = parser.parse_args()
    if options.first:
        print(json.dumps({"seconds": first_launch(options.first)}))
        return
    tensors, lists = {}, {}
    for count in NAMES:
        tensors[str(count)] = row = compare(launchers(count))
        print(f"{count} tensors: ct.launch {row['reference_us']:.2f} us, ours {row['ours_us']:.2f} us, "
              f"ratio {row['ratio']:.3f}, ours packed in Python {row['ours_packed_in_python_us']:.2f} us")  # fmt: skip
    for count in LISTS:
        lists[str(count)] = row = compare(list_launchers(count))
        print(f"3 lists of {count}: ct.launch {row['reference_us']:.2f} us, ours {row['ours_us']:.2f} us, "
              f"ratio {row['ratio']:.3f}, ours packed in Python {row['ours_packed_in_python_us']:.2f} us")  # fmt: skip
    first = {which: first_launches(which) for which in ("ours", "reference")}
    for which, times in first.items():
        print(f"first launch of a process, {which}: {times['cold_s']:.3f} s, with machine code on disk "
              f"{times['warm_s']:.3f} s")  # fmt: skip
    if options.out is not None:
        machine.write(options.out / "launch_time.json", {"tensors": tensors, "lists": lists, "first_launch": first})


def launchers(count: int) -> dict[str, Callable[[], None]]:
    """Return functions that launch the kernel with this number of tensors once: ours, the reference's, ours slowly."""
    return _launchers(NAMES[count], (*(_ones() for _ in range(count)), 128))


def list_launchers(count: int) -> dict[str, Callable[[], None]]:
    """Return such functions for the kernel with three lists of this many tensors."""
    return _launchers("lists", (*([_ones() for _ in range(count)] for _ in range(3)), 128))


def _ones() -> Any:
    torch: Any = importlib.import_module("torch")
    return torch.ones(128, dtype=torch.float32, device="cuda")


def _launchers(name: str, args: tuple[Any, ...]) -> dict[str, Callable[[], None]]:
    torch: Any = importlib.import_module("torch")
    ct: Any = importlib.import_module("cuda.tile")
    ours: Any = importlib.import_module("cutile_kernels.launch_kernels._bindings")
    runtime: Any = importlib.import_module("cutile_kernels._runtime")
    reference: Any = importlib.import_module("launch_kernels")
    stream = torch.cuda.current_stream()
    kernel, original = getattr(ours, name), getattr(reference, name)
    return {
        "ours": lambda: runtime.launch(stream, (1,), kernel, args),
        "reference": lambda: ct.launch(stream, (1,), original, args),
        "slow": lambda: kernel._call(stream, (1,), args, 0),
    }


def compare(functions: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Measure both, and ours with everything packed in Python."""
    torch: Any = importlib.import_module("torch")
    for launch in functions.values():
        for _ in range(50):
            launch()
    times: dict[str, list[float]] = {name: [] for name in functions}
    gc.disable()
    for index in range(ROUNDS):
        names = list(functions) if index % 2 else list(functions)[::-1]
        for name in names:
            torch.cuda.synchronize()
            times[name].append(timed(functions[name]))
    gc.enable()
    torch.cuda.synchronize()
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {
        "reference_us": medians["reference"],
        "ours_us": medians["ours"],
        "ratio": medians["ours"] / medians["reference"],
        "ours_packed_in_python_us": medians["slow"],
    }


def timed(launch: Callable[[], None]) -> float:
    """Return the time of one of many launches, in microseconds."""
    started = time.perf_counter_ns()
    for _ in range(LAUNCHES):
        launch()
    return (time.perf_counter_ns() - started) / LAUNCHES / 1000


def first_launch(which: str) -> float:
    """Return the seconds from the call to the end of the first launch of this process."""
    torch: Any = importlib.import_module("torch")
    torch.ones(1, device="cuda")
    launch = launchers(3)[which]
    torch.cuda.synchronize()
    started = time.perf_counter()
    launch()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def first_launches(which: str) -> dict[str, float]:
    """Return the first launch's time in a process without machine code on disk, and in the next one."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"CUTILE_KERNELS_CACHE": f"{folder}/ours", "CUDA_TILE_CACHE_DIR": f"{folder}/theirs"}
        command = [sys.executable, __file__, "--first", which]
        runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
        cold, warm = (float(json.loads(run.stdout.splitlines()[-1])["seconds"]) for run in runs)
        return {"cold_s": cold, "warm_s": warm}


if __name__ == "__main__":
    main()
