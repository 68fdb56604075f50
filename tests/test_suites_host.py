"""Every host module of TileGym's operators, suites and transformers' kernels, imported together with TileGym itself.

torch is a stand-in, the kernels have no entries and nothing is launched: what is checked is that modules import, what
they register, and that no kernel of cuda.tile is left in them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ffi_build import write_folder

from transpiler.diagnostics import TranspileError
from transpiler.emit.abi import KernelAbi
from transpiler.emit.extras import render_extra_files
from transpiler.identifiers import c_symbol
from transpiler.jobs import OperatorJob, corpus_jobs
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec

CORPORA = ("tilegym", "tilegym-suites")

_PROGRAM = """
import sys, json, warnings
sys.path[:0] = sys.argv[1:3]
import torch_stand_in
torch_stand_in.install()
import cuda.tile as ct
import tilegym
from tilegym.backend import dispatcher, selector
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    import cutile_kernels._runtime.tilegym as backend
    backend.install()
found = {"warnings": [str(w.message) for w in warned], "installed": backend.installed(), "left": {}, "missing": {}}
found["registered"] = {name: sorted(rows) for name, rows in dispatcher._REGISTRY.items() if "cutile" in rows}
found["from"] = {name: rows["cutile-rs"].__module__ for name, rows in dispatcher._REGISTRY.items()
                 if "cutile-rs" in rows}
for origin, module in backend._linked.modules.items():
    theirs = sys.modules[origin]
    left = [name for name, value in vars(module).items() if isinstance(value, ct.kernel)]
    kernels = [name for name, value in vars(theirs).items() if isinstance(value, ct.kernel)]
    classes = [name for name, value in vars(theirs).items() if getattr(value, "__module__", "") == origin]
    wanted = kernels + [name for name in classes if isinstance(vars(theirs)[name], type)]
    missing = [name for name in wanted if not hasattr(module, name)]
    if left: found["left"][origin] = left
    if missing: found["missing"][origin] = missing
print(json.dumps(found))
"""

_KERNELS = (
    _PROGRAM.partition("found = ")[0]
    + """
import inspect
from cutile_kernels._runtime import Kernel, tile_kernel
from cutile_kernels._runtime.kernel import translated
wrong, count = [], 0
for origin, module in backend._linked.modules.items():
    for name, theirs in vars(sys.modules[origin]).items():
        ours = vars(module).get(name)
        if not isinstance(theirs, ct.kernel) or not isinstance(ours, Kernel) or ours._root is not ours:
            continue
        count += 1
        again, hinted = tile_kernel(ours._pyfunc, occupancy=2), translated(ct.kernel(ours._pyfunc, num_ctas=2))
        same = {
            "function": ours._pyfunc is theirs._pyfunc,
            "signature": list(inspect.signature(ours).parameters) == list(theirs._annotated_function.pysig.parameters),
            "constants": [a.constant for a in ours._annotated_function.parameter_annotations]
                         == [a.constant for a in theirs._annotated_function.parameter_annotations],
            "names": (ours.__name__, ours.__doc__) == (theirs._pyfunc.__name__, theirs._pyfunc.__doc__),
            "again": type(again) is Kernel and again.symbol == ours.symbol and again.hints == {"occupancy": 2},
            "by cuda.tile": hinted.symbol == ours.symbol and hinted.hints == {"num_ctas": 2, "opt_level": 3},
        }
        wrong += [f"{origin}.{name}: {what}" for what, holds in same.items() if not holds]
print(json.dumps({"wrong": wrong, "count": count}))
"""
)

_CALLS = (
    _PROGRAM.partition("found = ")[0]
    + """
found = []
def module(name): return sys.modules[f"cutile_kernels.{name}.host"]
found.append(module("liger_fused_linear_jsd")._jsd_kernel is module("liger_jsd")._jsd_kernel)
attention, sparsemax = module("liger_multi_token_attention"), module("liger_sparsemax")
found.append(attention._sparsemax_forward_ct is sparsemax._sparsemax_forward_ct)
scope = vars(module("linear_gluact_linear"))
exec("from tilegym.ops.cutile.matmul import matmul as inside", scope)  # as one of its functions does
found.append(scope["inside"] is module("matmul").matmul)
found.append(tilegym.suites.liger.cutile_rs.softmax is module("liger_softmax"))
found.append(tilegym.ops.cutile_rs.liger_softmax is module("liger_softmax"))

import cutile_kernels._runtime as runtime
calls = []
runtime.launch = lambda *args, **options: calls.append("ours")
ct.launch = lambda *args, **options: calls.append("theirs")
def transformers():
    from tilegym.transformers.qwen3_5.kernels.sigmoid_mul import sigmoid_mul_cutile
    class Tensor(torch_stand_in.StandIn):
        shape, dtype, device = (4, 8), "float32", "cuda:0"
        def numel(self): return 32
        def __getattr__(self, name): return lambda *args, **options: self
    sigmoid_mul_cutile(Tensor(), Tensor())
for name in ("cutile", "cutile-rs", "cutile"):
    tilegym.set_backend(name)
    transformers()
import tilegym.transformers.qwen3_5.modeling_qwen3_5 as modeling
found.append(modeling.sigmoid_mul_cutile.__wrapped__.__module__ == "tilegym.transformers.qwen3_5.kernels.sigmoid_mul")
print(json.dumps({"found": found, "calls": calls}))
"""
)


def _abis(job: OperatorJob) -> list[KernelAbi]:
    abis = []
    for kernel in job.kernels:
        params = kernel.specializations[0].params
        roles = tuple((name, _role(spec)) for name, spec in params.items())
        abis.append(KernelAbi(job.name, kernel.name, c_symbol(job.name, kernel.name), roles, ()))
    return abis


def _role(spec: Any) -> Any:
    if isinstance(spec, ConstantSpec):
        return "constant"
    return "array" if isinstance(spec, ArraySpec | ListSpec) else "scalar"


def _files(job: OperatorJob) -> dict[str, str]:
    origin = job.shown.removesuffix(".py").replace("/", ".")
    files = render_extra_files(
        job.name, _abis(job), job.path.read_text(encoding="utf-8"), module="m", source=job.shown,
        package=origin.rpartition(".")[0], origin=origin,
    )  # fmt: skip
    return {name: text for name, text in files.items() if name.endswith(".py")}


@pytest.fixture(scope="module")
def jobs() -> list[OperatorJob]:
    try:
        return [job for corpus in CORPORA for job in corpus_jobs(corpus)]
    except TranspileError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def folder(jobs: list[OperatorJob], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("host")
    write_folder(root, {job.name: _files(job) for job in jobs})
    return root


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    return _run(folder, _PROGRAM)


def _run(folder: Path, program: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), str(Path(__file__).parent)],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_all_operators_of_tilegym_and_its_suites_are_registered(found: dict[str, Any], jobs: list[OperatorJob]) -> None:
    assert found["warnings"] == []
    assert set(found["installed"]) == {job.name for job in jobs if not job.name.startswith("transformers_")}
    assert [name for name, backends in found["registered"].items() if "cutile-rs" not in backends] == []
    assert {name.partition(".")[0] for name in found["registered"]} >= {"liger", "unsloth", "flashinfer", "softmax"}
    assert [name for name, module in found["from"].items() if not module.startswith("cutile_kernels.")] == []


def test_host_modules_have_no_kernel_of_cuda_tile_and_all_that_the_authors_have(found: dict[str, Any]) -> None:
    assert found["left"] == {}
    assert found["missing"] == {}


def test_kernels_show_what_those_of_cuda_tile_do(folder: Path) -> None:
    found = _run(folder, _KERNELS)
    assert found["wrong"] == []
    assert found["count"] > 150


def test_operators_that_call_others_and_functions_that_choose(folder: Path) -> None:
    found = _run(folder, _CALLS)
    assert found == {"found": [True] * 6, "calls": ["theirs", "ours", "theirs"]}
