"""Whether DIR holds what the cache knows, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transpiler.cache import fingerprint
from transpiler.cache.folder import CacheFolder, key_of
from transpiler.cache.operators import KnownOperator, stored_digest
from transpiler.inputs import file_digest

_KIND = "crates"
_MANIFEST = "manifest.json"


def stale_operators(
    folder: CacheFolder, path: Path, tool: dict[str, str], known: Sequence[KnownOperator]
) -> list[KnownOperator]:
    """Return the operators that have to be written to DIR again; all of them when the files at its top aren't right."""
    row = _read_manifest(path)
    if row is None or row.get("tool") != tool or not _top_is_right(folder, path, row):
        return list(known)
    rows = {one["plan"]["name"]: one for one in row["operators"]}
    return [one for one in known if not _is_right(path / one.listed.name, rows.get(one.listed.name), one.stored)]


def store_crate(folder: CacheFolder, path: Path) -> None:
    """Remember the files at the top of DIR, which has just been written."""
    row = _read_manifest(path)
    if row is not None:
        folder.put_json(_KIND, _crate_key(row), row["files"])


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        row = json.loads((path / _MANIFEST).read_bytes())
        names = [one["plan"]["name"] for one in row["operators"]]
        files = [path for one in (row, *row["operators"]) for path in one["files"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return row if all(isinstance(text, str) for text in (*names, *files)) else None


def _top_is_right(folder: CacheFolder, path: Path, row: dict[str, Any]) -> bool:
    return row["files"] == folder.get_json(_KIND, _crate_key(row)) and _files_are(path, row["files"])


def _is_right(path: Path, row: Any, stored: str) -> bool:
    return row is not None and stored_digest(row) == stored and _files_are(path, row["files"])


def _files_are(path: Path, digests: dict[str, str]) -> bool:
    return all(file_digest(path / name) == known for name, known in digests.items())


def _crate_key(row: dict[str, Any]) -> str:
    return key_of(fingerprint.tool(), row.get("format"), [one["plan"]["name"] for one in row["operators"]])
