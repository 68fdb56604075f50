"""The scripts of benchmarks/gpu that need no GPU for what they decide: which tests there are, and how they compare."""

from __future__ import annotations

import importlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[1] / "benchmarks/gpu"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("tilegym_tests")


def _row(file: str, test: str, backend: str, outcome: str, launches: int = 1, reference: int = 1) -> dict[str, Any]:
    own = backend == "cutile-rs"
    return {"test": f"tests/suites/{file}::{test}[{backend}]", "backend": backend, "outcome": outcome,
            "launches": launches * own, "reference_launches": reference * (not own)}  # fmt: skip


def test_suites_are_compared_by_file(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two suites have files of one name; what passes without a launch of ours has failed, unless there is none."""
    rows = [
        _row("liger/test_x.py", "a", "cutile", "passed"), _row("liger/test_x.py", "a", "cutile-rs", "passed"),
        _row("liger/test_x.py", "b", "cutile", "passed"), _row("liger/test_x.py", "b", "cutile-rs", "passed", 0),
        _row("unsloth/test_x.py", "a", "cutile", "passed", 0, 0),
        _row("unsloth/test_x.py", "a", "cutile-rs", "passed", 0, 0),
    ]  # fmt: skip
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for suite in ("liger", "unsloth"):
        (tmp_path / "tests/suites" / suite).mkdir(parents=True)
        (tmp_path / "tests/suites" / suite / "test_x.py").write_text("")
    monkeypatch.setattr(script, "HERE", tmp_path)
    monkeypatch.setattr(script.machine, "header", dict)
    monkeypatch.setattr("sys.argv", ["tilegym_tests.py", "--suites", "--out", str(tmp_path), "--from-log", str(log)])
    assert script.main() == 1
    first, second = json.loads((tmp_path / "suites_tests.json").read_text())["files"]
    assert (first["file"], second["file"]) == ("tests/suites/liger/test_x.py", "tests/suites/unsloth/test_x.py")
    assert first["only_cutile_passes"] == ["tests/suites/liger/test_x.py::b[cutile]"]
    assert (first["cutile"]["passed"], first["cutile_rs"]["passed"], second["cutile_rs"]["passed"]) == (2, 1, 1)
    assert second["only_cutile_passes"] == []


def test_a_file_without_tests_is_told(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    rows = [_row("liger/test_x.py", "a", name, "passed") for name in ("cutile", "cutile-rs")]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "tests/suites/liger").mkdir(parents=True)
    for name in ("test_x.py", "test_y.py"):
        (tmp_path / "tests/suites/liger" / name).write_text("")
    monkeypatch.setattr(script, "HERE", tmp_path)
    monkeypatch.setattr(script.machine, "header", dict)
    monkeypatch.setattr("sys.argv", ["tilegym_tests.py", "--suites", "--out", str(tmp_path), "--from-log", str(log)])
    assert script.main() == 1
    assert "no test ran of: tests/suites/liger/test_y.py" in capsys.readouterr().out


def test_tests_of_operators_and_suites_are_packed_with_the_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    pack: Any = importlib.import_module("pack")
    checkout = tmp_path / "checkout"
    texts = {"ops/test_a.py": '_backends = ["cutile"]\n', "common.py": 'name = "cutile"\n',
             "suites/liger/test_b.py": 'import pytest\n\n\n@pytest.mark.parametrize("framework", ["cutile"])\n'
             "def test_op(framework):\n    pass\n", "suites/liger/test_c.py": "x = 1\n"}  # fmt: skip
    for name, text in texts.items():
        (checkout / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / "tests" / name).write_text(text)
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(checkout), "-c", "user.name=x", "-c", "user.email=x@x", *command], check=True)
    (tmp_path / "out").mkdir()
    pack.pack_tests(checkout, tmp_path / "out/tests")
    packed = {name: (tmp_path / "out/tests" / name).read_text() for name in texts}
    assert "cutile-rs" in packed["ops/test_a.py"] and '["cutile", "cutile-rs"]' in packed["suites/liger/test_b.py"]
    assert packed["common.py"] == texts["common.py"]
    assert capsys.readouterr().out == "tests that no backend was added to: suites/liger/test_c.py\n"
