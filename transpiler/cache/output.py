"""Whether DIR holds what the cache knows, byte for byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transpiler.cache import fingerprint
from transpiler.cache.folder import CacheFolder, key_of
from transpiler.cache.operators import KnownOperator, stored_digest
from transpiler.inputs import file_digest

_CRATES, _FOLDERS = "crates", "folders"
_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class _State:
    """What a manifest says: versions, digests of the files at the top, and of each operator and its files.

    ``library`` are the operators that the crate has.
    """

    format: str
    tool: dict[str, str]
    files: dict[str, str]
    operators: dict[str, tuple[str, dict[str, str]]]
    library: list[str]

    @property
    def crate(self) -> str:
        """What the files at the top depend on."""
        return key_of(fingerprint.tool(), self.format, sorted(self.library))


def stale_operators(
    folder: CacheFolder, path: Path, tool: dict[str, str], known: Sequence[KnownOperator]
) -> list[KnownOperator]:
    """Return the operators that have to be written to DIR again; all of them when the files at its top aren't right."""
    state = _state(folder, path)
    if state is None or state.tool != tool or not _top_is_right(folder, path, state):
        return list(known)
    return [one for one in known if not _is_right(path / one.listed.name, state.operators.get(one.listed.name), one)]


def removed_operators(folder: CacheFolder, path: Path) -> list[str]:
    """Return the operators of DIR whose folders were deleted."""
    state = _state(folder, path)
    return [name for name in state.operators if not (path / name).is_dir()] if state is not None else []


def store_state(folder: CacheFolder, path: Path) -> None:
    """Remember DIR, which has just been written: the files at its top, and what its manifest says."""
    data = _manifest(path)
    state = None if data is None else _parsed(data)
    if data is not None and state is not None:
        folder.put_json(_CRATES, state.crate, state.files)
        folder.put_json(_FOLDERS, _folder_key(path, data), asdict(state))


def _state(folder: CacheFolder, path: Path) -> _State | None:
    """What the manifest in DIR says; a manifest that was seen before isn't parsed again."""
    data = _manifest(path)
    if data is None:
        return None
    row = folder.get_json(_FOLDERS, _folder_key(path, data))
    if row is None:
        return _parsed(data)
    operators = {name: (stored, files) for name, (stored, files) in row["operators"].items()}
    return _State(row["format"], row["tool"], row["files"], operators, row["library"])


def _manifest(path: Path) -> bytes | None:
    try:
        return (path / _MANIFEST).read_bytes()
    except OSError:
        return None


def _folder_key(path: Path, manifest: bytes) -> str:
    return key_of(fingerprint.tool(), str(path.resolve()), hashlib.sha256(manifest).hexdigest())


def _parsed(data: bytes) -> _State | None:
    try:
        row: Any = json.loads(data)
        operators = {one["plan"]["name"]: (stored_digest(one), dict(one["files"])) for one in row["operators"]}
        library = [one["plan"]["name"] for one in row["operators"] if one.get("in_library", True)]
        state = _State(row["format"], row["tool"], dict(row["files"]), operators, library)
    except (ValueError, KeyError, TypeError):
        return None
    names = [*state.files, *(name for _, files in operators.values() for name in files), *operators]
    return state if all(isinstance(name, str) for name in names) else None


def _top_is_right(folder: CacheFolder, path: Path, state: _State) -> bool:
    return state.files == folder.get_json(_CRATES, state.crate) and _files_are(path, state.files)


def _is_right(path: Path, written: tuple[str, dict[str, str]] | None, known: KnownOperator) -> bool:
    return written is not None and written[0] == known.stored and _files_are(path, written[1])


def _files_are(path: Path, digests: dict[str, str]) -> bool:
    return all(file_digest(path / name) == known for name, known in digests.items())
