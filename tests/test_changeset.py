"""``transpile changeset``: a checkout of TileGym, made of the installed package, gets operators of ours."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from transpiler import cli
from transpiler.batch import Options, run_jobs
from transpiler.changeset import layout, summary
from transpiler.changeset.checkout import Changed, Checkout
from transpiler.changeset.command import CORPUS, _figures, write_evidence
from transpiler.changeset.test_backends import add_backend
from transpiler.diagnostics import TranspileError
from transpiler.jobs import corpus_jobs

FIGURES = Path(__file__).parent.parent / "benchmarks/results/device_time.json"

# -- Tests with one more backend ----------------------------------------------------------------------


def _changed(before: str) -> str:
    after = add_backend(dedent(before).lstrip("\n"))
    assert add_backend(after) == after, "a second run changes something"
    return after


def test_the_backend_joins_a_list_after_what_extends_it() -> None:
    before = """
        import pytest
        from tilegym.backend import is_backend_available


        class Test_Op:  # the author's comment
            _backends = ["cutile"]
            if is_backend_available("tilecpp"):
                _backends = _backends + ["tilecpp"]
            _perf = _backends + ['pytorch']
        """
    after = (
        dedent(before)
        .lstrip("\n")
        .replace(
            "    _perf",
            '    if is_backend_available("cutile-rs"):\n        _backends = _backends + ["cutile-rs"]\n    _perf',
        )
    )
    assert _changed(before) == after


def test_a_list_that_stands_in_parametrize_or_says_what_is_implemented() -> None:
    before = """
        import pytest
        import tilegym


        @pytest.mark.parametrize("framework", ["cutile"])  # one line
        @pytest.mark.parametrize(
            "backend",
            [
                "cutile",
            ],
        )
        @pytest.mark.parametrize("backend", ("torch", "cutile", "triton"))
        @pytest.mark.parametrize("name", ["cutile"])
        @pytest.mark.parametrize("framework", frameworks)
        def test_op(framework, backend, name):
            _impl_fw = ["cutile"]
            if framework not in _impl_fw:
                pytest.skip("not here")
        """
    after = dedent(before).lstrip("\n")
    for old, new in (
        ('"framework", ["cutile"])', '"framework", ["cutile", "cutile-rs"])'),
        ('        "cutile",\n', '        "cutile",\n        "cutile-rs",\n'),
        ('("torch", "cutile", "triton")', '("torch", "cutile", "cutile-rs", "triton")'),
        ('_impl_fw = ["cutile"]', '_impl_fw = ["cutile", "cutile-rs"]'),
    ):
        assert old in after
        after = after.replace(old, new)
    assert _changed(before) == after


def test_a_branch_that_selects_the_reference_by_name_selects_the_tests_backend() -> None:
    before = """
        def test_op(framework):
            if framework == "cutile":
                if tilegym.is_backend_available("cutile"):
                    tilegym.set_backend("cutile")
            elif framework == "triton":
                set_backend("cutile")
        """
    after = (
        dedent(before)
        .lstrip("\n")
        .replace('framework == "cutile":', 'framework in ("cutile", "cutile-rs"):')
        .replace('is_backend_available("cutile")', "is_backend_available(framework)")
        .replace('tilegym.set_backend("cutile")', "tilegym.set_backend(framework)")
    )
    assert _changed(before) == after


def test_a_list_without_the_reference_and_one_with_the_backend_stay() -> None:
    source = '_backends = ["triton"]\nothers = ["cutile"]\n_backends = ["cutile", "cutile-rs"]\n'
    assert _changed(source) == source


def test_an_import_is_added_where_it_is_missing() -> None:
    after = _changed('import pytest\nimport torch\n\n_backends = ["cutile"]\n')
    assert after.startswith("import pytest\nimport torch\nfrom tilegym.backend import is_backend_available\n\n")


def test_limits_of_the_reference_hold_and_those_of_the_old_ports_go() -> None:
    before = """
        def test(backend, framework, transpose):
            if backend == "cutile" and transpose:
                pytest.skip("no")
            if backend == "cutile-rs":
                if transpose:
                    pytest.skip("no")
            if backend not in ("cutile", "other"):
                return
            if framework != "cutile" or backend == "cutile-rs":
                run()
        """
    after = """
        def test(backend, framework, transpose):
            if backend in ("cutile", "cutile-rs") and transpose:
                pytest.skip("no")
            if backend not in ("cutile", "cutile-rs", "other"):
                return
            if framework not in ("cutile", "cutile-rs") or backend == "cutile-rs":
                run()
        """
    assert _changed(before) == dedent(after).lstrip("\n")


def test_a_branch_that_names_the_references_module_gets_one_beside_it() -> None:
    before = """
        def test(backend):
            if backend == "cutile":
                fn = lambda: tilegym.ops.cutile.op.op(1)
            elif backend == "other":
                fn = other
            else:
                skip()
        """
    after = """
        def test(backend):
            if backend == "cutile":
                fn = lambda: tilegym.ops.cutile.op.op(1)
            elif backend == "cutile-rs":
                fn = lambda: tilegym.ops.cutile_rs.op.op(1)
            elif backend == "other":
                fn = other
            else:
                skip()
        """
    assert _changed(before) == dedent(after).lstrip("\n")


def test_functions_of_the_reference_are_looked_up_by_backend() -> None:
    after = _changed(
        """
        import torch
        from tilegym.ops.cutile.attention import fmha

        def reference(x):
            return fmha(x)

        def test(x, backend):
            def call():
                return fmha(x, fmha=1)
            assert call()
        """
    )
    assert "return fmha(x)\n" in after and "return _of(backend, fmha)(x, fmha=1)\n" in after
    assert after.startswith("import importlib\nimport torch\n") and after.count("def _of(backend, function):") == 1


# -- The layout ---------------------------------------------------------------------------------------


def test_the_crate_moves_to_one_dependency() -> None:
    old = (
        '[lib]\nname = "x"\n\n[dependencies]\n# why\ncutile = "=0.2.0"\ncutile-macro = "=0.2.0"\ncuda-core = "=0.2.0"\n'
    )
    new = layout.cargo_toml(old)
    assert new == '[lib]\nname = "x"\n\n[dependencies]\n# why\ncutile = "=0.5.0"\n'
    assert layout.cargo_toml(new) == new


def test_operators_are_registered_once_and_in_order() -> None:
    old = "if x:\n    from . import bmm  # noqa: F401  (register dispatch entry)\n\nREST = 1\n"
    new = layout.package_init(old, ["softmax", "attention"])
    rows = re.findall(r"from \. import (\w+)", new)
    assert rows == ["attention", "bmm", "softmax"] and new.endswith("\n\nREST = 1\n")
    assert layout.package_init(new, ["softmax"]) == new
    root = layout.lib_rs("// SPDX-License\n\nmod matmul {}\n", ["softmax", "support"])
    assert "matmul" not in root and root.count("#[path") == 4 and "pub mod support__ffi;" in root
    assert layout.lib_rs(root, ["bmm"]).count("#[path") == 6
    assert layout.lib_rs(layout.lib_rs(root, ["bmm"]), []) == layout.lib_rs(root, ["bmm"])


# -- The command --------------------------------------------------------------------------------------

_TEST = 'from tilegym.backend import is_backend_available\n\n_backends = ["cutile"]\n'


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the installed package as its sources."""
    try:
        files = importlib.metadata.files("tilegym") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    root = tmp_path_factory.mktemp("checkout")
    for file in files:
        wanted = str(file).startswith("tilegym/ops/cutile_rs/") or file.suffix == ".py"
        if str(file).startswith("tilegym/") and wanted and file.suffix != ".pyc":
            target = root / "src" / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), target)
    if not files:
        pytest.skip("TileGym isn't installed")
    (root / "tests/ops").mkdir(parents=True)
    (root / "tests/ops/test_softmax.py").write_text(_TEST)
    (root / "tests/ops/test_rope.py").write_text(_TEST)
    _git(root, "init", "-q")
    _git(root, "add", ".")
    _git(root, "commit", "-qm", "as it is")
    return root


@pytest.fixture
def fresh(checkout: Path, tmp_path: Path) -> Path:
    """A clone of its own."""
    subprocess.run(["git", "clone", "-q", str(checkout), str(tmp_path / "fresh")], check=True)
    return tmp_path / "fresh"


def _changeset(folder: Path, *arguments: str) -> list[str]:
    return ["changeset", *arguments, "--no-verify", "--into", str(folder), "-j", "1"]


def test_a_changeset(checkout: Path, fresh: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Six files an operator; the patch applies; a second run changes nothing; everything is Python that compiles."""
    patch = tmp_path / "softmax.patch"
    command = [*_changeset(checkout, "softmax"), "--patch", str(patch)]
    assert cli.main(command) == 0
    said = capsys.readouterr().out
    assert said.startswith("softmax: not checked\nattention_sink, bmm, matmul, silu_and_mul, swiglu: not checked; Tile")
    assert f"\ndeleted 1 file in {layout.ROOT}: ffi_util.rs\n" in said and "softmax_kernel/{ffi.rs,kernel.rs}" in said
    assert said.endswith(f" files changed in {checkout}; nothing is staged\nwrote {patch}\n")
    assert _git(checkout, "diff", "--cached", "--name-only") == ""
    states = {row[:2] for row in _git(checkout, "status", "--porcelain").splitlines()}
    assert states == {" M", " D", "??"}, "one consistent state of the index: as it was"
    first = patch.read_text()
    assert cli.main(command) == 0
    assert "\nnothing to change\n" in capsys.readouterr().out and patch.read_text() == first
    _git(fresh, "apply", "--check", str(patch))
    _git(fresh, "apply", str(patch))
    root = fresh / layout.ROOT
    changed = set(re.findall(r"^\+\+\+ b/(.+)$", first, re.MULTILINE))
    assert {f"{layout.ROOT}/softmax_kernel/kernel.rs", f"{layout.ROOT}/softmax_kernel/ffi.rs",
            f"{layout.ROOT}/softmax.py", f"{layout.CRATE}/src/lib.rs", f"{layout.ROOT}/__init__.py",
            "tests/ops/test_softmax.py"} <= changed  # fmt: skip
    assert "tests/ops/test_rope.py" not in changed and not (root / "ffi_util.rs").exists()
    assert "use crate::softmax_kernel::softmax_kernels;" in (root / "softmax_kernel/ffi.rs").read_text()
    assert all("cutile-rs" in (root / f"{name}.py").read_text() for name in (*layout.REPLACED, "softmax"))
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(root)], check=True)
    capsys.readouterr()  # a patch that was applied by hand is what we would write, too; then others join
    assert cli.main(_changeset(fresh, "softmax")) == 0
    assert "\nnothing to change\n" in capsys.readouterr().out
    assert cli.main([*_changeset(fresh, "relu"), "--patch", str(patch)]) == 0
    assert "softmax_kernel" in patch.read_text() and "relu_kernel" in patch.read_text()


# -- Work that isn't committed ------------------------------------------------------------------------

_FILES = {"mine.rs": "new", "sub/mine.rs": "new", "old.rs": None}
_EDITS = {"test.py": lambda text: text if "ours" in text else text + "ours\n"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in (("mine.rs", "old"), ("old.rs", "old"), ("test.py", "theirs\n"), ("other.py", "theirs\n")):
        (tmp_path / name).write_text(text)
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-qm", "as it is")
    return tmp_path


def _state(root: Path) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file() and ".git" not in p.parts}


@pytest.mark.parametrize(
    ("name", "text"),
    [("mine.rs", "edited"), ("mine.rs", None), ("sub/mine.rs", "untracked"), ("old.rs", "edited"),
     ("test.py", "edited"), ("test.py", None)],
)  # fmt: skip
@pytest.mark.parametrize("how", ["plain", "staged", "ignored"])
def test_work_that_is_not_committed_is_never_lost(repository: Path, name: str, text: str | None, how: str) -> None:
    path = repository / name
    path.parent.mkdir(exist_ok=True)
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    if how == "staged":
        _git(repository, "add", "--all")
    if how == "ignored":
        (repository / ".git/info/exclude").write_text(f"{name.partition('/')[0]}\n")
    before = _state(repository), _git(repository, "status", "--porcelain")
    with pytest.raises(TranspileError, match=rf"E0846: .* aren't committed in files .*: {name}$") as caught:
        Checkout(repository).change(_FILES, _EDITS)
    assert "commit" in caught.value.diagnostic.help and "stash" in caught.value.diagnostic.help
    assert (_state(repository), _git(repository, "status", "--porcelain")) == before


def test_what_we_wrote_is_no_work_of_theirs(repository: Path) -> None:
    """A second run changes nothing, one that writes something else goes on, committed or not."""
    checkout = Checkout(repository)
    assert checkout.change(_FILES, _EDITS)[0] == Changed(["sub/mine.rs"], ["mine.rs", "test.py"], ["old.rs"])
    assert checkout.change(_FILES, _EDITS)[0] == Changed()
    assert checkout.change({"mine.rs": "newer"}, {})[0] == Changed([], ["mine.rs"], [])
    _git(repository, "commit", "-qam", "theirs now")
    assert checkout.change({"mine.rs": "newest"}, {})[0] == Changed([], ["mine.rs"], [])
    (repository / "sub/mine.rs").write_text("edited since")
    with pytest.raises(TranspileError, match="E0846"):
        checkout.change(_FILES, _EDITS)


def test_the_patch_has_our_changes_and_no_others(repository: Path) -> None:
    (repository / "other.py").write_text("edited")
    (repository / "untracked.py").write_text("new")
    checkout = Checkout(repository)
    patch = checkout.patch(checkout.change(_FILES, _EDITS)[1])
    assert set(re.findall(r"^diff --git a/(\S+)", patch, re.MULTILINE)) == {
        "mine.rs",
        "old.rs",
        "sub/mine.rs",
        "test.py",
    }
    assert "edited" not in patch and checkout.patch(checkout.change(_FILES, _EDITS)[1]) == patch
    assert _git(repository, "diff", "--cached", "--name-only") == ""
    _git(repository, "commit", "-qam", "all but what is untracked")
    (repository / "test.py").write_text("theirs, edited\nours\n")
    done, ours = checkout.change(_FILES, _EDITS)
    assert done == Changed() and "test.py" not in ours, "nothing of ours is needed there"
    assert "test.py" not in checkout.patch(ours)


def test_an_edit_on_top_of_ours_is_theirs(repository: Path) -> None:
    checkout = Checkout(repository)
    checkout.change({}, _EDITS)
    (repository / "test.py").write_text("theirs\nours\nedited\n")
    with pytest.raises(TranspileError, match=r"E0846: .*: test\.py$"):
        checkout.change({}, _EDITS)


def test_a_checkout_within_a_repository_and_one_without_a_commit(repository: Path) -> None:
    (repository / "sub").mkdir()
    (repository / "sub/mine.rs").write_text("theirs")
    with pytest.raises(TranspileError, match=r"E0846: .*: mine\.rs$"):
        Checkout(repository / "sub").change({"mine.rs": "new"}, {})
    checkout = Checkout(repository / "sub")
    assert "sub/other.rs" in checkout.patch(checkout.change({"other.rs": "new"}, {})[1])
    _git(repository, "checkout", "-q", "--orphan", "empty")
    with pytest.raises(TranspileError, match="E0842"):
        Checkout(repository)


def test_the_files_are_told_in_short(tmp_path: Path) -> None:
    many = [f"{layout.CRATE}/src/support/{i}.rs" for i in range(9)]
    done = Changed([*many, "a/x.py", "a/y.py"], [*layout.INTERFACES, "tests/ops/test_bmm.py"], [])
    made, changed, why, last = summary.files(tmp_path, done)
    assert made == f"made 11 files in {layout.ROOT}: cutile_kernels/src/support (9); in a: x.py, y.py"
    assert changed == "changed 2 files in src/tilegym/ops: moe_interface.py; in tests/ops: test_bmm.py"
    assert "tests run with the backend" in why and "moe_interface.py" in why and "deleted" not in why
    assert last.startswith("13 files changed in ")


def test_what_is_no_checkout_or_no_operator(checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["changeset", "softmax", "--into", str(tmp_path)]) == 2
    assert "E0842" in capsys.readouterr().err
    assert cli.main(["changeset", "sofmax", "--into", str(checkout)]) == 2
    assert "E0843" in capsys.readouterr().err
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(TranspileError, match="E0844"):
        _figures(tmp_path / "other.json")


def test_the_evidence_of_an_operator(tmp_path: Path) -> None:
    """Both sides' Tile IR of each check, and the comparison with its verdicts."""
    jobs = [job for job in corpus_jobs(CORPUS) if job.name == "relu"]
    if not jobs:
        pytest.skip("TileGym isn't installed")
    kernel = jobs[0].kernels[0]
    job = replace(jobs[0], kernels=(replace(kernel, specializations=kernel.specializations[:2]),))
    write_evidence(run_jobs([job], Options(workers=1), lambda _count, _what: None), tmp_path, _figures(FIGURES))
    rows = json.loads((tmp_path / "relu/figures.json").read_text())["configs"]
    assert rows and all(row["operator"] == "relu" and row["reference_us"] > 0 for row in rows)
    comparison = json.loads((tmp_path / "relu/comparison.json").read_text())
    checks = comparison["operator"]["kernels"][0]["entries"][0]["checks"]
    assert {check["verdict"] for check in checks} == {"proved"} and "cutile" in comparison["tool"]
    for check in checks:
        folder = tmp_path / "relu" / "_relu_fwd_kernel" / check["specialization"]
        assert all("entry" in (folder / f"{side}.mlir").read_text() for side in ("reference", "ours"))
