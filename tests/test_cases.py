"""Case files: what each rule lowers to, and that every rule has a case."""

from __future__ import annotations

import contextlib
from pathlib import Path

import case_format as cf
import pytest

from transpiler.diagnostics import TranspileError
from transpiler.ir.trace import RuleTrace, joined
from transpiler.rules import table
from transpiler.rules.constructs import CONSTRUCTS


@pytest.mark.parametrize("path", cf.all_cases(), ids=lambda p: str(p.relative_to(cf.CASES)))
def test_case(path: Path, request: pytest.FixtureRequest) -> None:
    case = cf.read(path)
    got = cf.result(case)
    if request.config.getoption("--update"):
        case.sections = {k: v for k, v in case.sections.items() if cf.given(k)} | got
        cf.write(case)
        return
    expected = {k: v.strip() for k, v in case.sections.items() if not cf.given(k)}
    assert {k: v.strip() for k, v in got.items() if v.strip()} == expected


@pytest.fixture(scope="module")
def trace() -> RuleTrace:
    """What all cases together exercise."""
    traces = []
    for path in cf.all_cases():
        with contextlib.suppress(TranspileError):
            traces.append(cf.lower(cf.read(path)).trace)
    return joined(traces)


def test_every_rule_has_a_case(trace: RuleTrace) -> None:
    """A row that no case exercises is a row that nobody checked."""
    fired = trace.names("rule")
    assert [r.key for r in table() if r.status == "exact" and r.key not in fired] == []


def test_every_construct_has_a_case(trace: RuleTrace) -> None:
    assert sorted(trace.names("construct")) == sorted(CONSTRUCTS)
