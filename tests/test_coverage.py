"""The coverage report: what it answers, its JSON and its tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import coverage_corpus
import jsonschema
import pytest

from transpiler import cli
from transpiler.coverage.model import Coverage, json_schema

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus, and the report that a run in two worker processes wrote."""
    folder = tmp_path_factory.mktemp("coverage")
    coverage_corpus.write_corpus(folder)
    done = run(folder, "-j", "2", "--json", "out.json", "--html", "out.html")
    assert done.returncode == 3, done.stderr
    (folder / "out.txt").write_text(done.stdout)
    return folder


def run(folder: Path, *more: str, seed: str = "1") -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    command = [sys.executable, "-m", "transpiler.cli", "coverage", "corpus.toml", "--no-cache", *more]
    env = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def found(folder: Path) -> Coverage:
    return Coverage.model_validate_json((folder / "out.json").read_text())


def test_the_json_fits_its_schema(folder: Path) -> None:
    schema = json.loads((ROOT / "docs" / "coverage.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads((folder / "out.json").read_text()), schema)


def test_the_schema_is_fresh() -> None:
    assert (ROOT / "docs" / "coverage.schema.json").read_text() == json_schema(), "run: python tools/reference_pages.py"


def test_which_kernels_translate(found: Coverage) -> None:
    verdicts = {f"{o.name}.{k.name}": k.verdict for o in found.operators for k in o.kernels}
    assert verdicts == {
        "left.copy_kernel": "proved", "left.largest_kernel": "unmapped", "left.smallest_kernel": "unmapped",
        "scale.scale_kernel": "proved",
    }  # fmt: skip
    assert {o.name: o.verdict for o in found.operators} == {"left": "unmapped", "scale": "proved"}
    totals = found.totals
    assert (totals.operators, totals.kernels, totals.checks) == (2, 4, 5)
    assert totals.kernels_by_verdict == {"unmapped": 2, "proved": 2}
    assert totals.checks_by_verdict == {"unmapped": 2, "proved": 3}


def rows(found: Coverage) -> dict[str, Any]:
    return {row.key: row for row in found.rules} | {row.name: row for row in found.constructs}


def test_which_rules_fired_where(found: Coverage) -> None:
    table = rows(found)
    assert table["cuda.tile.load"].kernels == [
        "left.copy_kernel", "left.largest_kernel", "left.smallest_kernel", "scale.scale_kernel"
    ]  # fmt: skip
    assert table["cuda.tile.exp"].kernels == ["scale.scale_kernel"]
    assert table["cuda.tile.exp"].places == ["scale.py:7"]
    assert table["cuda.tile.exp"].uses == 2  # TWICE makes two programs of the kernel
    assert table["operator.add"].places == ["scale.py:17"]
    assert table["helper function"].places == ["scale.py:15"]
    assert table["default argument"].uses == 2
    assert table["if, when translating"].kernels == ["scale.scale_kernel"]
    (kernel,) = next(o for o in found.operators if o.name == "scale").kernels
    assert kernel.rules["cuda.tile.store"] == 2
    assert kernel.entries == 2


def test_which_rules_nothing_exercises(found: Coverage) -> None:
    table = rows(found)
    assert table["cuda.tile.mma"].uses == 0 and table["cuda.tile.mma"].status == "exact"
    exact = [row for row in found.rules if row.status == "exact"]
    assert found.totals.rules == len(exact)
    assert found.totals.rules_exercised == sum(row.uses > 0 for row in exact) == 6
    assert table["while"].uses == 0


def test_unsupported_rows_say_why_and_who_met_them(found: Coverage) -> None:
    row = rows(found)["cuda.tile.argmax"]
    assert row.status == "unsupported" and row.reason and row.kernels == ["left.largest_kernel"]
    construct = rows(found)["a `with` statement"]
    assert (construct.status, construct.code) == ("unsupported", "E0236")
    assert construct.kernels == ["left.largest_kernel", "left.smallest_kernel"]
    assert construct.places == ["left.py:13", "left.py:21"]


def test_what_to_do_next_comes_first(found: Coverage) -> None:
    first, second = found.unmapped
    assert (first.code, first.kernels, first.alone) == (
        "E0236", ["left.largest_kernel", "left.smallest_kernel"], 1
    )  # fmt: skip
    assert (second.code, second.kernels, second.alone) == ("E0302", ["left.largest_kernel"], 0)
    assert "argmax" in second.reason and second.places == ["left.py:15"]
    blocked = {k.name: k.blocked_by for o in found.operators for k in o.kernels}
    assert blocked == {"copy_kernel": [], "largest_kernel": [0, 1], "smallest_kernel": [0], "scale_kernel": []}


def test_which_forms_and_equivalences_were_used(found: Coverage) -> None:
    forms = {row.key: row for row in found.forms}
    assert len(forms) == len(found.forms)
    assert "cuda.tile.exp" in forms["exp [rounding is approx or full]"].rules
    used = {row.name: row for row in found.equivalences if row.uses}
    assert used["hint-key-resolved"].checks == 3
    assert used["hint-key-resolved"].kernels == ["left.copy_kernel", "scale.scale_kernel"]
    assert all(row.justification for row in found.equivalences)
    assert {"cuda-tile", "cutile", "cutile-transpiler"} <= set(found.tool)


def test_the_terminal_answers_the_same(folder: Path) -> None:
    text = (folder / "out.txt").read_text()
    assert "scale     scale_kernel           2       2      6  proved" in text
    assert "E0236  a `with` statement has no mapping" in text
    assert "2 operators, 4 kernels: 2 unmapped, 2 proved" in text
    assert "exercised: 6 of" in text
    assert "cuda.tile.mma" in text.partition("Rules that nothing here exercises")[2].partition("\n\n")[0]
    assert "hint-key-resolved" in text


def test_the_report_does_not_depend_on_the_run(folder: Path) -> None:
    """Other hashes, other workers: the same JSON and the same page, to the byte."""
    again = run(folder, "-j", "1", "--json", "again.json", "--html", "again.html", seed="77")
    assert again.returncode == 3, again.stderr
    for kind in ("json", "html"):
        assert (folder / f"again.{kind}").read_bytes() == (folder / f"out.{kind}").read_bytes()


def test_machine_code(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cubin.json"
    coverage_corpus.write_corpus(tmp_path)
    assert cli.main(["coverage", str(tmp_path / "scale.py"), "--cubin", "sm_90", "--json", str(out), "-j", "1"]) == 0
    made = Coverage.model_validate_json(out.read_text())
    assert made.machine_code["sm_90"] == {"identical": made.totals.checks}
    assert f"machine code sm_90: {made.totals.checks} identical" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coverage_corpus.write_corpus(tmp_path)
    (tmp_path / "broken.py").write_text("def f(:\n")
    arguments = [str(tmp_path / "broken.py"), str(tmp_path / "corpus.toml"), "-j", "1"]
    assert cli.main(["coverage", *arguments, "--json", "-"]) == 1
    made = Coverage.model_validate_json(capsys.readouterr().out)
    broken = next(o for o in made.operators if o.name == "broken")
    assert broken.verdict == "error" and broken.diagnostics[0].code == "E0102"
    assert any(row.code == "E0102" and row.kernels == ["broken"] for row in made.unmapped)


def test_unknown_sources_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["coverage", "no-such-corpus"]) == 2
    assert "E0270" in capsys.readouterr().err
