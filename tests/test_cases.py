"""Case files: what each rule lowers to, and that every rule has a case."""

from __future__ import annotations

from pathlib import Path

import case_format as cf
import pytest

from transpiler.diagnostics import TranspileError
from transpiler.rules import table


@pytest.mark.parametrize("path", cf.all_cases(), ids=lambda p: str(p.relative_to(cf.CASES)))
def test_case(path: Path, request: pytest.FixtureRequest) -> None:
    case = cf.read(path)
    got = cf.result(case)
    if request.config.getoption("--update"):
        case.sections = {k: v for k, v in case.sections.items() if k in ("python", "params")} | got
        cf.write(case)
        return
    expected = {k: v.strip() for k, v in case.sections.items() if k not in ("python", "params")}
    assert {k: v.strip() for k, v in got.items() if v.strip()} == expected


def test_every_rule_has_a_case() -> None:
    """A row that no case exercises is a row that nobody checked."""
    fired: set[str] = set()
    for path in cf.all_cases():
        try:
            fired.update(cf.lower(cf.read(path)).rules_used)
        except TranspileError:
            continue
    assert [r.key for r in table() if r.status == "exact" and r.key not in fired] == []
