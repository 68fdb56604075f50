"""`transpile record`: real launches, on a driver that does nothing, become what the JIT compiles them for."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import stub_driver

from transpiler.corpora import load_manifest
from transpiler.record import command
from transpiler.recordings import array_for
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ScalarSpec, Specialization

KERNELS = """\
import cuda.tile as ct


class Array:
    def __init__(self, *shape, typestr="<f4", strides=None, address=1 << 20):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": typestr, "data": (address, False), "strides": strides, "version": 3,
        }


@ct.kernel
def scale(a, b, n, factor: float, TILE: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, index=(i, 0), shape=(1, TILE)) * factor
    ct.store(b, index=(i, 0), tile=ct.astype(x, b.dtype))


def plus(a, b, ONE: ct.Constant[float], FLAG: ct.Constant[bool]):
    i = ct.bid(0)
    ct.store(b, index=(i,), tile=ct.load(a, index=(i,), shape=(16,)) + ONE)


plus_kernel = ct.kernel(plus, occupancy=ct.ByTarget(sm_80=2, default=4))


def launch(*args):
    try:
        ct.launch(0, (8, 2), *args)
    except OSError:
        pass  # no driver
"""
SCRIPT = """\
from kernels import *

launch(scale, (Array(4, 64), Array(4, 64), 3, 2.0, 64))
launch(scale, (Array(8, 32), Array(8, 32), 5, 0.5, 64))
launch(scale, (Array(8, 32), Array(8, 32), 5, 0.5, 64))
launch(scale, (Array(1, 30, typestr="<f2"), Array(1, 30, typestr="<f2"), 7, 0.5, 32))
launch(scale, (Array(4, 8, strides=(4, 16)), Array(4, 8, address=(1 << 20) + 4), True, 0.5, 8))
launch(plus_kernel, (Array(7), Array(7), float("-inf"), True))
launch(plus_kernel.replace_hints(occupancy=1), (Array(7), Array(7), 1.5, False))
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stub_driver.build(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


def record(folder: Path, *command: str, driver: Path | None, out: str = "spec.toml",
           **environment: str) -> subprocess.CompletedProcess[str]:  # fmt: skip
    libraries = {"LD_LIBRARY_PATH": str(driver)} if driver is not None else {}
    return subprocess.run(
        [sys.executable, "-m", "transpiler.cli", "record", "-o", out, "--", *command], cwd=folder,
        env=os.environ | libraries | environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def specializations(path: Path) -> dict[str, list[Specialization]]:
    return {k.name: list(k.specializations) for o in load_manifest(path).operators for k in o.kernels}


def test_a_script(folder: Path, driver: Path) -> None:
    done = record(folder, sys.executable, "script.py", driver=driver)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "wrote spec.toml: 1 operator, 2 kernels, 5 specializations" in done.stderr
    corpus = load_manifest(folder / "spec.toml")
    assert corpus.target == "sm_90"
    (operator,) = corpus.operators
    assert (operator.name, operator.path, operator.module) == ("kernels", "kernels.py", None)
    found = specializations(folder / "spec.toml")
    assert list(found) == ["plus_kernel", "scale"]
    assert [(s.params["ONE"], s.params["FLAG"], s.hints.occupancy) for s in found["plus_kernel"]] == [
        (ConstantSpec(value="-inf"), ConstantSpec(value=True), "ByTarget(sm_80=2, default=4)"),
        (ConstantSpec(value=1.5), ConstantSpec(value=False), 1),
    ]
    assert all(s.grid == (8, 2) for kernel in found.values() for s in kernel)
    whole = next(s for s in found["scale"] if s.params["TILE"] == ConstantSpec(value=64))
    a = whole.params["a"]
    assert isinstance(a, ArraySpec)
    assert (a.dtype, a.shape_divisible_by, a.stride_constant, a.stride_divisible_by, a.base_addr_divisible_by) == (
        "float32", (1, 16), (None, 1), (4, 1), 16)  # fmt: skip
    assert whole.params["n"] == ScalarSpec(dtype="int32")
    assert whole.params["factor"] == ScalarSpec(dtype="float32")


def test_without_a_driver_the_facts_are_the_same(folder: Path, driver: Path) -> None:
    texts = []
    for libraries in (driver, None):
        done = record(folder, sys.executable, "script.py", driver=libraries)
        assert done.returncode == 0, done.stderr
        texts.append((folder / "spec.toml").read_text())
    assert texts[0] == texts[1]


def test_what_was_recorded_is_proved(folder: Path, driver: Path) -> None:
    (folder / "script.py").write_text("\n".join(SCRIPT.splitlines()[:4]))
    assert record(folder, sys.executable, "script.py", driver=driver).returncode == 0
    command = [sys.executable, "-m", "transpiler.cli", "batch", "spec.toml", "-o", "out", "--json", "r.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    totals = json.loads((folder / "r.json").read_text())["totals"]
    assert (done.returncode, totals["checks"], totals["proved"]) == (0, 1, 1), done.stderr


def test_modules_tests_and_children(folder: Path, driver: Path) -> None:
    (folder / "test_it.py").write_text(
        "from kernels import *\n\n\ndef test_it():\n    launch(scale, (Array(4, 64), Array(4, 64), 3, 2.0, 4))\n"
    )
    (folder / "main.py").write_text(
        "import multiprocessing, subprocess, sys\nfrom kernels import *\n\n\n"
        "def child():\n    launch(scale, (Array(4, 64), Array(4, 64), 3, 2.0, 2))\n\n\n"
        'if __name__ == "__main__":\n'
        '    p = multiprocessing.get_context("fork").Process(target=child)\n    p.start()\n    p.join()\n'
        '    subprocess.run([sys.executable, "-m", "pytest", "-q", "test_it.py"], check=True)\n'
    )
    done = record(folder, sys.executable, "-m", "main", driver=driver)
    assert done.returncode == 0, done.stdout + done.stderr
    tiles = [s.params["TILE"] for s in specializations(folder / "spec.toml")["scale"]]
    assert tiles == [ConstantSpec(value=2), ConstantSpec(value=4)]


def test_a_kernel_in_the_script_itself(folder: Path, driver: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "whole.py").write_text(
        KERNELS + "\n\nimport os\nos.chdir('/')\nlaunch(scale, (Array(4, 64), Array(4, 64), 3, 2.0, 4))\n"
    )
    done = record(folder, sys.executable, "deep/whole.py", driver=driver)
    assert done.returncode == 0, done.stderr
    (operator,) = load_manifest(folder / "spec.toml").operators
    assert (operator.name, operator.path) == ("whole", "deep/whole.py")


def test_searches_lists_and_what_cannot_be_stated(folder: Path, driver: Path) -> None:
    (folder / "script.py").write_text("""\
import cuda.tile as ct
from kernels import *
from cuda.tile.tune import exhaustive_search


@ct.kernel
def first(xs, out):
    ct.store(out, index=(0,), tile=ct.load(xs[0], index=(0,), shape=(16,)))


@ct.kernel
def pair(a, SIZES: ct.Constant[tuple[int, int]]):
    ct.store(a, index=(0,), tile=ct.zeros((SIZES[0],), ct.float32))


launch(first, ([Array(32), Array(48)], Array(16)))
launch(pair, (Array(32), (16, 2)))
a, b = Array(4, 64), Array(4, 64)
exhaustive_search([16, 32], 0, lambda c: (4,), scale, lambda c: (a, b, 3, 2.0, c))
""")
    done = record(folder, sys.executable, "script.py", driver=driver)
    assert done.returncode == 0, done.stderr
    assert "warning[W0832]: a launch of `pair` passes a tuple for `SIZES`: left out" in done.stderr
    found = specializations(folder / "spec.toml")
    assert sorted(found) == ["first", "scale"]
    xs = found["first"][0].params["xs"]
    assert isinstance(xs, ListSpec)
    assert (xs.element.dtype, xs.element.ndim, xs.element.shape_divisible_by) == ("float32", 1, (16,))
    assert [s.params["TILE"] for s in found["scale"]] == [ConstantSpec(value=16), ConstantSpec(value=32)]


def test_torch_tensors_without_a_driver() -> None:
    class Tensor:
        shape, dtype = (4, 64), "torch.bfloat16"
        stride, data_ptr, element_size = lambda _: (64, 1), lambda _: 1 << 20, lambda _: 2

    found = runpy.run_path(str(Path(command.__file__).parent / "inject" / "sitecustomize.py"))["_array"](Tensor())
    expected = array_for("bfloat16", (4, 64)).model_dump(mode="json")
    assert {**found, "kind": "array"} == expected


@pytest.mark.parametrize(
    ("program", "status", "code"),
    [("pass", 2, "E0831"), ("raise SystemExit(7)", 7, "E0831"), ("import cuda.tile", 2, "E0831")],
)
def test_nothing_was_launched(folder: Path, program: str, status: int, code: str) -> None:
    done = record(folder, sys.executable, "-c", program, driver=None)
    assert done.returncode == status
    assert done.stderr.startswith(f"error[{code}]: ")
    assert not (folder / "spec.toml").exists()


def test_a_command_that_is_not_there(folder: Path) -> None:
    done = record(folder, "no-such-command", driver=None)
    assert (done.returncode, done.stderr.partition(":")[0]) == (2, "error[E0830]")


def test_a_place_that_cannot_be_written_is_found_before_the_command_runs(folder: Path) -> None:
    done = record(folder, sys.executable, "-c", "open('ran', 'w')", driver=None, out="none/spec.toml")
    assert (done.returncode, done.stderr.partition(":")[0]) == (2, "error[E0823]")
    assert not (folder / "ran").exists()


def test_a_failing_command_keeps_what_it_launched(folder: Path, driver: Path) -> None:
    (folder / "script.py").write_text(SCRIPT + "raise SystemExit(9)\n")
    done = record(folder, sys.executable, "script.py", driver=driver)
    assert done.returncode == 9
    assert "ended with status 9" in done.stderr
    assert len(specializations(folder / "spec.toml")["scale"]) == 3


def test_an_interrupt_keeps_what_was_launched(folder: Path, driver: Path) -> None:
    (folder / "script.py").write_text(SCRIPT + "import time\nopen('ready', 'w').close()\ntime.sleep(600)\n")
    temporary = folder / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "transpiler.cli", "record", "-o", "s.toml", "--", sys.executable, "script.py"]
    environment = os.environ | {"LD_LIBRARY_PATH": str(driver), "TMPDIR": str(temporary)}
    child = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (folder / "ready").exists():
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert len(specializations(folder / "s.toml")["scale"]) == 3
    assert not [path for path in temporary.iterdir() if "transpile-record" in path.name]


def test_another_sitecustomize_runs_too(folder: Path, driver: Path) -> None:
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text("import os\nopen(os.environ['WITNESS'], 'w').close()\n")
    path = os.pathsep.join([str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = record(folder, sys.executable, "script.py", driver=driver, PYTHONPATH=path, WITNESS=str(folder / "seen"))
    assert done.returncode == 0, done.stderr
    assert (folder / "seen").exists()
