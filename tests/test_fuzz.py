"""Random kernels, a fixed few of them: every row of the rule table that can be drawn is proved in some kernel.

``make fuzz`` draws thousands.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from fuzz.__main__ import campaign, chunks, report
from fuzz.grammar import NOT_DRAWN, PRODUCERS, focuses, rows

from transpiler.rules import table

EXAMPLES = 2  # about each row and construct


def test_every_row_can_be_drawn() -> None:
    assert [row.key for row in rows() if row.key not in PRODUCERS] == []
    assert [key for key in (*PRODUCERS, *NOT_DRAWN) if key not in {row.key for row in table()}] == []


def test_drawn_kernels_are_proved_or_refused_by_the_reference(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    once = itertools.islice(chunks(0, EXAMPLES), len(focuses()))
    result = campaign(once, tmp_path, shrink=False)
    with capfd.disabled():
        print("\n" + "\n".join(report(result, 0).splitlines()[-2:]))
    found = [f"{signature}\n{finding.kernel!r}" for signature, finding in result.total.findings.items()]
    assert (found, result.crashes) == ([], [])
    assert result.missing() == []
    assert result.total.verdicts["proved"] > 0.8 * result.kernels
