"""Launches with lists of arrays, on a driver that does nothing: what the kernel finds in its tables.

The driver reads page-locked memory late, as a device does: a table that was overwritten too early shows in the words.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import stub_driver
from ffi_build import cargo_build, write_folder

from transpiler import toolkit
from transpiler.jobs import corpus_jobs
from transpiler.pipeline import translate

_LAUNCHES = """
import importlib, json, os, sys, threading
from pathlib import Path
from exchange import ExchangeTensor
from ffi_build import FakeTensor, arguments, load_package
from transpiler.jobs import corpus_jobs

load_package(Path(sys.argv[1]), "launched")
kernel = importlib.import_module("launched.group_gemm._bindings")._group_gemm_kernel
job = next(job for job in corpus_jobs("tilegym-24") if job.name == "group_gemm")
given = tuple(arguments(job.kernels[0].specializations[0]))
threads, each, behind = map(int, sys.argv[2:])

def call(count, seed, kind=list):
    # Arguments with lists of so many arrays, at addresses of their own, and the words of their tables.
    args, words = [], []
    for argument in given:
        if not isinstance(argument, list | tuple):
            args.append(argument)
            continue
        one, arrays = argument[0], []
        for index in range(count):
            address = 0x7F00_0000_0000 + (seed * 4096 + len(args) * 64 + index) * 256
            shape = (one.shape[0] + 16 * index, *one.shape[1:])
            arrays.append(ExchangeTensor(shape, one.strides, one.dtype.partition(".")[2], address=address))
            words += [address, *shape, *one.strides]
        words += [0] * (-len(words) % 16)
        args.append(kind(arrays))
    return tuple(args), words

expected = []
def launch(stream, count, seed, kind=list):
    args, words = call(count, seed, kind)
    kernel.launch(stream, (1,), args)
    expected.append((stream, 1, words))

launch(0, 4, 1)
packed = type(kernel)._call
type(kernel)._call = None  # from here on nothing may be packed in Python
for seed, (count, kind) in enumerate([(4, list), (16, list), (1, tuple), (16, tuple), (200, list)]):
    launch(0, count, 2 + seed, kind)
os.environ["STUB_BEHIND"] = str(behind)
failed = []
def work(index):
    try:
        for turn in range(each):
            launch(index + 16, 1 + turn % 5, 100 + index * each + turn)
    except BaseException as exc:
        failed.append(repr(exc))
started = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
for thread in started: thread.start()
for thread in started: thread.join()
del os.environ["STUB_BEHIND"]
launch(0, 4, 0)
declined = [kernel._fast(0, (1,), call(2, 9, kind)[0], 0) for kind in (set, iter, lambda arrays: [], lambda _: [1])]
print(json.dumps({"expected": expected, "failed": failed, "declined": declined}))
"""


@dataclass(frozen=True)
class Launched:
    """Launches as (stream, number of copies, words of the tables), as they had to be and as the driver saw them."""

    expected: list[tuple[int, int, tuple[int, ...]]]
    found: list[tuple[int, int, tuple[int, ...]]]
    failed: list[str]
    declined: list[int]


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    folder = tmp_path_factory.mktemp("lists")
    made = [translate(job) for job in corpus_jobs("tilegym-24") if job.name == "group_gemm"]
    write_folder(folder, {one.plan.name: one.files for one in made})
    cargo_build(folder)
    (folder / "driver").mkdir()
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(stub_driver.build(folder / "driver")), "STUB_TABLES": str(folder / "tables"),
        "CUTILE_TILEIRAS_PATH": str(toolkit.locate(toolkit.TILEIRAS)),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", _LAUNCHES, str(folder), "8", "100", "50"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])
    rows = [[int(word, 16) for word in line.split()] for line in (folder / "tables").read_text().splitlines()]
    return Launched(
        [(stream, copies, tuple(words)) for stream, copies, words in said["expected"]],
        [(stream, copies, tuple(words)) for stream, copies, *words in rows],
        said["failed"],
        said["declined"],
    )


def test_tables_reach_the_device_in_one_copy_a_launch(launched: Launched) -> None:
    """Address, extents and strides of each array; lists begin at multiples of 128 bytes."""
    assert launched.found[:6] == launched.expected[:6]
    assert {copies for _, copies, _ in launched.found} == {1}


def test_threads_and_streams_keep_their_tables(launched: Launched) -> None:
    """The device is 50 launches behind: no table is overwritten before the kernel that reads it."""
    assert not launched.failed
    assert sorted(launched.found) == sorted(launched.expected)
    for stream in range(16, 24):
        assert [row for row in launched.found if row[0] == stream] == [
            row for row in launched.expected if row[0] == stream
        ]


def test_what_is_no_list_of_arrays_is_left_to_python(launched: Launched) -> None:
    assert launched.declined == [-1] * 4
