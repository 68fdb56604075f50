"""The case files against the reference: what every rule makes is proved, and what is refused is refused there too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import case_format as cf
import pytest

from transpiler.frontend import load_program
from transpiler.jobs import KernelJob, OperatorJob
from transpiler.pipeline import translate
from transpiler.translation import check_keys
from transpiler.verify import Judge, rust_text, tasks_of


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as one:
        yield one


@pytest.mark.parametrize("path", cf.all_cases(), ids=lambda p: str(p.relative_to(cf.CASES)))
def test_verdict(path: Path, judge: Judge, tmp_path: Path) -> None:
    case = cf.read(path)
    source = cf.place(case, tmp_path)
    name = load_program(source).kernels[0]
    made = translate(OperatorJob("case", source, "case.py", (KernelJob(name, (case.specialization,)),)))
    ((_, task, decided),) = tasks_of(made.plan, check_keys(made.plan))
    result = decided or judge.check(rust_text(made), made.closures[name], task)
    expected = "rejected" if "error" in case.sections else "unmapped" if "holes" in case.sections else "proved"
    assert (result.verdict, [d.message for d in result.diagnostics if expected == "proved"]) == (expected, [])
