"""The PEP 517 backend: maturin, with CUDA headers and libclang taken from the build requirements.

Nothing but Rust and gcc has to be on the machine. Three things are added to maturin's hooks: the
environment that the CUDA bindings are generated in, a check that gives one clear message when a
compiler is missing, and the data files (templates, corpus, Rust to copy) that wheels carry inside the package.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maturin

from transpiler import toolkit
from transpiler.diagnostics import TranspileError

if TYPE_CHECKING:
    from collections.abc import Iterator

Settings = dict[str, Any] | None

ROOT = Path(__file__).resolve().parent.parent
DATA = ("templates", "corpus", "rust_runtime/support/src")


def _put_maturin_on_path() -> None:
    """Make maturin's hooks run the program of the package that they belong to: they look for it in PATH."""
    for file in metadata.files("maturin") or ():
        if file.name == "maturin" and file.parent.name == "bin":
            folder = os.path.normpath(Path(str(file.locate())).parent)
            os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])


_put_maturin_on_path()

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
build_sdist = maturin.build_sdist


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build a wheel that carries the data files."""
    os.environ.update(cargo_environment())
    with _packaged_data():
        return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Build the extension into the checkout; data files are read where they are."""
    os.environ.update(cargo_environment())
    return str(maturin.build_editable(wheel_directory, config_settings, metadata_directory))


def cargo_environment() -> dict[str, str]:
    """Return what cargo needs for the crates that bind CUDA; ends the program when a compiler is missing."""
    for program, what in (("cargo", "Rust (https://rustup.rs)"), (os.environ.get("CC", "gcc"), "a C compiler")):
        if shutil.which(program) is None:
            raise SystemExit(f"`{program}` was not found: building this package needs {what}")
    try:
        wanted = toolkit.build_environment()
    except TranspileError as exc:
        raise SystemExit(f"{exc.diagnostic.message}\n{exc.diagnostic.help}") from None
    return wanted | {"CUDA_TOOLKIT_PATH": str(_stable(Path(wanted["CUDA_TOOLKIT_PATH"])))}


def _stable(toolkit_root: Path) -> Path:
    """Return a directory with the headers that is the same at every build.

    Under build isolation the packages lie in a directory that is made anew for each build. The CUDA
    bindings, and all that depends on them, are rebuilt when it changes: copy the headers beside cargo's results.
    """
    if toolkit_root.is_relative_to(sysconfig.get_path("purelib")):
        return toolkit_root
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "cuda-toolkit"
    copy, source = target / "include", toolkit_root / "include"
    if not copy.is_dir() or _fingerprint(copy) != _fingerprint(source):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
    return target


def _fingerprint(directory: Path) -> list[tuple[str, int]]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return sorted((str(path.relative_to(directory)), path.stat().st_size) for path in files)


@contextlib.contextmanager
def _packaged_data() -> Iterator[None]:
    """Copy the data files into the package while the wheel is built."""
    packaged = ROOT / "transpiler" / "_data"
    shutil.rmtree(packaged, ignore_errors=True)
    try:
        for name in DATA:
            shutil.copytree(ROOT / name, packaged / name)
        yield
    finally:
        shutil.rmtree(packaged, ignore_errors=True)
