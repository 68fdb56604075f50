"""The real library, as a user builds it, on a machine without a GPU: it loads, and every bad call has its code.

Built once with cargo in the workspace's target directory, where all that it needs was compiled for other tests.
"""

from __future__ import annotations

import importlib
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from exchange import ExchangeTensor
from ffi_build import Operator, cargo_build, load_package, translate, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_ffi_crate import RUNS, SOURCE

NAME = "library_scaling"
HAS_DRIVER = any(Path(folder, "libcuda.so.1").exists() for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64"))
without_driver = pytest.mark.skipif(HAS_DRIVER, reason="there is a driver here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    operator: Operator = translate(SOURCE, RUNS)
    path = tmp_path_factory.mktemp("library")
    write(path, [operator])
    cargo_build(path)
    return path


@pytest.fixture(scope="module")
def package(folder: Path) -> Iterator[ModuleType]:
    yield load_package(folder, NAME)
    for module in [m for m in sys.modules if m == NAME or m.startswith(f"{NAME}.")]:
        del sys.modules[module]


@pytest.fixture(scope="module")
def kernel(package: ModuleType) -> Any:
    return importlib.import_module(f"{NAME}.scaling._bindings")._scale_kernel


class Caller:
    """Calls the C function of ``_scale_kernel`` with anything."""

    def __init__(self, kernel: Any) -> None:
        self.library = kernel._library
        self.ffi, self.lib = self.library.open()
        self.function = self.library.function(kernel.symbol)

    def arrays(self, **changes: Any) -> list[dict[str, Any]]:
        array = {"data": 0x7F00_0000_0000, "shape": [32, 64], "strides": [64, 1], "ndim": 2, "dtype": 11, "device": 0,
                 "form": 0}  # fmt: skip
        return [array | changes, dict(array)]

    def call(
        self, arrays: Any = None, values: Any = None, *, counts: tuple[int, int, int] = (2, 1, 2), **launch: Any
    ) -> str:
        """Return the name of the status; ``values`` are (kind, payload) of the scalar and the two constants."""
        ffi = self.ffi
        tensors = (
            ffi.NULL if arrays == "null" else ffi.new("cutile_tensor[]", self.arrays() if arrays is None else arrays)
        )
        given = [(3, 2.0), (2, 64), (1, 0)] if values is None else values
        memory = ffi.new("cutile_value[]", len(given))
        kept = []
        for item, (kind, payload) in zip(memory, given, strict=True):
            item.kind = kind
            if isinstance(payload, float):
                item.payload.number = payload
            elif isinstance(payload, bytes):
                kept.append(ffi.new("char[]", payload))
                item.payload.text = kept[-1]
            else:
                item.payload.integer = payload
        options = {"size": 48, "grid": [4, 1, 1]} | launch
        structure = ffi.NULL if launch.get("null") else ffi.new("cutile_launch *", options)
        n = counts
        status = self.function(tensors, n[0], memory, n[1], memory + 1, n[2], structure)
        name = self.lib.cutile_kernels_status_name(status)
        assert name != ffi.NULL, status
        return str(ffi.string(name).decode())


@pytest.fixture(scope="module")
def caller(kernel: Any) -> Caller:
    return Caller(kernel)


def test_it_knows_nothing_of_python_or_cuda(folder: Path) -> None:
    """Neither libpython nor libcuda is needed to load it, so a C program can."""
    code = f"import ctypes; print(ctypes.CDLL({str(folder / 'libcutile_kernels.so')!r}).cutile_kernels_abi_version())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"
    needed = subprocess.run(["readelf", "-dW", str(folder / "libcutile_kernels.so")], capture_output=True, text=True)
    assert "libpython" not in needed.stdout and "libcuda" not in needed.stdout


DRY = {"flags": 1}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "good": (DRY, "OK"),
    "null descriptors": ({"arrays": "null", **DRY}, "NULL_POINTER"),
    "null launch": ({"null": True}, "NULL_POINTER"),
    "another version": ({"size": 40}, "ABI_MISMATCH"),
    "too few arrays": ({"counts": (1, 1, 2), **DRY}, "ARGUMENT_COUNT"),
    "too many constants": ({"counts": (2, 1, 3), **DRY}, "ARGUMENT_COUNT"),
    "text that is null": ({"values": [(3, 2.0), (4, 0), (1, 0)], **DRY}, "VALUE"),
    "text that is no UTF-8": ({"values": [(3, 2.0), (4, b"\xff"), (1, 0)], **DRY}, "VALUE"),
    "an unknown kind": ({"values": [(3, 2.0), (9, 0), (1, 0)], **DRY}, "VALUE"),
    "a bool that is 2": ({"values": [(3, 2.0), (2, 64), (1, 2)], **DRY}, "VALUE"),
    "an int for a float": ({"values": [(2, 2), (2, 64), (1, 0)], **DRY}, "VALUE"),
    "no such constants": ({"values": [(3, 2.0), (2, 64), (4, b"no")], **DRY}, "NO_ENTRY"),
    "an empty grid": ({"grid": [4, 0, 1], **DRY}, "GRID"),
    "a huge grid": ({"grid": [4, 1 << 16, 1], **DRY}, "GRID"),
    "an unknown flag": ({"flags": 8}, "HINT"),
    "a hint out of range": ({"occupancy": 33, **DRY}, "HINT"),
    "no power of two": ({"num_ctas": 3, **DRY}, "HINT"),
    "a negative device": ({"device": -1, **DRY}, "DEVICE"),
}
BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "a null address": ({"data": 0}, "NULL_POINTER"),
    "another rank": ({"ndim": 1}, "RANK"),
    "rank 9": ({"ndim": 9}, "RANK"),
    "rank -1": ({"ndim": -1}, "RANK"),
    "an unknown dtype": ({"dtype": 99}, "DTYPE"),
    "another dtype": ({"dtype": 3}, "DTYPE"),
    "a negative extent": ({"shape": [-1, 64]}, "SHAPE"),
    "a negative stride": ({"strides": [-64, 1]}, "STRIDE"),
    "an extent of 2^31": ({"shape": [1 << 31, 64]}, "INDEX_OVERFLOW"),
    "a stride of 2^63-1": ({"strides": [(1 << 63) - 1, 1]}, "INDEX_OVERFLOW"),
    "another device": ({"device": 1}, "DEVICE"),
    "a list": ({"form": 1}, "SHAPE"),
    "an unknown form": ({"form": 7}, "VALUE"),
}


@pytest.mark.parametrize("case", BAD)
def test_every_bad_call_has_its_code(caller: Caller, case: str) -> None:
    arguments, wanted = BAD[case]
    assert caller.call(**arguments) == wanted


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_every_bad_array_has_its_code(caller: Caller, case: str) -> None:
    changes, wanted = BAD_ARRAYS[case]
    if changes.get("form") == 1:  # a list without arrays
        changes = changes | {"shape": [0] * 8}
    assert caller.call(caller.arrays(**changes), flags=1) == wanted
    assert caller.ffi.string(caller.lib.cutile_kernels_last_error())


@without_driver
def test_without_a_driver_a_good_call_says_so(caller: Caller) -> None:
    before = caller.library.launches()
    assert caller.call() == "NO_DRIVER"
    assert b"libcuda.so.1" in caller.ffi.string(caller.lib.cutile_kernels_last_error())
    assert caller.lib.cutile_kernels_target(0) == caller.ffi.NULL
    assert caller.library.launches() == before


# -- Launches without Python on the way ---------------------------------------------------------------


@pytest.fixture
def fast(kernel: Any) -> Any:
    launch = kernel._library.fast(kernel.symbol, kernel._roles, (0, 0, 0, 0), -1)
    assert launch is not None
    return launch


def _call(kernel: Any, launch: Any, *args: Any, stream: Any = 0, grid: Any = (4, 1), flags: Any = 1) -> str:
    """The name of what the launch function answers; a dry run unless told."""
    status = launch(stream, grid, tuple(args), flags)
    ffi, lib = kernel._library.open()
    return "declined" if status == -1 else str(ffi.string(lib.cutile_kernels_status_name(status)).decode())


def test_a_call_reads_its_arguments_as_python_packs_them(kernel: Any, fast: Any) -> None:
    """The same plan comes of both ways, for all kinds of arguments and layouts."""
    x = ExchangeTensor
    calls = [
        (x((32, 64), (64, 1)), x((32, 64), (64, 1)), 2.0, 64, False),
        (x((5, 37), (40, 1), "float16"), x((5, 37), (37, 1), "float16"), -0.0, 128, True),
        (x((1, 48), (48, 1), address=0x7F00_0000_0008), x((1, 48), (48, 1)), math.inf, 16, 0),
        (x((48, 1), (1, 1), "bfloat16"), x((48, 1), (1, 1), "bfloat16"), 1e300, 2, False),
    ]
    for args in calls:
        wanted = kernel.plan((4, 1), args)
        assert _call(kernel, fast, *args) == "OK"
        assert (
            kernel._library.last_plan() and importlib.import_module("json").loads(kernel._library.last_plan()) == wanted
        )


def test_what_the_fast_way_leaves_to_python(kernel: Any, fast: Any) -> None:
    x = ExchangeTensor((32, 64), (64, 1))
    good: tuple[Any, ...] = (x, x, 2.0, 64, False)

    def changed(index: int, value: Any) -> tuple[Any, ...]:
        return (*good[:index], value, *good[index + 1 :])

    cpu, elsewhere = ExchangeTensor((32, 64), (64, 1), device_type=1), ExchangeTensor((32, 64), (64, 1), device=1)
    for args in (changed(0, object()), changed(0, 7), changed(0, cpu), changed(0, elsewhere), changed(3, 1 << 70),
                 changed(3, object()), changed(3, "a\0b"), changed(3, "\ud800"), good[:-1], (*good, 1)):  # fmt: skip
        assert _call(kernel, fast, *args) == "declined"
    for options in ({"grid": [4, 1]}, {"grid": ()}, {"grid": (1, 1, 1, 1)}, {"grid": (-1,)}, {"grid": ("4",)},
                    {"stream": object()}, {"stream": -1}, {"flags": None}):  # fmt: skip
        assert _call(kernel, fast, *good, **options) == "declined"
    assert fast(0, (1,), list(good), 1) == -1 and fast(0, (1,)) == -1
    assert sys.exc_info() == (None, None, None)


def test_codes_of_the_fast_way(kernel: Any, fast: Any) -> None:
    x, whole = ExchangeTensor((32, 64), (64, 1)), ExchangeTensor((32, 64), (64, 1), "int32")
    assert _call(kernel, fast, x, whole, 2.0, 64, False) == "DTYPE"
    assert _call(kernel, fast, x, x, 2, 64, False) == "VALUE"
    assert _call(kernel, fast, x, x, 2.0, 64, None) == "NO_ENTRY"
    assert _call(kernel, fast, x, x, 2.0, 64, False, grid=(0,)) == "GRID"
    stream = type("Stream", (), {"cuda_stream": 0})()
    assert _call(kernel, fast, x, x, 2.0, 64, False, stream=stream) == "OK"


@without_driver
def test_launches_raise_the_same_both_ways(kernel: Any, package: ModuleType) -> None:
    x = ExchangeTensor((32, 64), (64, 1))
    errors = importlib.import_module(f"{NAME}._runtime.errors")
    first = kernel.replace_hints(num_ctas=1)
    with pytest.raises(errors.DriverError):
        first.launch(0, (4,), (x, x, 2.0, 64, False))
    first._resolved[0] = first._resolve_hints(0)
    first._prepare(0)
    with pytest.raises(errors.DriverError):
        first.launch(0, (4,), (x, x, 2.0, 64, False))
    with pytest.raises(errors.ArgumentError, match="takes 5 arguments, 1 were given"):
        first.launch(0, (4,), (x,))


def test_launch_functions_go_away(kernel: Any) -> None:
    """Ten thousand of them: each owns memory of the library, and gives it back."""
    for _ in range(10_000):
        assert kernel._library.fast(kernel.symbol, kernel._roles, (0, 0, 0, 0), -1) is not None
    assert kernel._library.fast(kernel.symbol, "a" * 65, (0, 0, 0, 0), -1) is None
    assert kernel._library.fast(kernel.symbol, "ax", (0, 0, 0, 0), -1) is None


# -- Anything at all ----------------------------------------------------------------------------------

_INT32 = st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-1, 20)
_INT64 = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-1, 200) | st.sampled_from([(1 << 31) - 1, 1 << 31])
_ARRAY = st.fixed_dictionaries(
    {
        "data": st.integers(0, (1 << 64) - 1) | st.just(4096),
        "shape": st.lists(_INT64, min_size=8, max_size=8),
        "strides": st.lists(_INT64, min_size=8, max_size=8),
        "ndim": _INT32 | st.just(2),
        "dtype": _INT32 | st.sampled_from([9, 10, 11]),
        "device": _INT32 | st.just(0),
        "form": st.sampled_from([0, 0, 0, 2, -1]),  # a list points to memory that has to be there
    }
)
_TEXT = st.tuples(st.just(4), st.binary(max_size=8).filter(lambda b: b"\0" not in b))
_VALUE = _TEXT | st.tuples(_INT32.filter(lambda kind: kind != 4), _INT64 | st.floats())
_LAUNCH = st.fixed_dictionaries(
    {
        "flags": st.integers(0, (1 << 32) - 1) | st.sampled_from([0, 1, 2]),
        "grid": st.lists(st.integers(0, (1 << 32) - 1) | st.just(1), min_size=3, max_size=3),
        "device": _INT32 | st.just(0),
        "occupancy": _INT32 | st.just(0),
        "num_ctas": _INT32 | st.just(0),
        "num_worker_warps": _INT32 | st.just(0),
        "opt_level_plus_one": _INT32 | st.just(0),
        "stream": st.integers(0, (1 << 64) - 1),
    }
)


@without_driver
@settings(max_examples=int(os.environ.get("FUZZ_EXAMPLES", "400")), deadline=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(arrays=st.lists(_ARRAY, min_size=2, max_size=2), values=st.lists(_VALUE, min_size=3, max_size=3), launch=_LAUNCH)
def test_any_call_ends_in_a_code(
    caller: Caller, arrays: list[dict[str, Any]], values: list[Any], launch: dict[str, Any]
) -> None:
    """No arguments end the process, and none are a mistake of the library (PANIC)."""
    assert caller.call(arrays, values, **launch) not in ("PANIC", "COMPILE", "LAUNCH")


_OBJECT = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.tuples(), st.lists(st.integers()),
    st.builds(ExchangeTensor, st.tuples(_INT64, _INT64), st.tuples(_INT64, _INT64),
              st.sampled_from(["float16", "float32"]), device=st.integers(-2, 2), device_type=st.integers(0, 14)),
)  # fmt: skip


@settings(max_examples=int(os.environ.get("FUZZ_EXAMPLES", "400")), deadline=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(stream=_OBJECT, grid=_OBJECT | st.tuples(_INT64), args=st.lists(_OBJECT, max_size=6).map(tuple))
def test_any_objects_end_in_a_code(kernel: Any, fast: Any, stream: Any, grid: Any, args: tuple[Any, ...]) -> None:
    assert _call(kernel, fast, *args, stream=stream, grid=grid) != "PANIC"
