"""Real Holes through the whole pipeline: filled, proved, promoted; the promoted rule gives what the original gives."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import agents_bench as ab
import pytest

from transpiler import toolkit
from transpiler.agents import tokens
from transpiler.agents.analyst import MAX_TOKENS
from transpiler.agents.bench import Bench
from transpiler.agents.filler import Filler, Tools
from transpiler.agents.promote import promote
from transpiler.agents.prompt import first_prompt
from transpiler.agents.stages import Budget, Run
from transpiler.agents.transcript import Transcript
from transpiler.diagnostics import TranspileError
from transpiler.emit.extras import render_crate_files
from transpiler.overrides import ResultType, load_override, load_overrides, overrides_folder
from transpiler.pipeline import translate
from transpiler.rules import Rule, table
from transpiler.rules.inline import rules_of
from transpiler.rules.registry import Table as RuleTable
from transpiler.select import TABLE
from transpiler.select.forms import Form
from transpiler.select.forms import Table as FormTable
from transpiler.selection import Selection
from transpiler.spec import Specialization
from transpiler.store import OutputFolder
from transpiler.translation import Translation


@dataclass(frozen=True)
class Hole:
    """A kernel of tests/kernels/holes.py: the row that is off, the construct's name, a wrong and the right answer."""

    row: str
    name: str
    wrong: str
    right: str
    results: tuple[ResultType, ...]
    spec: Specialization


def _result(dtype: str, shape: str | tuple[int | str, ...] = "$0") -> tuple[ResultType, ...]:
    return (ResultType(dtype=dtype, shape=shape),)


SUM = """\
let sum: Tile<$element0, { [$dim0_0] }> = reduce_sum($0, 1);
reshape(sum, shape![$dim0_0, 1])"""
MATRIX = ab.array("float16", 2)
INTS = ab.array("int32")
PLAIN = ab.specialization()
HOLES: dict[str, Hole] = {
    "call_exp2": Hole("cuda.tile.exp2", "cuda.tile.exp2", "exp($0)", "exp2($0, ftz::Disabled)", ab.SAME, PLAIN),
    "call_sin": Hole("cuda.tile.sin", "cuda.tile.sin", "cos($0)", "sin($0)", ab.SAME, PLAIN),
    "call_isnan": Hole(
        "cuda.tile.isnan", "cuda.tile.isnan", "ne_tile($0, $0)",
        "cmpf($0, $0, predicate::NotEqual, cmp_ordering::Unordered)", _result("bool_"), ab.specialization(y=INTS),
    ),
    "call_where": Hole("cuda.tile.where", "cuda.tile.where", "select($0, $2, $1)", "select($0, $1, $2)", _result("$1"),
                       PLAIN),
    "call_sum": Hole("cuda.tile.sum", "cuda.tile.sum", SUM.replace("reduce_sum", "reduce_max"), SUM,
                     _result("$0", ("$0.0", 1)), ab.specialization(x=ab.array("float32", 2), y=ab.array("float32", 2),
                                                                   M=8, N=32)),
    "call_bitwise_not": Hole("cuda.tile.bitwise_not", "cuda.tile.bitwise_not", "$0 ^ splat_i32(1, $shape)",
                             "$0 ^ splat_i32(-1, $shape)", ab.SAME, ab.specialization(x=INTS, y=INTS)),
    "operation_minf": Hole("minf", "minf", "maxf($0, $1, nan::Disabled, ftz::Disabled)",
                           "minf($0, $1, nan::Disabled, ftz::Disabled)", (), PLAIN),
    "operation_fma": Hole("fma", "fma", "fma($0, $0, $2, rounding::NearestEven, ftz::Disabled)",
                          "fma($0, $1, $2, rounding::NearestEven, ftz::Disabled)", (), PLAIN),
    "operation_mma": Hole("mma [source is float or restricted_float or generic, fast is False, rank is 2]", "mma",
                          "mma($1, $0, $2)", "mma($0, $1, $2)", (), ab.specialization(x=MATRIX, y=MATRIX, N=16)),
    "operation_scan": Hole("scan", "scan", "$0", "scan_sum($0, 0, reverse::Forward, $element::ZERO)", (),
                           ab.specialization(x=ab.FLOATS, y=ab.FLOATS)),
    "operation_rsqrt": Hole("rsqrt", "rsqrt", "sqrt($0, rounding::NearestEven, ftz::Disabled)",
                            "rsqrt($0, ftz::Disabled)", (), PLAIN),
    "operation_bitcast": Hole("bitcast", "bitcast", "ftoi($0, rounding::NearestIntToZero)", "bitcast($0)", (),
                              ab.specialization(y=INTS)),
    "operation_atomic": Hole(
        "atomic_rmw", "atomic_rmw",
        "unsafe { atomic_rmw_tko($0, $1, atomic::Max, ordering::AcqRel, scope::Device, None, Some($2)) }",
        "unsafe { atomic_rmw_tko($0, $1, atomic::AddF, ordering::AcqRel, scope::Device, None, Some($2)) }", (), PLAIN,
    ),
}  # fmt: skip


def _key(row: str) -> str:
    """The key of the row that a Hole names: itself, or the only one of its opcode that starts so."""
    known: list[str] = [r.key for r in table()] + [f.key for rows in TABLE.rows.values() for f in rows]
    found = [k for k in known if k == row] or [k for k in known if k.startswith(f"{row} [")]
    assert found, row
    return found[0] if len(found) == 1 else next(k for k in found if "add" in k or "rank is 2" in k)


@dataclass(frozen=True)
class Filled:
    """The operator of all Holes, filled by a client whose first answer to each is wrong."""

    out: Path
    runs: dict[str, Run]
    client: ab.ScriptedClient
    original: Translation
    translation: Translation
    without: tuple[str, ...]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    without = tuple(_key(hole.row) for hole in HOLES.values())
    kernels = {name: (hole.spec,) for name, hole in HOLES.items()}
    job = ab.job(ab.KERNELS, kernels, *without)  # type: ignore[arg-type]
    out = ab.folder(tmp_path_factory.mktemp("holes") / "out", job)
    plays = {
        hole.name.replace(".", "__"): [ab.answered(text, hole.results) for text in (hole.wrong, hole.right)]
        for hole in HOLES.values()
    }
    client = ab.ScriptedClient(**plays)  # type: ignore[arg-type]
    with Bench() as bench:
        transcript = Transcript(out / "_agents" / "transcript.jsonl")
        filler = Filler(job, Tools(out, bench, client, Budget(run=10**6), transcript))
        runs = filler.fill()
    OutputFolder(out).write([filler.translation()], toolkit.versions(), render_crate_files)
    original = translate(replace(job, selection=Selection()))
    yield Filled(out, {r.sites[0].kernel: r for r in runs}, client, original, filler.translation(), without)


@pytest.mark.parametrize("kernel", HOLES)
def test_a_hole_is_filled_and_proved(filled: Filled, kernel: str) -> None:
    run = filled.runs[kernel]
    assert run.course.step == "accepted", [(v.stage, v.outcome, v.detail) for v in run.course.verdicts]
    outcomes = [f"{v.stage}: {v.outcome}" for v in run.course.verdicts]
    assert outcomes[-2:] == ["comparison: proved", "validator: accepted"]
    assert "comparison: differs" in outcomes or "compiler: does_not_compile" in outcomes  # the wrong answer
    assert run.questions == 2
    assert run.override is not None
    stored = load_override(overrides_folder(filled.out) / f"{run.override.key}.toml")
    assert stored.evidence is not None and (stored.evidence.verdict, stored.evidence.checks) == ("proved", ("s",))
    assert stored.evidence.tokens == 200


def _entry(translation: Translation, kernel: str) -> str:
    """The text of a kernel's function."""
    found = re.search(rf"    pub unsafe fn {kernel}\b.*?\n    }}\n", translation.text, re.DOTALL)
    assert found is not None, kernel
    return found[0]


@pytest.mark.parametrize("kernel", HOLES)
def test_filled_kernels_read_as_with_the_rule(filled: Filled, kernel: str) -> None:
    assert _entry(filled.translation, kernel) == _entry(filled.original, kernel)


def test_tasks_are_small(filled: Filled) -> None:
    sizes = {run.construct.name: tokens.count(first_prompt(run.task).whole) for run in filled.runs.values() if run.task}
    assert len(sizes) == len(HOLES)
    assert max(sizes.values()) <= MAX_TOKENS
    texts = [first_prompt(run.task).whole for run in filled.runs.values() if run.task]
    assert all(len(text.encode()) / tokens.count(text) >= tokens.BYTES_A_TOKEN for text in texts)


def test_a_task_holds_the_hole_and_nothing_else(filled: Filled) -> None:
    task = filled.runs["call_exp2"].task
    assert task is not None
    assert task.python == ("10 |     power = ct.exp2(tile)",)
    assert task.reference == ("%v0 = exp2 %in0 : tile<64xf32>",)
    assert [(v.name, v.author, v.type) for v in task.inputs] == [("$0", "tile", "tile<Nxf32'x>")]
    assert [v.type for v in task.outputs] == ["tile<64xf32>"]
    assert any(s.startswith("fn exp2<E, ") for s in task.signatures)
    assert not any("mma" in rule for rule in task.rules)


class Promoted(Selection):
    """The tables with a promoted row in the place of the one that was switched off."""

    def __init__(self, off: str, rows: list[object]) -> None:
        super().__init__()
        object.__setattr__(self, "made", (off, rows))

    @property
    def rules(self) -> RuleTable:
        off, rows = self.made  # type: ignore[attr-defined]
        return RuleTable([*(r for r in table() if r.key != off), *(r for r in rows if isinstance(r, Rule))])

    @property
    def forms(self) -> FormTable:
        off, rows = self.made  # type: ignore[attr-defined]
        kept = [f for found in TABLE.rows.values() for f in found if f.key != off]
        return FormTable([*kept, *(r for r in rows if isinstance(r, Form))])


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders that `promote` looks for."""
    into = tmp_path_factory.mktemp("checkout")
    (into / "transpiler" / "rules").mkdir(parents=True)
    (into / "tests" / "cases").mkdir(parents=True)
    return into


@pytest.mark.parametrize("kernel", HOLES)
def test_the_promoted_rule_gives_the_same_program(filled: Filled, checkout: Path, kernel: str) -> None:
    hole, override = HOLES[kernel], filled.runs[kernel].override
    assert override is not None
    row, case = promote(overrides_folder(filled.out) / f"{override.key}.toml", checkout)
    rows = _load(row)
    job = ab.job(ab.KERNELS, {kernel: (hole.spec,)})
    promoted = translate(replace(job, selection=Promoted(_key(hole.row), rows)))
    assert promoted.sites == ()
    assert _entry(promoted, kernel) == _entry(filled.original, kernel)
    with_rule = translate(job)
    assert promoted.text == with_rule.text
    assert (
        case.read_text().startswith("=== python\nimport cuda.tile as ct\n") and "=== tir\nkernel " in case.read_text()
    )


def _load(module: Path) -> list[object]:
    found = runpy.run_path(str(module))
    return [*rules_of(found.get("VARIANTS", ())), *found.get("ROWS", ())]


def test_promoting_twice_overwrites_nothing(filled: Filled, checkout: Path) -> None:
    path = next(overrides_folder(filled.out).glob("*.toml"))
    into = checkout / "again"
    (into / "transpiler" / "rules").mkdir(parents=True)
    (into / "tests" / "cases").mkdir(parents=True)
    written = promote(path, into)
    before = [p.read_text() for p in written]
    with pytest.raises(TranspileError, match="there already"):
        promote(path, into)
    assert [p.read_text() for p in written] == before


def test_overrides_are_input_of_selection(filled: Filled, tmp_path: Path) -> None:
    """The files alone decide: two translations are the same, and overrides for other tables count for nothing."""
    found = load_overrides(overrides_folder(filled.out))
    assert len(found) == len(HOLES)
    job = ab.job(ab.KERNELS, {k: (h.spec,) for k, h in HOLES.items()})
    selection = Selection(filled.without, found)
    once, twice = (translate(replace(job, selection=selection)) for _ in range(2))
    assert once.files == twice.files and once.plan == twice.plan
    assert {f.override for k in once.plan.kernels for e in k.entries for c in e.checks for f in c.filled} == {
        o.key for o in found
    }
    stale = translate(replace(job, selection=Selection((*filled.without, "cuda.tile.cos"), found)))
    assert len(stale.sites) == len(HOLES)
