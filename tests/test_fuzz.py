"""Random kernels, a fixed few of them: every row of the rule table that can be drawn is proved in some kernel.

``make fuzz`` draws thousands.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from fuzz.__main__ import campaign, chunks, report
from fuzz.chunk import Chunk, examples, minimize, run
from fuzz.grammar import NOT_DRAWN, PRODUCERS, focuses, rows
from fuzz.run import bench

from transpiler.rules import table

EXAMPLES = 2  # about each row and construct
EXECUTE = 16  # one of so many is executed


def test_every_row_can_be_drawn() -> None:
    assert [row.key for row in rows() if row.key not in PRODUCERS] == []
    assert [key for key in (*PRODUCERS, *NOT_DRAWN) if key not in {row.key for row in table()}] == []


def test_drawn_kernels_are_proved_or_refused_by_the_reference(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    once = itertools.islice(chunks(0, EXAMPLES, EXECUTE), len(focuses()))
    result = campaign(once, tmp_path, shrink=False)
    with capfd.disabled():
        print("\n" + "\n".join(report(result, 0).splitlines()[-2:]))
    found = [f"{signature}\n{finding.kernel!r}" for signature, finding in result.total.findings.items()]
    assert (found, result.crashes) == ([], [])
    assert result.missing() == []
    assert result.total.verdicts["proved"] > 0.8 * result.kernels


def test_a_wrong_rule_is_found_and_minimized(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a difference that is a sum, kernels about differences aren't proved."""
    rules = table()
    (wrong,), (sum_,) = rules.rows["operator.sub"], rules.rows["operator.add"]
    mistaken = replace(wrong, lower=sum_.lower)
    monkeypatch.setitem(rules.rows, "operator.sub", [mistaken])
    monkeypatch.setitem(rules.signatures, mistaken, rules.signatures[wrong])
    with bench() as one:
        done = run(one, Chunk("operator.sub", 0, 3))
        signature = next(s for s in done.findings if s.startswith("differs"))
        found = minimize(one, Chunk("operator.sub", 0, 3, signature))
    assert found is not None
    assert len(found.kernel.source) <= len(done.findings[signature].kernel.source)
    assert " - " in found.kernel.source
    case = found.kernel.case(found="a difference")
    assert case.startswith("=== python\nimport math") and "=== params\n" in case


def test_drawing_is_reproducible() -> None:
    """The same seed gives the same kernels, other seeds others."""

    def drawn(seed: int) -> list[str]:
        out: list[str] = []
        examples(Chunk("while_loop", seed, 8), lambda kernel: out.append(repr(kernel)))()
        return out

    assert drawn(1) == drawn(1) != drawn(2)
