"""The table of codes: every code in the sources has a row, every row is used, the page is fresh."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from transpiler import cli, explain
from transpiler.codes import CODES
from transpiler.frontend.constructs import CONSTRUCTS

ROOT = Path(__file__).resolve().parents[1]
_CODE = re.compile(r"\"([EW]\d{4})\"")


# Codes that several modules raise, because the same thing shows in several places. A code has one meaning: before
# a module is added here, read the code's row in transpiler/codes.py; another meaning is another code.
SHARED = {
    "E0101": {"frontend/parse.py", "reference/source.py"},
    "E0102": {"frontend/parse.py", "reference/source.py"},
    "E0201": {"jobs.py", "specialize/kernel.py"},
    "E0203": {"frontend/resolve.py", "reference/closure.py", "reference/load.py", "specialize/evaluate.py"},
    "E0204": {"frontend/resolve.py", "reference/closure.py", "reference/load.py"},
    "E0212": {"jobs.py", "reference/export.py", "reference/exporting.py", "specialize/kernel.py"},
    "E0213": {"reference/export.py", "reference/exporting.py", "reference/worker.py"},
    "E0214": {"reference/closure.py", "reference/load.py"},
    "E0231": {"frontend/resolve.py", "specialize/kernel.py"},
    "E0235": {"frontend/expressions.py", "frontend/lower.py"},
    "E0240": {"frontend/expressions.py", "frontend/lower.py"},
    "E0259": {"frontend/expressions.py", "frontend/lower.py"},
    "E0270": {"corpora.py", "jobs.py"},
    "E0301": {"rules/arith.py", "rules/cast.py", "rules/debug.py", "rules/index.py", "rules/inline.py",
              "specialize/evaluate.py"},
    "E0302": {"rules/debug.py", "rules/mma.py", "rules/reduce.py", "rules/shape.py", "rules/views.py",
              "specialize/evaluate.py"},
    "E0304": {"agents/unfillable.py", "specialize/kernel.py"},
    "E0311": {"specialize/loops.py", "specialize/unroll.py"},
    "E0401": {"passes/refusals.py", "specialize/builder.py", "verify.py"},
    "E0603": {"agents/unfillable.py", "emit/control.py"},
    "E0605": {"agents/unfillable.py", "emit/control.py"},
    "E0620": {"emit/ffi.py", "emit/rust_values.py"},
    "E0650": {"runtime/errors.py", "toolkit.py"},
    "E0652": {"cubin.py", "reference/refusal.py", "toolkit.py"},
    "E0660": {"cubin.py", "reference/refusal.py", "verify.py"},
    "E0681": {"tileir/forms.py", "tileir/parse.py"},
    "E0683": {"tileir/forms.py", "tileir/parse.py"},
    "E0711": {"commands.py", "verify.py"},
    "E0801": {"cli.py", "explain.py"},
    "E0806": {"shards.py", "store.py"},
    "E0901": {"agents/bench.py", "batch.py"},
    "E0842": {"changeset/checkout.py", "changeset/command.py"},
    "E0848": {"corpora.py", "jobs.py", "sources.py"},
    "E0823": {"changeset/checkout.py", "cli.py", "record/command.py", "report/output.py", "store.py"},
    "E0902": {"frontend/depth.py", "internal.py"},
    "W0275": {"fitting.py", "report/output.py"},
    "W0276": {"fitting.py", "report/output.py"},
    "W0277": {"fitting.py", "report/output.py"},
    "W0270": {"frontend/callsites.py", "frontend/defaults.py"},
    "W0272": {"frontend/callsites.py", "frontend/defaults.py"},
}  # fmt: skip


def raising_modules() -> dict[str, set[str]]:
    """Every code that stands as a string in the package (the tables themselves left out), and where."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "transpiler").rglob("*.py")):
        if path.name not in ("codes.py", "diagnostics.py", "constructs.py"):
            for code in _CODE.findall(path.read_text()):
                found.setdefault(code, set()).add(path.relative_to(ROOT / "transpiler").as_posix())
    return found


def used_codes() -> set[str]:
    """Every code that is raised, or stands in the table of constructs."""
    return set(raising_modules()) | set(CONSTRUCTS)


def test_a_code_has_one_meaning() -> None:
    """A code that a second module raises is looked at: does it mean there what its row says?"""
    shared = {code: modules for code, modules in raising_modules().items() if len(modules) > 1}
    assert {code: modules - SHARED.get(code, set()) for code, modules in shared.items()
            if modules - SHARED.get(code, set())} == {}  # fmt: skip


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
