"""The library of a folder, built with cargo: only when a source changed, and by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import BuildError, LibraryError
from .needs import cargo_environment

NAME = "libcutile_kernels.so"
STAMP = "libcutile_kernels.digest"
"""Beside the library: the digest of the sources that it was built from."""
AUTOBUILD = "CUTILE_KERNELS_AUTOBUILD"
"""Environment variable; ``0`` takes the library as it is and never builds."""

_PATH = re.compile(r'#\[path = "([^"]+)"\]')
_LOCK = ".build.lock"
_SHOWN = 4000
_STARTED = re.compile(r"^\s*(Compiling|Downloading) (?:(\S+) v\S+)?")

Watch = Callable[[Path], AbstractContextManager[Callable[[str], None]]]
"""Shows that a library is being built: entered with the library's path, its function is given each crate's name."""


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


@contextlib.contextmanager
def say(library: Path) -> Iterator[Callable[[str], None]]:
    """Say in one line that a library is built."""
    print(f"building {library} with cargo: some minutes the first time", file=sys.stderr, flush=True)
    yield lambda _crate: None


def build(root: Path, environment: Mapping[str, str] | None = None, watch: Watch = say) -> Built:
    """Build a folder's library unless it is fresh; raises BuildError with what the compiler says.

    ``environment`` is added to this process's own; left out, the headers and libclang are looked for
    (MissingToolError).
    """
    started = time.perf_counter()
    with _locked(root):
        built = not is_fresh(root)
        if built:
            _refuse_deleted(root)
            known = digest(root)
            added = cargo_environment() if environment is None else environment
            with watch(root / NAME) as tell:
                made = _cargo(root, added, tell)
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


def _cargo(root: Path, environment: Mapping[str, str], tell: Callable[[str], None]) -> Path:
    """Run cargo and return the library that it made."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise BuildError(f"{root / NAME} has to be built, and `cargo` was not found: install Rust (https://rustup.rs)")
    command = [cargo, "build", "--release", "--message-format=json-render-diagnostics"]
    try:
        status, messages, said = _followed(command, root, {**os.environ, **environment}, tell)
    except OSError as exc:
        raise BuildError(f"`cargo` does not run: {exc.strerror}") from None
    if status:
        raise BuildError(f"cargo could not build the library of {root}:\n{_essence(said)}")
    made = [Path(path) for path in _artifacts(messages) if Path(path).name == NAME]
    if not made:
        raise BuildError(f"cargo made no {NAME} in {root}: the crate has to be a cdylib called cutile_kernels")
    return made[-1]


def _followed(
    command: list[str], root: Path, environment: Mapping[str, str], tell: Callable[[str], None]
) -> tuple[int, str, str]:
    """Run cargo to its end, telling what it starts on; returns exit status, messages and what it said."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as messages,
        subprocess.Popen(command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=messages,
                         stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace") as running,
    ):  # fmt: skip
        assert running.stderr is not None
        said = []
        try:
            for line in running.stderr:
                said.append(line)
                started = _STARTED.match(line)
                if started is not None:
                    tell(started[2] or "")
            status = running.wait()
        except BaseException:
            running.kill()
            raise
        messages.seek(0)
        return status, messages.read(), "".join(said)


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
