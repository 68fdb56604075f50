"""Golden HIR: tests/cases/frontend/*.case hold a Python module and, below the rule, what it lowers to."""

from __future__ import annotations

from pathlib import Path

import pytest

from transpiler.frontend import load_program
from transpiler.ir.hir_print import print_program

CASES = sorted((Path(__file__).parent / "cases" / "frontend").glob("*.case"))
RULE = "\n-------- hir\n"


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_case(case: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    source, _, expected = case.read_text(encoding="utf-8").partition(RULE)
    module = tmp_path / f"{case.stem}.py"
    module.write_text(source, encoding="utf-8")
    actual = print_program(load_program(module), comments=True)
    if request.config.getoption("--update", default=False):
        case.write_text(source.rstrip("\n") + "\n" + RULE + actual, encoding="utf-8")
    else:
        assert actual == expected
