"""The Python side of the C interface: arrays of any library, checks before the library is asked, imports."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ffi_build import FakeTensor, Operator, translate, write
from test_ffi_crate import RUNS, SOURCE

from transpiler import runtime
from transpiler.ir.types import DTYPE_TABLE
from transpiler.resources import support_dir
from transpiler.runtime import dtypes, errors
from transpiler.runtime.arrays import describe, row_major
from transpiler.runtime.kernel import Array, Constant, Kernel, Scalar, pack_value, stream_handle
from transpiler.runtime.library import Library

# -- Tables -------------------------------------------------------------------------------------------


def test_element_types_are_those_of_the_support_crate_and_of_the_translator() -> None:
    text = (support_dir() / "dtype.rs").read_text(encoding="utf-8")
    rows = re.findall(r'^    \w+ = (\d+), "(\w+)", "(\w+)", (\d+);$', text, re.MULTILINE)
    assert [name for _, _, name, _ in rows] == list(dtypes.NAMES) == list(DTYPE_TABLE)
    assert [int(code) for code, *_ in rows] == list(range(len(rows)))
    assert [rust for _, rust, _, _ in rows] == [rust for rust, *_ in DTYPE_TABLE.values()]
    assert [-(-int(bits) // 8) for *_, bits in rows] == list(dtypes.SIZES)


def test_every_code_of_the_support_crate_has_an_exception() -> None:
    text = (support_dir() / "status.rs").read_text(encoding="utf-8")
    names = re.findall(r'^    \w+ = \d+, "(\w+)";$', text, re.MULTILINE)
    assert set(names) - {"OK"} == set(errors._BY_CODE)
    assert isinstance(errors.from_code("RANK", "x"), errors.RankError)
    assert isinstance(errors.from_code("unheard of", "x"), errors.InternalError)


# -- Arrays -------------------------------------------------------------------------------------------


class Interface:
    """An array with ``__cuda_array_interface__``."""

    def __init__(self, **fields: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (2, 3),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
            **fields,
        }


class Device:
    id = 2


def test_a_torch_tensor() -> None:
    array = describe(FakeTensor((2, 3), (8, 1), "torch.bfloat16", 4096, 1))
    assert array.dtype_name == "bfloat16"
    assert array == (4096, (2, 3), (8, 1), dtypes.CODES["bfloat16"], 1)
    assert describe(FakeTensor((2,), (1,), "torch.bool")).dtype_name == "bool_"
    assert describe(FakeTensor((2,), (1,), "torch.float8_e4m3fn")).dtype_name == "float8_e4m3fn"


def test_the_cuda_array_interface() -> None:
    assert describe(Interface()) == (4096, (2, 3), (3, 1), dtypes.CODES["float32"], -1)
    strided = Interface(strides=(64, 8), typestr="<f8")
    strided.device = Device()  # type: ignore[attr-defined]
    assert describe(strided) == (4096, (2, 3), (8, 1), dtypes.CODES["float64"], 2)
    assert describe(Interface(data=(None, False), shape=(0,))).data == 0
    with pytest.raises(errors.LayoutError, match="stride of 6 bytes: no whole number of elements of 4 bytes"):
        describe(Interface(strides=(6, 4)), "x")
    with pytest.raises(errors.DTypeError, match="`x` has elements of type <c8"):
        describe(Interface(typestr="<c8"), "x")


class Exporter:
    """An array with DLPack: the structures that a library on the GPU would hand out."""

    def __init__(
        self, code: int = 2, bits: int = 16, strides: tuple[int, ...] | None = (40, 1), device: int = 2
    ) -> None:
        from transpiler.runtime.arrays import _DLTensor

        self._shape = (ctypes.c_int64 * 2)(4, 5)
        self._strides = (ctypes.c_int64 * 2)(*strides) if strides else None
        self._tensor = _DLTensor(4096, device, 1, 2, code, bits, 1, self._shape, self._strides, 32)
        self._device = device
        self.streams: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 1

    def __dlpack__(self, *, stream: int) -> Any:
        self.streams.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self._tensor), b"dltensor", None)


def test_dlpack() -> None:
    exporter = Exporter()
    assert describe(exporter, stream=77) == (4096 + 32, (4, 5), (40, 1), dtypes.CODES["float16"], 1)
    assert describe(Exporter(code=4, strides=None)) == (4128, (4, 5), (5, 1), dtypes.CODES["bfloat16"], 1)
    describe(exporter, stream=0)
    assert exporter.streams == [77, 1]
    with pytest.raises(errors.DTypeError, match="`x` has elements of type \\(5, 64 bits"):
        describe(Exporter(code=5, bits=64), "x")


def test_arrays_that_are_not_on_the_gpu() -> None:
    message = "array `x` \\(ndarray\\) is in the memory of the CPU; kernels work on arrays on the GPU"
    with pytest.raises(errors.DeviceError, match=message):
        describe(np.zeros(3, np.float32), "x")
    with pytest.raises(errors.DeviceError, match="array `x` \\(tensor\\) is in the memory of the CPU"):
        describe(FakeTensor((1,), (1,), device=-1), "x")
    with pytest.raises(errors.DeviceError, match="a ROCm device"):
        describe(Exporter(device=10), "x")


def test_what_is_no_array() -> None:
    with pytest.raises(errors.ArgumentError, match=r"`x` has to be an array on the GPU .* not list"):
        describe([1, 2], "x")


def test_row_major_strides() -> None:
    assert row_major((2, 3, 4)) == (12, 4, 1)
    assert row_major((2, 0, 4)) == (4, 4, 1)
    assert row_major(()) == ()


# -- Scalars, constants, streams ----------------------------------------------------------------------


def test_values() -> None:
    kinds = [pack_value(v, "n")[0] for v in (None, True, 7, 0.5, "text", np.int32(7), np.float32(0.5), np.bool_(False))]
    assert kinds == [0, 1, 2, 3, 4, 2, 3, 1]
    assert pack_value(-3, "n")[8:] == (-3).to_bytes(8, "little", signed=True)
    with pytest.raises(errors.ArgumentError, match="`n` is 18446744073709551616, which doesn't fit into 64 bits"):
        pack_value(1 << 64, "n")
    with pytest.raises(errors.ArgumentError, match="`n` has to be a number or a constant, not object"):
        pack_value(object(), "n")


def test_streams() -> None:
    class Torch:
        cuda_stream = 11

    class Cupy:
        ptr = 12

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 13

    assert [stream_handle(s) for s in (None, 10, Torch(), Cupy(), Protocol())] == [0, 10, 11, 12, 13]
    with pytest.raises(errors.ArgumentError, match="str is no CUDA stream"):
        stream_handle("0")


# -- Kernels ------------------------------------------------------------------------------------------

HALF = FakeTensor((2, 3), (3, 1), "torch.float16")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel whose library isn't there."""
    monkeypatch.delenv("CUTILE_KERNELS_LIBRARY", raising=False)
    parameters = (Array("y", ranks=(2,), dtypes=("float16", "float32")), Array("x", ranks=(1, 2), dtypes=("float16",)),
                  Scalar("factor"), Constant("BLOCK"))  # fmt: skip
    return Kernel("op_k", "k", parameters, decorated={"occupancy": 2}, library=Library(tmp_path))


def _refusal(kernel: Kernel, **changes: Any) -> str:
    given = {"y": HALF, "x": HALF, "factor": 1.0, "BLOCK": 16} | changes
    with pytest.raises(runtime.CutileError) as caught:
        kernel.launch(0, (1,), tuple(given.values()))
    return f"{type(caught.value).__name__}: {caught.value}"


def test_arguments_are_checked_before_the_library_is_loaded(kernel: Kernel) -> None:
    full = FakeTensor((2, 3), (3, 1), "torch.float32")
    assert _refusal(kernel, x=np.zeros((2, 3), np.float16)).startswith(
        "DeviceError: array `x` (ndarray) is in the memory"
    )
    assert _refusal(kernel, x=full) == (
        "DTypeError: array `x` of k has elements of type float32; the kernel was translated for float16"
    )
    assert _refusal(kernel, y=FakeTensor((6,), (1,), "torch.float16")) == (
        "RankError: array `y` of k has rank 1; the kernel was translated for rank 2"
    )
    assert _refusal(kernel, x=FakeTensor((2, 3), (3, 1), "torch.float16", device=1)) == (
        "DeviceError: array `x` of k is on device 1, the arrays before it are on device 0"
    )
    with pytest.raises(errors.ArgumentError, match="k takes 4 arguments, 1 were given"):
        kernel.launch(0, (1,), (HALF,))


def test_a_missing_library_says_how_to_make_it(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "`transpile build " in _refusal(kernel)
    monkeypatch.setenv("CUTILE_KERNELS_LIBRARY", "/nowhere/lib.so")
    assert "(CUTILE_KERNELS_LIBRARY names /nowhere/lib.so)" in _refusal(kernel)


def test_a_file_that_is_no_library(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "libcutile_kernels.so").write_text("no library")
    assert _refusal(kernel).startswith(f"LibraryError: can't load {tmp_path}/libcutile_kernels.so: ")


def test_hints(kernel: Kernel) -> None:
    other = kernel.replace_hints(num_ctas=2, occupancy=4)
    assert (kernel.hints, other.hints) == ({}, {"num_ctas": 2, "occupancy": 4})
    assert repr(other) == "<cuTile Rust kernel k, num_ctas=2, occupancy=4>"
    assert other.replace_hints(num_ctas=None).hints == {"num_ctas": None, "occupancy": 4}
    with pytest.raises(errors.HintError, match="`occupancy` stands in the source of k"):
        kernel.replace_hints(occupancy=None)
    with pytest.raises(errors.HintError, match="there is no hint `speed`; there are num_ctas, occupancy"):
        kernel.replace_hints(speed=9)
    with pytest.raises(TypeError, match="kernel k can't be called; launch it"):
        kernel(HALF)


def test_hints_by_target(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda.tile import ByTarget

    monkeypatch.setattr(Library, "target", lambda _self, _device: "sm_90")
    hinted = kernel.replace_hints(occupancy=ByTarget(sm_90=3, default=2), num_ctas=ByTarget(sm_100=2))
    assert (hinted._hint("occupancy", 0), hinted._hint("num_ctas", 0)) == (3, None)
    with pytest.raises(errors.HintError, match="'many' is no value for the hint `num_ctas`"):
        kernel.replace_hints(num_ctas="many")._hint("num_ctas", 0)


def test_grids(kernel: Kernel) -> None:
    structure = kernel._launch_structure(0, (5,), 0, 0)
    assert np.frombuffer(structure, np.uint32)[:5].tolist() == [48, 0, 5, 1, 1]
    for grid in ((), (1, 1, 1, 1), (-1,), (1 << 32,)):
        with pytest.raises(errors.GridError):
            kernel._launch_structure(0, grid, 0, 0)


# -- Generated modules --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    operator: Operator = translate(SOURCE, RUNS)
    path = tmp_path_factory.mktemp("bindings")
    write(path, [operator])
    return path


_IMPORT = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "cffi", "numpy", "cuda", "transpiler", "libcst"):
            raise ImportError(f"{name} must not be imported")
sys.meta_path.insert(0, Refuse())
from cutile_kernels.scaling import _bindings
print(_bindings._scale_kernel, _bindings.launch__scale_kernel.__name__)
try:
    _bindings.launch__block_sums(0, (1,), [1], [2], 64)
except Exception as exc:
    print(type(exc).__name__)
import cutile_kernels.scaling
try:
    cutile_kernels.scaling.scale
except ImportError as exc:
    print(exc)
"""


def test_bindings_import_without_torch_and_without_the_library(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORT], capture_output=True, text=True, check=False, cwd=folder)
    assert done.stdout.splitlines() == [
        "<cuTile Rust kernel _scale_kernel> launch__scale_kernel",
        "ArgumentError",
        "torch must not be imported",
    ], done.stderr


def test_bindings_have_the_authors_names(folder: Path) -> None:
    text = (folder / "scaling/_bindings.py").read_text(encoding="utf-8")
    assert 'Array("input", ranks=(2,), dtypes=("float16", "bfloat16", "float32")),' in text
    assert 'Array("sums", ranks=(1,), dtypes=("float32",)),' in text
    assert 'decorated={"occupancy": 2},' in text
    assert "args = (output, input, factor, BLOCK, HALVE)" in text


def test_generated_python_is_tidy(folder: Path) -> None:
    """ruff has nothing to say, but for names and lengths that are the author's."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,W", "--ignore", "E501",
         "scaling/_bindings.py", "scaling/__init__.py", "cutile_kernels"],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
