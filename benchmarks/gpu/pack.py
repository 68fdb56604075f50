"""Packs what a GPU machine without internet needs: ``make gpu-pack``.

    python benchmarks/gpu/pack.py DIR --tests TILEGYM_CHECKOUT -o OUT

DIR is a folder of translated operators with its library (`transpile build DIR`), TILEGYM_CHECKOUT the public
repository, whose tests get the backend ``cutile-rs``. OUT holds the benchmarks, the tests, the kernels, TileGym and
the Python packages that they need; with --toolchain, OUT/../cu.tar.xz holds the assembler.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

import transpiler
from transpiler import toolkit
from transpiler.changeset.test_backends import BACKEND, add_backend

HERE = Path(__file__).resolve().parent
PYTHON = "3.12"
WHEELS = ("cuda-tile", "cffi", "pycparser", "pyelftools")
OURS = ("__init__.py", "cubin.py", "diagnostics.py", "toolkit.py")
"""Modules of the transpiler that compare machine code."""
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
TESTED = ("ops", "suites")
"""Folders of the tests that launch kernels of operators."""
LIMIT = 62 * 2**20
ENV = """\
# Source this on the GPU machine, from the packed folder, once cu.tar.xz has been unpacked to /tmp.
export PATH=/tmp/cu/bin:$PATH CUDA_TOOLKIT_PATH=/tmp/cu
unset CUDA_HOME CUDA_PATH
export PYTHONPATH=$PWD/site:$PWD:$PWD/kernels PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
"""


def main() -> None:
    """Write the folder anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--tests", type=Path, metavar="TILEGYM_CHECKOUT")
    parser.add_argument("-o", "--out", type=Path, default=Path(".dev/gpu"))
    parser.add_argument("--toolchain", action="store_true")
    options = parser.parse_args()
    out: Path = options.out
    for part in ("site", "kernels", "tests"):
        shutil.rmtree(out / part, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    for file in (*HERE.glob("*.py"), *HERE.glob("*.toml")):
        shutil.copy(file, out / file.name)
    shutil.copytree(HERE / "own", out / "own", dirs_exist_ok=True)
    (out / "env.sh").write_text(ENV, encoding="utf-8")
    (out / "versions.json").write_text(json.dumps(versions()), encoding="utf-8")
    (out / "commit").write_text(commit(), encoding="utf-8")
    pack_kernels(options.folder, out / "kernels")
    pack_site(out / "site")
    if options.tests is not None:
        pack_tests(options.tests, out / "tests")
    if options.toolchain:
        pack_toolchain(out.parent / "cu.tar.xz")
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{out}: {size / 2**20:.1f} MiB")
    if size > LIMIT:
        sys.exit(f"more than {LIMIT / 2**20:.0f} MiB: too large to send at once")


def versions() -> dict[str, str]:
    """Return the versions that the kernels were made with."""
    wanted = ("cutile-transpiler", "nvidia-cuda-tileiras", "cutile", "cutile-compiler")
    return {name: version for name, version in toolkit.versions().items() if name in wanted}


def commit() -> str:
    """Return the commit that the kernels were made at, "-dirty" if something else was there, too."""
    described = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    return subprocess.run(described, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def pack_kernels(folder: Path, out: Path) -> None:
    """Copy the Python side of the operators, and their library."""
    for path in sorted(folder.rglob("*.py")):
        if "target" not in path.relative_to(folder).parts and "reference" not in path.relative_to(folder).parts:
            target = out / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    shutil.copy(folder / "libcutile_kernels.so", out)


def pack_site(out: Path) -> None:
    """Unpack wheels for the GPU machine's Python, and copy TileGym."""
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        pinned = [f"{name}=={metadata.version(name)}" for name in WHEELS]
        platforms = [option for platform in PLATFORMS for option in ("--platform", platform)]
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
                   "--python-version", PYTHON, "--implementation", "cp", *platforms, "-d", folder, *pinned]  # fmt: skip
        subprocess.run(command, check=True)
        for wheel in Path(folder).glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(out)
    for file in metadata.files("tilegym") or ():
        source = Path(str(file.locate()))
        if source.is_file() and "__pycache__" not in source.parts and ".." not in file.parts:
            target = out / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    shutil.copytree(Path(transpiler.__file__).parent / "record" / "inject", out.parent / "inject", dirs_exist_ok=True)
    (out / "transpiler").mkdir()
    for name in OURS:
        shutil.copy(Path(toolkit.__file__).with_name(name), out / "transpiler")


def pack_tests(checkout: Path, out: Path) -> None:
    """Copy the tests of a checkout (a work tree or a bare repository), with the backend in those of kernels.

    Says of which files the codemod finds no list of backends; those run with no backend of ours.
    """
    listed = subprocess.run(
        ["git", "-C", str(checkout), "archive", "HEAD", "tests"], capture_output=True, check=True
    ).stdout  # fmt: skip
    subprocess.run(["tar", "x", "-C", str(out.parent)], input=listed, check=True)
    unreached = []
    for path in sorted(file for part in TESTED for file in (out / part).rglob("test_*.py")):
        text = add_backend(path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
        if BACKEND not in text:
            unreached.append(path.relative_to(out).as_posix())
    if unreached:
        print(f"tests that no backend was added to: {', '.join(unreached)}")


def pack_toolchain(out: Path) -> None:
    """Pack the assembler, what it runs and what it loads, stripped."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "cu"
        (root / "bin").mkdir(parents=True)
        (root / "nvvm/lib64").mkdir(parents=True)
        for tool in (toolkit.TILEIRAS, toolkit.PTXAS):
            shutil.copy(toolkit.locate(tool), root / "bin")
        nvvm = toolkit.locate(toolkit.TILEIRAS).parent.parent / "lib/libnvvm.so.4"
        shutil.copy(nvvm, root / "nvvm/lib64/libnvvm.so.4")
        (root / "nvvm/lib64/libnvvm.so").symlink_to("libnvvm.so.4")
        subprocess.run(["strip", *map(str, (root / "bin").iterdir())], check=True)
        subprocess.run(["tar", "cJf", str(out.resolve()), "-C", folder, "cu"], check=True)


if __name__ == "__main__":
    main()
