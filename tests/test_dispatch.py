"""Which entry a launch takes: the right one or none, for overlapping arrays, bools and ints, signs of zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dispatch.draw import Drawn
from dispatch.run import Library, draw_calls, library, run
from ffi_build import FakeTensor, arguments

from transpiler.batch import Options, run_jobs
from transpiler.emit.abi import EntryAbi
from transpiler.emit.disjoint import call_text, shared_calls
from transpiler.ir.symbolic import Sym, lit, param
from transpiler.ir.tir import Condition
from transpiler.jobs import OperatorJob, corpus_jobs
from transpiler.launchable import settled
from transpiler.pipeline import translate
from transpiler.spec import Specialization

CASES = Path(__file__).parent / "kernels/dispatch"
COUNT = 160
EXAMPLES = ("avg_pool2d", "batched_outer", "prefix_sum", "welford")
TILEGYM = ("dropout", "softmax")


def _jobs() -> list[OperatorJob]:
    cases = [job for path in sorted(CASES.glob("*.toml")) for job in corpus_jobs(str(path))]
    examples = [job for job in corpus_jobs("examples") if job.name in EXAMPLES]
    return [*cases, *examples, *(job for job in corpus_jobs("tilegym-core") if job.name in TILEGYM)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dispatch")


@pytest.fixture(scope="module")
def made(folder: Path) -> Iterator[Library]:
    with library(folder, _jobs(), "dispatch_library") as built:
        yield built


def _specialization(operator: str, kernel: str, name: str) -> Specialization:
    (job,) = corpus_jobs(str(CASES / f"{operator}.toml"))
    kernels = {one.name: one.specializations for one in job.kernels}
    return next(one for one in kernels[kernel] if one.name == name)


def _given(one: Specialization, **changes: Any) -> tuple[Any, ...]:
    """The arguments of a specialization, but for some."""
    return tuple((dict(zip(one.params, arguments(one), strict=True)) | changes).values())


def _taken(made: Library, operator: str, kernel: str, like: str, **changes: Any) -> str:
    """The entry that a launch takes with the arguments of a specialization, but for some."""
    one = _specialization(operator, kernel, like)
    plan = made.plan(Drawn(operator, kernel, one, _given(one, **changes)))
    return plan if isinstance(plan, str) else str(plan["entry"])


def test_random_calls_take_what_the_reference_compiles_for_them(made: Library, folder: Path) -> None:
    jobs = _jobs()
    outcome = run(made, draw_calls(jobs, COUNT, seed=14), folder)
    assert outcome.wrong == []
    assert outcome.counts["proved"] > COUNT / 4
    assert len(outcome.reached) > len([kernel for job in jobs for kernel in job.kernels]) / 2


def test_overlapping_arrays_have_an_entry_of_their_own(made: Library) -> None:
    def out(*strides: int, shape: tuple[int, int] = (5, 16)) -> FakeTensor:
        return FakeTensor(shape, strides)

    def taken(array: FakeTensor) -> str:
        return _taken(made, "overlap", "accumulate", "plain", out=array)

    assert [taken(out(16, 1)), taken(out(32, 1))] == ["accumulate", "accumulate"]
    assert [taken(out(0, 1)), taken(out(8, 1))] == ["accumulate_1", "accumulate_1"]
    assert taken(out(0, 1, shape=(1, 16))) == "accumulate_1"  # of an axis of size 1, too


def test_a_bool_and_the_int_of_the_same_value_are_two_constants(made: Library) -> None:
    assert _taken(made, "invb", "invb", "t", C=True) == "invb"
    assert _taken(made, "invb", "invb", "t", C=1) == "invb_1"
    assert _taken(made, "invb", "invb", "t", C=False) == "NoEntryError"
    assert _taken(made, "invb", "invb", "t", C=5) == "invb_1"
    assert _taken(made, "boolc", "shiftb", "t", C=True) == _taken(made, "boolc", "shiftb", "t", C=1)


def test_zeros_are_told_apart_by_their_sign(made: Library) -> None:
    one = _specialization("consts", "addc", "z")
    plans = [made.plan(Drawn("consts", "addc", one, _given(one, C=value))) for value in (0.0, -0.0)]
    assert [isinstance(plan, dict) and plan["generics"][-1] for plan in plans] == ["0", str(-(2**31))]


def test_an_entry_that_no_check_speaks_for_is_not_in_the_table(made: Library) -> None:
    table = made.translations["invb"].files["ffi.rs"]
    assert '"intb_1"' in table
    assert '"intb"' not in table.replace('name: "intb",\n    arrays', "")
    assert _taken(made, "invb", "intb", "two", C=2) == "intb_1"
    assert _taken(made, "invb", "intb", "two", C=True) == "NoEntryError"


def _of_fp8(one: Specialization) -> Specialization:
    """With an array of which constants are written into the text."""
    out = one.params["out"].model_copy(update={"dtype": "float8_e5m2"})
    return one.model_copy(update={"params": {**one.params, "out": out}})


def test_of_an_entry_only_the_ways_that_were_proved_are_taken() -> None:
    (job,) = corpus_jobs(str(CASES / "consts.toml"))
    fill = next(kernel for kernel in job.kernels if kernel.name == "fillc")
    ways = tuple(_of_fp8(one) for one in fill.specializations if one.name in ("f0", "i0"))
    job = replace(job, kernels=(replace(fill, specializations=ways),))
    translation = translate(job)
    results = run_jobs([job], Options(workers=1)).checks
    verdicts = {key: result.verdict for key, result in results.items()}

    def when(translated: Any) -> list[str]:
        return [entry.condition for entry in translated.plan.kernels[0].entries]

    whole = when(settled(translation, verdicts))
    both = "out.dtype == 'float8_e5m2' and (C == 0.0 or float(C) == 0.0)"
    assert both in whole
    entry = whole.index(both)
    checks = translation.plan.kernels[0].entries[entry].checks
    bad = next(key for key in verdicts
               if key.entry == entry and checks[key.check].specialization.name == "i0")  # fmt: skip
    left = settled(translation, {**verdicts, bad: "differs"})
    assert when(left)[entry] == "out.dtype == 'float8_e5m2' and C == 0.0"
    assert "py::float" not in left.files["ffi.rs"]


def test_an_entry_for_sizes_of_64_bits_is_not_in_the_table() -> None:
    (job,) = corpus_jobs(str(CASES / "sizes.toml"))
    made = run_jobs([job], Options(workers=1)).translations["sizes"]
    entries = {entry.condition: entry.checks for kernel in made.plan.kernels for entry in kernel.entries}
    assert [check.specialization.name for check in entries["always"]] == ["i64"]
    assert '"always"' not in made.files["ffi.rs"]
    assert "x.shape[1] == 2" in made.files["ffi.rs"]


def test_entries_that_one_call_could_take_are_found() -> None:
    (job,) = corpus_jobs(str(CASES / "overlap.toml"))
    tables = translate(job).tables
    assert tables is not None
    (abi,) = tables.abis
    assert list(shared_calls(abi)) == []

    def without(entry: EntryAbi) -> EntryAbi:
        return replace(entry, conditions=tuple(c for c in entry.conditions if c.sym.op != "overlaps"))

    blind = replace(abi, entries=tuple(map(without, abi.entries)))
    ((one, other, _),) = shared_calls(blind)
    assert [one.name, other.name] == ["accumulate", "accumulate_1"]
    clash = settled(replace(translate(job), tables=replace(tables, abis=(blind,))), {}).plan.kernels[0].diagnostics
    assert [d.code for d in clash] == ["E0621"]


def test_conditions_are_compared_by_what_fulfils_them() -> None:
    def entry(name: str, *conditions: Condition) -> EntryAbi:
        return EntryAbi(name, conditions, (), ())

    (job,) = corpus_jobs(str(CASES / "overlap.toml"))
    tables = translate(job).tables
    assert tables is not None
    n = param("N")
    small, large = Condition(Sym("lt", (n, lit(8))), True), Condition(Sym("gt", (n, lit(16))), True)
    pinned, truth = Condition(n, 1), Condition(Sym("is_bool", (n,)), True)

    def clashes(*conditions: Condition) -> list[str]:
        entries = tuple(entry(f"e{i}", c) for i, c in enumerate(conditions))
        return [call_text(call) for _, _, call in shared_calls(replace(tables.abis[0], entries=entries))]

    assert clashes(small, large) == []
    assert len(clashes(small, pinned)) == 1
    assert clashes(pinned, truth) == ["N=True"]
    assert clashes(Condition(n, 0.0), Condition(n, -0.0)) == []
