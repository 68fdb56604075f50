"""Mutation testing, a short version: some kinds of fault in two kernels, found by comparison or by execution.

``make mutation`` takes all kinds and all kernels of tilegym-24; test_faults.py takes all kinds and five kernels.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fault_kinds import KINDS
from mutation.__main__ import missed, report, run, summary, tasks
from mutation.bench import Result

SUBJECTS = ("_dropout_kernel", "_softmax_kernel_tma")
EVERY = 4


@pytest.fixture(scope="module")
def results() -> Sequence[Result]:
    options = Namespace(places=1, tries=3, execute=1)
    chosen = [t for t in tasks("tilegym-core", 1, options) if t.job.kernels[0].name in SUBJECTS]
    done, crashes = run([replace(t, kinds=range(0, len(KINDS), EVERY)) for t in chosen], 2)
    assert (len(done), crashes) == (len(SUBJECTS), [])
    return done


def test_every_mutant_is_found_or_equivalent(results: Sequence[Result], capfd: pytest.CaptureFixture[str]) -> None:
    text = report(results, 0)
    with capfd.disabled():
        print("\n" + "\n".join(line for line in text.splitlines() if line.startswith("found")))
    assert missed([m for r in results for m in r.mutants]) == []
    figures = summary(results)
    assert int(str(figures["mutants"])) > 15
    assert all(r.executable for r in results)


def test_execution_finds_faults_by_itself(results: Sequence[Result]) -> None:
    """It knows nothing of graphs; what it can't see are facts, hints, orders of accesses and bits below a tolerance."""
    figures = summary(results)
    assert int(str(figures["graph_differs_and_found_by_execution"])) > 3


def test_a_mutant_that_nobody_finds_is_reported(results: Sequence[Result]) -> None:
    found = next(m for r in results for m in r.mutants if m.found == "graph")
    lost = replace(found, found="nothing", executed="agrees")
    assert missed([found, lost]) == [lost]
    assert missed([replace(lost, equivalent="identical machine code"), replace(lost, executed="found")]) == []
    text = report([Result("a kernel", [found, lost])], 1)
    assert "found in all:               1 of 2" in text and f"MISSED: {lost.kernel}: {lost.kind}" in text
