"""Raising: the reference's Tile IR as cuTile Rust, in bulk, by `transpile fill --raise`, and where it says no."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import case_format as cf
import pytest

from transpiler import cli
from transpiler.diagnostics import TranspileError
from transpiler.emit.scopes import name_variables
from transpiler.frontend import load_program
from transpiler.ir import rust
from transpiler.ir.types import DType, ViewTy, dim
from transpiler.jobs import KernelJob, OperatorJob, argument_jobs
from transpiler.raising import accesses, reductions, regions
from transpiler.raising.lift import SPECIAL
from transpiler.raising.raise_kernel import About, raise_kernel
from transpiler.raising.selftest import Outcome, raise_checks
from transpiler.raising.table import TABLE, UNRAISABLE
from transpiler.raising.types import constant_value, dtype_of, view_type
from transpiler.spec import Specialization
from transpiler.tileir import parse_entry
from transpiler.tileir.ops.schema import SCHEMAS
from transpiler.verify import Judge

ROOT = Path(__file__).resolve().parents[1]
EVERY = 8  # of the corpora's kernels; tools/raise_corpus.py takes all

KERNELS = '''
import cuda.tile as ct


@ct.kernel(occupancy=2)
def rows(x, y, out, N: ct.Constant[int]):
    """A row and the sums of columns."""
    a = ct.load(x, (0,), (N,))
    b = ct.load(y, (0, 0), (N, N))
    ct.store(out, (0,), a + ct.reduce(b, 0, lambda p, q: p + q, 0.0))


@ct.kernel
def running(x, y, N: ct.Constant[int]):
    ct.store(y, (0, 0), ct.cumprod(ct.load(x, (0, 0), (N, N)), axis=1))


@ct.kernel
def copied(x, y, N: ct.Constant[int]):
    ct.store(y, (ct.bid(0),), ct.load(x, (ct.bid(0),), (N,)))
'''
SPEC = """
name = "mine"
[[operators]]
name = "mine"
path = "mine.py"
"""


def _spec() -> str:
    ranks = {"rows": {"x": 1, "y": 2, "out": 1}, "running": {"x": 2, "y": 2}, "copied": {"x": 1, "y": 1}}
    text = SPEC
    for kernel, arrays in ranks.items():
        text += f'[[operators.kernels]]\nname = "{kernel}"\n'
        for dtype in ("float16", "float32"):
            text += f'[[operators.kernels.specializations]]\nname = "{dtype}"\nparams.N = 16\n'
            text += "".join(f'params.{a} = {{ dtype = "{dtype}", ndim = {r} }}\n' for a, r in arrays.items())
    return text


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as one:
        yield one


# -- in bulk ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("corpus", ["tilegym-24", str(ROOT / "corpus" / "examples.toml")])
def test_corpora(corpus: str, judge: Judge) -> None:
    """Kernels that rules translate are proved when they are raised, too."""
    jobs = argument_jobs(corpus, None)
    chosen = [(job, kernel) for job in jobs for kernel in job.kernels][::EVERY]
    rows = [r for job, kernel in chosen for r in raise_checks([replace(job, kernels=(kernel,))], judge, seed=1)]
    assert len(rows) == len(chosen) >= 5
    assert {row.outcome for row in rows} == {"proved"}, [r for r in rows if r.outcome != "proved"]


def _case(path: Path, judge: Judge, folder: Path) -> tuple[str, Outcome]:
    case = cf.read(path)
    source = cf.place(case, folder)
    name = load_program(source).kernels[0]
    job = OperatorJob("case", source, "case.py", (KernelJob(name, (case.specialization,)),))
    (row,) = raise_checks([job], judge)
    return "error" if "error" in case.sections else "holes" if "holes" in case.sections else "tir", row


@pytest.mark.parametrize("path", cf.all_cases(), ids=lambda p: str(p.relative_to(cf.CASES)))
def test_cases(path: Path, judge: Judge, tmp_path: Path) -> None:
    """Every operation that a rule makes can be raised; of the Holes those that cutile can say."""
    kind, row = _case(path, judge, tmp_path)
    allowed = {"tir": {"proved"}, "error": {"rejected"}, "holes": {"proved", "refused"}}
    assert row.outcome in allowed[kind], row.why


# -- transpile fill --raise ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, int]:
    """A folder that was filled: where, what was said, and the exit status."""
    where = tmp_path_factory.mktemp("filled")
    (where / "mine.py").write_text(KERNELS)
    (where / "mine.toml").write_text(_spec())
    run = [sys.executable, "-m", "transpiler.cli"]
    first = subprocess.run([*run, "mine.py", "--spec", "mine.toml", "-o", "out"], cwd=where, capture_output=True)
    assert first.returncode == 3
    done = subprocess.run([*run, "fill", "out", "--raise", "--json", "fill.json", "-j", "1"], cwd=where,
                          capture_output=True, text=True)  # fmt: skip
    return where, done.stdout + done.stderr, done.returncode


def test_verdicts_are_kept_apart(filled: tuple[Path, str, int]) -> None:
    where, said, status = filled
    report = json.loads((where / "fill.json").read_text())
    totals = report["totals"]
    assert (status, totals["raised"], totals["proved"], totals["unmapped"], totals["checks"]) == (3, 2, 2, 2, 6)
    kernels = {k["name"]: k for k in report["operators"][0]["kernels"]}
    checks = [c for e in kernels["rows"]["entries"] for c in e["checks"]]
    assert [(c["verdict"], c["raised"], {f["kind"] for f in c["filled"]}) for c in checks] == [
        ("proved", True, {"raised"})
    ] * 2
    assert not any("raised" in c for e in kernels["copied"]["entries"] for c in e["checks"])
    missing = [d for d in kernels["rows"]["diagnostics"] if d["code"] == "W0610"]
    assert [row["line"] for row in missing] == [10] and "`cuda.tile.reduce` isn't supported" in missing[0]["message"]
    assert "2 raised" in said


def test_what_cannot_be_said_stays_a_hole(filled: tuple[Path, str, int]) -> None:
    where, said, _ = filled
    assert "`scan` can't be raised: a scan that combines with `mul`" in said
    assert "compile_error!" in (where / "out/mine/kernel.rs").read_text()


def test_the_source_says_that_it_is_raised(filled: tuple[Path, str, int]) -> None:
    where, _, _ = filled
    text = (where / "out/mine/kernel.rs").read_text()
    head = text[: text.index("pub unsafe fn rows(")]
    assert "// raised in part: line 10 is made of the reference's Tile IR for the specialization `float16`" in head
    assert "E0302: `cuda.tile.reduce` isn't supported" in head
    assert "occupancy = 2" in head  # the decorator's, not only what one launch says
    table = (where / "out/mine/ffi.rs").read_text()
    assert "py::same(n, 16)" in table and '"float16"' in table


def test_the_folder_is_verified_and_translated_the_same_again(filled: tuple[Path, str, int], tmp_path: Path) -> None:
    where, _, _ = filled
    run = [sys.executable, "-m", "transpiler.cli"]
    verified = subprocess.run([*run, "verify", "out", "--json", str(tmp_path / "v.json")], cwd=where)
    assert verified.returncode == 3
    assert json.loads((tmp_path / "v.json").read_text())["totals"]["raised"] == 2
    before = {p.relative_to(where): p.read_bytes() for p in sorted((where / "out").rglob("*")) if p.is_file()}
    again = subprocess.run([*run, "mine.py", "--spec", "mine.toml", "-o", "out"], cwd=where, capture_output=True)
    assert again.returncode == 3
    assert {p.relative_to(where): p.read_bytes() for p in sorted((where / "out").rglob("*")) if p.is_file()} == before


def test_coverage_shows_them_apart(filled: tuple[Path, str, int], tmp_path: Path) -> None:
    where, _, _ = filled
    run = [sys.executable, "-m", "transpiler.cli", "coverage", "mine.toml", "--overrides", "out"]
    done = subprocess.run([*run, "--json", str(tmp_path / "c.json")], cwd=where, capture_output=True, text=True)
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["totals"]["kernels_by_verdict"] == {"unmapped": 1, "raised": 1, "proved": 1}, done.stderr
    assert [k["raised"] for k in found["operators"][0]["kernels"]] == [2, 0, 0]
    (row,) = [row for row in found["holes"] if row["name"] == "cuda.tile.reduce"]
    assert (row["raised"], row["filled"], row["open"], row["models"]) == (2, 2, 0, ["reference"])


def test_overrides_hold_no_path_of_this_machine(filled: tuple[Path, str, int]) -> None:
    where, _, _ = filled
    files = sorted((where / "out/_overrides").glob("*.toml"))
    assert len(files) == 2
    for file in files:
        text = file.read_text()
        assert str(ROOT) not in text and str(where) not in text and "site-packages" not in text
        assert 'missing = ["E0302' in text and 'model = "reference"' in text


def test_a_rule_makes_raised_code_superfluous(filled: tuple[Path, str, int], tmp_path: Path) -> None:
    """Without Holes an override isn't used: here the rule that is missing is one that was switched off."""
    (tmp_path / "mine.py").write_text(KERNELS)
    (tmp_path / "mine.toml").write_text(_spec())
    run = [sys.executable, "-m", "transpiler.cli"]
    args = ["mine.py", "--kernel", "copied", "--spec", "mine.toml", "-o", "out"]
    without = subprocess.run([*run, *args, "--without", "cuda.tile.load"], cwd=tmp_path, capture_output=True)
    assert without.returncode == 3, without.stderr
    raised = subprocess.run([*run, "fill", "out", "--raise"], cwd=tmp_path, capture_output=True, text=True)
    assert raised.returncode == 0 and "2 raised" in raised.stdout, raised.stdout + raised.stderr
    back = subprocess.run([*run, *args], cwd=tmp_path, capture_output=True, text=True)
    assert back.returncode == 0 and "2 proved" in back.stdout
    assert "raised" not in (tmp_path / "out/mine/kernel.rs").read_text()


WHOLE = """
import cuda.tile as ct


@ct.kernel
def folded(x, y, N: ct.Constant[int]):
    a = ct.load(x, (ct.bid(0),), (N,))
    y_tile = ct.reduce(a, 0, lambda p, q: p + q, 0.0) * ct.static_eval(N * 2)
    ct.store(y, (ct.bid(0),), y_tile)


@ct.kernel
def mixed(x, y, N: ct.Constant[int]):
    a = ct.load(x, (ct.bid(0),), (N,))
    for i in range(3):
        a = ct.exp2(ct.exp2(a) + i)
    ct.store(y, (ct.bid(0),), a)


@ct.kernel
def added(x, y, N: ct.Constant[int]):
    a = ct.load(x, (ct.bid(0),), (N,))
    ct.store(y, (ct.bid(0),), a + ct.reduce(a, 0, lambda p, q: p + q, 0.0))
"""


def test_a_hole_or_the_whole_kernel(tmp_path: Path) -> None:
    """Calls are filled where they stand; what is more than a call, or has no operand, takes the whole kernel."""
    (tmp_path / "whole.py").write_text(WHOLE)
    text = 'name = "t"\n[[operators]]\nname = "whole"\npath = "whole.py"\n'
    for kernel in ("folded", "mixed", "added"):
        text += f'[[operators.kernels]]\nname = "{kernel}"\n[[operators.kernels.specializations]]\nname = "s"\n'
        text += 'params = { x = { dtype = "float32", ndim = 1 }, y = { dtype = "float32", ndim = 1 }, N = 16 }\n'
    (tmp_path / "whole.toml").write_text(text)
    run = [sys.executable, "-m", "transpiler.cli"]
    args = ["whole.py", "--spec", "whole.toml", "-o", "out", "--without", "cuda.tile.exp2"]
    assert subprocess.run([*run, *args], cwd=tmp_path, capture_output=True).returncode == 3
    done = subprocess.run([*run, "fill", "out", "--raise"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "3 raised" in done.stdout, done.stdout + done.stderr
    rust_text = (tmp_path / "out/whole/kernel.rs").read_text()
    assert "// raised: made of" in rust_text and "// raised in part: line 16 is made of" in rust_text
    assert "// raised in part: line 23 is made of" in rust_text
    assert rust_text.count("exp2(") == 2 and rust_text.count("reduce_sum(") == 2


BITWISE = """
import cuda.tile as ct


@ct.kernel
def bitwise(x, y, N: ct.Constant[int]):
    a = ct.load(x, (ct.bid(0),), (N,))
    some = ct.reduce(a > 3, 0, lambda p, q: p | q, False)
    parity = ct.reduce(a, 0, lambda p, q: p ^ q, 0)
    run = ct.scan(a, 0, lambda p, q: p | q, 0)
    ct.store(y, (ct.bid(0),), run + parity + ct.where(some, 1, 0))


@ct.kernel
def rows(x, y, N: ct.Constant[int]):
    a = ct.load(x, (0, 0), (N, N))
    ct.store(y, (0,), ct.reduce(a, 1, lambda p, q: p ^ q, 0))


@ct.kernel
def all_of(x, y, N: ct.Constant[int]):
    a = ct.load(x, (ct.bid(0),), (N,))
    ct.store(y, (ct.bid(0),), ct.reduce(a, 0, lambda p, q: p & q, -1))
"""


def test_reductions_with_a_function(judge: Judge, tmp_path: Path) -> None:
    """cutile takes a function along dimension 0 and from 0, so that some of the general ones can be said."""
    source = tmp_path / "bitwise.py"
    source.write_text(BITWISE)
    ranks = {"bitwise": 1, "rows": 2, "all_of": 1}
    specs = {
        name: Specialization.model_validate(
            {"name": "s", "params": {"x": {"dtype": "int32", "ndim": n}, "y": {"dtype": "int32", "ndim": 1}, "N": 16}}
        )
        for name, n in ranks.items()
    }
    job = OperatorJob("bitwise", source, "bitwise.py", tuple(KernelJob(n, (s,)) for n, s in specs.items()))
    rows = {row.kernel: row for row in raise_checks([job], judge)}
    assert rows["bitwise"].outcome == "proved", rows["bitwise"].why
    assert "a tile of rank 2 with `xor`" in rows["rows"].why
    assert "it combines with `andi`" in rows["all_of"].why


# -- details ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [("f32: 1.44269502", "float32", 1.4426950216293335), ("f16: 0xFC00", "float16", float("-inf")), ("i1: true",
     "bool_", True), ("i32: -3", "int32", -3), ("bf16: 0x7F80", "bfloat16", float("inf")),
     ("f8E4M3FN: 0x38", "float8_e4m3fn", 1.0)],
)  # fmt: skip
def test_constants(text: str, dtype: str, value: object) -> None:
    assert constant_value(text, DType(dtype)) == value


@pytest.mark.parametrize("text", ["i32: [1, 2]", "f32: 0x7FC00001"])
def test_constants_without_a_form(text: str) -> None:
    with pytest.raises(TranspileError, match="E0610"):
        constant_value(text, DType("float32" if "f32" in text else "int32"))


def test_types() -> None:
    assert dtype_of("i8", signed=False) == DType("uint8")
    assert dtype_of("i32", like=DType("uint32")) == DType("uint32")
    text = "partition_view<tile=(4x64), padding_value = neg_inf, dim_map=[1, 0], tensor_view<?x?xf16, strides=[?,1]>>"
    assert view_type(text, DType("float16")) == ViewTy(DType("float16"), (dim(4), dim(64)), "neg_inf", (1, 0))


def test_every_operation_is_known() -> None:
    """An operation of the judge's schema has a row, a function, or a reason why cutile has no form of it."""
    known: list[Collection[str]] = [
        TABLE,
        SPECIAL,
        accesses.HANDLERS,
        regions.HANDLERS,
        reductions.HANDLERS,
        UNRAISABLE,
    ]
    assert sorted(name for table in known for name in table) == sorted(SCHEMAS)


REDUCTIONS = {
    "%a, %b = reduce %x, %x dim=0 identities=[0 : i32, 0 : i32] : tile<8xi32>, tile<8xi32> -> tile<i32>, tile<i32>\n"
    "(%l0: tile<i32>, %r0: tile<i32>, %l1: tile<i32>, %r1: tile<i32>) {\n yield %l0, %l1 : tile<i32>, tile<i32>\n}":
        "`reduce` can't be raised: 2 tiles at once",
    "%a = reduce %x dim=0 identities=[7 : i32] : tile<8xi32> -> tile<i32>\n"
    "(%l: tile<i32>, %r: tile<i32>) {\n %s = addi %l, %r : tile<i32>\n yield %s : tile<i32>\n}":
        "gives add of i32 the identity 0, the reference has 7",
    "%a = mulhii %x, %x unsigned : tile<8xi32>": "`mulhii` can't be raised: no form is written",
    "%a = addi %x, %x overflow<no_signed_wrap> : tile<8xi32>": "the attribute overflow",
}  # fmt: skip


@pytest.mark.parametrize(("operation", "message"), REDUCTIONS.items(), ids=["tuples", "identity", "no row", "overflow"])
def test_refusals_name_the_operation_and_the_limit(operation: str, message: str) -> None:
    text = f"entry @k() {{\n%x = constant <i32: 1> : tile<8xi32>\n{operation}\nreturn\n}}\n"
    with pytest.raises(TranspileError, match="E0610") as refusal:
        raise_kernel(parse_entry(text), About("k", ()), Specialization(name="s", params={}), "sm_90")
    assert message in refusal.value.diagnostic.message


def test_a_name_from_outside_of_a_block_keeps_its_type_in_it() -> None:
    """cutile 0.5 would take the later `let`'s type for the mention before it."""
    use = rust.Do(rust.call("f", rust.Var("outer")))
    inner = rust.Let(("inner",), ("Tile<i64, { [] }>",), rust.call("exti", rust.Var("outer")))
    last = rust.Do(rust.call("f", rust.Var("inner")))
    body = (
        rust.Let(("outer",), ("Tile<i32, { [] }>",), rust.Text("0")),
        rust.Do(rust.If(rust.Text("c"), (use, inner, last), ())),
    )
    assert name_variables(body, {"outer": "x", "inner": "x"}, (), ())["inner"] == "x_1"
    plain = (body[0], inner, last)
    assert name_variables(plain, {"outer": "x", "inner": "x"}, (), ())["inner"] == "x"


def test_fill_needs_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["fill", str(tmp_path), "--raise"]) == 2
    assert "E0821" in capsys.readouterr().err
