"""Generated folders for tests, and their library without a device: all but launch.rs, built by rustc in seconds."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from transpiler import passes
from transpiler.emit import EmittedModule, compile_inputs, emit_entry, emit_operator
from transpiler.emit.abi import CompileInputs, EntryAbi
from transpiler.emit.extras import render_crate_files, render_extra_files
from transpiler.frontend import load_program
from transpiler.ir.types import DTYPE_TABLE
from transpiler.rules import table
from transpiler.runtime import build
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ScalarSpec, Specialization
from transpiler.specialize.kernel import specialize

ROOT = Path(__file__).parents[1]
_LAUNCH = """
use std::ffi::c_char;
use super::{call::Call, choose::Chosen, dispatch::Backend, status::{Failure, Status}};
pub struct Program;
impl Program {
    pub const fn new(_: fn(), _: &'static str, _: &'static str) -> Self { Self }
}
impl Backend for Program {
    fn run_again(&self, _: &Call<'_>, _: &[u64]) -> Option<Result<(), Failure>> { None }
    fn run(&self, _: &Call<'_>, _: Chosen, _: Vec<u64>) -> Result<(), Failure> {
        Err(Failure::new(Status::NoDriver, "there is no device in tests"))
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn cutile_kernels_target(_: i32) -> *const c_char { c"sm_90".as_ptr() }
"""
_KERNEL = 'pub mod MODULE { pub fn __module_ast_self() {} pub const _SOURCE_HASH: &str = ""; }\n'


@dataclass(frozen=True)
class Operator:
    """A translated source file: the emitted module and the specializations, each with its kernel."""

    name: str
    source: str
    module: EmittedModule
    runs: tuple[tuple[str, Specialization], ...]
    package: str = ""

    def inputs(self, index: int) -> CompileInputs:
        """What the in-process compiler is given for a specialization."""
        return compile_inputs(self._entry(index), self.runs[index][1], "sm_90")

    def _entry(self, index: int) -> EntryAbi:
        entries = [entry for abi in self.module.kernel_abis for entry in abi.entries]
        return next(entry for entry in entries if entry.name == self.module.entries[index])

    def files(self) -> dict[str, str]:
        """All files of the operator's folder."""
        extra = render_extra_files(
            self.name, self.module.kernel_abis, self.source, module=self.module.module, package=self.package,
            source=f"{self.name}.py",
        )  # fmt: skip
        return {"kernel.rs": self.module.text, **extra}


def translate(path: Path, runs: Sequence[tuple[str, Specialization]], name: str = "", package: str = "") -> Operator:
    """Translate a source file for the given specializations."""
    program = load_program(path, display=path.name)
    residuals = [passes.run(specialize(program, kernel, spec, table())) for kernel, spec in runs]
    emitted = [(residual, emit_entry(residual)) for residual in residuals]
    name = name or path.stem
    module = emit_operator(name, emitted, path.name)
    return Operator(name, path.read_text(encoding="utf-8"), module, tuple(runs), package)


def write(folder: Path, operators: Sequence[Operator]) -> None:
    """Write the folder as the pipeline would."""
    write_folder(folder, {operator.name: operator.files() for operator in operators})


def write_folder(folder: Path, operators: Mapping[str, Mapping[str, str]]) -> None:
    """Write the files of operators, by name, and the crate that joins them."""
    files = render_crate_files(list(operators))
    for operator, own in operators.items():
        files |= {f"{operator}/{path}": text for path, text in own.items()}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def build_without_device(folder: Path, operators: Sequence[Operator]) -> None:
    """Build ``libcutile_kernels.so`` with a launch.rs that has no device, and without the kernels."""
    build_tables(folder, {operator.name: operator.module.module for operator in operators})


def build_tables(folder: Path, modules: Mapping[str, str]) -> None:
    """Build the library of what chooses entries alone; ``modules`` are the operators' modules in kernel.rs."""
    (folder / "src/support/launch.rs").write_text(_LAUNCH, encoding="utf-8")
    for name, module in modules.items():
        text = _KERNEL.replace("MODULE", module)
        (folder / name / "kernel.rs").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["rustc", "--edition", "2024", "--crate-type", "cdylib", "--crate-name", "cutile_kernels", "-D", "warnings",
         "-o", str(folder / "libcutile_kernels.so"), str(folder / "src/lib.rs")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:6000]
    mark_as_fresh(folder)


def mark_as_fresh(folder: Path) -> None:
    """Say that a folder's library was built from its sources, so that nothing builds it again."""
    (folder / build.STAMP).write_text(build.digest(folder), encoding="utf-8")


def load_package(folder: Path, name: str) -> ModuleType:
    """Import a folder's ``cutile_kernels`` under a name of its own, so that several can be there."""
    spec = importlib.util.spec_from_file_location(
        name, folder / "cutile_kernels/__init__.py", submodule_search_locations=[str(folder / "cutile_kernels")]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# -- Arguments that fit a specialization --------------------------------------------------------------


@dataclass(frozen=True)
class FakeTensor:
    """What the runtime asks of a torch tensor."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str = "torch.float32"
    address: int = 0x7F00_0000_0000
    device: int = 0

    def data_ptr(self) -> int:
        return self.address

    def stride(self) -> tuple[int, ...]:
        return self.strides

    def get_device(self) -> int:
        return self.device


def arguments(spec: Specialization) -> list[Any]:
    """Arguments for which the reference's JIT would make the specialization."""
    return [_argument(param) for param in spec.params.values()]


def steps(spec: ArraySpec, shape: Sequence[int], whole: int) -> list[int]:
    """Strides of an array whose elements share no memory, with the facts that are stated: those of 1 come first."""
    rank = len(shape)
    constant, divisors = (*spec.stride_constant, *(None,) * rank), (*spec.stride_divisible_by, *(1,) * rank)
    end, out = 1, [1] * rank
    for axis in sorted(range(rank), key=lambda axis: (constant[axis] != 1, -axis)):
        multiple = whole if divisors[axis] > 1 else 1
        step = 1 if constant[axis] == 1 else -(-end // multiple) * multiple
        while constant[axis] != 1 and (step == 1 or (multiple == 1 and whole > 1 and step % whole == 0)):
            step += multiple
        out[axis], end = step, max(end, step * max(1, shape[axis]))
    return out


def _argument(param: object) -> Any:
    match param:
        case ArraySpec():
            shape = [c if c is not None else 48 if d == 16 else 17 for c, d in
                     zip(param.shape_constant, param.shape_divisible_by, strict=True)]  # fmt: skip
            strides = steps(param, shape, max(1, 16 // max(1, DTYPE_TABLE[param.dtype][1] // 8)))
            if param.may_alias_internally:
                strides = [c or (0 if d > 1 else 3) for c, d in
                           zip(param.stride_constant, param.stride_divisible_by, strict=True)]  # fmt: skip
            address = 0x7F00_0000_0000 + (0 if param.base_addr_divisible_by == 16 else 8)
            return FakeTensor(tuple(shape), tuple(strides), f"torch.{param.dtype.rstrip('_')}", address)
        case ListSpec():
            one = _argument(param.element)
            return [one, replace(one, address=one.address + 4096)]
        case ScalarSpec():
            return {"float32": 0.5, "int32": 7, "int64": 1 << 40, "bool_": True}[param.dtype]
        case ConstantSpec():
            return {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}.get(str(param.value), param.value)
    raise AssertionError(param)


def as_json(inputs: CompileInputs) -> dict[str, Any]:
    """Compile inputs as a plan states them."""
    return {
        "entry": inputs.entry,
        "generics": list(inputs.generics),
        "strides": [[name, list(values)] for name, values in inputs.strides],
        "specs": [[name, list(dims), list(strides), base] for name, dims, strides, base in inputs.specs],
        "scalar_hints": [list(hint) for hint in inputs.scalar_hints],
        "occupancy": inputs.occupancy,
        "num_ctas": inputs.num_ctas,
        "num_worker_warps": inputs.num_worker_warps,
    }


# Features that the workspace turns on: with them, what was compiled for it is taken as it is.
_AS_IN_THE_WORKSPACE = """\
proc-macro2 = { version = "1", features = ["span-locations"] }
syn = { version = "2", features = ["full"] }
"""


def _in_workspace(folder: Path) -> tuple[str, dict[str, str]]:
    """Give a generated crate the workspace's lock file, features and profile; returns a profile and an environment."""
    shutil.copy(ROOT / "Cargo.lock", folder / "Cargo.lock")
    manifest = folder / "Cargo.toml"
    crate = manifest.read_text(encoding="utf-8")
    if _AS_IN_THE_WORKSPACE not in crate:
        crate = crate.replace("[dependencies]\n", f"[dependencies]\n{_AS_IN_THE_WORKSPACE}")
        manifest.write_text(crate, encoding="utf-8")
    profile = folder / "profile.toml"
    text = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    profile.write_text(text[text.index("[profile.release]") :], encoding="utf-8")
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    return str(profile), {**os.environ, "CARGO_TARGET_DIR": target}


def _cargo(folder: Path, what: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run cargo on a generated crate; returns how it ended and where it builds."""
    profile, environment = _in_workspace(folder)
    done = subprocess.run(
        [sys.executable, str(ROOT / "build_backend/cargo.py"), what, "--release", "--config", profile,
         "--message-format=short"],
        cwd=folder, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    return done, Path(environment["CARGO_TARGET_DIR"])


def cargo_check(folder: Path) -> str:
    """rustc's errors and warnings about a generated crate ("" for none), reusing what the workspace has built."""
    done, _ = _cargo(folder, "check")
    if done.returncode:
        return done.stderr[-6000:]
    own = tuple(f"{path.name}/" for path in folder.iterdir() if path.is_dir())
    return "\n".join(line for line in done.stderr.splitlines() if line.startswith(own))


def cargo_build(folder: Path) -> Path:
    """Build a generated crate's library, reusing what the workspace has built; returns it."""
    done, target = _cargo(folder, "build")
    assert done.returncode == 0, done.stderr[-6000:]
    library = folder / "libcutile_kernels.so"
    shutil.copy(target / "release/libcutile_kernels.so", library)
    mark_as_fresh(folder)
    return library
