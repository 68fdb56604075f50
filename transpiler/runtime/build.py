"""The library of a folder, built with cargo: only when a source changed, and by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import LibraryError

NAME = "libcutile_kernels.so"
STAMP = "libcutile_kernels.digest"
"""Beside the library: the digest of the sources that it was built from."""
AUTOBUILD = "CUTILE_KERNELS_AUTOBUILD"
"""Environment variable; ``0`` takes the library as it is and never builds."""

_PATH = re.compile(r'#\[path = "([^"]+)"\]')
_LOCK = ".build.lock"
_SHOWN = 4000


class BuildError(LibraryError):
    """The library could not be built; the one that was there before, if any, is still there."""


@dataclass(frozen=True)
class Built:
    """A library that fits its sources: where it is, whether it had to be built, and how long that took."""

    path: Path
    built: bool
    seconds: float


def sources(root: Path) -> list[Path]:
    """Return what the library is built from, sorted: the crate, and the folders that its lib.rs names."""
    found = {*root.glob("Cargo.toml"), *root.glob("src/**/*.rs")}
    library = root / "src" / "lib.rs"
    named = _PATH.findall(library.read_text(encoding="utf-8")) if library.is_file() else []
    for folder in {(library.parent / path).parent for path in named}:
        found |= {Path(os.path.normpath(path)) for path in folder.glob("*.rs")}
    return sorted(found)


def digest(root: Path) -> str:
    """Return a digest of the names and contents of all sources."""
    state = hashlib.sha256()
    for path in sources(root):
        for part in (os.path.relpath(path, root).encode(), path.read_bytes()):
            state.update(len(part).to_bytes(8, "little"))
            state.update(part)
    return state.hexdigest()


def is_fresh(root: Path) -> bool:
    """Was the library built from the sources as they are?"""
    stamp = root / STAMP
    try:
        return (root / NAME).is_file() and stamp.read_text(encoding="utf-8").strip() == digest(root)
    except OSError:
        return False


def ensure(root: Path) -> Path:
    """Return the library of a folder, built when it is missing or older than its sources. Raises LibraryError.

    A folder without sources, and ``CUTILE_KERNELS_AUTOBUILD=0``, leave the library as it is.
    """
    library = root / NAME
    given = os.environ.get(AUTOBUILD, "1").lower() in ("0", "false", "no") or not (root / "Cargo.toml").is_file()
    if given and library.is_file():
        return library
    if given:
        raise LibraryError(f"the library of kernels is not there ({library}); `transpile build {root}` makes it")
    return library if is_fresh(root) else build(root).path


def build(root: Path, environment: Mapping[str, str] | None = None) -> Built:
    """Build a folder's library unless it is fresh; raises BuildError with what the compiler says.

    ``environment`` is added to this process's own; left out, the headers and libclang are looked for.
    """
    started = time.perf_counter()
    with _locked(root):
        built = not is_fresh(root)
        if built:
            _refuse_deleted(root)
            known = digest(root)
            made = _cargo(root, _environment() if environment is None else environment)
            _install(made, root / NAME)
            _install_text(known + "\n", root / STAMP)
    return Built(root / NAME, built, time.perf_counter() - started)


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Wait until no other process builds this folder."""
    try:
        handle = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as exc:
        raise BuildError(f"can't build in {root}: {exc.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _refuse_deleted(root: Path) -> None:
    """Raise BuildError where an operator's folder was deleted."""
    library = root / "src" / "lib.rs"
    named = _PATH.findall(library.read_text(encoding="utf-8")) if library.is_file() else []
    gone = [(library.parent / path).parent.resolve() for path in named if not (library.parent / path).is_file()]
    if gone:
        raise BuildError(
            f"{', '.join(map(str, gone))} was deleted: `transpile build {root}` makes the library without it"
        )


def _cargo(root: Path, environment: Mapping[str, str]) -> Path:
    """Run cargo and return the library that it made."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise BuildError(f"{root / NAME} has to be built, and `cargo` was not found: install Rust (https://rustup.rs)")
    command = [cargo, "build", "--release", "--message-format=json-render-diagnostics"]
    try:
        done = subprocess.run(
            command, cwd=root, env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )
    except OSError as exc:
        raise BuildError(f"`cargo` does not run: {exc.strerror}") from None
    if done.returncode:
        raise BuildError(f"cargo could not build the library of {root}:\n{_essence(done.stderr)}")
    made = [Path(path) for path in _artifacts(done.stdout) if Path(path).name == NAME]
    if not made:
        raise BuildError(f"cargo made no {NAME} in {root}: the crate has to be a cdylib called cutile_kernels")
    return made[-1]


def _artifacts(output: str) -> Iterator[str]:
    """The files that cargo says it made."""
    for line in output.splitlines():
        if line.startswith("{"):
            message: dict[str, Any] = json.loads(line)
            if message.get("reason") == "compiler-artifact":
                yield from message.get("filenames", ())


def _essence(said: str) -> str:
    """The errors among what cargo says, or the end of it."""
    start = min((i for i in (said.find("\nerror"), said.find("error: ")) if i >= 0), default=-1)
    text = said[start:].strip() if start >= 0 else said.strip()[-_SHOWN:]
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "\n.."


def _environment() -> dict[str, str]:
    """What the bindings of CUDA are generated with, where the environment doesn't say it already."""
    named = Path(os.environ.get("CUDA_TOOLKIT_PATH", "")) / "include" / "cuda.h"
    if named.is_file():
        return {}
    try:
        toolkit: Any = importlib.import_module("transpiler.toolkit")
        found: dict[str, str] = toolkit.build_environment()
        return found
    except Exception:  # not installed, or not with what building takes: cargo will say what is missing
        default = Path("/usr/local/cuda")
        return {"CUDA_TOOLKIT_PATH": str(default)} if (default / "include/cuda.h").is_file() else {}


def _install(made: Path, place: Path) -> None:
    """Put a file in its place at once: processes that use the old one keep it."""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        os.close(handle)
        try:
            shutil.copyfile(made, temporary)
            os.chmod(temporary, 0o755)
            os.replace(temporary, place)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as exc:
        raise BuildError(f"can't write {place}: {exc.strerror}") from None


def _install_text(text: str, place: Path) -> None:
    temporary = place.with_name(f".{place.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, place)
