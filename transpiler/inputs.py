"""What a result was made from, outside of the program itself: files read, files that weren't there, packages found.

A result is still good while all of it is as it was; that can be checked without parsing anything.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Lookups:
    """Collects what a reader of sources looks for; paths are absolute."""

    files: dict[str, None] = field(default_factory=dict)
    absent: dict[str, None] = field(default_factory=dict)
    packages: dict[str, str | None] = field(default_factory=dict)
    folders: dict[str, None] = field(default_factory=dict)

    def python_files(self, folder: Path) -> list[Path]:
        """Return the Python files of a folder, all of which are read."""
        self.folders[str(folder.absolute())] = None
        found = sorted(folder.glob("*.py"))
        for path in found:
            self.read(path)
        return found

    def read(self, path: Path) -> None:
        """Note a file that is read."""
        self.files[str(path.absolute())] = None

    def first_file(self, candidates: Iterable[Path]) -> Path | None:
        """Return the first of several paths that is a file; those before it must go on missing."""
        for path in candidates:
            if path.is_file():
                return path
            self.absent[str(path.absolute())] = None
        return None

    def module(self, base: Path) -> Path | None:
        """Return the source of the module at ``base`` (without ``.py``): a package goes before a file, as in Python."""
        return self.first_file((base / "__init__.py", base.with_name(base.name + ".py")))

    def package(self, top: str) -> Path | None:
        """Return the folder that holds an installed top-level package, found without importing it."""
        root = package_root(top)
        self.packages[top] = None if root is None else str(root)
        return root

    def add(self, other: Lookups) -> None:
        """Add what another reader looked for."""
        self.files |= other.files
        self.absent |= other.absent
        self.packages |= other.packages
        self.folders |= other.folders

    def inputs(self, *, since_ns: int) -> Inputs | None:
        """Digest everything; None when a file changed after ``since_ns`` (it may have been read before that)."""
        files = {}
        for name in self.files:
            try:
                if Path(name).stat().st_mtime_ns >= since_ns:
                    return None
            except OSError:
                return None
            found = file_digest(Path(name))
            if found is None:
                return None
            files[name] = found
        folders = {name: python_names(Path(name)) for name in self.folders}
        return Inputs(files, tuple(self.absent), dict(self.packages), folders)


@dataclass(frozen=True)
class Inputs:
    """Files and their SHA-256, paths where nothing may be, folders of installed packages, names of Python files."""

    files: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    packages: Mapping[str, str | None] = field(default_factory=dict)
    folders: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def unchanged(self) -> bool:
        """Whether everything is as it was."""
        return (
            all(file_digest(Path(name)) == known for name, known in self.files.items())
            and not any(Path(name).exists() for name in self.absent)
            and all(_text(package_root(top)) == known for top, known in self.packages.items())
            and all(python_names(Path(name)) == list(known) for name, known in self.folders.items())
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that :meth:`from_json` reads."""
        return {"files": dict(self.files), "absent": list(self.absent), "packages": dict(self.packages),
                "folders": {name: list(known) for name, known in self.folders.items()}}  # fmt: skip

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> Inputs:
        """Read what :meth:`to_json` gave."""
        return Inputs(row["files"], tuple(row["absent"]), row["packages"], row["folders"])


_digests: dict[tuple[str, int, int, int], str] = {}


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file's bytes, None when it can't be read; each state of a file is read once a process."""
    try:
        stat = path.stat()
        mark = (str(path), stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if mark not in _digests:
            _digests[mark] = hashlib.sha256(path.read_bytes()).hexdigest()
        return _digests[mark]
    except OSError:
        return None


def python_names(folder: Path) -> list[str]:
    """Return the names of the Python files in a folder."""
    try:
        return sorted(path.name for path in folder.glob("*.py"))
    except OSError:
        return []


def package_root(top: str) -> Path | None:
    """Return the folder that holds an installed top-level package, or None."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))).parent


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
