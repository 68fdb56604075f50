"""Launches in a row, from two threads on two streams, and in a CUDA graph: stress.json.

python stress.py --out DIR
"""

from __future__ import annotations

import argparse
import importlib
import resource
import threading
import time
from pathlib import Path
from typing import Any

import machine

LAUNCHES, THREADS = 10_000, 2


def main() -> None:
    """Run everything; an error ends the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    result = {}
    for step in (in_a_row, in_threads, in_a_graph, list_graph, other_arrays, refusals):
        result[step.__name__] = step()
        print(f"{step.__name__}: {result[step.__name__]}", flush=True)
        machine.write(options.out / "stress.json", result)  # a step that ends the process leaves the others' figures


def modules() -> tuple[Any, Any, Any]:
    """Return torch, the runtime and the example kernels."""
    names = ("torch", "cutile_kernels._runtime", "cutile_kernels.launch_kernels._bindings")
    torch, runtime, kernels = (importlib.import_module(name) for name in names)
    return torch, runtime, kernels


def memory() -> tuple[int, int]:
    """Return the free memory of the device and the highest use of this process's, in bytes."""
    torch: Any = importlib.import_module("torch")
    torch.cuda.synchronize()
    return int(torch.cuda.mem_get_info()[0]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_a_row() -> dict[str, Any]:
    """Add 1 ten thousand times."""
    torch, runtime, kernels = modules()
    x = torch.zeros(1 << 16, dtype=torch.float32, device="cuda")
    stream = torch.cuda.current_stream()
    for _ in range(100):
        runtime.launch(stream, (512,), kernels.one, (x, 128))
    before, counted = memory(), runtime.launch_count()
    started = time.perf_counter()
    for _ in range(LAUNCHES):
        runtime.launch(stream, (512,), kernels.one, (x, 128))
    after = memory()
    assert torch.all(x == LAUNCHES + 100).item()
    assert runtime.launch_count() - counted == LAUNCHES
    return {
        "launches": LAUNCHES,
        "us_each": (time.perf_counter() - started) / LAUNCHES * 1e6,
        "device_bytes_lost": before[0] - after[0],
        "host_bytes_grown": after[1] - before[1],
    }


def in_threads() -> dict[str, Any]:
    """The same from two threads, each on a stream of its own."""
    torch, runtime, kernels = modules()
    failures: list[str] = []

    def work() -> None:
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                x = torch.zeros(1 << 16, dtype=torch.float32, device="cuda")
                y, out = torch.ones_like(x), torch.zeros_like(x)
                for _ in range(LAUNCHES // THREADS):
                    runtime.launch(stream, (512,), kernels.one, (x, 128))
                    runtime.launch(stream, (512,), kernels.three, (x, y, out, 128))
                stream.synchronize()
                if not torch.all(out == LAUNCHES // THREADS + 1).item():
                    failures.append("a wrong result")
        except Exception as exc:
            failures.append(repr(exc))

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    return {"threads": THREADS, "launches": 2 * LAUNCHES}


def in_a_graph() -> dict[str, Any]:
    """Capture launches, and replay them."""
    torch, runtime, kernels = modules()
    x = torch.zeros(1 << 16, dtype=torch.float32, device="cuda")
    runtime.launch(torch.cuda.current_stream(), (512,), kernels.one, (x, 128))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            runtime.launch(torch.cuda.current_stream(), (512,), kernels.one, (x, 128))
    for _ in range(5):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.all(x == 51).item()
    return {"captured": 10, "replays": 5}


def list_graph() -> dict[str, Any]:
    """A kernel that takes lists of arrays can't be captured: it says so, and the capture goes on."""
    torch, runtime, kernels = modules()
    kernel: Any = importlib.import_module("cutile_kernels.group_gemm._bindings")._group_gemm_kernel
    a, b = ([torch.randn(256, 128, dtype=torch.float16, device="cuda") for _ in range(3)] for _ in range(2))
    c = [torch.zeros(256, 256, dtype=torch.float16, device="cuda") for _ in range(3)]
    hinted = kernel.replace_hints(num_ctas=1, occupancy=1)
    args = (a, b, c, 128, 128, 128, 132, True)
    runtime.launch(torch.cuda.current_stream(), (132,), hinted, args)
    torch.cuda.synchronize()
    for x, y, out in zip(a, b, c, strict=True):
        torch.testing.assert_close(out, x @ y.T, rtol=1e-2, atol=1e-1)
    x, said = torch.zeros(128, dtype=torch.float32, device="cuda"), "captured"
    runtime.launch(torch.cuda.current_stream(), (1,), kernels.one, (x, 128))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        try:
            runtime.launch(torch.cuda.current_stream(), (132,), hinted, args)
        except runtime.LaunchError:
            said = "refused"
        runtime.launch(torch.cuda.current_stream(), (1,), kernels.one, (x, 128))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.all(x == 2).item()
    return {"arrays": 9, "in_a_graph": said}


class Exported:
    """An array that has nothing but DLPack's protocol."""

    def __init__(self, array: Any) -> None:
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


class Interface:
    """An array that has nothing but ``__cuda_array_interface__``."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def other_arrays() -> dict[str, str]:
    """Arrays and streams of cupy, through either protocol alone, and of NumPy, which are refused."""
    torch, runtime, kernels = modules()
    x = torch.zeros(1 << 16, dtype=torch.float32, device="cuda")
    given = {"DLPack alone": Exported(x), "__cuda_array_interface__ alone": Interface(x), "torch": x}
    for array in given.values():
        runtime.launch(torch.cuda.current_stream(), (512,), kernels.one, (array, 128))
    torch.cuda.synchronize()
    assert torch.all(x == len(given)).item()
    found = dict.fromkeys(given, "launched")
    try:
        cupy: Any = importlib.import_module("cupy")
    except ImportError:
        found["cupy"] = "not installed"
    else:
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            y = cupy.zeros(1 << 16, dtype=cupy.float32)
            runtime.launch(stream, (512,), kernels.one, (y, 128))
        stream.synchronize()
        assert bool((y == 1).all())
        found["cupy"] = "launched"
    try:
        runtime.launch(None, (512,), kernels.one, (importlib.import_module("numpy").zeros(1 << 16, "float32"), 128))
        raise AssertionError("an array of NumPy was launched")
    except runtime.CutileError as exc:
        found["numpy"] = f"{type(exc).__name__}: {exc}"
    return found


def refusals() -> dict[str, str]:
    """Calls that must not reach the device, with the class of their exception."""
    torch, runtime, kernels = modules()
    x = torch.zeros(128, dtype=torch.float32, device="cuda")
    stream = torch.cuda.current_stream()
    calls = {
        "a tensor on the CPU": (stream, (1,), kernels.one, (x.cpu(), 128)),
        "another type": (stream, (1,), kernels.one, (x.to(torch.int64), 128)),
        "another rank": (stream, (1,), kernels.one, (x.reshape(8, 16), 128)),
        "no blocks": (stream, (0,), kernels.one, (x, 128)),
        "a constant of another kind": (stream, (1,), kernels.one, (x, "128")),
        "too few arguments": (stream, (1,), kernels.one, (x,)),
    }
    found = {}
    for name, call in calls.items():
        try:
            runtime.launch(*call)
            found[name] = "no exception"
        except runtime.CutileError as exc:
            found[name] = type(exc).__name__
    torch.cuda.synchronize()
    assert "no exception" not in found.values(), found
    return found


if __name__ == "__main__":
    main()
