"""The reference export: closures, the worker process, and every way in which it can fail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from transpiler.diagnostics import TranspileError
from transpiler.reference.closure import Closure, ClosureModule, Segment, extract_closure
from transpiler.reference.export import ReferenceExporter, ReferenceRejected, export_in_fresh_process
from transpiler.reference.source import SourceTree
from transpiler.spec import ArraySpec, ConstantSpec, Hints, ParamSpec, ScalarSpec, Specialization

KERNELS = Path(__file__).parent / "kernels"
BASIC = KERNELS / "basic.py"


def array(dtype: str = "float16", ndim: int = 1) -> ArraySpec:
    return ArraySpec(dtype=dtype, ndim=ndim, shape_divisible_by=(16,) * ndim, base_addr_divisible_by=16)


def spec(hints: Hints | None = None, /, **params: ParamSpec | int) -> Specialization:
    described = {n: ConstantSpec(value=p) if isinstance(p, int) else p for n, p in params.items()}
    return Specialization(name="test", params=described, hints=hints or Hints())


def closure_of(path: Path, kernel: str) -> Closure:
    return extract_closure(SourceTree(path), kernel)


def failure(action: Callable[[], object]) -> TranspileError:
    with pytest.raises(TranspileError) as caught:
        action()
    return caught.value


@pytest.fixture(scope="module")
def exporter() -> Iterator[ReferenceExporter]:
    with ReferenceExporter(time_limit=60) as shared:
        yield shared


# Closures


def test_closure_holds_only_what_the_kernel_needs() -> None:
    text = closure_of(BASIC, "scale_rows").to_text()
    kept = [line for line in text.splitlines() if not line.startswith("#@")]
    assert "ConstInt = ct.Constant[int]" in kept
    assert "LOW, HIGH = -1.0, 1.0" in kept
    assert "from cuda.tile import RoundingMode as RMd" in kept
    assert "    # one row a block" in kept
    for absent in ("raise_at_import", "HUGE", "somewhere", "class Mode", "functools"):
        assert absent not in text


def test_closure_keeps_line_numbers() -> None:
    lines = BASIC.read_text().splitlines()
    for module in closure_of(BASIC, "scale_rows").modules:
        for segment in module.segments:
            if segment.text.startswith(("def", "@")):
                assert lines[segment.line - 1] == segment.text.split("\n")[0]


@pytest.mark.parametrize("kernel", ["scale_rows", "pick", "made"])
def test_closure_text_is_read_back(kernel: str) -> None:
    closure = closure_of(BASIC, kernel)
    again = Closure.from_text(closure.to_text())
    assert again == closure
    assert again.digest == closure.digest


@pytest.mark.parametrize("kernel", ["by_name", "by_module", "by_reexport"])
def test_closure_of_a_package_names_its_modules(kernel: str) -> None:
    closure = closure_of(KERNELS / "shapes" / "kernels.py", kernel)
    displays = [module.display for module in closure.modules]
    assert displays[-1] == "shapes/kernels.py"
    assert {"shapes/helpers.py", "shapes/constants.py"} <= set(displays)
    assert displays.index("shapes/constants.py") < displays.index("shapes/helpers.py")


def test_display_path_is_the_users() -> None:
    tree = SourceTree(KERNELS / "shapes" / "kernels.py", "my/kernels.py")
    assert [m.display for m in extract_closure(tree, "by_name").modules][-2:] == ["my/helpers.py", "my/kernels.py"]


def test_hint_of_a_factory_is_left_to_the_specialization() -> None:
    closure = closure_of(BASIC, "made")
    assert [d.code for d in closure.diagnostics] == ["W0202"]
    assert any(segment.text == "occupancy = None" for segment in closure.modules[0].segments)


def test_kernels_are_listed_with_their_hints() -> None:
    kernels = {info.name: info for info in SourceTree(BASIC).kernels()}
    assert kernels["scale_rows"].hints == (("occupancy", "_OCCUPANCY"),)
    assert kernels["scale_rows"].params == ("x", "y", "TILE")
    assert "not_a_kernel" not in kernels
    assert list(kernels)[:3] == ["scale_rows", "pick", "made"]


@pytest.mark.parametrize(
    ("kernel", "code", "line"),
    [
        ("missing_symbol", "E0203", "no_such_helper(x)"),
        ("foreign_helper", "E0204", "tile=traced(x)"),
        ("computed_constant", "E0215", "TUNED = "),
        ("ambiguous", "E0216", "BRANCH, dtype"),
        ("not_a_kernel", "E0202", "def not_a_kernel"),
    ],
)
def test_what_cannot_be_followed_is_a_coded_error(kernel: str, code: str, line: str) -> None:
    diagnostic = failure(lambda: closure_of(BASIC, kernel)).diagnostic
    assert diagnostic.code == code
    assert line in BASIC.read_text().splitlines()[diagnostic.span.line - 1]
    assert diagnostic.help


def test_unknown_kernel_lists_those_there_are() -> None:
    assert "scale_rows" in failure(lambda: closure_of(BASIC, "nothing")).diagnostic.help


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [(b"import cuda.tile as ct\ndef f(:\n", "E0102", 2), (b"x = '\xff'\n", "E0101", 1), (None, "E0101", 1)],
)
def test_unreadable_sources(tmp_path: Path, content: bytes | None, code: str, line: int) -> None:
    path = tmp_path / "kernel.py"
    if content is not None:
        path.write_bytes(content)
    diagnostic = failure(lambda: SourceTree(path)).diagnostic
    assert (diagnostic.code, diagnostic.span.line, diagnostic.span.file) == (code, line, "kernel.py")


@pytest.mark.parametrize("damage", [lambda t: t[:60], lambda t: t.replace("#@ at 24", "#@ at x"), lambda t: "hello"])
def test_damaged_closure_file(damage: Callable[[str], str]) -> None:
    text = damage(closure_of(BASIC, "scale_rows").to_text().replace("#@ at 15 1", "#@ at 24 1"))
    assert failure(lambda: Closure.from_text(text, "k.closure.py")).diagnostic.code == "E0214"


# Export


def test_export_is_the_same_as_that_of_the_imported_module(exporter: ReferenceExporter, tmp_path: Path) -> None:
    """The closure's bytecode equals the one of the real module, but for the path in the locations."""
    script = tmp_path / "direct.py"
    script.write_text(_DIRECT)
    out = tmp_path / "direct.bin"
    subprocess.run([sys.executable, str(script), str(KERNELS), str(out)], check=True, env={"PYTHONHASHSEED": "0"})
    exported = exporter.export(closure_of(KERNELS / "importable.py", "normalise"),
                               spec(x=array("float16", 2), y=array("float16", 2), N=64))  # fmt: skip
    assert exported.bytecode == out.read_bytes()
    assert exported.symbol.startswith("normalise")


_DIRECT = """
import os, sys
os.chdir(sys.argv[1])
import linecache
source = open("importable.py").read()
linecache.cache["importable.py"] = (len(source), None, source.splitlines(True), "importable.py")
namespace = {"__name__": "importable"}
exec(compile(source, "importable.py", "exec"), namespace)
import cuda.tile as ct
from cuda.tile.compilation import *
a = ArrayConstraint(ct.float16, 2, index_dtype=ct.int32, stride_lower_bound_incl=[0, None], alias_groups=[],
                    may_alias_internally=False, stride_constant=[None, 1], shape_divisible_by=[16, 16],
                    base_addr_divisible_by=16)
signature = KernelSignature([a, a, 64], CallingConvention.cutile_python_v2())
export_kernel(namespace["normalise"], [signature], sys.argv[2], output_format="tileir_bytecode", gpu_code="sm_90")
"""


def test_export_without_running_the_module(exporter: ReferenceExporter) -> None:
    exported = exporter.export(closure_of(BASIC, "scale_rows"), spec(x=array(ndim=2), y=array(ndim=2), TILE=64))
    assert exported.bytecode.startswith(b"\x7fTileIR")
    assert exported.seconds > 0
    assert b"basic.py" in exported.bytecode
    assert str(KERNELS).encode() not in exported.bytecode


@pytest.mark.parametrize("kernel", ["by_name", "by_module", "by_reexport"])
def test_export_of_a_package(exporter: ReferenceExporter, kernel: str) -> None:
    exported = exporter.export(closure_of(KERNELS / "shapes" / "kernels.py", kernel), spec(x=array(), SIZE=16))
    assert b"helpers.py" in exported.bytecode


def test_export_from_a_stored_closure(exporter: ReferenceExporter) -> None:
    closure = closure_of(BASIC, "pick")
    wanted = spec(x=array(), y=array(), MODE=1)
    with ReferenceExporter() as other:
        again = other.export(Closure.from_text(closure.to_text()), wanted)
    assert again.bytecode == exporter.export(closure, wanted).bytecode


def test_constants_and_hints_reach_the_compiler(exporter: ReferenceExporter) -> None:
    closure = closure_of(BASIC, "pick")
    outputs = {
        exporter.export(closure, spec(hints, x=array(), y=array(), MODE=mode)).bytecode
        for mode in (0, 1, 2)
        for hints in (Hints(), Hints(occupancy=3), Hints(occupancy="ByTarget(sm_80=1, default=8)"))
    }
    assert len(outputs) == 9


@pytest.mark.parametrize(("kernel", "params"), [("made_here", ["SIZE"]), ("made_there", ["SIZE"]), ("other", [])])
def test_kernels_made_by_calls(exporter: ReferenceExporter, kernel: str, params: list[str]) -> None:
    closure = closure_of(BASIC, kernel)
    wanted = spec(x=array(), **dict.fromkeys(params, 32))
    exported = exporter.export(closure, wanted)
    assert Closure.from_text(closure.to_text()) == closure
    assert (
        exported.bytecode != exporter.export(closure, wanted.model_copy(update={"hints": Hints(occupancy=5)})).bytecode
    )
    assert kernel in {info.name for info in SourceTree(BASIC).kernels()}


def test_factory_kernel_takes_its_hint_from_the_specialization(exporter: ReferenceExporter) -> None:
    closure = closure_of(BASIC, "made")
    plain = exporter.export(closure, spec(x=array(), y=array()))
    hinted = exporter.export(closure, spec(Hints(occupancy=6), x=array(), y=array()))
    assert plain.bytecode != hinted.bytecode


def test_the_worker_may_go_ahead_with_the_next_check(exporter: ReferenceExporter) -> None:
    closure, rejected = closure_of(BASIC, "pick"), closure_of(BASIC, "refused")
    one, two, three = (spec(x=array(), y=array(), MODE=mode) for mode in (0, 1, 2))
    alone = [exporter.export(closure, wanted).bytecode for wanted in (one, two, three)]
    with ReferenceExporter(time_limit=60) as other:
        assert other.export(closure, one, ahead=two).bytecode == alone[0]
        assert other.export(closure, two, ahead=one).bytecode == alone[1]
        assert other.export(closure, three).bytecode == alone[2]  # not what it is at
        assert other.export(closure, one, ahead=two).bytecode == alone[0]
        failure(lambda: other.export(rejected, spec(x=array(), y=array()), ahead=spec(x=array(), y=array())))
        failure(lambda: other.export(rejected, spec(x=array(), y=array()), ahead=one))
        assert other.export(closure, one).bytecode == alone[0]


def test_a_worker_that_dies_ahead_costs_the_check_that_it_was_at() -> None:
    closure = closure_of(BASIC, "pick")
    ready, answer = '{"status": "ready"}', '{"status": "ok", "symbol": "s", "seconds": 1, "size": 0}'
    dying = "input(); import time; time.sleep(1); raise SystemExit(7)"
    worker = f"print({ready!r}, flush=True); input(); print({answer!r}, flush=True); {dying}"
    with ReferenceExporter(command=(sys.executable, "-c", worker)) as exporter:
        one, two = (spec(x=array(), y=array(), MODE=mode) for mode in (0, 1))
        assert exporter.export(closure, one, ahead=two).symbol == "s"
        assert failure(lambda: exporter.export(closure, two)).diagnostic.code == "E0211"
        assert exporter.export(closure, two).symbol == "s"
        assert exporter.seconds >= 2


def test_refusal_has_the_references_message_and_line(exporter: ReferenceExporter) -> None:
    with pytest.raises(ReferenceRejected) as caught:
        exporter.export(closure_of(BASIC, "refused"), spec(x=array(), y=array()))
    diagnostic = caught.value.diagnostic
    assert (diagnostic.code, caught.value.kind, diagnostic.span.file) == ("E0220", "TypeCheckingError", "basic.py")
    assert "ct.astype(tile, ct.float32)" in BASIC.read_text().splitlines()[diagnostic.span.line - 1]
    assert "cannot implicitly cast float32 to float16" in diagnostic.message
    assert "Unknown location" not in diagnostic.message


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (spec(x=array(ndim=2), y=array(ndim=2)), "lacks TILE"),
        (spec(x=array(ndim=2), y=array(ndim=2), TILE=64, z=1), "z unknown"),
        (spec(x=array(ndim=2), y=array(ndim=2), TILE=ScalarSpec(dtype="int32")), "Constant annotation"),
        (spec(x=array(ndim=2), y=array(ndim=2), TILE=ConstantSpec(value="wide")), "`TILE`"),
        (spec(Hints(occupancy=99), x=array(ndim=2), y=array(ndim=2), TILE=64), "occupancy"),
        (spec(Hints(occupancy="lots"), x=array(ndim=2), y=array(ndim=2), TILE=64), "can't read"),
    ],
)
def test_specialization_that_does_not_fit(exporter: ReferenceExporter, wanted: Specialization, words: str) -> None:
    diagnostic = failure(lambda: exporter.export(closure_of(BASIC, "scale_rows"), wanted)).diagnostic
    assert diagnostic.code == "E0212"
    assert words in diagnostic.message
    assert diagnostic.span.file == "basic.py"


def test_time_limit_ends_the_worker_and_the_next_check_works() -> None:
    with ReferenceExporter(time_limit=3) as exporter:
        wanted = spec(x=array(), y=array(), MODE=0)
        exporter.export(closure_of(BASIC, "pick"), wanted)
        diagnostic = failure(lambda: exporter.export(closure_of(BASIC, "slow"), spec(x=array(), N=16))).diagnostic
        assert diagnostic.code == "E0210"
        assert "slow" in diagnostic.message
        assert exporter.export(closure_of(BASIC, "pick"), wanted).bytecode


_FAKE_WORKER = 'import sys, os; print(\'{"status": "ready"}\', flush=True); sys.stdin.readline(); '


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("os.abort()", "signal 6"),
        ("sys.exit('out of luck')", "out of luck"),
        ("print('half', end='')", "exit status 0"),
    ],
)
def test_crash_of_the_worker(ending: str, words: str) -> None:
    with ReferenceExporter(command=(sys.executable, "-c", _FAKE_WORKER + ending)) as exporter:
        wanted = spec(x=array(), y=array(), MODE=0)
        diagnostic = failure(lambda: exporter.export(closure_of(BASIC, "pick"), wanted)).diagnostic
    assert diagnostic.code == "E0211"
    assert words in diagnostic.message


def test_worker_that_does_not_start() -> None:
    command = (sys.executable, "-c", "import no_such_module_at_all")
    with ReferenceExporter(command=command) as exporter:
        diagnostic = failure(lambda: exporter.export(closure_of(BASIC, "pick"), spec())).diagnostic
    assert diagnostic.code == "E0213"
    assert "no_such_module_at_all" in diagnostic.message


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('X = exec("raise SystemExit")', "E0214"),
        ('X = open("/etc/hostname")', "E0214"),
        ('print("hello")', "E0214"),
        ("import os", "E0204"),
        ("X = 1 // 0", "E0218"),
    ],
)
def test_stored_closure_runs_no_other_code(exporter: ReferenceExporter, text: str, code: str) -> None:
    module = ClosureModule("m", "m.py", (Segment(7, text),))
    diagnostic = failure(lambda: exporter.export(Closure("k", (module,)), spec())).diagnostic
    assert (diagnostic.code, diagnostic.span.line) == (code, 7)


def test_fresh_process_exports_all_specializations() -> None:
    checks = [spec(x=array(), y=array(), MODE=mode) for mode in (0, 1)]
    run = export_in_fresh_process(closure_of(BASIC, "pick"), checks, "sm_90")
    assert run.outcomes == {"ok": 2}
    assert run.wall_seconds > run.export_seconds > 0
