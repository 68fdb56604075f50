"""The passes in order: entries that are shared, conditions, plans, and mistakes that stay where they happen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from transpiler import pipeline
from transpiler.codes import CODES
from transpiler.diagnostics import Diagnostic, TranspileError
from transpiler.emit.entry import emit_entry
from transpiler.ir.construct import Fragments
from transpiler.ir.hir import Program
from transpiler.ir.symbolic import Sym, apply, lit, param
from transpiler.ir.tir import Condition, Kernel
from transpiler.jobs import KernelJob, OperatorJob
from transpiler.rules.registry import Table
from transpiler.sharing import Sharing
from transpiler.spec import ArraySpec, ConstantSpec, ParamSpec, Specialization
from transpiler.specialize.conditions import alternatives_text, condition_text
from transpiler.specialize.kernel import specialize
from transpiler.translation import Translation
from transpiler.verify import RustText, rust_text

SOURCE = """\
import cuda.tile as ct


@ct.kernel
def pick(a, b, TILE: ct.Constant[int], FLAG: ct.Constant[bool]):
    i = ct.bid(0)
    x = ct.load(a, index=(i,), shape=(TILE,))
    if FLAG:
        x = x * 2
    ct.store(b, index=(i,), tile=x)


@ct.kernel
def other(a, TILE: ct.Constant[int]):
    ct.store(a, index=(0,), tile=ct.zeros((TILE,), dtype=a.dtype))
"""


def spec(name: str, dtype: str, **constants: bool | int) -> Specialization:
    params: dict[str, ParamSpec] = {"a": ArraySpec(dtype=dtype, ndim=1), "b": ArraySpec(dtype=dtype, ndim=1)}
    params |= {k: ConstantSpec(value=v) for k, v in constants.items()}
    return Specialization(name=name, params=params)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "pick.py"
    path.write_text(SOURCE)
    return path


def translate(source: Path, *specs: Specialization, kernel: str = "pick") -> Translation:
    return pipeline.translate(OperatorJob("pick", source, "pick.py", (KernelJob(kernel, specs),)))


def test_entries_are_shared_and_have_conditions(source: Path) -> None:
    made = translate(
        source,
        spec("h16", "float16", TILE=16, FLAG=False),
        spec("f64", "float32", TILE=64, FLAG=False),
        spec("on", "float32", TILE=64, FLAG=True),
    )
    (kernel,) = made.plan.kernels
    by_check = {c.specialization.name: e for e in kernel.entries for c in e.checks}
    assert by_check["h16"] is by_check["f64"]
    assert by_check["h16"] is not by_check["on"]
    assert "not FLAG" in by_check["h16"].condition
    assert "FLAG" in by_check["on"].condition
    assert by_check["on"].generics == ("E", "TILE")
    assert (kernel.name, kernel.line, kernel.closure) == ("pick", 5, "reference/pick.closure")
    inputs = by_check["on"].checks[0].inputs
    assert inputs is not None
    assert (inputs.entry, inputs.generics) == (by_check["on"].name, ("f32", "64"))
    assert set(made.files) >= {"kernel.rs", "ffi.rs"}
    assert "other" not in made.text


def test_lines_lead_back_to_the_python(source: Path) -> None:
    made = translate(source, spec("on", "float32", TILE=64, FLAG=True))
    rust = rust_text(made)
    lines = made.text.splitlines()
    start = next(i for i, text in enumerate(lines) if "fn pick" in text)
    line = next(i for i, text in enumerate(lines[start:], start + 1) if "store" in text)
    assert (rust.python_span(line).file, rust.python_span(line).line) == ("pick.py", 10)
    assert rust.python_span(1).file == "pick/kernel.rs"
    assert RustText("m", "", {}).python_span(3, 4).line == 3


def test_a_refusal_belongs_to_its_check(source: Path) -> None:
    made = translate(source, spec("good", "float16", TILE=16, FLAG=False), spec("bad", "float16", TILE=16))
    checks = {c.specialization.name: c for e in made.plan.kernels[0].entries for c in e.checks}
    assert checks["good"].inputs is not None
    assert checks["bad"].inputs is None
    assert [d.severity for d in checks["bad"].diagnostics] == ["error"]


def test_a_mistake_of_ours_belongs_to_its_check(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emit = emit_entry

    def sometimes(kernel: object, *selection: object) -> object:
        if kernel.constants["FLAG"]:  # type: ignore[attr-defined]
            raise ZeroDivisionError("surprise")
        return emit(kernel, *selection)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "emit_entry", sometimes)
    made = translate(source, spec("a", "float16", TILE=16, FLAG=False), spec("b", "float16", TILE=16, FLAG=True))
    checks = {c.specialization.name: c for e in made.plan.kernels[0].entries for c in e.checks}
    assert checks["a"].inputs is not None
    assert [(d.code, "surprise" in d.message) for d in checks["b"].diagnostics] == [("E0900", True)]


@pytest.mark.parametrize(("kernel", "entry"), [("option", "option_1"), ("self", "self_1"), ("options", "options")])
def test_launchers_are_not_named_like_types(source: Path, kernel: str, entry: str) -> None:
    """cutile's launcher of an entry `option` would be a struct `Option`, in the place of Rust's."""
    source.write_text(SOURCE.replace("def pick", f"def {kernel}"))
    made = translate(source, spec("s", "float16", TILE=16, FLAG=True), kernel=kernel)
    assert [e.name for e in made.plan.kernels[0].entries] == [entry]
    assert f"fn {entry}<" in made.text


def test_an_unknown_kernel_ends_the_operator(source: Path) -> None:
    with pytest.raises(TranspileError) as caught:
        translate(source, kernel="nothing")
    assert caught.value.diagnostic.code == "E0201"
    assert "pick, other" in caught.value.diagnostic.help


def test_nothing_known_of_a_kernel(source: Path) -> None:
    made = translate(source)
    (found,) = made.plan.kernels[0].diagnostics
    assert isinstance(found, Diagnostic)
    assert (found.code, found.span.line) == ("E0807", 5)


def test_trace_sees_every_form(source: Path) -> None:
    seen: list[tuple[str, str]] = []
    job = OperatorJob("pick", source, "pick.py", (KernelJob("pick", (spec("s", "float16", TILE=16, FLAG=True),)),))
    pipeline.translate(job, lambda stage, of, _form: seen.append((stage, of)))
    assert seen == [("hir", "pick"), ("tir", "pick [s]"), ("rust", "pick")]


N, FLAG = param("N"), param("FLAG")


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ([], "always"),
        ([(apply("eq", N, lit(1)), True)], "N == 1"),
        ([(apply("eq", N, lit(1)), False)], "N != 1"),
        ([(apply("lt", N, lit(1)), False), (FLAG, False)], "N >= 1 and FLAG == False"),
        ([(apply("gt", N, lit(1)), True), (N, 4)], "N == 4"),
        ([(apply("ne", N, lit(1)), True), (apply("eq", N, lit(1)), False)], "N != 1"),
        ([(apply("not", FLAG), False)], "FLAG"),
        ([(apply("in", N, lit(1), lit(2)), False)], "N not in (1, 2)"),
        ([(apply("or", FLAG, apply("eq", N, lit(2))), True), (apply("lt", N, lit(9)), True)],
         "(FLAG or N == 2) and N < 9"),
        ([(Sym("dim", ("a", 0)), 1), (Sym("stride", ("a", 1)), None)], "a.shape[0] == 1 and a.strides[1] is dynamic"),
        ([(apply("eq", Sym("dtype", ("a",)), lit("float32")), True)], "a.dtype == 'float32'"),
    ],
)  # fmt: skip
def test_condition_text(conditions: list[tuple[Sym, object]], text: str) -> None:
    assert condition_text([Condition(sym, outcome) for sym, outcome in conditions]) == text


def test_alternatives_text() -> None:
    common = (Condition(FLAG, True),)
    one, two = (Condition(apply("eq", N, lit(n)), True) for n in (1, 2))
    assert alternatives_text(common, ()) == "FLAG == True"
    assert alternatives_text(common, ((*common, one), (*common, two))) == "FLAG == True and (N == 1 or N == 2)"
    assert alternatives_text((), ((one,), (two, *common))) == "N == 1 or (N == 2 and FLAG == True)"
    assert alternatives_text(common, (common, (*common, one))) == "FLAG == True"


def test_sharing_changes_nothing(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [
        spec(f"{dtype}_{tile}_{flag}", dtype, TILE=tile, FLAG=flag)
        for dtype in ("float16", "float32", "int32")
        for tile in (16, 64, 1)
        for flag in (False, True)
    ]
    runs: list[str] = []
    real = specialize

    def counted(program: Program, kernel: str, one: Specialization, rules: Table, fragments: Fragments) -> Kernel:
        runs.append(one.name)
        return real(program, kernel, one, rules, fragments)

    monkeypatch.setattr(pipeline, "specialize", counted)
    shared = translate(source, *specs)
    count = len(runs)
    monkeypatch.setattr(Sharing, "find", lambda *_: None)
    alone = translate(source, *specs)
    assert shared.files == alone.files
    assert shared.plan == alone.plan
    assert count < len(specs) == len(runs) - count


def test_translating_without_overrides_loads_nothing_of_raising() -> None:
    """It would cost every worker of a batch."""
    program = (
        "import sys\nfrom transpiler.jobs import corpus_jobs\nfrom transpiler.pipeline import translate\n"
        "translate(next(job for job in corpus_jobs('tilegym-core') if job.name == 'transpose'))\n"
        "print(*(name for name in sys.modules if name.startswith(('transpiler.raising', 'numpy', 'ml_dtypes'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


_SAID_ONCE = """\
import cuda.tile as ct

FACTOR = 3


def make(k):
    def scaled(t):
        return t * k
    return scaled


triple = make(3.0)


@ct.kernel
def closure(a):
    ct.store(a, 0, triple(ct.load(a, 0, (16,))))


@ct.kernel
def reads_global(a):
    global FACTOR
    ct.store(a, 0, FACTOR)
"""


@pytest.mark.parametrize(("kernel", "code"), [("closure", "E0232"), ("reads_global", "E0239")])
def test_what_follows_from_a_hole_is_not_told(tmp_path: Path, kernel: str, code: str) -> None:
    path = tmp_path / "pick.py"
    path.write_text(_SAID_ONCE)
    one = Specialization(name="a", params={"a": ArraySpec(dtype="float32", ndim=1)})
    made = translate(path, one, kernel=kernel)
    (check,) = made.plan.kernels[0].entries[0].checks
    assert check.outcome == "unmapped" and [d.code for d in check.diagnostics] == [code]


def test_an_undefined_name_in_an_ill_typed_kernel(tmp_path: Path) -> None:
    """There is no Rust of it, so that it is an error and no Hole; both problems are said."""
    path = tmp_path / "pick.py"
    path.write_text(
        "import cuda.tile as ct\n\n\n@ct.kernel\ndef bad(a):\n"
        "    ct.store(a, 0, ct.load(a, (0, 0), (16,)))\n    ct.store(a, 1, missing)\n"
    )
    one = Specialization(name="a", params={"a": ArraySpec(dtype="float32", ndim=1)})
    made = translate(path, one, kernel="bad")
    (check,) = made.plan.kernels[0].entries[0].checks
    assert check.outcome == "error" and [d.code for d in check.diagnostics] == ["E0203", "E0401"]
    assert "verdict is `error`, the exit status 1" in CODES["E0203"].meaning
