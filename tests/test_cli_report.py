"""Reports: canonical order, totals, exit statuses, merging shards, carets."""

from __future__ import annotations

import random
import sys

import pytest

from transpiler.diagnostics import Diagnostic, Span, TranspileError
from transpiler.report.carets import render
from transpiler.report.merge import incomplete, merge
from transpiler.report.model import (
    Check,
    DiagnosticRow,
    Entry,
    Kernel,
    Operator,
    Report,
    ShardOf,
    Verdict,
    exit_status,
    make_report,
    natural,
    unusable,
)
from transpiler.report.terminal import console, print_entries, totals_line

TOOL = {"cutile": "0.5.0"}


def check(name: str, verdict: Verdict = "proved", **more: object) -> Check:
    return Check.model_validate({"specialization": name, "target": "sm_90", "verdict": verdict, **more})


def operator(name: str, *checks: Check, kernel: str = "k", source: str = "") -> Operator:
    entry = Entry(name=kernel, condition="always", generics=["E"], checks=list(checks))
    return Operator(name=name, source=source or f"{name}.py", kernels=[Kernel(name=kernel, line=3, entries=[entry])])


def report(*operators: Operator) -> Report:
    return make_report(TOOL, operators, seconds=2.0, reference_seconds=1.0)


def test_order_is_canonical() -> None:
    made = report(operator("b", check("f16_10"), check("f16_9")), operator("a", check("x")))
    assert [o.name for o in made.operators] == ["a", "b"]
    assert [c.specialization for c in made.operators[1].kernels[0].checks()] == ["f16_9", "f16_10"]
    assert natural("b_9") < natural("b_10")


def test_totals_count_checks() -> None:
    codes = {"sm_90": "identical", "sm_100": "refused"}
    made = report(operator("a", check("1", machine_code=codes), check("2", "rejected"), check("3", "unmapped")))
    totals = made.totals
    assert (totals.operators, totals.kernels, totals.entries, totals.checks) == (1, 1, 1, 3)
    assert (totals.proved, totals.rejected, totals.unmapped) == (1, 1, 1)
    assert (totals.machine_code_identical, totals.machine_code_refused) == (1, 1)


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        (["proved", "tested", "rejected"], 0),
        (["proved", "unmapped"], 3),
        (["unmapped", "differs"], 1),
        (["error", "unmapped"], 1),
        ([], 0),
    ],
)
def test_exit_status(verdicts: list[Verdict], status: int) -> None:
    assert exit_status(report(operator("a", *(check(str(i), v) for i, v in enumerate(verdicts))))) == status


def test_an_operator_that_could_not_be_read_is_a_failure() -> None:
    row = DiagnosticRow(code="E0102", severity="error", message="", help="", file="a.py", line=1, column=1)
    broken = Operator(name="a", source="a.py", diagnostics=[row])
    assert exit_status(report(broken, operator("b", check("1")))) == 1


def test_merged_shards_are_the_whole() -> None:
    whole = report(
        operator("a", *(check(f"f{i}") for i in range(12))), operator("b", check("x"), check("y", "unmapped"))
    )
    shards: list[list[Operator]] = [[], [], []]
    dice = random.Random(5)
    for one in whole.operators:
        parts: list[list[Check]] = [[], [], []]
        for item in one.kernels[0].checks():
            parts[dice.randrange(3)].append(item)
        for shard, part in zip(shards, parts, strict=True):
            shard.append(operator(one.name, *part))
    reports = [report(*shard) for shard in shards]
    for order in ((0, 1, 2), (2, 0, 1)):
        merged = merge([Report.model_validate_json(reports[i].to_json()) for i in order])
        assert merged.operators == whole.operators
        assert merged.totals == whole.totals
        assert (merged.seconds, merged.reference_seconds) == (6.0, 3.0)


def test_reports_of_whole_runs_are_no_shards() -> None:
    whole, other = report(operator("a", check("1"))), report(operator("b", check("1")))
    (note,) = incomplete(merge([whole, other]), [whole, other])
    assert note.code == "W0813" and "reports of whole runs" in note.message
    assert incomplete(merge([whole, whole]), [whole, whole]) == []


def test_a_kernel_of_which_all_is_rejected() -> None:
    """A shard can't know; the whole that shards are joined to does."""
    refused, partly = operator("a", check("1", "rejected")), operator("b", check("1", "rejected"), check("2"))
    (row,) = unusable(report(refused, partly))
    assert (row.code, row.severity, row.file, row.line) == ("W0220", "warning", "a.py", 3)
    assert row.message == "`k` can't be used: the reference compiler refuses every specialization (1)"
    shards = [
        make_report({}, [operator("b", one)], seconds=0, reference_seconds=0,
                    shard=ShardOf(shards=[index], count=2, batch="x", checks=2))
        for index, one in ((1, check("1", "rejected")), (2, check("2")))
    ]  # fmt: skip
    assert [unusable(each) for each in (*shards, merge(shards))] == [[], [], []]
    assert exit_status(report(refused)) == 0


def test_checks_without_rust_are_no_entry(capsys: pytest.CaptureFixture[str]) -> None:
    lost = Entry(name="", condition="no entry could be made", generics=[], checks=[check("1", "error")])
    made = report(Operator(name="a", source="a.py", kernels=[Kernel(name="k", line=3, entries=[lost])]))
    assert (made.totals.entries, made.totals.checks) == (0, 1)
    print_entries(console(sys.stdout), made)
    assert capsys.readouterr().out.splitlines()[1:] == ["  no Rust could be made:  1 error"]


def _with_cached(whole: Report, cached: int) -> Report:
    return whole.model_copy(update={"cached_checks": cached, "llm_tokens": 7})


def test_a_report_that_is_merged_twice_counts_once() -> None:
    one = _with_cached(report(operator("a", check("1"), check("2"))), 2)
    other = _with_cached(report(operator("a", check("3")), operator("b", check("1"))), 1)
    for given in ([one, other], [one, other, one], [one, one, other, other]):
        merged = merge([Report.model_validate_json(each.to_json()) for each in given])
        assert (merged.totals.checks, merged.cached_checks, merged.llm_tokens) == (4, 3, 14)
        assert (merged.seconds, merged.reference_seconds) == (4.0, 2.0)


def test_a_check_that_several_reports_have_is_unchanged_once() -> None:
    first = _with_cached(report(operator("a", check("1"), check("2"))), 2)
    again = _with_cached(report(operator("a", check("2"), check("3"))), 2).model_copy(update={"seconds": 9.0})
    merged = merge([first, again])
    assert (merged.totals.checks, merged.cached_checks, merged.seconds) == (3, 3, 11.0)


@pytest.mark.parametrize(
    "other",
    [
        operator("a", check("1", "differs")),
        operator("a", check("2"), source="elsewhere.py"),
        Operator(name="a", source="a.py", kernels=[Kernel(name="k", line=3, entries=[
            Entry(name="k", condition="N == 1", generics=["E"])])]),
    ],
)  # fmt: skip
def test_reports_that_contradict_each_other(other: Operator) -> None:
    with pytest.raises(TranspileError) as caught:
        merge([report(operator("a", check("1"))), report(other)])
    assert caught.value.diagnostic.code == "E0812"


def test_carets() -> None:
    source = ["", "def f(x):", "    return ct.wöird(x, 1)  # é"]
    found = Diagnostic("E0301", "no rule\nsecond line", "try\nthat", "error", Span("f.py", 3, 12, 3, 26))
    assert render(found, lambda _: source).plain == (
        "error[E0301]: no rule\n"
        " --> f.py:3:12\n"
        "  |\n"
        "3 |     return ct.wöird(x, 1)  # é\n"
        "  |            ^^^^^^^^^^^^^^\n"
        "  = second line\n"
        "  = help: try\n"
        "  =       that"
    )


def test_carets_without_a_source_or_beyond_it() -> None:
    found = Diagnostic("E0301", "no rule", "", "warning", Span("f.py", 9, 1))
    for lines in (None, ["x"]):
        assert render(found, lambda _, lines=lines: lines).plain == "warning[E0301]: no rule\n --> f.py:9:1"  # type: ignore[misc]
    assert render(Diagnostic("E0900", "oops")).plain == "error[E0900]: oops"
    assert "x[not markup]" in render(Diagnostic("E0900", "x[not markup]")).plain


@pytest.mark.parametrize(("count", "said"), [(0, "0 entries"), (1, "1 entry"), (21, "21 entries"), (51, "51 entries")])
def test_numbers_are_said_with_the_right_noun(count: int, said: str) -> None:
    report = make_report({}, [], seconds=0.0, reference_seconds=0.0)
    totals = report.totals.model_copy(update={"entries": count, "operators": count, "checks": count})
    line = totals_line(report.model_copy(update={"totals": totals}))
    assert said in line
    assert line.startswith(f"{count} operator{'' if count == 1 else 's'}; 0 kernels; ")
