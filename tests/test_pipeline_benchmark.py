"""benchmarks/gpu/pipeline.py: benchmark scripts as a paired run, with a TileGym that has no GPU behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pipeline
import pipeline_worker
import pytest

PIPELINE = Path(pipeline.__file__)
PACKAGES = {
    # What takes how long is what a "kernel" says: the timers read it.
    "clock.py": "ms = 0.0\n",
    "torch/__init__.py": """
        from types import SimpleNamespace
        float16 = "torch.float16"
        cuda = SimpleNamespace(synchronize=lambda: None, empty_cache=lambda: None)
        """,
    "triton/__init__.py": "",
    "triton/testing.py": """
        import clock

        class Benchmark:
            def __init__(self, **fields):
                vars(self).update(fields)

        def perf_report(benchmarks):
            raise AssertionError("isn't replaced")

        def do_bench(fn, rep=100, quantiles=None):
            fn()
            return [clock.ms, 9.0] if quantiles else clock.ms

        do_bench_cudagraph = do_bench
        """,
    "cuda/__init__.py": "",
    "cuda/tile.py": """
        def launch(stream, grid, kernel, args):
            kernel(*args)
        """,
    "tilegym/__init__.py": "from . import ops\nfrom .backend import set_backend\n",
    "tilegym/backend/__init__.py": "def set_backend(name):\n    assert name == 'cutile'\n",
    "tilegym/backend/dispatcher.py": """
        _REGISTRY = {}

        def register_impl(name, backend):
            return lambda function: _REGISTRY.setdefault(name, {}).setdefault(backend, function)

        def dispatch(name):
            return lambda *args, backend="cutile": _REGISTRY[name][backend](*args)
        """,
    "tilegym/ops/__init__.py": """
        from tilegym.backend.dispatcher import dispatch
        from . import cutile
        twice, alone = dispatch("twice"), dispatch("alone")
        """,
    "tilegym/ops/cutile/__init__.py": "from . import twice\nfrom .twice import twice\n",
    "tilegym/ops/cutile/twice.py": """
        import cuda.tile as ct
        import clock
        from tilegym.backend.dispatcher import register_impl

        def kernel(n):
            clock.ms = 2.0 * n

        @register_impl("twice", "cutile")
        def twice(n):
            ct.launch(0, (1,), kernel, (n,))

        @register_impl("alone", "cutile")
        def alone(n):
            ct.launch(0, (1,), kernel, (n,))
        """,
    "cutile_kernels/__init__.py": "",
    "cutile_kernels/_runtime/__init__.py": """
        count = 0

        class Kernel:
            def __init__(self, body):
                self.body = body

        def launch(stream, grid, kernel, args):
            global count
            count += 1
            kernel.body(*args)

        def launch_count():
            return count
        """,
    "cutile_kernels/_runtime/tilegym.py": """
        def install():
            import cutile_kernels.twice.host
            return ("twice",)
        """,
    "cutile_kernels/twice/__init__.py": "",
    "cutile_kernels/twice/host.py": """\
        # Generated from tilegym/ops/cutile/twice.py by the cuTile transpiler: launches run Rust kernels.
        import clock
        from tilegym.backend.dispatcher import register_impl
        from .. import _runtime

        @_runtime.Kernel
        def kernel(n):
            clock.ms = 1.0 * n

        @register_impl("twice", "cutile-rs")
        def twice(n):
            _runtime.launch(0, (1,), kernel, (n,))
        """,
}
HEAD = """
import os, time
import torch, triton, triton.testing
import tilegym

def sweep(values, **args):
    return triton.testing.Benchmark(
        x_names=["N"], x_vals=values, line_arg="backend", line_vals=["cutile", "torch"],
        line_names=["CuTile", "PyTorch"], args=args, plot_name="plot")

def note():
    with open(os.environ["TRACE"], "a") as file:
        file.write(os.path.basename(__file__) + "\\n")
"""
BODIES = {
    "bench_dispatched.py": """
        @triton.testing.perf_report([sweep([1, 2], dtype=torch.float16), None])
        def bench(N, dtype, backend):
            note()
            ms, _ = triton.testing.do_bench_cudagraph(lambda: tilegym.ops.twice(N, backend=backend), quantiles=[.5, .2])
            return 8.0 / ms, 1.0
        bench.run(print_data=True)
        """,
    "bench_flushed.py": """
        from bench_utils import profile_with_l2flush

        @triton.testing.perf_report(sweep([1]))
        def bench(N, backend):
            tilegym.set_backend(backend)
            return 1.0 / profile_with_l2flush(lambda: tilegym.ops.twice(N))
        bench.run()
        """,
    "bench_alone.py": """
        @triton.testing.perf_report(sweep([1]))
        def bench(N, backend):
            return 1.0 / triton.testing.do_bench(lambda: tilegym.ops.alone(N, backend=backend))
        bench.run()
        """,
    "bench_broken.py": "import no_such_module\n",
    "bench_unmeasured.py": """
        @triton.testing.perf_report(sweep([1]))
        def bench(N, backend):
            return 0.0
        bench.run()
        """,
    "bench_idle.py": """
        @triton.testing.perf_report(sweep([1]))
        def bench(N, backend):
            theirs = tilegym.ops.cutile.twice.__module__.startswith("tilegym")
            return 1.0 / triton.testing.do_bench(lambda: tilegym.ops.twice(N) if theirs else None)
        bench.run()
        """,
    "bench_crash.py": """
        @triton.testing.perf_report(sweep([1, 2, 3]))
        def bench(N, backend):
            ours = tilegym.ops.cutile.twice.__module__.startswith("cutile_kernels")
            if N == 1 and ours:
                os._exit(11)
            if N == 2 and ours:
                time.sleep(60)
            return 1.0 / triton.testing.do_bench(lambda: tilegym.ops.twice(N, backend=backend))
        bench.run()
        """,
    "experimental/bench_direct.py": """
        from tilegym.ops.cutile.twice import twice
        BY_BACKEND = {"cutile": twice}

        @triton.testing.perf_report(sweep([1], how="import") )
        def bench(N, how, backend):
            assert backend == "cutile"
            return 1.0 / triton.testing.do_bench(lambda: twice(N))

        @triton.testing.perf_report(sweep([1]))
        def bench_table(N, backend):
            return 1.0 / triton.testing.do_bench(lambda: BY_BACKEND[backend](N))

        @triton.testing.perf_report(sweep([1]))
        def bench_package(N, backend):
            return 1.0 / triton.testing.do_bench(lambda: tilegym.ops.cutile.twice(N))

        @triton.testing.perf_report(sweep([1]))
        def bench_kernel(N, backend):
            import sys
            import cuda.tile as ct
            kernel = sys.modules["tilegym.ops.cutile.twice"].kernel
            return 1.0 / triton.testing.do_bench(lambda: ct.launch(0, (1,), kernel, (N,)))

        @triton.testing.perf_report(sweep([1]))
        def bench_hidden(N, backend):
            try:
                if twice.__module__.startswith("cutile_kernels"):
                    return 1.0 / triton.testing.do_bench(lambda: 1 / 0)
                return 1.0 / triton.testing.do_bench(lambda: twice(N))
            except Exception:
                return float("nan")

        for one in (bench, bench_table, bench_package, bench_kernel, bench_hidden):
            one.run()
        """,
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the packages and the benchmark scripts."""
    for name, text in PACKAGES.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"))
    for name, text in BODIES.items():
        path = tmp_path / "benchmark" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + dedent(text))
    (tmp_path / "benchmark/bench_utils.py").write_text(
        "import clock\n"
        "def profile_with_l2flush(fn, warmup, rep):\n    assert rep == 20\n    fn()\n    return clock.ms\n"
    )
    smi = tmp_path / "bin/nvidia-smi"
    smi.parent.mkdir()
    smi.write_text("#!/bin/sh\necho 'A card, 1.2'\n")
    smi.chmod(0o755)
    return tmp_path


def run(checkout: Path, out: str, *options: str) -> tuple[dict[str, Any], str]:
    """What pipeline.py writes and prints."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout / "site"),
        "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}",
        "TRACE": str(checkout / "trace"),
    }
    command = [sys.executable, str(PIPELINE), "--out", str(checkout / out), "--benchmarks", str(checkout / "benchmark")]
    done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, check=False)
    path = checkout / out / "pipeline.json"
    assert path.is_file(), done.stderr
    return json.loads(path.read_text()), done.stdout


def test_scripts_are_measured_with_both_backends(checkout: Path) -> None:
    result, printed = run(checkout, "out", "--config-limit", "3", "--commit", "abc", "--compile", "2")
    assert (result["gpu"], result["commit"], result["unfinished"]) == ("A card", "abc", [])
    rows = {(row["file"], row["config"]): row for row in result["rows"]}
    first = rows["bench_dispatched.py", "bench N=1 dtype=float16"]
    assert (first["timer"], first["cutile"], first["cutile_rs"], first["ratio"]) == (
        "do_bench",
        [4.0] * 3,
        [8.0] * 3,
        2,
    )
    assert rows["bench_flushed.py", "bench N=1"]["timer"] == "cupti"
    assert "no implementation of 'alone'" in rows["bench_alone.py", "bench N=1"]["error"]
    assert "nothing of cutile-rs was launched" in rows["bench_idle.py", "bench N=1"]["error"]
    for config in ("bench N=1 how=import", "bench_table N=1", "bench_package N=1", "bench_kernel N=1"):
        assert rows["experimental/bench_direct.py", config]["ratio"] == 2, config
    assert "ZeroDivisionError" in rows["experimental/bench_direct.py", "bench_hidden N=1"]["error"]
    left_out = {row["file"]: row["not_run"] for row in result["not_run"]}
    assert sorted(left_out) == ["bench_broken.py", "bench_unmeasured.py"]
    assert "no_such_module" in left_out["bench_broken.py"]
    # A crash and a hang are rows, and what comes after them is measured.
    assert "ended with 11" in rows["bench_crash.py", "bench N=1"]["error"]
    assert "no answer for 3 s" in rows["bench_crash.py", "bench N=2"]["error"]
    assert rows["bench_crash.py", "bench N=3"]["ratio"] == 2
    assert result["errors"] == 5
    assert result["geomean"] == {"cupti": pytest.approx(2), "do_bench": pytest.approx(2)}
    assert "13 rows, 5 errors, 2 that cutile doesn't run; geomean cupti 2.0000, do_bench 2.0000" in printed


def test_a_later_call_measures_the_rest(checkout: Path) -> None:
    script = "bench_dispatched.py"
    whole, _ = run(checkout, "whole", script)
    calls = (checkout / "trace").read_text().count(script)
    log = (checkout / "whole/pipeline.jsonl").read_text().splitlines()
    cut = next(index for index, line in enumerate(log) if "ratio" in line) + 1
    earlier = checkout / "earlier.jsonl"
    earlier.write_text("\n".join([*log[:cut], log[cut][:10]]))  # cut off in the middle of a line
    rest, _ = run(checkout, "rest", "--state", str(earlier), "--", script)
    assert [row["config"] for row in rest["rows"]] == [row["config"] for row in whole["rows"]]
    assert (checkout / "trace").read_text().count(script) == calls + calls // 2
    again, printed = run(
        checkout, "again", "--state", str(checkout / "rest/pipeline.jsonl"), "--limit", "0", "--", script
    )
    assert (again["rows"], again["unfinished"]) == (rest["rows"], [])
    none, printed = run(checkout, "none", "--limit", "0", script)
    assert (none["rows"], none["unfinished"]) == ([], [script])
    assert f"not finished: {script}" in printed


def test_a_long_script_gives_way_and_goes_on_later(checkout: Path) -> None:
    names = ["bench_dispatched.py", "bench_flushed.py"]
    result, _ = run(checkout, "out", "--script-limit", "0", *names)
    log = pipeline.read([checkout / "out/pipeline.jsonl"])
    done = [row["file"] for row in log if "ratio" in row]
    assert done == [names[0], names[1], names[0]]
    assert [row["file"] for row in result["rows"]] == [names[0], names[0], names[1]]


def test_every_line_of_the_reference_is_a_configuration() -> None:
    benchmark = SimpleNamespace(
        x_names=["M", "K"], x_vals=[4, [8, 16]], line_arg="index", line_vals=[0, 1, 2],
        line_names=["Triton", "CuTile cached", "CuTile reload"], args={"dtype": "torch.float16"},
    )  # fmt: skip
    found = list(pipeline_worker.configurations("bench", benchmark))
    assert [text for text, _ in found] == [
        "bench M=4 K=4 dtype=float16 line=CuTile cached", "bench M=4 K=4 dtype=float16 line=CuTile reload",
        "bench M=8 K=16 dtype=float16 line=CuTile cached", "bench M=8 K=16 dtype=float16 line=CuTile reload",
    ]  # fmt: skip
    assert found[2][1] == {"M": 8, "K": 16, "dtype": "torch.float16", "index": 1}


def test_an_outlier_is_measured_again(tmp_path: Path) -> None:
    times = {"theirs": iter([1.0] * 9), "ours": iter([4.0] * 3 + [1.0] * 6)}
    switch: Any = SimpleNamespace(ours=lambda _: nullcontext(), theirs=nullcontext)
    log = pipeline_worker.Log(tmp_path / "log")
    runner = pipeline_worker.Runner(log, pipeline_worker.Stopwatch(), switch, lambda: (0, 0))
    theirs, ours = (pipeline_worker.Timing("cupti", partial(next, times[name])) for name in ("theirs", "ours"))
    row = runner._pair(6.0, theirs, ours, {})
    assert row["first"] == {"cutile": [6.0] * 3, "cutile_rs": [1.5] * 3, "ratio": 0.25}
    assert (row["timer"], row["ratio"], len(row["cutile_rs"])) == ("cupti", 1.0, 6)


def test_ratios_are_of_medians_and_by_timer() -> None:
    one = pipeline_worker.paired(10.0, [1.0, 2.0, 50.0], [4.0, 4.0, 4.0])
    assert one == {"cutile": [10.0, 5.0, 0.2], "cutile_rs": [2.5, 2.5, 2.5], "ratio": 0.5}
    rows = [
        {"file": "b.py", "config": "x", "timer": "cupti", **one},
        {"file": "a.py", "config": "x", "step": "measuring"},
        {"file": "a.py", "config": "x", "error": "old"},
        {"file": "a.py", "config": "x", "timer": "cupti", **one, "ratio": 2.0},
        {"file": "a.py", "config": "y", "not_run": "why"},
        {"file": "a.py", "ended": True},
    ]
    result = pipeline.summary(["a.py", "b.py"], rows, "c")
    assert [(row["file"], row["ratio"]) for row in result["rows"]] == [("a.py", 2.0), ("b.py", 0.5)]
    assert result["geomean"] == {"cupti": pytest.approx(1.0), "do_bench": None}
    assert result["worst"] == {"file": "b.py", "config": "x", "ratio": 0.5}
    assert (result["errors"], result["unfinished"], len(result["not_run"])) == (0, ["b.py"], 1)
    assert "worst 0.5000 (b.py: x)" in pipeline.table(result)
