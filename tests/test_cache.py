"""A second batch does again only what has changed, and never believes a damaged or forged file."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batch_corpus import BATCH, corpus, files, group_members, timeless

from transpiler import cli
from transpiler.cache import fingerprint
from transpiler.cache.checks import reachable_text
from transpiler.cache.folder import PATH_VARIABLE, CacheFolder, default_path
from transpiler.cache.rows import cacheable
from transpiler.diagnostics import Diagnostic

TWO_KERNELS = """\
import cuda.tile as ct

from helpers import twice


@ct.kernel
def {first}(a, b):
    i = ct.bid(0)
    ct.store(b, index=(i,), tile=twice(ct.load(a, index=(i,), shape=(16,))))


@ct.kernel
def second(a, b):
    i = ct.bid(0)
    ct.store(b, index=(i,), tile=ct.exp(ct.load(a, index=(i,), shape=(16,))))
"""
TWO_MANIFEST = """\
name = "two"
[[operators]]
name = "two"
path = "two.py"
[[operators.kernels]]
name = "first"
[[operators.kernels.specializations]]
name = "f32"
params.a = {dtype = "float32", ndim = 1}
params.b = {dtype = "float32", ndim = 1}
[[operators.kernels]]
name = "second"
[[operators.kernels.specializations]]
name = "f32"
params.a = {dtype = "float32", ndim = 1}
params.b = {dtype = "float32", ndim = 1}
"""
HELPERS = "def twice(x):\n    return x * 2\n"
Batch = Callable[..., dict[str, Any]]


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    """Runs a batch in the test's folder and returns its report."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, out: str = "out") -> dict[str, Any]:
        status = cli.main(["batch", *(arguments or ("corpus.toml",)), "-j", "1", "-o", out, "--json", "report.json"])
        report: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
        return report | {"status": status}

    return run


def two(folder: Path) -> None:
    """Write an operator of two kernels, one of which uses a helper of a sibling module."""
    (folder / "two.py").write_text(TWO_KERNELS.format(first="first"))
    (folder / "helpers.py").write_text(HELPERS)
    (folder / "corpus.toml").write_text(TWO_MANIFEST)


def cached(report: dict[str, Any]) -> int:
    return int(report.get("cached_checks", 0))


def entries() -> list[Path]:
    """Every file of the cache."""
    folder = default_path()
    assert folder is not None
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def test_nothing_changed(batch: Batch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus(tmp_path, good="x * 2", hole="ct.frobnicate(x)", refused="ct.reshape(x, (3,))")
    first = batch()
    before = files(tmp_path / "out")
    again = batch()
    assert (cached(first), cached(again)) == (0, first["totals"]["checks"])
    assert timeless(again) == timeless(first)
    assert again["reference_seconds"] == 0
    assert files(tmp_path / "out") == before
    assert f"{cached(again)} of them unchanged since an earlier run" in capsys.readouterr().out
    assert cached(batch("corpus.toml", "--no-cache")) == 0
    assert cached(batch(out="elsewhere")) == first["totals"]["checks"]
    assert files(tmp_path / "elsewhere") == before


def test_a_run_without_changes_imports_no_compiler(batch: Batch, tmp_path: Path) -> None:
    corpus(tmp_path, alpha="x * 2")
    (tmp_path / "own.py").write_text((tmp_path / "alpha.py").read_text())
    batch("corpus.toml", "own.py")
    program = (
        "import sys; from transpiler import cli; status = cli.main(sys.argv[1:]); heavy = {'libcst', 'cuda.tile', "
        "'numpy', 'jinja2', 'transpiler.rules'} & sys.modules.keys(); "
        "sys.exit(f'imported {heavy}' if heavy else status)"
    )
    command = [sys.executable, "-c", program, "batch", "corpus.toml", "own.py", "-o", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "imported" in done.stderr) == (0, False), done.stderr


def test_only_what_changed_is_done_again(batch: Batch, tmp_path: Path) -> None:
    two(tmp_path)
    assert cached(batch()) == 0
    (tmp_path / "helpers.py").write_text(HELPERS.replace("x * 2", "x + x"))
    assert cached(batch()) == 1  # `second` doesn't use the helper
    text = TWO_KERNELS.format(first="first")
    (tmp_path / "two.py").write_text("# a line more\n" + text.replace("ct.exp(", "ct.exp2("))
    assert cached(batch()) == 1  # `first` only moved
    head, _, tail = TWO_MANIFEST.rpartition('name = "f32"')
    more = '[[operators.kernels.specializations]]\nname = "f16"\nparams.a = {dtype = "float16", ndim = 1}\n'
    (tmp_path / "corpus.toml").write_text(f'{head}name = "f32"{tail}{more}params.b = {{dtype = "float16", ndim = 1}}\n')
    report = batch()
    assert (cached(report), report["totals"]["checks"]) == (2, 3)
    assert cached(batch("corpus.toml", "--target", "sm_100")) == 0
    assert cached(batch()) == 3


def test_a_module_that_appears_is_noticed(batch: Batch, tmp_path: Path) -> None:
    two(tmp_path)
    batch()
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "__init__.py").write_text("raise ValueError")
    report = batch()
    assert (cached(report), report["status"]) == (1, 1)  # the package goes before helpers.py
    (tmp_path / "helpers" / "__init__.py").unlink()
    assert cached(batch()) == 2


def test_another_tool_does_everything_again(batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two(tmp_path)
    batch()
    monkeypatch.setattr(fingerprint, "tool", lambda: "another")
    assert cached(batch()) == 2  # a rule changed, but not what came out
    monkeypatch.setattr(fingerprint, "judge", lambda: "another")
    monkeypatch.setattr(fingerprint, "tool", lambda: "a third")
    assert cached(batch()) == 0


@pytest.mark.parametrize("name", ["two/kernel.rs", "two/ffi.rs", "two/reference/first.closure", "src/lib.rs"])
@pytest.mark.parametrize("change", ["edit", "remove"])
def test_a_file_changed_by_hand_is_written_again(batch: Batch, tmp_path: Path, name: str, change: str) -> None:
    two(tmp_path)
    batch()
    before = files(tmp_path / "out")
    place = tmp_path / "out" / name
    if change == "edit":
        place.write_text(place.read_text() + "// mine\n")
    else:
        place.unlink()
    assert cached(batch()) == 2
    assert files(tmp_path / "out") == before


def test_a_forged_manifest_is_written_again(batch: Batch, tmp_path: Path) -> None:
    two(tmp_path)
    batch()
    before = files(tmp_path / "out")
    manifest = tmp_path / "out" / "manifest.json"
    row = json.loads(manifest.read_text())
    forged = "// forged\n"
    (tmp_path / "out" / "two" / "kernel.rs").write_text(forged)
    row["operators"][0]["files"]["kernel.rs"] = _sha256(forged)
    manifest.write_text(json.dumps(row))
    batch()
    assert files(tmp_path / "out") == before


def _sha256(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("damage", [b"", b"half", b"\0" * 4096])
def test_damaged_entries_are_not_there(batch: Batch, tmp_path: Path, damage: bytes) -> None:
    two(tmp_path)
    first = batch()
    assert entries()
    for path in entries():
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] if damage == b"half" else damage)
    (tmp_path / "out" / "two" / "kernel.rs").unlink()
    again = batch()
    assert cached(again) == 0
    assert timeless(again) == timeless(first)
    assert cached(batch()) == 2


def test_a_lost_translation_is_made_again(batch: Batch, tmp_path: Path) -> None:
    two(tmp_path)
    batch()
    before = files(tmp_path / "out")
    for path in entries():
        if "translations" in path.parts:
            path.unlink()
    (tmp_path / "out" / "two" / "kernel.rs").unlink()
    assert cached(batch()) == 2
    assert files(tmp_path / "out") == before


def test_a_cache_that_cannot_be_written_is_no_cache(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two(tmp_path)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "file"))
    for _ in range(2):
        report = batch()
        assert (report["status"], cached(report)) == (0, 0)


def test_shards_and_the_whole_share_results(batch: Batch, tmp_path: Path) -> None:
    corpus(tmp_path, alpha="x * 2", beta="ct.exp(x)")
    whole = batch()
    parts = []
    for index in ("1", "2"):
        part = batch("corpus.toml", "--shard", f"{index}/2", out=f"part{index}")
        assert cached(part) == part["totals"]["checks"] > 0
        assert cached(batch("corpus.toml", "--shard", f"{index}/2", out=f"part{index}")) == cached(part)
        (tmp_path / f"part{index}.json").write_text((tmp_path / "report.json").read_text())
        parts.append(f"part{index}.json")
    assert cli.main(["merge", *parts, "--json", "merged.json"]) == 0
    merged = json.loads((tmp_path / "merged.json").read_text())
    del whole["status"]
    assert timeless(merged) == timeless(whole)


def test_two_runs_at_once(batch: Batch, tmp_path: Path) -> None:
    corpus(tmp_path, alpha="x * 2", beta="ct.exp(x)")
    command = [sys.executable, "-m", "transpiler.cli", "batch", "corpus.toml", "-j", "1", "-o", "out", "--json"]
    runs = [subprocess.Popen([*command, f"{name}.json"], cwd=tmp_path, stdout=subprocess.DEVNULL) for name in "ab"]
    assert [run.wait(timeout=300) for run in runs] == [0, 0]
    reports = [timeless(json.loads((tmp_path / f"{name}.json").read_text())) for name in "ab"]
    last = batch()
    assert cached(last) == 8
    del last["status"]
    assert reports == [timeless(last)] * 2


def test_what_was_done_before_an_interrupt_is_kept(batch: Batch, tmp_path: Path) -> None:
    corpus(tmp_path, **{f"kernel{i}": f"x * {i}" for i in range(6)})
    child = subprocess.Popen(BATCH, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not any("checks" in path.parts for path in entries()):
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130, said
    assert not group_members(child.pid)
    assert {path.name for path in tmp_path.iterdir()} == {"corpus.toml", *(f"kernel{i}.py" for i in range(6))}
    assert not [path for path in entries() if path.name.startswith(".new-")]
    report = batch()
    assert (report["status"], report["totals"]["proved"]) == (0, 24)
    assert 0 < cached(report) < 24


def test_old_entries_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transpiler.cache.folder._MAX_FILES", 2)
    folder = CacheFolder(tmp_path)
    for number in range(4):
        folder.put_json("kind", f"key{number}", number)
        os.utime(tmp_path / "kind" / "ke" / f"key{number}", (number, number))
    folder.prune()
    assert [folder.get_json("kind", f"key{n}") for n in range(4)] == [None, None, 2, 3]


def test_what_may_be_otherwise_next_time_is_not_kept() -> None:
    assert cacheable("proved", [])
    assert cacheable("error", [Diagnostic("E0711", "")])
    assert not cacheable("error", [])
    assert not cacheable("error", [Diagnostic("E0901", "a worker died")])
    assert not cacheable("rejected", [Diagnostic("E0210", "took too long")])


def test_reachable_text() -> None:
    text = """\
#[cutile::module]
pub mod m {
    use cutile::core::*;

    /// Used by both.
    fn shared(n: i32) -> i32 {
        n
    }

    fn other() {
        shared(1);
    }

    #[cutile::entry()]
    pub unsafe fn a<
        const N: i32,
    >() {
        shared(N);
    }

    #[cutile::entry()]
    pub unsafe fn b() {
        other();
    }
}
"""
    assert "other" not in reachable_text(text, "a")
    assert all(name in reachable_text(text, "a") for name in ("use cutile", "Used by both", "shared(N)", "entry()"))
    assert "unsafe fn a" not in reachable_text(text, "b")
    assert "shared(1)" in reachable_text(text, "b")
    assert reachable_text(text, "missing") == text


def test_the_judges_fingerprint_covers_what_it_imports() -> None:
    package = Path(cli.__file__).parent
    data = {"transpiler.translation", "transpiler.emit.abi"}  # plain values, which keys hold
    known = {f"transpiler.{part.removesuffix('.py').removesuffix('.abi3.so').replace('/', '.')}"
             for part in fingerprint.JUDGE}  # fmt: skip
    places = [package / part for part in fingerprint.JUDGE if not part.endswith(".so")]
    sources = [path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    assert len(sources) > 20
    for path in sources:
        for name in _imports(path):
            assert name in data or any(name == one or name.startswith(f"{one}.") for one in known), (path, name)


def _imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, outside of `if TYPE_CHECKING`."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("transpiler"):
            module = node.module or ""
            found |= {f"{module}.{alias.name}" for alias in node.names} if module == "transpiler" else {module}
    return found


def test_a_batch_says_where_it_wrote(tmp_path: Path, batch: Batch, capsys: pytest.CaptureFixture[str]) -> None:
    two(tmp_path)
    for expected in ("wrote out; wrote report.json", "out is up to date; wrote report.json"):
        batch()
        assert capsys.readouterr().out.splitlines()[-1] == expected
    assert cli.main(["batch", "corpus.toml", "-o", "other", "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1] == "wrote other" and json.loads(captured.out)["totals"]["kernels"] == 2
