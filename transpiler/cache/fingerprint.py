"""Digests of the tool itself: results of another version of it are worth nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from transpiler import toolkit
from transpiler.cache.folder import key_of
from transpiler.inputs import file_digest
from transpiler.resources import support_dir, templates_dir

JUDGE = (
    "_rust.abi3.so", "cubin.py", "diagnostics.py", "execute", "identifiers.py", "inputs.py", "internal.py",
    "reference", "report/model.py", "spec.py", "temporary.py", "tileir", "toolkit.py", "verify.py",
)  # fmt: skip
"""What of the package decides a check once its two sides are given (tests/test_cache.py: it imports nothing else)."""

_LIBRARIES = ("jinja2", "libcst", "ml_dtypes", "numpy", "pydantic")
_PACKAGE = Path(__file__).resolve().parents[1]
_SUFFIXES = (".py", ".so", ".j2", ".rs", ".toml")


@cache
def tool() -> str:
    """Digest everything that translating and checking depend on: code, rules, templates, extension, versions."""
    rows = [(name, file_digest(path)) for root in _roots() for name, path in _tree(root)]
    return key_of("tool", rows, _environment())


@cache
def judge() -> str:
    """Digest what checking depends on, once the generated Rust and the closure are given."""
    rows = [(name, file_digest(path)) for name, path in _tree(_PACKAGE) if _is_judge(name)]
    return key_of("judge", rows, _environment())


def _is_judge(name: str) -> bool:
    return any(name == part or name.startswith(f"{part}/") for part in JUDGE)


def _roots() -> list[Path]:
    return [_PACKAGE, templates_dir(), support_dir()]


def _environment() -> object:
    """Versions, and the state of a toolkit that takes the place of the installed packages."""
    override = os.environ.get(toolkit.OVERRIDE, "")
    tools = [_state(Path(override, part.path)) for part in (toolkit.TILEIRDISASM, toolkit.TILEIRAS, toolkit.PTXAS)]
    return [toolkit.versions(), [_version(name) for name in _LIBRARIES], override, tools if override else []]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def _state(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _tree(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder with their relative names, in order."""
    for where, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith(_SUFFIXES):
                path = Path(where, name)
                yield path.relative_to(root).as_posix(), path
