"""TileGym's backend ``cutile-rs``, with a package that has TileGym's registry and nothing else of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from ffi_build import build_without_device, translate, write

from transpiler.recordings import array_for
from transpiler.spec import ConstantSpec, ParamSpec, Specialization

_PACKAGE = {
    "__init__.py": "from .backend import set_backend\nfrom . import ops\n",
    "backend/__init__.py": """
        from .dispatcher import call, register_impl
        from .selector import get_current_backend, set_backend
        """,
    "backend/selector.py": '''
        _AVAILABLE_BACKENDS = {"cutile"}
        _current = "cutile"

        def get_current_backend():
            return _current

        def set_backend(name):
            global _current
            if name not in _AVAILABLE_BACKENDS:
                raise ValueError(name)
            _current = name
        ''',
    "backend/dispatcher.py": '''
        from .selector import get_current_backend

        registry = {}

        def register_impl(name, backend):
            return lambda function: registry.setdefault((name, backend), function)

        def call(name, *args):
            found = registry.get((name, get_current_backend()))
            return found(*args) if found else "fallback"
        ''',
    "ops/__init__.py": "from . import interface\n",
    "ops/interface.py": "from tilegym.backend import get_current_backend\n",
    "ops/cutile/__init__.py": "",
    "ops/cutile/twice.py": '''
        import cuda.tile as ct
        from tilegym.backend import register_impl

        @ct.kernel
        def double(x, N: ct.Constant[int]):
            ct.store(x, (ct.bid(0),), ct.load(x, (ct.bid(0),), (N,)) * 2)

        @register_impl("twice", backend="cutile")
        def twice(x):
            ct.launch(0, (1,), double, (x, 16))
        ''',
    "ops/cutile/chain.py": '''
        import cuda.tile as ct
        from tilegym.backend import register_impl
        from . import twice as module
        from .twice import twice

        @ct.kernel
        def triple(x, N: ct.Constant[int]):
            ct.store(x, (ct.bid(0),), ct.load(x, (ct.bid(0),), (N,)) * 3)

        @register_impl("chain", backend="cutile")
        def chain(x):
            from tilegym.ops.cutile.twice import twice as inside

            assert inside is twice is module.twice
            return twice(x)
        ''',
}  # fmt: skip

_PROGRAM = """
import sys
sys.path[:0] = sys.argv[1:3]
from ffi_build import FakeTensor
import tilegym
import transpiler.backends.tilegym as ours
from tilegym.backend import call, selector
print(ours.OPERATORS, sorted(selector._AVAILABLE_BACKENDS))
tilegym.set_backend("cutile-rs")
x = FakeTensor((64,), (1,))
for name in ("twice", "chain"):
    try:
        call(name, x)
    except Exception as exc:
        print(name, type(exc).__name__, type(exc).__module__)
print(call("another", x), tilegym.ops.interface.get_current_backend(), tilegym.backend.get_current_backend())
import tilegym.ops.cutile_rs.chain as chain
print(chain.twice.__module__, chain.module.__name__, ours.install() == ours.OPERATORS)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, and the folder of its translated operators, on a library without a device."""
    root = tmp_path_factory.mktemp("tilegym")
    for name, text in _PACKAGE.items():
        path = root / "site/tilegym" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"))
    operators = []
    for name, kernel in (("twice", "double"), ("chain", "triple")):
        params: dict[str, ParamSpec] = {"x": array_for("float32", (64,)), "N": ConstantSpec(value=16)}
        spec = Specialization(name="f32", params=params)
        source = root / f"site/tilegym/ops/cutile/{name}.py"
        operators.append(translate(source, [(kernel, spec)], package="tilegym.ops.cutile"))
    write(root / "out", operators)
    for name in ("twice", "chain"):  # the first line says where a module came from
        host = root / "out" / name / "host.py"
        host.write_text(host.read_text().replace(f"from {name}.py by", f"from tilegym/ops/cutile/{name}.py by", 1))
    build_without_device(root / "out", operators)
    return root


def _run(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    tests = str(Path(__file__).parent)
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder / "site"), tests],
        capture_output=True, text=True, check=False, cwd=folder, env={"CUTILE_RS_DIR": str(out), "PATH": "",
        "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip


def test_the_backend_routes_translated_operators_and_leaves_the_others(folder: Path) -> None:
    done = _run(folder, folder / "out")
    assert done.stdout.splitlines() == [
        "('chain', 'twice') ['cutile', 'cutile-rs']",
        "twice DriverError cutile_kernels._runtime.errors",
        "chain DriverError cutile_kernels._runtime.errors",  # also through the other operator that it imports
        "fallback cutile cutile-rs",
        "cutile_kernels.twice.host cutile_kernels.twice.host True",
    ], done.stderr


def test_a_folder_without_operators(folder: Path, tmp_path: Path) -> None:
    done = _run(folder, tmp_path)
    assert "E0841" in done.stderr and "holds no translated operators" in done.stderr


def test_an_operator_with_a_hole_follows_the_rule_for_those_that_are_not_translated(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(folder / "out", out)
    bindings = out / "twice/_bindings.py"
    bindings.write_text(bindings.read_text() + 'LEFT_OUT = "`double` has a Hole"\n')
    done = _run(folder, out)
    assert "operator twice isn't available with cutile-rs: `double` has a Hole" in done.stderr
    assert done.stdout.splitlines()[0] == "('chain',) ['cutile', 'cutile-rs']"
    assert "twice DriverError" not in done.stdout and "fallback cutile cutile-rs" in done.stdout
