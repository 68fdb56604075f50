"""The launcher of the GPU machine, on a driver without a GPU: arguments, tables of arrays, kernels that go wrong."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import memory_driver
import numpy as np
import pytest

LAUNCHER = Path(__file__).parent.parent / "benchmarks/gpu/interpreter_run.py"
NVIDIA_SMI = "#!/bin/sh\necho 'Some GPU, 1.2.3'\n"


def case(symbol: str, **more: Any) -> dict[str, Any]:
    """A launch with an array and numbers of several sizes."""
    arguments = [{"array": 0, "offset": 0}, {"bytes": struct.pack("<i", -3).hex()}, {"bytes": "01"},
                 {"bytes": struct.pack("<f", 1.5).hex()}]  # fmt: skip
    return {"name": symbol, "symbol": symbol, "code": 0, "grid": [4, 3, 2], "arguments": arguments,
            "arrays": [{"name": "x", "bytes": 10, "addresses": []}]} | more  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Run the launcher on cases; returns its rows, the arrays that came back, and the launches as the driver saw."""

    def launched(cases: list[dict[str, Any]], arrays: dict[str, Any], timeout: str = "20") -> Any:
        job, out = tmp_path / "job", tmp_path / "out"
        job.mkdir()
        (job / "launches.json").write_text(json.dumps(cases), encoding="utf-8")
        code: dict[str, Any] = {"0": np.frombuffer(b"\x7fELF code", np.uint8)}
        np.savez(job / "code.npz", **code)
        np.savez(job / "arrays.npz", **arrays)
        (tmp_path / "nvidia-smi").write_text(NVIDIA_SMI, encoding="utf-8")
        (tmp_path / "nvidia-smi").chmod(0o755)
        environment = os.environ | {
            "LD_LIBRARY_PATH": str(memory_driver.build(tmp_path)), "LAUNCHES": str(tmp_path / "log"),
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        command = [sys.executable, str(LAUNCHER), str(job), "--out", str(out), "--timeout", timeout]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        result = json.loads((out / "interpreter.json").read_text(encoding="utf-8"))
        assert (result["gpu"], result["driver"]) == ("Some GPU", "1.2.3")
        left = {key: content for path in sorted(out.glob("arrays-*.npz")) for key, content in np.load(path).items()}
        return result["cases"], left, (tmp_path / "log").read_text(encoding="utf-8").splitlines()

    return launched


def test_arguments_grid_and_results(run: Any) -> None:
    """A tile block is launched as one thread; each launch starts from the packed memory, which may repeat."""
    rows, left, seen = run([case("add")], {"0/0": np.arange(4, dtype=np.uint8)})
    assert rows == [{"name": "add", "error": "", "repeats": True, "changed": ["x"]}]
    assert left["0/0"].tolist() == [1, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert seen == ["add 4 3 2 1 1 1 0 1 array fffffffd 1 3fc00000"] * 2


def test_a_table_of_arrays_has_the_addresses_of_the_device(run: Any) -> None:
    """Words of the table are replaced; the table doesn't come back."""
    table = np.array([7, 5, 9, 6], np.int64).view(np.uint8)
    arrays = [{"name": "t", "bytes": 32, "addresses": [[0, 1, 0], [16, 1, 4]]},
              {"name": "x", "bytes": 8, "addresses": []}]  # fmt: skip
    one = case("add", arrays=arrays, arguments=[{"array": 1, "offset": 4}])
    rows, left, _ = run([one], {"0/0": table, "0/1": np.zeros(8, np.uint8)})
    assert rows[0]["changed"] == ["x"] and left["0/1"].tolist() == [0, 0, 0, 0, 1, 0, 0, 0]


def test_relocation() -> None:
    import interpreter_run

    table = np.array([7, 5, 9, 6], np.int64).view(np.uint8)
    moved = interpreter_run.relocated(table, [[0, 1, 0], [16, 1, 4]], [1000, 1 << 40])
    assert moved.view(np.int64).tolist() == [1 << 40, 5, (1 << 40) + 4, 6] and table[0] == 7


def test_kernels_that_go_wrong_cost_only_themselves(run: Any) -> None:
    """Faults, crashes, endless loops and writes beside an array are said, and the other cases run."""
    names = ["add", "faults", "crashes", "hangs", "leaves", "add"]
    rows, left, _ = run([case(name) for name in names], {f"{i}/0": np.zeros(10, np.uint8) for i in range(6)}, "3")
    assert [row["name"] for row in rows] == names
    assert [row["error"] for row in rows] == [
        "", "cuLaunchKernel: illegal address (700)", "the process ended", "not done after 3 s",
        "the kernel wrote outside of `x`", "",
    ]  # fmt: skip
    assert sorted(left) == ["0/0", "5/0"]
