"""Manifests: reading, errors with their line, includes, writing, recordings, and the tool's own corpora."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools.measured_manifests import PERF, Target
from tools.measured_manifests import SUITES as SUITES_TESTS
from tools.measured_manifests import write as write_measured
from tools.suite_manifests import flashinfer, liger, transformers, unsloth
from tools.suite_manifests.common import Suite
from tools.suite_manifests.common import write as write_suite
from transpiler.corpora import (
    REQUIREMENTS,
    corpus_names,
    find_module,
    is_corpus,
    json_schema,
    load_corpus,
    load_manifest,
    specializations_for,
)
from transpiler.diagnostics import Span, TranspileError
from transpiler.jobs import corpus_jobs
from transpiler.manifests import to_toml
from transpiler.pipeline import translate
from transpiler.recordings import array_for, named, operators_from_recording
from transpiler.reference.source import SourceTree
from transpiler.resources import corpus_dir
from transpiler.spec import ArraySpec, ConstantSpec, Corpus, ScalarSpec, Specialization

ROOT = Path(__file__).parent.parent
SUITES = [flashinfer.SUITE, liger.SUITE, transformers.SUITE, unsloth.SUITE]

MANIFEST = """\
name = "mine"
[[operators]]
name = "copy"
path = "copy.py"

[[operators.kernels]]
name = "copy_kernel"

[[operators.kernels.specializations]]
name = "f16"
params.x = {dtype = "float16", ndim = 2, shape_divisible_by = 16, shape_constant = [1, "?"]}
params.n = "int32"
params.TILE = 64
params.FLAG = true
params.EPS = 1e-5
params.LOW = -inf

[[operators.kernels.specializations]]
name = "f32"
hints = {occupancy = "ByTarget(sm_80=2, default=4)"}
params.x = {dtype = "float32", ndim = 2}
"""


def write(folder: Path, text: str, name: str = "m.toml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def failed(path: Path) -> TranspileError:
    with pytest.raises(TranspileError) as caught:
        load_manifest(path)
    return caught.value


def test_short_forms(tmp_path: Path) -> None:
    operator = load_manifest(write(tmp_path, MANIFEST)).operators[0]
    first, second = operator.kernels[0].specializations
    assert first.params["n"] == ScalarSpec(dtype="int32")
    assert [p.value for p in first.params.values() if isinstance(p, ConstantSpec)] == [64, True, 1e-5, float("-inf")]
    x = first.params["x"]
    assert isinstance(x, ArraySpec)
    assert (x.shape_constant, x.shape_divisible_by, x.stride_constant) == ((1, None), (16, 16), (None, 1))
    assert second.hints.occupancy == "ByTarget(sm_80=2, default=4)"


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('"float16"', '"flot16"', 11, "params.x"),
        ("params.EPS", "parms.EPS", 15, "parms"),
        ("ndim = 2, shape_d", "ndim = 3, shape_d", 11, "rank 3"),
        ('path = "copy.py"', 'path = "copy.py"\nmodule = "copy"', 2, "exactly one of module and path"),
        ("occupancy =", "ocupancy =", 20, "ocupancy"),
        ('name = "f32"', 'nme = "f32"', 19, "nme"),
        ("params.TILE = 64", "params.TILE = 6 4", 13, "not valid TOML"),
    ],
)
def test_a_wrong_manifest_is_one_error_with_its_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    diagnostic = failed(write(tmp_path, MANIFEST.replace(old, new))).diagnostic
    assert diagnostic.code == "E0271"
    assert words in diagnostic.message
    assert (diagnostic.span.file, diagnostic.span.line) == ("m.toml", line)


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b""])
def test_unreadable_manifests(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "m.toml"
    if content is not None:
        path.write_bytes(content)
    assert failed(path).diagnostic.code == "E0271"


def test_includes_are_joined(tmp_path: Path) -> None:
    write(tmp_path, MANIFEST, "ops/copy.toml")
    write(tmp_path, MANIFEST.replace('"f16"', '"own_f16"').replace('"f32"', '"own_f32"'), "ops/own.toml")
    write(tmp_path, "", "ops/copy.py")
    path = write(tmp_path, 'name = "all"\ninclude = ["ops/copy.toml", "ops/own.toml"]\n')
    corpus = load_corpus(str(path))
    assert [o.name for o in corpus.operators] == ["copy"]
    assert corpus.operators[0].source.path == tmp_path / "ops/copy.py"
    assert [s.name for s in corpus.operators[0].kernels[0].specializations] == ["f16", "f32", "own_f16", "own_f32"]


def test_names_must_be_unique(tmp_path: Path) -> None:
    write(tmp_path, MANIFEST, "a.toml")
    path = write(tmp_path, 'name = "all"\ninclude = ["a.toml", "a.toml"]\n')
    diagnostic = failed(path).diagnostic
    assert diagnostic.code == "E0272"
    assert "f16, f32" in diagnostic.message
    assert (diagnostic.span.file, diagnostic.span.line, diagnostic.span.column) == ("a.toml", 10, 1)
    diagnostic = failed(write(tmp_path, MANIFEST.replace('"f32"', '"f16"'))).diagnostic
    assert (diagnostic.span.file, diagnostic.span.line) == ("m.toml", 19)


def test_an_operator_has_one_source(tmp_path: Path) -> None:
    write(tmp_path, MANIFEST, "a.toml")
    write(tmp_path, MANIFEST.replace("copy.py", "other.py"), "b.toml")
    diagnostic = failed(write(tmp_path, 'name = "x"\ninclude = ["a.toml", "b.toml"]\n')).diagnostic
    assert (diagnostic.code, diagnostic.span.file, diagnostic.span.line) == ("E0272", "b.toml", 3)


@pytest.mark.parametrize(("old", "new", "line", "column"), [
    ('name = "f32"', 'name = "f32"\ntarget = "sm_91"', 20, 1),
    ('name = "mine"', 'name = "mine"\ntarget = "h200"', 2, 1),
])  # fmt: skip
def test_a_target_is_an_architecture(tmp_path: Path, old: str, new: str, line: int, column: int) -> None:
    diagnostic = failed(write(tmp_path, MANIFEST.replace(old, new, 1))).diagnostic
    assert (diagnostic.code, diagnostic.span) == ("E0803", Span("m.toml", line, column))


def test_a_manifest_that_includes_itself(tmp_path: Path) -> None:
    assert failed(write(tmp_path, 'name = "x"\ninclude = ["m.toml"]\n')).diagnostic.code == "E0271"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MANIFEST, "copy.py"),
        (MANIFEST.replace('path = "copy.py"', 'module = "no_such_package.m"'), "isn't installed"),
        (MANIFEST.replace('path = "copy.py"', 'module = "transpiler.no_such_module"'), "no source file"),
    ],
)
def test_missing_sources(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(TranspileError) as caught:
        load_corpus(str(write(tmp_path, text)))
    assert caught.value.diagnostic.code == "E0273"
    assert words in caught.value.diagnostic.message


@pytest.mark.parametrize("gone", ["tilegym", "tilegym.ops.cutile.softmax"])
def test_the_package_of_our_corpora_comes_with_the_command(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not installed at all, or in a version without the module: the same command helps, and it is what we install."""
    found = importlib.machinery.ModuleSpec("tilegym", None, is_package=True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None if gone == "tilegym" else found)
    with pytest.raises(TranspileError) as caught:
        load_corpus("tilegym-core")
    assert caught.value.diagnostic.code == "E0273"
    requirement = REQUIREMENTS["tilegym"]
    assert f"`pip install --no-deps {requirement}` where transpile is installed" in caught.value.diagnostic.help
    assert f"TILEGYM := {requirement}\n" in (ROOT / "Makefile").read_text()


def test_unknown_corpus_names_the_known_ones() -> None:
    with pytest.raises(TranspileError) as caught:
        load_corpus("tilegym-cor")
    assert caught.value.diagnostic.code == "E0270"
    assert "tilegym-core" in caught.value.diagnostic.help


def test_spec_of_a_file_is_found_by_path_or_name(tmp_path: Path) -> None:
    source = write(tmp_path, "", "copy.py")
    corpus = load_manifest(write(tmp_path, MANIFEST))
    for path in (source, tmp_path / "elsewhere" / "copy.py"):
        found = specializations_for(corpus, tmp_path, path)
        assert found is not None
        assert found[0] == "copy"
        assert [s.name for s in found[1]["copy_kernel"]] == ["f16", "f32"]
    assert specializations_for(corpus, tmp_path, tmp_path / "other.py") is None


# Writing


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    corpus = load_manifest(write(tmp_path, MANIFEST))
    text = to_toml(corpus, "A comment.")
    assert text.startswith("# A comment.\nname = ")
    again = load_manifest(write(tmp_path, text, "again.toml"))
    assert again.model_dump_json() == corpus.model_dump_json()
    assert to_toml(again, "A comment.") == text


def test_defaults_are_left_out(tmp_path: Path) -> None:
    text = to_toml(load_manifest(write(tmp_path, MANIFEST)))
    assert 'params.x = {dtype = "float32", ndim = 2}' in text
    assert 'shape_constant = [1, "?"]' in text
    assert "stride" not in text


# Recordings


def recorded(**changes: Any) -> dict[str, Any]:
    array = {"kind": "ArrayConstraint", **array_for("float16", [256, 512]).model_dump(exclude={"kind"})}
    row: dict[str, Any] = {
        "module": "pkg.ops.copy", "kernel": "copy_kernel", "params": ["x", "n", "TILE"],
        "constraints": [array, {"kind": "ScalarConstraint", "dtype": "int32"},
                        {"kind": "ConstantConstraint", "value": 64}],
        "options": {"num_ctas": None, "occupancy": 2, "opt_level": 3, "num_worker_warps": None}, "test": "t",
    }  # fmt: skip
    return row | changes


def test_recordings_become_operators_without_duplicates() -> None:
    (operator,) = operators_from_recording([recorded(), recorded(test="another")])
    assert (operator.name, operator.module) == ("copy", "pkg.ops.copy")
    (one,) = operator.kernels[0].specializations
    assert (one.name, one.hints.occupancy, one.hints.opt_level) == ("f16", 2, None)


def test_names_say_what_differs_and_do_not_depend_on_the_order() -> None:
    rows = []
    for tile in (64, 256):
        for rows_count in (256, 77):
            array = {"kind": "ArrayConstraint", **array_for("float16", [rows_count, 512]).model_dump(exclude={"kind"})}
            constraints = [array, recorded()["constraints"][1], {"kind": "ConstantConstraint", "value": tile}]
            rows.append(recorded(constraints=constraints))
    names = [s.name for s in operators_from_recording(rows)[0].kernels[0].specializations]
    assert names == ["f16_tile64_x_d16xd16", "f16_tile64_x_rxd16", "f16_tile256_x_d16xd16", "f16_tile256_x_rxd16"]
    assert operators_from_recording(rows[::-1]) == operators_from_recording(rows)


def test_what_names_cannot_tell_apart_is_numbered() -> None:
    items = [Specialization(name="", params={"x": ScalarSpec(dtype=d)}) for d in ("int32", "float32")]
    assert [s.name for s in named(items)] == ["scalar_v1", "scalar_v2"]


@pytest.mark.parametrize(
    ("shape", "strides", "facts"),
    [
        ([256, 512], None, ((None, None), (None, 1), (16, 16), (8, 1))),
        ([1, 77], None, ((1, None), (None, 1), (1, 1), (1, 1))),
        ([33, 64], [72, 1], ((None, None), (None, 1), (1, 16), (8, 1))),
        ([4, 1], None, ((None, 1), (1, 1), (1, 1), (1, 1))),
    ],
)
def test_facts_follow_from_shapes(shape: list[int], strides: list[int] | None, facts: tuple[Any, ...]) -> None:
    a = array_for("float16", shape, strides)
    assert (a.shape_constant, a.stride_constant, a.shape_divisible_by, a.stride_divisible_by) == facts


# Operators that have no kernels


_HOST_ONLY = """
name = "mine"
[[operators]]
name = "calls"
path = "calls.py"
host_only = true
"""


def test_an_operator_without_kernels_gives_its_host_code(tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text("import cuda.tile as ct\nfrom .other import k\n\n\ndef run(s, x):\n"
                                       "    ct.launch(s, (1,), k, (x,))\n")  # fmt: skip
    (tmp_path / "mine.toml").write_text(_HOST_ONLY)
    [job] = corpus_jobs(str(tmp_path / "mine.toml"))
    assert job.host_only and job.kernels == ()
    translation = translate(job)
    assert (translation.plan.kernels, translation.plan.in_library) == ((), True)
    assert "    _cutile.launch(s, (1,), k, (x,))\n" in translation.files["host.py"]
    assert "Kernel" not in translation.files["_bindings.py"] and "fn " not in translation.files["kernel.rs"]
    assert load_manifest(tmp_path / "mine.toml").operators[0].host_only
    assert "host_only = true" in to_toml(load_manifest(tmp_path / "mine.toml"))


def test_an_operator_with_kernels_is_not_host_only(tmp_path: Path) -> None:
    kernels = '[[operators.kernels]]\nname = "k"\nspecializations = []\n'
    (tmp_path / "mine.toml").write_text(_HOST_ONLY + kernels)
    with pytest.raises(TranspileError, match=r"E0271: .*an operator with kernels isn't host_only"):
        load_manifest(tmp_path / "mine.toml")


def test_kernels_are_still_missed_where_an_operator_does_not_say_so(tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text("x = 1\n")
    (tmp_path / "mine.toml").write_text(_HOST_ONLY.replace("host_only = true", ""))
    with pytest.raises(TranspileError, match=r"E0103: calls\.py has no kernels"):
        corpus_jobs(str(tmp_path / "mine.toml"))


# What comes with the tool


def test_json_schema_is_up_to_date(request: pytest.FixtureRequest) -> None:
    path = ROOT / "docs" / "spec.schema.json"
    if request.config.getoption("--update"):
        path.write_text(json_schema(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == json_schema()


def test_named_corpora() -> None:
    assert {"examples", "tilegym", "tilegym-24", "tilegym-core", "tilegym-suites"} <= set(corpus_names())
    assert is_corpus("tilegym-core")
    assert is_corpus("mine.toml")
    assert not is_corpus("kernel.py")


def test_finding_a_module_does_not_import_it() -> None:
    source = find_module("tilegym.ops.cutile.softmax")
    assert source.display == "tilegym/ops/cutile/softmax.py"
    assert source.path.is_file()
    assert "tilegym" not in sys.modules


def test_tilegym_core_covers_its_kernels() -> None:
    corpus = load_corpus("tilegym-core")
    assert (len(corpus.operators), sum(len(o.kernels) for o in corpus.operators)) == (13, 25)
    for operator in corpus.operators:
        tree = SourceTree(operator.source.path, operator.source.display)
        params = {info.name: info.params for info in tree.kernels()}
        assert {k.name for k in operator.kernels} == set(params)
        for kernel in operator.kernels:
            assert all(tuple(s.params) == params[kernel.name] for s in kernel.specializations)
            _check_variety(kernel.specializations)


def _check_variety(specializations: tuple[Specialization, ...]) -> None:
    """At least two dtypes, and arrays with a dynamic extent that nothing is known to divide."""
    arrays = [p for s in specializations for p in s.params.values() if isinstance(p, ArraySpec)]
    assert len({str(s.params[next(iter(s.params))].model_dump()["dtype"]) for s in specializations}) >= 2
    assert any(
        c is None and d == 1 for a in arrays for c, d in zip(a.shape_constant, a.shape_divisible_by, strict=True)
    )


def test_all_recorded_specializations_are_there() -> None:
    recorded_files = sorted((corpus_dir() / "tilegym").glob("*.toml"))
    corpora = [load_manifest(path) for path in recorded_files]
    assert sum(len(k.specializations) for c in corpora for o in c.operators for k in o.kernels) == 390
    assert all(isinstance(c, Corpus) and len(c.operators) == 1 for c in corpora)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_suites_are_as_their_tools_write_them(suite: Suite, tmp_path: Path) -> None:
    write_suite(suite, tmp_path)
    names = [f"{suite.name}.toml", *(f"{suite.name}/{path.name}" for path in (tmp_path / suite.name).iterdir())]
    kept = corpus_dir() / "suites"
    assert sorted(names[1:]) == sorted(f"{suite.name}/{path.name}" for path in (kept / suite.name).iterdir())
    for name in names:
        assert (tmp_path / name).read_text() == (kept / name).read_text(), name


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_suites_have_varied_entries_for_each_kernel(suite: Suite) -> None:
    for operator in load_corpus(str(corpus_dir() / f"suites/{suite.name}.toml")).operators:
        tree = SourceTree(operator.source.path, operator.source.display)
        assert {k.name for k in operator.kernels} == {info.name for info in tree.kernels()}
        for kernel in operator.kernels:
            dtypes = {tuple(p.dtype for p in s.params.values() if isinstance(p, ArraySpec))
                      for s in kernel.specializations}  # fmt: skip
            assert len(dtypes) >= 2, (operator.name, kernel.name)


@pytest.mark.parametrize(("target", "corpus"), [(PERF, "tilegym-perf"), (SUITES_TESTS, "tilegym-suites-tests")])
def test_measured_launches_are_as_their_tool_writes_them(target: Target, corpus: str, tmp_path: Path) -> None:
    write_measured(target, ROOT, tmp_path)
    kept = corpus_dir() / target.folder
    written = tmp_path / target.folder
    assert sorted(path.name for path in written.iterdir()) == sorted(path.name for path in kept.iterdir())
    for path in written.iterdir():
        assert path.read_text() == (kept / path.name).read_text(), path.name
    wanted = {f"{target.folder}/{path.name}" for path in kept.iterdir()}
    stated = tomllib.loads((corpus_dir() / f"{corpus}.toml").read_text())
    assert set(stated["include"]) == wanted
