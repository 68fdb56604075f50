"""Sources of a checkout in the place of the installed package: ``batch --sources``, ``changeset --into``."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from transpiler import cli
from transpiler.batch import Options, run_jobs
from transpiler.changeset import command, layout
from transpiler.corpora import load_corpus
from transpiler.diagnostics import TranspileError
from transpiler.inputs import Lookups
from transpiler.jobs import argument_jobs, corpus_jobs
from transpiler.sources import sources_folder

OPERATOR = """\
import cuda.tile as ct
import torch

from tilegym.ops.cutile.factors import FACTOR, scaled

LIMIT = {limit}


@ct.kernel
def {kernel}(x, y, TILE: ct.Constant[int]{more}):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(TILE,))
    ct.store(y, index=(i,), tile=scaled(tile) + LIMIT)


def scale(x):
    y = torch.empty_like(x)
    note = "{note}"
    ct.launch(torch.cuda.current_stream(), (ct.cdiv(x.shape[0], 128), 1, 1), {kernel}, (x, y, 128{argument}))
    return y
"""
FACTORS = "FACTOR = {factor}\n\n\ndef scaled(tile):\n    return tile * FACTOR\n"
OTHER = """\
import cuda.tile as ct
import torch


@ct.kernel
def other_kernel(x, y):
    i = ct.bid(0)
    ct.store(y, index=(i,), tile=ct.exp(ct.load(x, index=(i,), shape=(16,))))


def other(x):
    y = torch.empty_like(x)
    ct.launch(torch.cuda.current_stream(), (x.shape[0] // 16, 1, 1), other_kernel, (x, y))
    return y
"""
MANIFEST = """\
name = "mine"
[[operators]]
name = "scale"
module = "tilegym.ops.cutile.scale"
[[operators.kernels]]
name = "scale_kernel"
[[operators.kernels.specializations]]
name = "f32"
params.x = {dtype = "float32", ndim = 1}
params.y = {dtype = "float32", ndim = 1}
params.TILE = 64
[[operators.kernels.specializations]]
name = "f16"
params.x = {dtype = "float16", ndim = 1}
params.y = {dtype = "float16", ndim = 1}
params.TILE = 64
[[operators]]
name = "other"
module = "tilegym.ops.cutile.other"
[[operators.kernels]]
name = "other_kernel"
[[operators.kernels.specializations]]
name = "f32"
params.x = {dtype = "float32", ndim = 1}
params.y = {dtype = "float32", ndim = 1}
"""
AS_STATED: dict[str, Any] = {
    "limit": 0.5, "factor": 3, "note": "first", "kernel": "scale_kernel", "more": "", "argument": "",
}  # fmt: skip
CRATE_FILES = {
    f"{layout.ROOT}/__init__.py": "if True:\n    from . import scale  # noqa: F401  (register dispatch entry)\n",
    f"{layout.CRATE}/Cargo.toml": '[dependencies]\ncutile = "=0.2.0"\n',
    f"{layout.CRATE}/src/lib.rs": "// SPDX\n\n",
    "src/tilegym/ops/cutile_rs/ffi_util.rs": "// used by the old ports\n",
}
Batch = Callable[..., dict[str, Any]]


def package(root: Path, folder: str = "src/", **other: Any) -> Path:
    """Write a package `tilegym` with two operators and a helper; returns the folder that was given."""
    values = {**AS_STATED, **other}
    base = root / f"{folder}tilegym"
    (base / "ops/cutile").mkdir(parents=True, exist_ok=True)
    for place in (base, base / "ops", base / "ops/cutile"):
        (place / "__init__.py").write_text("")
    (base / "ops/cutile/scale.py").write_text(OPERATOR.format(**values))
    (base / "ops/cutile/factors.py").write_text(FACTORS.format(**values))
    (base / "ops/cutile/other.py").write_text(OTHER)
    return root


def git(folder: Path, *arguments: str) -> str:
    done = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
    return subprocess.run(done, capture_output=True, text=True, check=True).stdout


def checkout(root: Path, **other: Any) -> Path:
    """Write a repository with the package, a crate of ports and a commit."""
    package(root, **other)
    for name, text in CRATE_FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "as it is")
    return root


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What stands in for the installed package, the manifest, and a cache of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(MANIFEST)
    package(tmp_path / "installed", "")
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    monkeypatch.setenv("TRANSPILE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(command, "CORPUS", "mine.toml")
    monkeypatch.setattr(layout, "REPLACED", ())
    return tmp_path


@pytest.fixture
def batch(installed: Path) -> Batch:
    """Runs a batch of the manifest and returns its report, with the exit status."""

    def run(*arguments: str) -> dict[str, Any]:
        status = cli.main(["batch", "mine.toml", *arguments, "-j", "1", "-o", "out", "--json", "report.json"])
        report: dict[str, Any] = json.loads((installed / "report.json").read_text())
        return report | {"status": status}

    return run


def host_and_kernel(root: Path) -> tuple[str, str]:
    """The host module and kernel.rs of `scale` in a folder that `batch` wrote."""
    found = [p for p in root.rglob("kernel.rs") if p.parent.name.startswith("scale")]
    (host,) = [p for p in root.rglob("*.py") if "note = " in p.read_text()]
    return host.read_text(), found[0].read_text()


# -- Finding the package ------------------------------------------------------------------------------


def test_a_checkout_and_a_folder_that_holds_the_package(tmp_path: Path) -> None:
    for folder in ("src/", ""):
        root = package(tmp_path / f"as{folder}", folder)
        found = sources_folder(root)
        path = found.module("tilegym.ops.cutile.scale", Lookups())
        assert path == root / f"{folder}tilegym/ops/cutile/scale.py"
        assert found.display(path) == "tilegym/ops/cutile/scale.py"


def test_what_holds_no_package(tmp_path: Path) -> None:
    with pytest.raises(TranspileError, match=r"E0847: can't read the folder .*: No such file"):
        sources_folder(tmp_path / "nowhere")
    with pytest.raises(TranspileError, match=r"E0847: .* holds no package `tilegym`"):
        sources_folder(tmp_path)
    package(tmp_path)
    (tmp_path / "src/__init__.py").write_text("")
    with pytest.raises(TranspileError, match=r"E0847: .* is a package itself"):
        sources_folder(tmp_path)


def test_a_file_whose_imports_would_be_those_of_another_place(tmp_path: Path) -> None:
    sources = sources_folder(package(tmp_path / "a"))
    folder = tmp_path / "a/src/tilegym/ops/cutile"
    with pytest.raises(TranspileError, match=r"E0848: .* has no module `tilegym\.ops\.cutile\.gone`"):
        sources.module("tilegym.ops.cutile.gone", Lookups())
    elsewhere = package(tmp_path / "b")
    (folder / "scale.py").unlink()
    (folder / "scale.py").symlink_to(elsewhere / "src/tilegym/ops/cutile/scale.py")
    with pytest.raises(TranspileError, match=r"E0848: .* is a link that leads out of it"):
        sources.module("tilegym.ops.cutile.scale", Lookups())
    (folder / "__init__.py").unlink()
    with pytest.raises(TranspileError, match=r"E0848: .*tilegym/ops/cutile of the module .* has no __init__\.py"):
        sources.module("tilegym.ops.cutile.other", Lookups())


def test_files_are_no_modules_of_a_checkout(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package(installed / "co")
    file = "co/src/tilegym/ops/cutile/scale.py"
    assert cli.main(["batch", file, "mine.toml", "--sources", "co", "-o", "out"]) == 2
    assert "E0848" in capsys.readouterr().err and not (installed / "out").exists()
    assert cli.main(["batch", "mine.toml", "--sources", "nowhere", "-o", "out"]) == 2
    assert "E0847" in capsys.readouterr().err and not (installed / "out").exists()
    (installed / "mine.toml").write_text(f'name = "mine"\n[[operators]]\nname = "scale"\npath = "{file}"\n')
    (job,) = argument_jobs("mine.toml", None, None, sources_folder(Path("co")))
    assert job.problem is not None and job.problem.code == "E0848"


# -- batch --sources ----------------------------------------------------------------------------------


def test_a_batch_of_a_checkout_and_of_what_is_installed(installed: Path, batch: Batch) -> None:
    """One manifest, one output folder, one cache: each run has its own sources, a helper of them too."""
    package(installed / "co", limit=0.25, factor=5, note="second")
    mine, theirs = (), ("--sources", "co")
    made: dict[tuple[str, ...], tuple[str, str]] = {}
    for arguments in (mine, theirs, mine, theirs):
        report = batch(*arguments)
        assert report["status"] == 0 and report["totals"]["proved"] == 3 == report["totals"]["checks"]
        host, kernel = host_and_kernel(installed / "out")
        assert ('note = "second"' in host) == (arguments == theirs)
        assert made.setdefault(arguments, (host, kernel)) == (host, kernel)
    assert report["cached_checks"] == 3, "what was done before isn't done again"
    assert made[mine][1] != made[theirs][1]
    closure = "\n".join(p.read_text() for p in (installed / "out").rglob("*.closure"))
    assert "FACTOR = 5" in closure and "FACTOR = 3" not in closure
    package(installed / "co", limit=0.25, factor=7, note="second")
    report = batch(*theirs)
    assert report["totals"]["proved"] == 3 and report["cached_checks"] == 1, "only `other` is as it was"
    assert host_and_kernel(installed / "out")[1] != made[theirs][1]
    assert batch(*mine)["cached_checks"] == 3 and host_and_kernel(installed / "out") == made[mine]


def test_specializations_that_do_not_fit_are_left_out(installed: Path, batch: Batch) -> None:
    """Another parameter: none fits, and the launch in the checkout's host code takes their place."""
    package(installed / "co", more=", GAIN: ct.Constant[float]", argument=", 2.0")
    report = batch("--sources", "co")
    assert report["status"] == 0 and report["totals"]["proved"] == report["totals"]["checks"] > 1
    kernel = next(o for o in report["operators"] if o["name"] == "scale")["kernels"][0]
    (said,) = [d for d in kernel["diagnostics"] if d["code"] == "W0275"]
    assert "2 of 2 specializations" in said["message"] and "`f32`, `f16`" in said["message"]
    assert "GAIN" in said["message"]
    names = {check["specialization"] for entry in kernel["entries"] for check in entry["checks"]}
    assert names and any('Constant("GAIN")' in p.read_text() for p in (installed / "out").rglob("_bindings.py"))


def test_those_that_fit_stay(installed: Path) -> None:
    """A number where the kernel has an array leaves out that one only; the launches join what is kept."""
    folder = package(installed / "co") / "src"
    text = MANIFEST.replace('name = "f16"\nparams.x = {dtype = "float16", ndim = 1}', 'name = "odd"\nparams.x = 1')
    (installed / "mine.toml").write_text(text)
    jobs = corpus_jobs("mine.toml", None, sources_folder(folder))
    scale, other = (job.kernels[0] for job in jobs)
    assert scale.specializations[0].name == "f32" and len(scale.specializations) > 1
    assert "odd" not in {one.name for one in scale.specializations}
    (said,) = [d for d in scale.diagnostics if d.code == "W0275"]
    assert "1 of 2 specializations" in said.message and "`odd`" in said.message
    assert [one.name for one in other.specializations] == ["f32"] and not other.diagnostics


def test_parameters_that_are_gone_are_dropped(installed: Path) -> None:
    """What is stated of the others is checked, once; nothing is guessed from launches then."""
    text = MANIFEST.replace("params.TILE = 64", "params.TILE = 64\nparams.LATENCY = 2", 1)
    twice = 'name = "again"\nparams.x = {dtype = "float32", ndim = 1}\nparams.y = {dtype = "float32", ndim = 1}\n'
    twice += "params.TILE = 64\nparams.LATENCY = 4\n"
    start, rest = text.split("[[operators.kernels.specializations]]\n", 1)
    mark = "[[operators.kernels.specializations]]\n"
    first, rest = rest.split(mark, 1)
    (installed / "mine.toml").write_text(start + mark + first + mark + twice + mark + rest)
    job = corpus_jobs("mine.toml", None, sources_folder(package(installed / "co")))[0]
    (kernel,) = job.kernels
    assert [one.name for one in kernel.specializations] == ["f32", "f16"]
    assert all(list(one.params) == ["x", "y", "TILE"] for one in kernel.specializations)
    (said,) = kernel.diagnostics
    assert said.code == "W0277" and "`LATENCY`" in said.message


def test_an_array_of_another_rank_does_not_fit(installed: Path) -> None:
    folder = package(installed / "co")
    text = MANIFEST.replace("ndim = 1", "ndim = 2", 2)  # both arrays of scale's f32
    (installed / "mine.toml").write_text(text)
    job = corpus_jobs("mine.toml", None, sources_folder(folder))[0]
    (said,) = [d for d in job.kernels[0].diagnostics if d.code == "W0275"]
    assert "1 of 2 specializations" in said.message and "`f32`" in said.message


def test_a_kernel_with_another_name(installed: Path, batch: Batch, capsys: pytest.CaptureFixture[str]) -> None:
    package(installed / "co", kernel="renamed_kernel")
    report = batch("--sources", "co")
    assert report["status"] == 0 and report["totals"]["proved"] == report["totals"]["checks"]
    (kernel,) = next(o for o in report["operators"] if o["name"] == "scale")["kernels"]
    assert kernel["name"] == "renamed_kernel"
    (said,) = [d for d in kernel["diagnostics"] if d["code"] == "W0276"]
    assert "`scale_kernel`" in said["message"] and "2 specializations" in said["message"]
    assert "W0276" in capsys.readouterr().err


@pytest.mark.parametrize(("what", "code"), [("missing", "E0848"), ("syntax", "E0102"), ("helper", "E0102"),
                                            ("no kernels", "E0103"), ("binary", "E0102")])  # fmt: skip
def test_an_operator_that_can_not_be_read(
    installed: Path, batch: Batch, capsys: pytest.CaptureFixture[str], what: str, code: str
) -> None:
    """`batch` does the others, once it is mended all; `changeset` writes nothing."""
    root = checkout(installed / "co")
    broken = root / "src/tilegym/ops/cutile" / ("factors.py" if what == "helper" else "scale.py")
    good = broken.read_text()
    if what == "missing":
        broken.unlink()
    else:
        broken.write_bytes({"no kernels": b"x = 1\n", "binary": b"\xff\xfe"}.get(what, b"def f(:\n"))
    for _ in range(2):
        report = batch("--sources", "co")
        assert report["status"] == 1 and report["totals"]["proved"] == 1 and report["totals"]["error"] == 2
        assert code in capsys.readouterr().err
    before = git(root, "status", "--porcelain")
    assert cli.main(["changeset", "scale", "--into", str(root), "-j", "1"]) == 2
    assert code in capsys.readouterr().err and git(root, "status", "--porcelain") == before
    assert git(root, "status", "--porcelain", "--ignored", "--", layout.ROOT) == ""
    broken.write_text(good)
    report = batch("--sources", "co")
    assert report["status"] == 0 and report["totals"]["proved"] == 3
    assert batch("--sources", "co")["cached_checks"] == 3


# -- changeset ----------------------------------------------------------------------------------------


def test_a_changeset_holds_the_checkouts_version(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Host code, constant and helper are those of the checkout, and what is proved against."""
    made: dict[str, tuple[str, ...]] = {}
    for name, other in (("a", {}), ("b", {"limit": 0.25, "factor": 5, "note": "second"})):
        root = checkout(installed / name, **other)
        command = ["changeset", "scale", "--into", str(root), "-j", "1", "--evidence", f"{name}.evidence"]
        assert cli.main(command) == 0
        assert "scale: 2 checks: 2 proved" in capsys.readouterr().out
        texts = [(root / layout.ROOT / p).read_text() for p in ("scale.py", "scale_kernel/kernel.rs")]
        (reference,) = (installed / f"{name}.evidence/scale/scale_kernel/f32").glob("reference.mlir")
        made[name] = (*texts, reference.read_text())
    assert 'note = "first"' in made["a"][0] and 'note = "second"' in made["b"][0]
    assert "5.000000e-01" in made["a"][2] and "2.500000e-01" in made["b"][2] and "5.000000e+00" in made["b"][2]
    assert made["a"][1] != made["b"][1]


def test_a_changeset_says_what_was_left_out(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = checkout(installed / "co", more=", GAIN: ct.Constant[float]", argument=", 2.0")
    assert cli.main(["changeset", "scale", "--into", str(root), "-j", "1"]) == 0
    said = capsys.readouterr()
    assert "W0275" in said.err and "2 of 2 specializations" in said.err and " proved" in said.out
    assert 'Constant("GAIN")' in (root / layout.ROOT / "scale.py").read_text()


def test_a_kernel_that_differs_is_not_written(installed: Path) -> None:
    jobs = [job for job in corpus_jobs("mine.toml", None, sources_folder(package(installed / "co"))) if job.kernels]
    results = run_jobs(jobs[:1], Options(workers=1), lambda _count, _what: None)
    command._refuse_others(results)
    key = next(iter(results.checks))
    results.checks[key] = replace(results.checks[key], verdict="differs")
    with pytest.raises(TranspileError, match=r"E0849: `scale_kernel` of `scale` \[f32\]"):
        command._refuse_others(results)


# -- TileGym ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tilegym(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the installed TileGym's Python files, in a repository."""
    try:
        files = importlib.metadata.files("tilegym") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("TileGym isn't installed")
    root = tmp_path_factory.mktemp("tilegym")
    for file in files:
        if str(file).startswith("tilegym/") and file.suffix in (".py", ".rs", ".toml"):
            target = root / "src" / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), target)
    return root


def test_all_specializations_fit_the_version_that_they_were_made_for(tilegym: Path) -> None:
    sources = sources_folder(tilegym)
    for one, other in zip(corpus_jobs("tilegym-core"), corpus_jobs("tilegym-core", None, sources), strict=True):
        assert other.path.is_relative_to(tilegym) and other.display == one.display and other.problem is None
        stated = {kernel.name: kernel for kernel in one.kernels}
        assert {kernel.name: kernel for kernel in other.kernels} == stated
    assert all(o.source.path.is_relative_to(tilegym) for o in load_corpus("tilegym-tests", None, sources).operators)


def test_a_changed_softmax(
    tilegym: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """TileGym with another constant in a kernel of softmax and in its host code: both come into the patch, proved."""
    monkeypatch.setattr(layout, "REPLACED", ())
    root = tmp_path / "co"
    shutil.copytree(tilegym, root)
    source = root / "src/tilegym/ops/cutile/softmax.py"
    text = source.read_text()
    assert text.count("-math.inf") > 1 and text.count("_DEFAULT_TMA_OCCUPANCY = 2\n") == 1
    source.write_text(text.replace("-math.inf", "-1234.0").replace("_OCCUPANCY = 2\n", "_OCCUPANCY = 3\n"))
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "another version")
    patch = tmp_path / "softmax.patch"
    assert cli.main(["changeset", "softmax", "--into", str(root), "-j", "1", "--patch", str(patch)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("softmax: 41 checks: 41 proved\n"), said
    assert "+_DEFAULT_TMA_OCCUPANCY = 3\n" in patch.read_text() and "1234" in patch.read_text()
    assert "1234" in (root / layout.ROOT / "softmax_kernel/kernel.rs").read_text()
    assert "INFINITY" not in patch.read_text().partition("_kernel/kernel.rs")[2].partition("diff --git")[0]
