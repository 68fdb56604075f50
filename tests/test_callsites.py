"""Launches, parameter roles and default specializations, read from the source alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from transpiler.codes import CODES
from transpiler.corpora import load_manifest
from transpiler.frontend.callsites import CallSites, read_call_sites
from transpiler.frontend.defaults import Defaults, default_specializations
from transpiler.frontend.params import ParamUse, kernel_params
from transpiler.frontend.program import load_program
from transpiler.reference.closure import extract_closure
from transpiler.reference.export import ReferenceExporter
from transpiler.reference.source import SourceTree
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ScalarSpec

LAUNCHES = Path(__file__).parent / "kernels" / "launches.py"
TEXT = LAUNCHES.read_text().splitlines()


def uses(kernel: str) -> dict[str, ParamUse]:
    return {use.name: use for use in kernel_params(load_program(LAUNCHES), kernel)}


@pytest.fixture(scope="module")
def sites() -> CallSites:
    program = load_program(LAUNCHES)
    functions = program.modules[program.main].functions
    return read_call_sites(LAUNCHES, {name: len(functions[name].params) for name in program.kernels})


# Parameters


def test_roles_come_from_annotations_and_uses() -> None:
    assert {n: u.role for n, u in uses("direct").items()} == {
        "x": "array", "y": "array", "scale": "scalar", "N": "constant", "BLOCK": "constant", "MASKED": "constant",
    }  # fmt: skip
    assert (uses("direct")["scale"].kind, uses("direct")["MASKED"].kind) == ("float", "bool")


@pytest.mark.parametrize(
    ("kernel", "ranks"),
    [("direct", {"x": 2, "y": 2}), ("tuned", {"a": 2, "counts": 1, "out": 1}), ("never_launched", {"x": 3})],
)
def test_ranks_come_from_indices(kernel: str, ranks: dict[str, int]) -> None:
    assert {n: u.rank for n, u in uses(kernel).items() if u.role == "array"} == ranks


def test_lists_and_unused_parameters() -> None:
    found = uses("grouped")
    assert (found["As"].role, found["As"].rank) == ("list", 2)
    assert (found["unused"].role, found["unused"].used) == ("unknown", False)


def test_what_the_body_says_of_values() -> None:
    found = uses("tuned")
    assert found["counts"].holds_indices
    assert found["out"].stored_as == {"float32"}
    assert found["MODE"].compared_with == {3}
    assert found["LATENCY"].keywords == {"latency"}
    assert found["TILE"].sizes_tile
    assert not found["GROUP"].used


# Launches


def test_literal_launch(sites: CallSites) -> None:
    (site,) = sites.of("direct")
    assert "ct.launch" in TEXT[site.line - 1]
    assert site.grid == "(m, 1, 1)"
    assert site.arguments is not None
    by_text = {a.text: a for a in site.arguments}
    assert (by_text["y"].kind, by_text["y"].like) == ("tensor", "x")
    assert by_text["1.0 / math.sqrt(n)"].kind == "float"
    assert by_text["n"].kind == "int"
    assert by_text["block"].power_of_two
    assert by_text["block != n"].kind == "bool"


def test_tuned_launch_is_traced_to_its_kernel_and_arguments(sites: CallSites) -> None:
    found = sites.of("tuned")
    assert len(found) == 2
    for site in found:
        assert site.kernels == ("tuned",)
        assert site.arguments is not None
        assert [a.value for a in site.arguments] == [None, None, None, 8, None, 3, None]
        assert (site.arguments[2].dtype, site.arguments[2].rank) == ("float32", 1)


def test_kernel_and_arguments_that_a_caller_passes_stay_together(sites: CallSites) -> None:
    for kernel, tile in (("forward", 256), ("backward", 128)):
        (site,) = sites.of(kernel)
        assert site.kernels == (kernel,)
        assert site.arguments is not None
        assert site.arguments[-1].value == tile


def test_what_is_not_found_out_is_a_warning(sites: CallSites) -> None:
    found = {(d.code, d.severity) for d in sites.diagnostics}
    assert found == {("W0270", "warning"), ("W0271", "warning"), ("W0272", "warning")}
    lines = {d.code: TEXT[d.span.line - 1] for d in sites.diagnostics}
    assert "kernels[0]" in lines["W0271"]
    assert "tuple(tensors)" in lines["W0272"]
    assert any("never_launched" in d.message for d in sites.diagnostics)


# Default specializations


def test_defaults_have_the_dtypes_and_a_ragged_one() -> None:
    found = {s.name: s for s in default_specializations(LAUNCHES, "direct").specializations}
    assert list(found) == ["f16", "bf16", "f32", "f16_ragged", "f16_MASKED"]
    x = found["f32"].params["x"]
    assert isinstance(x, ArraySpec)
    assert (x.dtype, x.ndim, x.shape_divisible_by, x.stride_divisible_by) == ("float32", 2, (16, 16), (4, 1))
    ragged = found["f16_ragged"].params
    assert isinstance(ragged["x"], ArraySpec)
    assert ragged["x"].shape_divisible_by == (1, 1)
    assert ragged["N"] == ConstantSpec(value=1000)
    assert ragged["scale"] == ScalarSpec(dtype="float32")
    assert found["f16_MASKED"].params["MASKED"] == ConstantSpec(value=True)


def test_defaults_use_what_call_sites_and_bodies_say() -> None:
    first = default_specializations(LAUNCHES, "tuned").specializations[0].params
    assert [p.dtype for p in first.values() if isinstance(p, ArraySpec)] == ["float16", "int32", "float32"]
    assert first["GROUP"] == ConstantSpec(value=8)
    assert first["MODE"] == ConstantSpec(value=3)
    assert first["LATENCY"] == ConstantSpec(value=2)


def test_defaults_for_lists_and_for_unused_parameters() -> None:
    defaults = default_specializations(LAUNCHES, "grouped")
    params = defaults.specializations[0].params
    assert isinstance(params["As"], ListSpec)
    assert isinstance(params["unused"], ArraySpec)
    assert {d.code for d in defaults.diagnostics} == {"W0273"}
    assert all(d.severity == "warning" and d.help for d in defaults.diagnostics)


_MODES = """\
import cuda.tile as ct
import torch


@ct.kernel
def k(
    x, y,
    T: ct.Constant[int], MODE: ct.Constant[int],
):
    tile = ct.load(x, index=(ct.bid(0),), shape=(T,))
    if MODE == 0:
        ct.store(y, index=(ct.bid(0),), tile=tile)
    elif MODE == 1:
        ct.store(y, index=(ct.bid(0),), tile=tile + tile)


"""


def defaults_of(folder: Path, host: str, launch: str = "ct.launch(None, (1,), k, ") -> tuple[Path, Defaults]:
    """The defaults of a kernel with the given host code, in which LAUNCH stands for the start of a launch."""
    path = folder / "modes.py"
    path.write_text(_MODES + host.replace("LAUNCH", launch))
    return path, default_specializations(path, "k")


def constants(defaults: Defaults) -> dict[str, list[object]]:
    return {
        s.name: [p.value for p in s.params.values() if isinstance(p, ConstantSpec)] for s in defaults.specializations
    }


def test_every_launch_is_a_specialization(tmp_path: Path) -> None:
    host = (
        "def run(x, y):\n    LAUNCH(x, y, 256, 0))\n    LAUNCH(x, y, 256, 1))\n    LAUNCH(x, y, 256, 0))\n\n\n"
        "def other(x, y):\n    LAUNCH(x, y, 512, -7))\n    LAUNCH(x, y, 256, 1))\n"
    )
    path, found = defaults_of(tmp_path, host)
    assert constants(found) == {
        "f16": [256, 0], "bf16": [256, 0], "f32": [256, 0], "f16_ragged": [256, 0], "f16_MODE1": [256, 1],
        "f16_T512_MODEm7": [512, -7],
    }  # fmt: skip
    assert found.diagnostics == ()
    assert default_specializations(path, "k") == found


def test_launches_through_a_helper_are_one_each(tmp_path: Path) -> None:
    host = (
        "def launch(args):\n    LAUNCHargs)\n\n\n"
        "def run(x, y):\n    launch((x, y, 256, 0))\n    launch((x, y, 128, 1))\n"
    )
    _, found = defaults_of(tmp_path, host)
    assert list(constants(found).items())[4:] == [("f16_T128_MODE1", [128, 1])]


def test_launches_that_differ_in_dtypes_have_names_of_their_own(tmp_path: Path) -> None:
    creations = [f"torch.empty((9,), dtype=torch.{dtype})" for dtype in ("float16", "int32", "int8")]
    host = "def run(x):\n" + "".join(f"    LAUNCH(x, {made}, 256, 0))\n" for made in creations)
    _, found = defaults_of(tmp_path, host)
    assert list(constants(found))[4:] == ["f16_2", "f16_3"]
    dtypes = [p.dtype for s in found.specializations[4:] for p in s.params.values() if isinstance(p, ArraySpec)]
    assert dtypes == ["float16", "int32", "float16", "int8"]


def test_launches_beyond_the_cap_are_counted(tmp_path: Path) -> None:
    host = "def run(x, y):\n" + "".join(f"    LAUNCH(x, y, 256, {mode}))\n" for mode in range(19))
    path, found = defaults_of(tmp_path, host)
    assert [c[1] for c in constants(found).values()][4:] == list(range(1, 16))
    (warning,) = found.diagnostics
    assert (warning.code, warning.severity) == ("W0274", "warning")
    assert "19 different launches: 3 of them" in warning.message
    assert "256, 16)" in path.read_text().splitlines()[warning.span.line - 1]


def test_a_launch_that_cannot_be_read_beside_others_is_a_warning(tmp_path: Path) -> None:
    host = "def run(x, y, rest):\n    LAUNCH(x, y, 256, 0))\n    LAUNCHtuple(rest))\n"
    path, found = defaults_of(tmp_path, host)
    (warning,) = found.diagnostics
    assert warning.code == "W0272"
    assert "tuple(rest)" in path.read_text().splitlines()[warning.span.line - 1]


@pytest.mark.parametrize(("mode", "codes"), [("mode", {"W0273"}), ("1 if mode else 0", set())])
def test_a_variable_with_several_literals_is_checked_for_them(tmp_path: Path, mode: str, codes: set[str]) -> None:
    """Where other files may call the function, there may be more than those: that is an assumption."""
    host = f"def run(x, y, mode=1):\n    LAUNCH(x, y, 256, {mode}))\n\n\nrun(None, None, 0)\nrun(None, None, 2)\n"
    _, found = defaults_of(tmp_path, host)
    assert codes == {d.code for d in found.diagnostics}
    assert {0, 1} <= {c[1] for c in constants(found).values()} <= {0, 1, 2}


def test_assumptions_are_one_warning_at_the_parameter(tmp_path: Path) -> None:
    path, found = defaults_of(tmp_path, "def run(x, y, cfg):\n    LAUNCH(x, y, cfg.t, cfg.mode))\n")
    (warning,) = found.diagnostics
    assert warning.code == "W0273"
    assert "`T`, `MODE`" in warning.message
    line = path.read_text().splitlines()[warning.span.line - 1]
    assert line.startswith("    T: ct.Constant")
    assert (warning.span.column, warning.span.end_line, warning.span.end_column) == (5, warning.span.line, 6)


def test_a_kernel_without_a_launch_is_shown_at_its_def(tmp_path: Path) -> None:
    path, found = defaults_of(tmp_path, "")
    assert [d.code for d in found.diagnostics] == ["W0270", "W0273"]
    assert path.read_text().splitlines()[found.diagnostics[0].span.line - 1] == "def k("
    assert all("transpile explain E0271" in d.help for d in found.diagnostics)


def test_the_example_of_a_spec_can_be_read(tmp_path: Path) -> None:
    lines = [line[4:] for line in CODES["E0271"].remedy.splitlines() if line.startswith("    ")]
    spec = tmp_path / "SPEC.toml"
    spec.write_text("\n".join(lines))
    (operator,) = load_manifest(spec, "SPEC.toml").operators
    (softmax,) = operator.kernels
    assert [s.name for s in softmax.specializations] == ["f16_4096"]


def test_reference_accepts_the_defaults() -> None:
    tree = SourceTree(LAUNCHES)
    with ReferenceExporter() as exporter:
        for kernel in ("direct", "tuned", "forward", "backward", "grouped", "never_launched"):
            for specialization in default_specializations(LAUNCHES, kernel).specializations:
                assert exporter.export(extract_closure(tree, kernel), specialization).bytecode
