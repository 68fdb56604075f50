"""Launches what interpreter_pack.py packed, and keeps what the kernels left in their arrays.

    python interpreter_run.py JOB --out OUT [--timeout SECONDS]

Needs NumPy and the driver alone.  Kernels run in a process of their own, one after another; one that fails or
doesn't end costs that process, and another goes on with the next.  Each is launched twice from equal memory.
OUT gets interpreter.json (the machine, and a row for each case) and arrays-N.npz (the arrays that were changed).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import machine
import numpy as np

GUARD = 256
"""Bytes before and after each array that no kernel may change; also the alignment of arrays."""
GUARD_BYTE = 0xA5
FILE_BYTES = 14 << 20
"""Of arrays in one file."""
Array = Any


def main() -> None:
    """Run all cases, or (as a worker) those from one on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--timeout", type=float, default=20, help="seconds for one case")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    launches = json.loads((options.job / "launches.json").read_text(encoding="utf-8"))
    if options.worker is not None:
        work(options.job, launches, options.worker, options.out)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        rows = supervise(options.job, launches, Path(scratch), options.timeout)
        merge(Path(scratch), options.out, len(launches))
    failed = [row for row in rows if row["error"]]
    for row in failed:
        print(f"{row['name']}: {row['error']}")
    print(f"{len(rows) - len(failed)} of {len(rows)} cases in {time.perf_counter() - started:.1f} s, "
          f"{sum(not row['repeats'] for row in rows if not row['error'])} differ when repeated")  # fmt: skip
    machine.write(options.out / "interpreter.json", {"cases": rows})


# The process that watches


def supervise(job: Path, launches: list[Any], scratch: Path, timeout: float) -> list[dict[str, Any]]:
    """Start workers until every case has a row."""
    rows: list[dict[str, Any]] = []
    while len(rows) < len(launches):
        first = len(rows)
        command = [sys.executable, __file__, str(job), "--out", str(scratch), "--worker", str(first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            problem = "the process ended"
            for line in lines(worker.stdout, timeout):
                if line is None:
                    problem = f"not done after {timeout:g} s"
                    worker.kill()
                    break
                rows.append(json.loads(line))
        if len(rows) < len(launches) and not (rows[first:] and rows[-1]["error"]):
            rows.append({"name": launches[len(rows)]["name"], "error": problem})
    return rows


def lines(pipe: IO[bytes], timeout: float) -> Iterator[bytes | None]:
    """The lines of a pipe as they come; None when one doesn't come in time."""
    rest = b""
    while True:
        if not select.select([pipe], [], [], timeout)[0]:
            yield None
            return
        got = os.read(pipe.fileno(), 1 << 16)
        if not got:
            return
        *whole, rest = (rest + got).split(b"\n")
        yield from whole


def merge(scratch: Path, out: Path, count: int) -> None:
    """Put the arrays of all cases into few files."""
    batch: dict[str, Array] = {}
    number = size = 0
    for case in range(count):
        path = scratch / f"{case}.npz"
        if path.is_file():
            for key, content in np.load(path).items():
                batch[f"{case}/{key}"] = content
                size += content.size
        if batch and (size > FILE_BYTES or case == count - 1):
            np.savez_compressed(out / f"arrays-{number}.npz", **batch)
            number, size, batch = number + 1, 0, {}


# The process that launches


class DriverError(Exception):
    """A call of the driver failed."""


class Driver:
    """The driver's functions, with their errors as exceptions."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver."""
        status = getattr(self._library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(text))
            raise DriverError(f"{name}: {(text.value or b'?').decode()} ({status})")

    def allocate(self, size: int) -> int:
        """Return the address of so many bytes on the device."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        """Give memory back."""
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def write(self, address: int, content: Array) -> None:
        """Copy bytes to the device."""
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), content.ctypes.data_as(ctypes.c_void_p),
                  ctypes.c_size_t(content.size))  # fmt: skip

    def read(self, address: int, size: int) -> Array:
        """Copy bytes from the device."""
        content = np.empty(size, np.uint8)
        self.call("cuMemcpyDtoH_v2", content.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(address),
                  ctypes.c_size_t(size))  # fmt: skip
        return content

    def function(self, code: bytes, symbol: str) -> ctypes.c_void_p:
        """Load machine code and return a kernel of it."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), code)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
        return function

    def launch(self, function: ctypes.c_void_p, grid: list[int], arguments: list[bytes]) -> None:
        """Launch tile blocks and wait for them; the driver knows how many threads a tile block has."""
        buffers = [ctypes.create_string_buffer(a.ljust(8, b"\0"), 8) for a in arguments]
        pointers = (ctypes.c_void_p * (len(buffers) + 1))(*[ctypes.addressof(b) for b in buffers], None)
        self.call("cuLaunchKernel", function, *grid, 1, 1, 1, 0, None, pointers, None)
        self.call("cuCtxSynchronize")


def work(job: Path, launches: list[Any], first: int, out: Path) -> None:
    """Run cases from ``first`` on, a line of JSON each; ends at the first error, as it may have spoiled the context."""
    codes, contents = np.load(job / "code.npz"), np.load(job / "arrays.npz")
    driver = Driver()
    for number in range(first, len(launches)):
        case = launches[number]
        row: dict[str, Any] = {"name": case["name"], "error": ""}
        try:
            inputs = [np.resize(contents[f"{number}/{at}"], a["bytes"]) for at, a in enumerate(case["arrays"])]
            function = driver.function(codes[str(case["code"])].tobytes(), case["symbol"])
            left, again = (run(driver, function, case, inputs) for _ in range(2))
            row["repeats"] = all((a == b).all() for a, b in zip(left, again, strict=True))
            changed = {str(at): content for at, content in enumerate(left)
                       if not case["arrays"][at]["addresses"] and (content != inputs[at]).any()}  # fmt: skip
            row["changed"] = [case["arrays"][int(at)]["name"] for at in changed]
            np.savez(out / f"{number}.npz", **changed)
        except DriverError as exc:
            row["error"] = str(exc)
        print(json.dumps(row), flush=True)
        if row["error"]:
            os._exit(1)


def run(driver: Driver, function: ctypes.c_void_p, case: dict[str, Any], inputs: list[Array]) -> list[Array]:
    """Launch once from fresh memory; returns the arrays as the kernel left them."""
    addresses = [driver.allocate(content.size + 2 * GUARD) + GUARD for content in inputs]
    for address, content, array in zip(addresses, inputs, case["arrays"], strict=True):
        whole = np.full(content.size + 2 * GUARD, GUARD_BYTE, np.uint8)
        whole[GUARD : GUARD + content.size] = relocated(content, array["addresses"], addresses)
        driver.write(address - GUARD, whole)
    driver.launch(function, case["grid"], [argument(a, addresses) for a in case["arguments"]])
    left = []
    for address, content, array in zip(addresses, inputs, case["arrays"], strict=True):
        whole = driver.read(address - GUARD, content.size + 2 * GUARD)
        driver.free(address - GUARD)
        if (whole[:GUARD] != GUARD_BYTE).any() or (whole[GUARD + content.size :] != GUARD_BYTE).any():
            raise DriverError(f"the kernel wrote outside of `{array['name']}`")
        left.append(whole[GUARD : GUARD + content.size])
    return left


def relocated(content: Array, words: list[list[int]], addresses: list[int]) -> Array:
    """A table of arrays with the addresses that they have on the device."""
    content = content.copy()
    for position, array, offset in words:
        content[position : position + 8] = np.frombuffer((addresses[array] + offset).to_bytes(8, "little"), np.uint8)
    return content


def argument(given: dict[str, Any], addresses: list[int]) -> bytes:
    """The bytes of an argument."""
    if "array" in given:
        return int(addresses[given["array"]] + given["offset"]).to_bytes(8, "little")
    return bytes.fromhex(given["bytes"])


if __name__ == "__main__":
    main()
