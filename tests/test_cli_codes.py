"""The table of codes: every code in the sources has a row, every row is used, the page is fresh."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from transpiler import cli, explain
from transpiler.codes import CODES

ROOT = Path(__file__).resolve().parents[1]
_CODE = re.compile(r"\"([EW]\d{4})\"")


def used_codes() -> set[str]:
    """Every code that stands as a string in the package, the table itself left out."""
    texts = [p.read_text() for p in (ROOT / "transpiler").rglob("*.py") if p.name not in ("codes.py", "diagnostics.py")]
    return {code for text in texts for code in _CODE.findall(text)}


def test_every_code_has_a_row_and_every_row_is_used() -> None:
    assert sorted(used_codes() - set(CODES)) == []
    assert sorted(set(CODES) - used_codes()) == []


def test_rows_are_whole_sentences() -> None:
    for code, row in CODES.items():
        assert row.title and not row.title.endswith("."), code
        assert row.meaning.endswith("."), code
        assert row.remedy.endswith("."), code


def test_the_page_is_fresh() -> None:
    page = (ROOT / "docs" / "diagnostics.md").read_text()
    assert page == explain.reference_page(), "run: python -m transpiler.explain > docs/diagnostics.md"


@pytest.mark.parametrize("code", ["E0301", "e0301", "W0270"])
def test_explain(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", code]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{code.upper()}: {CODES[code.upper()].title}")
    assert CODES[code.upper()].remedy in out
