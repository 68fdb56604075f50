"""The folder of cached results: any number of processes may use it, and damage costs only the damaged entry."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

PATH_VARIABLE = "TRANSPILE_CACHE"
_MAX_BYTES = 256 << 20
_MAX_FILES = 40_000
_DIGEST_LENGTH = 64


def default_path() -> Path | None:
    """Return where results are cached: $TRANSPILE_CACHE, or else the user's cache folder; None without a home."""
    named = os.environ.get(PATH_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base, "cutile-transpiler")
    try:
        return Path.home() / ".cache" / "cutile-transpiler"
    except RuntimeError:
        return None


def key_of(*parts: object) -> str:
    """Return the digest of plain data."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class CacheFolder:
    """Entries by kind and key.  A file starts with the digest of the rest; one that doesn't fit isn't there.

    Files are made beside their place and moved into it.  A folder that can't be written to only caches nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._stored = 0

    def get(self, kind: str, key: str) -> bytes | None:
        """Return an entry, or None; a damaged one is removed."""
        place = self._place(kind, key)
        if place is None:
            return None
        try:
            data = place.read_bytes()
        except OSError:
            return None
        body = data[_DIGEST_LENGTH + 1 :]
        if data[: _DIGEST_LENGTH + 1] != _head(body):
            with contextlib.suppress(OSError):
                place.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(place)  # the oldest go first when there are too many
        return body

    def get_json(self, kind: str, key: str) -> Any:
        """Return an entry as plain data, or None."""
        data = self.get(kind, key)
        return None if data is None else json.loads(data)

    def put(self, kind: str, key: str, data: bytes) -> None:
        """Store an entry."""
        place = self._place(kind, key)
        if place is None:
            return
        temporary = place.with_name(f".new-{os.getpid()}-{key}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary.write_bytes(_head(data) + data)
            os.replace(temporary, place)
            self._stored += 1
        except OSError:
            self.path = None  # a full disk, a folder of somebody else: go on without
        finally:  # an interrupt may come anywhere
            with contextlib.suppress(OSError):
                temporary.unlink()

    def put_json(self, kind: str, key: str, value: object) -> None:
        """Store plain data."""
        if self.path is not None:
            self.put(kind, key, json.dumps(value).encode())

    def prune(self) -> None:
        """Remove what was used the longest time ago where there is too much; only after something was stored."""
        if self.path is None or not self._stored:
            return
        rows = sorted((stat.st_mtime_ns, stat.st_size, name) for name, stat in _files(self.path))
        total, left = sum(size for _, size, _ in rows), len(rows)
        for _, size, name in rows:
            if total <= _MAX_BYTES and left <= _MAX_FILES:
                return
            with contextlib.suppress(OSError):
                os.unlink(name)
            total, left = total - size, left - 1

    def _place(self, kind: str, key: str) -> Path | None:
        return None if self.path is None else self.path / kind / key[:2] / key


def _head(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode() + b"\n"


def _files(folder: Path) -> list[tuple[str, os.stat_result]]:
    found = []
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                found.append((os.path.join(where, name), os.stat(os.path.join(where, name))))
    return found
