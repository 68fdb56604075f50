"""``transpile verify DIR --execute``, end to end: proved, tested, counterexample, alarm, hazards, nothing executed."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from transpiler import cli

KERNELS = """\
import cuda.tile as ct


@ct.kernel
def vadd(a, b, c, TILE: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, index=(i,), shape=(TILE,))
    y = ct.load(b, index=(i,), shape=(TILE,))
    ct.store(c, index=(i,), tile=x + y)


@ct.kernel
def last_wins(a, c, TILE: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, index=(i,), shape=(TILE,))
    ct.store(c, index=(0,), tile=x)


@ct.kernel
def never(a, c, n: int):
    x = ct.load(a, index=(n // 0 * 0,), shape=(8,))
    ct.store(c, index=(0,), tile=x)
"""
SPEC = """\
name = "mine"
[[operators]]
name = "kernels"
path = "kernels.py"
[[operators.kernels]]
name = "{kernel}"
[[operators.kernels.specializations]]
name = "f16"
{params}
"""
ARRAY = 'params.{} = {{dtype = "float16", ndim = 1}}\n'
Written = tuple[Path, Path]


def write(folder: Path, kernel: str, arrays: str, rest: str) -> Written:
    """Translate one kernel; returns DIR and its kernel.rs."""
    (folder / "kernels.py").write_text(KERNELS)
    params = "".join(ARRAY.format(name) for name in arrays) + rest
    (folder / "spec.toml").write_text(SPEC.format(kernel=kernel, params=params))
    assert cli.main(["kernels.py", "--kernel", kernel, "--spec", "spec.toml", "-o", "out", "--no-verify"]) == 0
    return folder / "out", folder / "out" / "kernels" / "kernel.rs"


@pytest.fixture
def vadd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    monkeypatch.chdir(tmp_path)
    return write(tmp_path, "vadd", "abc", "params.TILE = 64\n")


def verify(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, object], str, str]:
    """Status, the check's row, what was printed and what was said."""
    capsys.readouterr()
    status = cli.main(["verify", folder.as_posix(), "-j", "1", "--json", "result.json", *more])
    out, err = capsys.readouterr()
    report = json.loads(Path("result.json").read_text())
    return status, report["operators"][0]["kernels"][0]["entries"][0]["checks"][0], out, err


def codes(check: dict[str, object]) -> list[tuple[str, str]]:
    """Code and severity of a check's diagnostics."""
    rows = check["diagnostics"]
    assert isinstance(rows, list)
    return [(row["code"], row["severity"]) for row in rows]


def test_a_proved_check_is_executed_too(vadd: Written, capsys: pytest.CaptureFixture[str]) -> None:
    status, check, out, _ = verify(vadd[0], capsys, "--execute")
    assert (status, check["verdict"], codes(check)) == (0, "proved", [])
    executed = check["executed"]
    assert isinstance(executed, dict) and {k: executed[k] for k in ("inputs", "valid", "exact", "reason")} == {
        "inputs": 6, "valid": 5, "exact": 5, "reason": ""}  # fmt: skip
    assert "5 inputs" in out and "1 check executed on 5 inputs" in out
    status, check, out, _ = verify(vadd[0], capsys)
    assert "executed" not in check and "executed" not in out


def test_what_only_executing_shows_equal_is_tested(vadd: Written, capsys: pytest.CaptureFixture[str]) -> None:
    """The graphs differ (nobody promises that sums commute), the results don't."""
    folder, text = vadd
    text.write_text(text.read_text().replace("x + y", "y + x"))
    status, check, _, _ = verify(folder, capsys)
    assert (status, check["verdict"]) == (1, "differs")
    status, check, out, err = verify(folder, capsys, "--execute")
    assert (status, check["verdict"]) == (0, "tested")
    assert set(codes(check)) == {("E0701", "note")} and "1 tested" in out
    assert "executed on 5 inputs: both sides agree, with equal bits" in err


def test_a_counterexample_is_printed(vadd: Written, capsys: pytest.CaptureFixture[str]) -> None:
    """Inputs as small as they get, both values, both lines; the verdict stays."""
    folder, text = vadd
    text.write_text(text.read_text().replace("x + y", "x - y"))
    status, check, _, err = verify(folder, capsys, "--execute")
    assert (status, check["verdict"]) == (1, "differs")
    assert codes(check) == [("E0701", "error"), ("E0708", "error")]
    assert "inputs:    a 1, b 1, c 1, grid 1x1x1, plain values" in err
    rows = check["diagnostics"]
    assert isinstance(rows, list)
    line = Path("kernels.py").read_text().splitlines()[8]
    assert {(row["line"], row["column"]) for row in rows} <= {(9, line.index(at) + 1) for at in ("ct.store", "x + y")}
    assert "element:   c[0]" in err and "kernels.py:9" in err and "kernels/kernel.rs:" in err


def test_executing_against_a_proof_is_an_alarm(
    vadd: Written, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that finds everything equal is contradicted."""
    folder, text = vadd
    text.write_text(text.read_text().replace("x + y", "x - y"))
    equal = SimpleNamespace(equal=True, equivalences={})
    checked = SimpleNamespace(comparison=equal, reference=True, ours=True)
    judge = importlib.import_module("transpiler.tileir.selfcheck")
    monkeypatch.setattr(judge, "checked_comparison", lambda *_, **__: checked)
    status, check, _, err = verify(folder, capsys, "--execute")
    assert (status, check["verdict"], codes(check)) == (1, "error", [("E0709", "error")])
    assert "the judge or the interpreter is wrong" in err


def test_a_race_in_the_kernel_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every tile block writes the first tile: said once for both sides, at the Python line; the proof stands."""
    monkeypatch.chdir(tmp_path)
    folder, _ = write(tmp_path, "last_wins", "ac", "params.TILE = 64\n")
    status, check, _, err = verify(folder, capsys, "--execute")
    assert (status, check["verdict"], codes(check)) == (0, "proved", [("W0723", "warning")])
    assert "both sides, tile block (1, 0, 0): `store_view_tko` writes element 0 of `c`" in err
    assert "kernels.py:16" in err


def test_a_kernel_without_valid_inputs_is_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Always dividing by zero: said, and not counted as agreement."""
    monkeypatch.chdir(tmp_path)
    folder, _ = write(tmp_path, "never", "ac", 'params.n = "int32"\n')
    status, check, out, err = verify(folder, capsys, "--execute")
    assert (status, check["verdict"], codes(check)) == (0, "proved", [("W0720", "note")])
    assert "divides by zero" in err and "1 check not" in out
