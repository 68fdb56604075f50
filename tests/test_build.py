"""``transpile build`` and the lazy build: when cargo runs, what a failure leaves, one build at a time."""

from __future__ import annotations

import importlib
import io
import os
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest
from ffi_build import load_package

from transpiler import build_command, cli, toolkit
from transpiler.runtime import build, needs
from transpiler.runtime.errors import BuildError, CompileError, LibraryError, MissingToolError, from_code

# Stands in for cargo: makes a "library" of the sources, or fails as rustc does; notes each run.
_CARGO = """\
#!{python}
import json, pathlib, sys, time
root = pathlib.Path.cwd()
print(" Downloading crates ...\\n   Compiling op v0.1.0 (here)", file=sys.stderr)
with open(root / "runs", "a") as runs:
    runs.write(" ".join(sys.argv[1:]) + "\\n")
text = (root / "op/kernel.rs").read_text()
time.sleep(0.2)
if "mistake" in text:
    sys.exit("   Compiling op\\nerror[E0425]: cannot find value `mistake`\\n --> op/kernel.rs:1:1")
made = root / "target/release/libcutile_kernels.so"
made.parent.mkdir(parents=True, exist_ok=True)
made.write_text(text)
print(json.dumps({{"reason": "compiler-artifact", "filenames": [str(made)]}}))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A crate of one operator, and a cargo that needs no compiler."""
    files = {
        "Cargo.toml": "[package]\n", "src/lib.rs": '#[path = "../op/mod.rs"]\npub mod op;\n', "op/mod.rs": "",
        "op/kernel.rs": "one", "other/kernel.rs": "no operator of the crate",
    }  # fmt: skip
    for name, text in files.items():
        path = tmp_path / "dir" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    cargo = tmp_path / "bin" / "cargo"
    cargo.parent.mkdir()
    cargo.write_text(_CARGO.format(python=sys.executable))
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{cargo.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv(build.AUTOBUILD, raising=False)
    return tmp_path / "dir"


def _runs(folder: Path) -> int:
    runs = folder / "runs"
    return len(runs.read_text().splitlines()) if runs.is_file() else 0


def test_only_a_changed_source_is_a_reason_to_build(folder: Path) -> None:
    first = build.build(folder, {})
    assert first.built and first.path == folder / "libcutile_kernels.so" and first.path.read_text() == "one"
    assert not build.build(folder, {}).built
    (folder / "op/kernel.rs").touch()
    (folder / "other/kernel.rs").write_text("changed")
    assert build.ensure(folder) == first.path and _runs(folder) == 1
    (folder / "op/kernel.rs").write_text("two")
    assert build.ensure(folder).read_text() == "two"
    (folder / "op/more.rs").write_text("a new file")
    assert build.build(folder, {}).built and _runs(folder) == 3


def test_a_failed_build_says_why_and_keeps_the_library(folder: Path) -> None:
    build.build(folder, {})
    (folder / "op/kernel.rs").write_text("mistake")
    for _ in range(2):
        with pytest.raises(BuildError, match=r"(?s)cargo could not build .*\nerror\[E0425\].*op/kernel.rs:1:1"):
            build.ensure(folder)
    assert (folder / "libcutile_kernels.so").read_text() == "one"
    assert not build.is_fresh(folder)


def test_two_at_once_build_once(folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from transpiler.runtime import build; build.build(Path(sys.argv[1]), {})"
    )
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: subprocess.run([sys.executable, "-c", code, str(folder)], check=True), range(3)))
    assert _runs(folder) == 1


def test_the_library_is_taken_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(build.AUTOBUILD, "0")
    with pytest.raises(LibraryError, match=r"`transpile build .*dir` makes it"):
        build.ensure(folder)
    (folder / "libcutile_kernels.so").write_text("given")
    assert build.ensure(folder).read_text() == "given" and _runs(folder) == 0
    monkeypatch.delenv(build.AUTOBUILD)
    (folder / "Cargo.toml").unlink()  # deployed without sources
    assert build.ensure(folder).read_text() == "given" and _runs(folder) == 0


def test_without_cargo(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="`cargo` was not found: install Rust"):
        build.ensure(folder)


# -- What cargo needs ---------------------------------------------------------------------------------


@pytest.fixture
def bare(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A crate where neither the transpiler nor a toolkit nor a libclang is installed."""
    monkeypatch.setitem(sys.modules, "transpiler.toolkit", None)
    monkeypatch.setattr(metadata, "files", lambda _: None)
    monkeypatch.setattr(needs, "_PLACES", ())
    monkeypatch.setattr(needs, "_CLANG_PLACES", ("nowhere/lib*",))
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "llvm-config" else str(tmp_path / "bin/cargo"))
    for name in ("CUDA_TOOLKIT_PATH", "CUDA_HOME", "LIBCLANG_PATH", "LLVM_CONFIG_PATH", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    return folder


def _toolkit(root: Path, version: int = 13020, without: str = "", include: str = "include") -> Path:
    for name in needs._HEADERS:
        header = root / include / name
        header.parent.mkdir(parents=True, exist_ok=True)
        if name != without:
            header.write_text(f"#define CUDA_VERSION {version}\n")
    return root


def test_what_is_missing_is_said_before_cargo_starts(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        MissingToolError, match=r"needs CUDA's headers and `libclang.so`, .*\[E0650\].*transpile build"
    ) as caught:
        build.ensure(bare)
    assert isinstance(caught.value, BuildError) and "pip install 'cutile-transpiler[build]'" in caught.value.help
    monkeypatch.setenv("LIBCLANG_PATH", "/clang")
    for unfit in (_toolkit(tmp_path / "old", 12080), _toolkit(tmp_path / "part", without="curand.h"), Path("nowhere")):
        monkeypatch.setenv("CUDA_TOOLKIT_PATH", str(unfit))
        with pytest.raises(MissingToolError, match=r"needs CUDA's headers, not found here.*\[E0650\]"):
            build.ensure(bare)
    monkeypatch.delenv("LIBCLANG_PATH")
    monkeypatch.setenv("CUDA_TOOLKIT_PATH", str(_toolkit(tmp_path / "new")))
    with pytest.raises(MissingToolError, match=r"needs `libclang.so`, not found here.*\[E0650\]"):
        build.ensure(bare)
    assert _runs(bare) == 0


@pytest.mark.parametrize("include", ["include", "targets/x86_64-linux/include"])
@pytest.mark.parametrize("named", ["CUDA_TOOLKIT_PATH", "CUDA_HOME", ""])
def test_a_toolkit_without_the_transpiler(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, include: str
) -> None:
    root = _toolkit(tmp_path / "cuda", include=include)
    if named:
        monkeypatch.setenv(named, str(root))
    else:
        monkeypatch.setattr(needs, "_PLACES", (str(root),))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    (tmp_path / "libclang-cpp.so.14").touch()
    with pytest.raises(MissingToolError, match=r"needs `libclang.so`, not found here"):
        build.ensure(bare)
    (tmp_path / "libclang-14.so.1").touch()
    assert needs.cargo_environment() == {"CUDA_TOOLKIT_PATH": str(root)}
    assert build.ensure(bare).is_file()


def test_the_packages_of_the_transpiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They come before a toolkit that nobody named to cutile; what they lack is said as the command does."""
    for name in ("CUDA_TOOLKIT_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert needs.cargo_environment() == toolkit.build_environment()
    monkeypatch.setattr(needs, "_PLACES", ())
    toolkit.locate.cache_clear()
    known = toolkit._in_package
    monkeypatch.setattr(toolkit, "_in_package", lambda one: None if one is toolkit.CURAND_HEADER else known(one))
    with pytest.raises(
        MissingToolError, match=r"`curand.h` is not .* \[E0650\]: run `pip install 'cutile-tr.*build\]'`"
    ):
        build.ensure(folder)
    assert _runs(folder) == 0


def test_launches_find_the_assembler_of_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (needs.ASSEMBLER, needs.TOOLKIT, "CUDA_HOME"):
        monkeypatch.setenv(name, "")
    needs.name_assembler()
    assert Path(os.environ[needs.ASSEMBLER]) == toolkit.locate(toolkit.TILEIRAS)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tileiras").touch()
    for name, value in ((needs.TOOLKIT, tmp_path), ("CUDA_HOME", tmp_path)):
        monkeypatch.setenv(needs.ASSEMBLER, "")
        monkeypatch.setenv(name, str(value))
        needs.name_assembler()
        assert os.environ[needs.ASSEMBLER] == "", "the environment names one"
        monkeypatch.setenv(name, "")
    monkeypatch.setenv(needs.ASSEMBLER, "mine")
    needs.name_assembler()
    assert os.environ[needs.ASSEMBLER] == "mine"


def test_a_launch_without_an_assembler_says_where_there_is_one() -> None:
    """What cutile says then is known by its first words."""
    failed = from_code("COMPILE", "`k`: error: failed to launch tileiras tileiras: No such file or directory")
    assert isinstance(failed, CompileError) and "pip install 'cuda-tile[tileiras]'" in str(failed)
    assert "pip install" not in str(from_code("COMPILE", "`k`: tileiras failed while compiling"))


# -- The command --------------------------------------------------------------------------------------

_KERNEL = textwrap.dedent(
    """
    import cuda.tile as ct

    @ct.kernel
    def double(x, N: ct.Constant[int]):
        ct.store(x, (ct.bid(0),), ct.load(x, (ct.bid(0),), (N,)) * 2)
    """
)


@pytest.fixture
def translated(tmp_path: Path, folder: Path) -> Path:
    """A folder that transpile wrote; the stand-in for cargo reads op/kernel.rs."""
    (tmp_path / "op.py").write_text(_KERNEL)
    assert cli.main([str(tmp_path / "op.py"), "-o", str(tmp_path / "out"), "--no-verify"]) == 0
    return tmp_path / "out"


def test_the_command(translated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert cli.main(["build", str(translated)]) == 0
    assert capsys.readouterr().out.startswith(f"built {translated}/libcutile_kernels.so in ")
    assert cli.main(["build", str(translated)]) == 0
    assert capsys.readouterr().out == f"{translated}/libcutile_kernels.so is up to date\n"
    (translated / "op/kernel.rs").write_text("mistake")
    assert cli.main(["build", str(translated)]) == 1
    assert "error[E0840]" in (said := capsys.readouterr().err) and "cannot find value `mistake`" in said


def test_building_is_said_in_one_line(translated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert cli.main(["build", str(translated)]) == 0
    said = f"building {translated}/libcutile_kernels.so with cargo: some minutes the first time\n"
    assert capsys.readouterr().err == said
    assert cli.main(["build", str(translated)]) == 0
    assert capsys.readouterr().err == ""
    (translated / "op/kernel.rs").write_text("two")
    build.ensure(translated)
    assert capsys.readouterr() == ("", said), "nor is the build of a first launch silent"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_what_cargo_is_at(translated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert build_command.run_build(translated) == 0
    assert "building " in terminal.getvalue() and "compiling op (crate 1)" in terminal.getvalue()


def test_the_command_says_what_is_missing(
    translated: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs, "_PLACES", ())
    monkeypatch.delenv("CUDA_TOOLKIT_PATH", raising=False)
    monkeypatch.setattr(toolkit, "_in_package", lambda _: None)
    assert cli.main(["build", str(translated)]) == 2
    err = capsys.readouterr().err
    assert (
        "error[E0650]: `cuda.h`, `host_config.h`, `curand.h` and `libclang.so` are" in err
        and "'cutile-transpiler[build]'" in err
    )


def test_the_command_wants_a_folder_of_transpile(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", str(folder)]) == 2
    assert "E0821" in capsys.readouterr().err


# -- Operators with Holes, and deleted ones -----------------------------------------------------------

_HOLED = textwrap.dedent(
    """
    import cuda.tile as ct

    @ct.kernel
    def whole(x, N: ct.Constant[int]):
        ct.store(x, (ct.bid(0),), ct.load(x, (ct.bid(0),), (N,)) * 2)

    @ct.kernel
    def holed(x, N: ct.Constant[int]):
        ct.store(x, (ct.bid(0),), ct.cumprod(ct.load(x, (ct.bid(0),), (N,)), 0))
    """
)


@pytest.fixture
def with_hole(translated: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder of two operators, one of them with a kernel that has a Hole."""
    source = translated.parent / "hole.py"
    source.write_text(_HOLED)
    assert cli.main([str(source), "-o", str(translated), "--no-verify"]) == 3
    capsys.readouterr()
    return translated


def test_operators_with_holes_are_left_out_of_the_library(with_hole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "hole" not in (with_hole / "src/lib.rs").read_text()
    for said in ("built ", "libcutile_kernels.so is up to date"):
        assert cli.main(["build", str(with_hole)]) == 3
        shown = capsys.readouterr()
        assert said in shown.out
        assert "warning[W0840]: the library doesn't have the kernels of `hole`: `holed` has a Hole at " in shown.err
    assert (with_hole / "libcutile_kernels.so").read_text() == (with_hole / "op/kernel.rs").read_text()
    package = load_package(with_hole, "left_out_kernels")
    bindings = importlib.import_module(f"{package.__name__}.hole._bindings")
    for kernel in (bindings.whole, bindings.holed.replace_hints(occupancy=2)):
        with pytest.raises(Exception, match=r"the library doesn't have .*`holed` has a Hole at .*hole.py:10 \(E0302"):
            kernel.launch(0, (1,), (None, 4))


def test_a_filled_hole_brings_the_operator_back(with_hole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = with_hole.parent / "hole.py"
    assert cli.main([str(source), "-o", str(with_hole), "--no-verify", "--kernel", "whole"]) == 0
    assert cli.main(["build", str(with_hole)]) == 0
    assert "W0840" not in capsys.readouterr().err and "hole/mod.rs" in (with_hole / "src/lib.rs").read_text()


def test_nothing_to_build(with_hole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(with_hole / "op")
    assert cli.main(["build", str(with_hole)]) == 3
    assert "error[E0845]" in capsys.readouterr().err and _runs(with_hole) == 0


def test_a_deleted_operator_is_forgotten(with_hole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build.build(with_hole, {})
    shutil.rmtree(with_hole / "hole")
    deleted = f"warning[W0822]: `hole` was deleted from {with_hole}"
    assert cli.main(["verify", str(with_hole)]) == 0
    shown = capsys.readouterr()
    assert deleted in shown.err and "1 operator; 1 kernel; 1 entry" in shown.out
    assert cli.main(["build", str(with_hole)]) == 0
    assert deleted in capsys.readouterr().err and '"hole"' not in (with_hole / "manifest.json").read_text()
    assert cli.main(["build", str(with_hole)]) == 0
    assert "W0822" not in capsys.readouterr().err


def test_an_operator_of_the_library_that_is_deleted(with_hole: Path) -> None:
    shutil.rmtree(with_hole / "op")
    with pytest.raises(BuildError, match=r"/op was deleted: `transpile build .*` makes the library without it"):
        build.ensure(with_hole)
    assert _runs(with_hole) == 0


def test_a_batch_takes_deleted_operators_out(with_hole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [str(with_hole.parent / name) for name in ("op.py", "hole.py")]
    assert cli.main(["batch", *sources, "-o", str(with_hole)]) == 3
    shutil.rmtree(with_hole / "hole")
    capsys.readouterr()
    assert cli.main(["batch", sources[0], "-o", str(with_hole)]) == 0
    assert "W0822" in capsys.readouterr().err
    assert cli.main(["verify", str(with_hole)]) == 0 and "W0822" not in capsys.readouterr().err
    shutil.rmtree(with_hole / "op")
    assert cli.main(["batch", *sources, "-o", str(with_hole)]) == 3  # restored
    assert (with_hole / "op/kernel.rs").is_file() and "W0822" not in capsys.readouterr().err
