"""The generated crate: what is rendered, what a call would launch, and that it compiles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ffi_build import (
    FakeTensor,
    Operator,
    arguments,
    as_json,
    build_without_device,
    cargo_check,
    load_package,
    translate,
    write,
)

from transpiler.emit.abi import Argument, EntryAbi, Generic, KernelAbi
from transpiler.emit.extras import extra_files, render_crate_files
from transpiler.emit.ffi import specific_first
from transpiler.ir.symbolic import Sym, apply, lit, param
from transpiler.ir.tir import Condition
from transpiler.recordings import array_for
from transpiler.spec import ConstantSpec, ListSpec, ParamSpec, ScalarSpec, Specialization

ROOT = Path(__file__).parent.parent
SOURCE = Path(__file__).parent / "kernels/scaling.py"


def _scale(name: str, dtype: str, shape: tuple[int, int], block: int, halve: bool = False) -> Specialization:
    params: dict[str, ParamSpec] = {
        "output": array_for(dtype, shape),
        "input": array_for(dtype, shape),
        "factor": ScalarSpec(dtype="float32"),
        "BLOCK": ConstantSpec(value=block),
        "HALVE": ConstantSpec(value=halve),
    }
    return Specialization(name=name, params=params)


def _sums(name: str, dtype: str, size: int, block: int) -> Specialization:
    params: dict[str, ParamSpec] = {"x": array_for(dtype, (size,)), "sums": array_for("float32", (-(-size // block),)),
              "BLOCK": ConstantSpec(value=block)}  # fmt: skip
    return Specialization(name=name, params=params)


RUNS = (
    ("_scale_kernel", _scale("f16", "float16", (32, 64), 64)),
    ("_scale_kernel", _scale("f32_ragged", "float32", (5, 37), 64)),
    ("_scale_kernel", _scale("bf16_halved", "bfloat16", (3, 128), 128, halve=True)),
    ("_scale_kernel", _scale("f16_one_row", "float16", (1, 48), 64)),
    ("_scale_kernel", _scale("f32_one_column", "float32", (48, 1), 16)),
    ("_block_sums", _sums("f32", "float32", 1024, 64)),
    ("_block_sums", _sums("f16_one", "float16", 17, 64)),
)


@pytest.fixture(scope="module")
def operator() -> Operator:
    return translate(SOURCE, RUNS)


@pytest.fixture(scope="module")
def package(operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The generated package on a library without a device."""
    folder = tmp_path_factory.mktemp("generated")
    write(folder, [operator])
    build_without_device(folder, [operator])
    name = "generated_scaling"
    yield load_package(folder, name)
    for module in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        del sys.modules[module]


def _bindings(package: ModuleType) -> Any:
    import importlib

    return importlib.import_module(f"{package.__name__}.scaling._bindings")


# -- What a call would launch -------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(len(RUNS)), ids=[spec.name for _, spec in RUNS])
def test_a_launch_compiles_what_the_check_compiled(index: int, operator: Operator, package: ModuleType) -> None:
    name, spec = RUNS[index]
    kernel = getattr(_bindings(package), name)
    assert kernel.plan((4, 1, 1), arguments(spec)) == as_json(operator.inputs(index))


def test_hints_reach_the_library(package: ModuleType) -> None:
    kernel = _bindings(package)._scale_kernel.replace_hints(occupancy=4).replace_hints(num_ctas=2)
    plan = kernel.plan((1,), arguments(RUNS[0][1]))
    assert (plan["occupancy"], plan["num_ctas"], plan["num_worker_warps"]) == (4, 2, None)


def test_threads_do_not_share_their_arguments(package: ModuleType, operator: Operator) -> None:
    kernel = _bindings(package)._scale_kernel
    wanted = {index: as_json(operator.inputs(index)) for index in (0, 1)}

    def calls(index: int) -> int:
        args = arguments(RUNS[index][1])
        return sum(kernel.plan((1,), args) != wanted[index] for _ in range(300))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(calls, (0, 1, 0, 1))) == [0, 0, 0, 0]


def _failure(package: ModuleType, kernel: str, index: int, **changes: Any) -> str:
    args = dict(zip(RUNS[index][1].params, arguments(RUNS[index][1]), strict=True)) | changes
    with pytest.raises(package._runtime.CutileError) as caught:
        getattr(_bindings(package), kernel).launch(0, (4, 1, 1), list(args.values()))
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.fixture(autouse=True)
def _runtime(package: ModuleType) -> None:
    import importlib

    importlib.import_module(f"{package.__name__}._runtime")


def test_codes_of_the_library_are_exceptions(package: ModuleType) -> None:
    narrow = FakeTensor((32, 64), (64, 1), "torch.float16")
    big = FakeTensor((1 << 31, 64), (64, 1), "torch.float16")
    back = FakeTensor((32, 64), (-64, 1), "torch.float16")
    null = FakeTensor((32, 64), (64, 1), "torch.float16", address=0)
    assert (
        _failure(package, "_scale_kernel", 0, output=narrow) == "DriverError: there is no device in tests [NO_DRIVER]"
    )
    assert "IndexOverflow" not in _failure(package, "_scale_kernel", 0, input=narrow)
    assert _failure(package, "_scale_kernel", 0, input=big).endswith("more than 32 bits hold [INDEX_OVERFLOW]")
    assert _failure(package, "_scale_kernel", 0, input=back).startswith("LayoutError: array `input` has stride -64")
    assert _failure(package, "_scale_kernel", 0, input=null).endswith("is at address null [NULL_POINTER]")
    assert _failure(package, "_scale_kernel", 0, factor=2).startswith("ArgumentError: `_scale_kernel`: scalar `factor`")
    mixed = _failure(package, "_scale_kernel", 0, BLOCK=2.0)
    assert mixed.startswith("NoEntryError: `_scale_kernel` was not translated for BLOCK=2.0, HALVE=")


def test_a_library_of_another_version_is_refused(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    library = importlib.import_module(f"{package.__name__}._runtime.library")
    monkeypatch.setattr(library, "ABI_VERSION", 99)
    with pytest.raises(package._runtime.LibraryError, match="version 2 of the interface, not 99"):
        library.Library(library.DEFAULT._root).open()


def test_structures_have_the_size_that_rust_gives_them(package: ModuleType) -> None:
    import importlib

    runtime = importlib.import_module(f"{package.__name__}._runtime.kernel")
    ffi, _ = importlib.import_module(f"{package.__name__}._runtime.library").DEFAULT.open()
    assert ffi.sizeof("cutile_tensor") == runtime._TENSOR.size == 152
    assert ffi.sizeof("cutile_value") == runtime._INTEGER.size == runtime._NUMBER.size == 16
    assert ffi.sizeof("cutile_launch") == runtime._LAUNCH.size == 48


# -- What is rendered ---------------------------------------------------------------------------------


def test_rendering_is_deterministic() -> None:
    script = (
        "import sys; sys.path[:0] = ['tests']; import test_ffi_crate as t; "
        "import json; print(json.dumps([t.translate(t.SOURCE, t.RUNS).files(), t.render_crate_files(['b', 'a'])]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
    files, crate = json.loads(outputs.pop())
    assert set(files) == {"kernel.rs", "ffi.rs", "mod.rs", "__init__.py", "_bindings.py", "host.py"}
    assert crate["src/lib.rs"].index("../a/mod.rs") < crate["src/lib.rs"].index("../b/mod.rs")
    assert "/work" not in json.dumps([files, crate]) and str(ROOT) not in json.dumps([files, crate])


def test_the_support_code_is_copied_without_its_tests() -> None:
    files = render_crate_files([])
    copied = {Path(path).name for path in files if path.startswith("src/support/")}
    sources = {path.name for path in (ROOT / "rust_runtime/support/src").glob("*.rs")} - {"tests.rs", "lib.rs"}
    assert copied == sources | {"mod.rs"}
    assert not [path for path, text in files.items() if path.endswith(".rs") and "cfg(test)" in text]


def _kernel(entries: tuple[EntryAbi, ...]) -> KernelAbi:
    return KernelAbi("op", "k", "op_k", (("x", "array"), ("N", "constant")), entries)


ENTRY = EntryAbi(
    "k", (), (Generic("E", "type", Sym("dtype", ("x",))), Generic("N", "i32", param("N"))),
    (Argument("x", "tensor", "x", "&Tensor<E, { [-1] }>"),),
)  # fmt: skip


def test_entries_with_more_conditions_come_first() -> None:
    one = replace(ENTRY, name="one", conditions=(Condition(param("N"), 1),))
    either = replace(ENTRY, name="either", alternatives=((Condition(param("N"), 1), Condition(param("N"), 1)), ()))
    assert [entry.name for entry in specific_first([ENTRY, either, one])] == ["one", "k", "either"]


def test_alternatives_are_joined_and_what_they_share_is_tested_once() -> None:
    shared = Condition(Sym("lt", (param("N"), lit(9))), True)
    even = Condition(apply("eq", apply("mod", param("N"), lit(2)), lit(0)), True)
    seven = Condition(apply("eq", param("N"), lit(7)), True)
    entry = replace(ENTRY, conditions=(shared,), alternatives=((shared, even), (shared, seven)))
    text = extra_files("op", [_kernel((entry,))], "", module="op_kernels").files["ffi.rs"]
    assert 'when: "(N < 9 and N % 2 == 0) or (N < 9 and N == 7)"' in text
    assert "py::holds(py::lt(n, 9)) && (py::holds(py::eq(py::modulo(n, 2), 0)) || py::holds(py::eq(n, 7)))" in " ".join(
        text.split()
    )


def test_a_kernel_that_c_cannot_call_is_left_out() -> None:
    strange = replace(ENTRY, arguments=(Argument("x", "tensor", "x", "&[Tensor<E, { [-1] }>]"),))
    source = (
        "import cuda.tile as ct\n\n@ct.kernel\ndef k(x, N):\n    pass\n\ndef f(x):\n    ct.launch(0, (1,), k, (x, 1))\n"
    )
    extra = extra_files("op", [_kernel((strange,))], source, module="op_kernels")
    assert [d.code for d in extra.diagnostics] == ["E0620"]
    assert "op_k" not in extra.files["ffi.rs"]
    assert "@ct.kernel\ndef k(x, N):" in extra.files["host.py"]


# -- Lists of arrays ----------------------------------------------------------------------------------

_LISTS = """
import cuda.tile as ct

@ct.kernel
def add_all(xs, out, N: ct.Constant[int]):
    total = ct.zeros((N,), ct.float32)
    for i in range(len(xs)):
        total = total + ct.astype(ct.load(xs[i], (ct.bid(0),), (N,)), ct.float32)
    ct.store(out, (ct.bid(0),), total)
"""


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Operator, Any]]:
    """A kernel that takes a list, and its object."""
    folder = tmp_path_factory.mktemp("lists")
    (folder / "adder.py").write_text(_LISTS, encoding="utf-8")
    runs = []
    for name, dtype, shape in (("f16", "float16", (64,)), ("ragged", "float32", (37,))):
        params: dict[str, ParamSpec] = {
            "xs": ListSpec(element=array_for(dtype, shape)),
            "out": array_for("float32", shape),
            "N": ConstantSpec(value=16),
        }
        runs.append(("add_all", Specialization(name=name, params=params)))
    operator = translate(folder / "adder.py", runs)
    write(folder, [operator])
    build_without_device(folder, [operator])
    load_package(folder, "generated_lists")
    import importlib

    yield operator, importlib.import_module("generated_lists.adder._bindings").add_all
    for module in [m for m in sys.modules if m.startswith("generated_lists")]:
        del sys.modules[module]


@pytest.mark.parametrize("index", [0, 1])
def test_a_list_is_compiled_for_what_all_its_arrays_have(index: int, lists: tuple[Operator, Any]) -> None:
    operator, kernel = lists
    args = arguments(operator.runs[index][1])
    assert kernel.plan((1,), args) == as_json(operator.inputs(index))
    assert kernel.plan((1,), [tuple(args[0]) * 3, *args[1:]]) == as_json(operator.inputs(index))


def test_facts_that_one_array_lacks_are_no_facts(lists: tuple[Operator, Any]) -> None:
    _, kernel = lists
    aligned, shifted = FakeTensor((64,), (1,)), FakeTensor((37,), (1,), address=0x7F00_0000_0008)
    out = FakeTensor((64,), (1,))
    both = kernel.plan((1,), ([aligned, shifted], out, 16))
    assert both["generics"] == kernel.plan((1,), ([shifted], out, 16))["generics"]
    assert both["generics"] != kernel.plan((1,), ([aligned], out, 16))["generics"]


def test_bad_lists(lists: tuple[Operator, Any]) -> None:
    operator, kernel = lists
    args = arguments(operator.runs[0][1])
    errors = sys.modules["generated_lists._runtime.errors"]
    half, full = FakeTensor((64,), (1,), "torch.float16"), FakeTensor((64,), (1,))
    with pytest.raises(errors.ArgumentError, match="`xs` of add_all has to be a list of arrays, with one at least"):
        kernel.plan((1,), [[], *args[1:]])
    with pytest.raises(errors.ArgumentError, match="has to be a list of arrays"):
        kernel.plan((1,), [half, *args[1:]])
    with pytest.raises(errors.DTypeError, match="the arrays of list `xs` differ in element type"):
        kernel.plan((1,), [[half, full], *args[1:]])
    with pytest.raises(errors.RankError, match="array `xs` of add_all has rank 2"):
        kernel.plan((1,), [[FakeTensor((8, 8), (8, 1))], *args[1:]])


# -- The compiler's word ------------------------------------------------------------------------------


def test_the_generated_crate_compiles_without_a_warning(operator: Operator, tmp_path: Path) -> None:
    """The one slow test: cargo check, in the workspace's target directory and with its lock file."""
    write(tmp_path, [operator])
    assert cargo_check(tmp_path) == ""
