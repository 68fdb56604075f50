"""``--format sarif``: valid against the schema of the SARIF standard, and what it says of a diagnostic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import coverage_corpus
import jsonschema
import pytest

from transpiler import cli
from transpiler.codes import CODES
from transpiler.diagnostics import Severity
from transpiler.report.model import Check, DiagnosticRow, Entry, Kernel, Operator, Report, make_report
from transpiler.report.sarif import to_sarif

SCHEMA = json.loads((Path(__file__).parent / "sarif" / "sarif-schema-2.1.0.json").read_text())


def validated(text: str) -> dict[str, Any]:
    """The only run of a log that fits the schema."""
    log = json.loads(text)
    jsonschema.Draft4Validator.check_schema(SCHEMA)
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def row(code: str, severity: Severity = "error", file: str = "k.py", line: int = 3, column: int = 5) -> DiagnosticRow:
    return DiagnosticRow(code=code, severity=severity, message=f"{code} happened\nmore", help="do this", file=file,
                         line=line, column=column)  # fmt: skip


def report(*rows: DiagnosticRow, operator: DiagnosticRow | None = None) -> Report:
    check = Check(specialization="f32", target="sm_90", verdict="unmapped", diagnostics=list(rows))
    entry = Entry(name="k", condition="always", generics=[], checks=[check, check])
    one = Operator(name="k", source="k.py", kernels=[Kernel(name="k", line=1, entries=[entry])],
                   diagnostics=[operator] if operator else None)  # fmt: skip
    return make_report({"cutile-transpiler": "1.2.3"}, [one], seconds=0, reference_seconds=0)


@pytest.mark.parametrize("severity", ["error", "warning", "note"])
def test_every_severity_and_code_is_valid(severity: Severity) -> None:
    run = validated(to_sarif(report(*(row(code, severity) for code in CODES))))
    assert [result["ruleId"] for result in run["results"]] == list(CODES)
    assert {result["level"] for result in run["results"]} == {severity}
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert {rule["id"]: rule["shortDescription"]["text"] for rule in rules} == {c: r.title for c, r in CODES.items()}


def test_nothing_to_say_is_valid() -> None:
    run = validated(to_sarif(report()))
    assert run["results"] == []
    assert run["tool"]["driver"]["version"] == "1.2.3"


def test_places() -> None:
    """A place is given as far as it is known; a path is a URI, so what isn't allowed in one is encoded."""
    found = [row("E0101", file="", line=0, column=0), row("E0103", line=0, column=0), row("E0301", file="my k&é.py")]
    run = validated(to_sarif(report(*found, operator=row("E0102", file="a#b.py", column=0))))
    places = {result["ruleId"]: result.get("locations") for result in run["results"]}
    assert places["E0101"] is None
    assert "region" not in places["E0103"][0]["physicalLocation"]
    place = places["E0301"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 3, "startColumn": 5}
    assert urlsplit(place["artifactLocation"]["uri"]).path == "my%20k%26%C3%A9.py"
    broken = places["E0102"][0]["physicalLocation"]
    assert broken["region"] == {"startLine": 3, "startColumn": 1}
    assert unquote(urlsplit(broken["artifactLocation"]["uri"]).path) == "a#b.py"


def test_a_diagnostic_is_one_result_however_many_checks_have_it() -> None:
    run = validated(to_sarif(report(row("E0301"), row("E0301"), row("E0301", line=4))))
    assert len(run["results"]) == 2
    assert run["results"][0]["message"]["text"] == "E0301 happened\nmore\ndo this"


def test_of_a_real_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coverage_corpus.write_corpus(tmp_path)
    source, out = str(tmp_path / "left.py"), str(tmp_path / "out")
    arguments = [source, "--spec", str(tmp_path / "corpus.toml"), "-o", out, "--format", "sarif", "-j", "1"]
    assert cli.main(arguments) == 3
    run = validated(capsys.readouterr().out)
    lines = {(r["ruleId"], r["locations"][0]["physicalLocation"]["region"]["startLine"]) for r in run["results"]}
    assert lines == {("E0236", 13), ("E0220", 13), ("E0236", 21), ("E0220", 21), ("E0302", 15)}
    assert {r["level"] for r in run["results"] if r["ruleId"] == "E0220"} == {"note"}  # the reference refuses it too
