"""A checkout of TileGym: what changes in it, whether that would lose somebody's work, the patch. Git's index stays."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transpiler.diagnostics import error
from transpiler.report.output import write_whole

Edit = Callable[[str], str]
_RECORD = "cutile-transpiler.json"
"""In git's own folder: digests of what earlier runs wrote, by path, an empty one for files that they deleted."""
_NAMED = 5


@dataclass(frozen=True)
class Changed:
    """The paths of files, sorted."""

    made: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)


class Checkout:
    """A work tree with a last commit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._prefix = self._git("rev-parse", "--show-prefix").rstrip("\n")
        self._record = root / self._git("rev-parse", "--git-path", _RECORD).rstrip("\n")
        self._git("rev-parse", "--verify", "HEAD^{commit}")

    def tracked(self, folder: str) -> list[str]:
        """Return the tracked files below a folder that are there."""
        listed = self._git("ls-files", "-z", folder).split("\0")
        return [path for path in listed if path and (self.root / path).is_file()]

    def text(self, path: str) -> str | None:
        """Return a file as it is, None where there is none that is text."""
        try:
            return (self.root / path).read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def change(self, files: Mapping[str, str | None], edits: Mapping[str, Edit]) -> tuple[Changed, list[str]]:
        """Write files (None: delete them) and edit others; returns what changed, and the paths of all that is ours.

        Raises E0846, before anything is written, when a change that isn't committed would be lost or come into the
        patch. What an earlier run wrote is none, whatever commits there are since.
        """
        texts, foreign = dict(files), []
        uncommitted, known = self._uncommitted([*files, *edits]), self._known()
        for path, wanted in files.items():
            if path in uncommitted and self.text(path) != wanted and not self._ours(path, known):
                foreign.append(path)
        for path, edit in edits.items():
            before = self.text(path)
            if before is None:
                foreign.append(path)
                continue
            after = edit(before)
            if path in uncommitted and not self._ours(path, known):
                committed = self._committed(path)
                if after == before and committed is not None and edit(committed) == committed:
                    continue  # theirs, and nothing of ours is needed
                if committed is None or before != edit(committed):
                    foreign.append(path)
            texts[path] = after
        if foreign:
            raise _would_be_lost(self.root, sorted(foreign))
        return self._write(texts, known), sorted({*texts, *(path for path in known if self._ours(path, known))})

    def patch(self, paths: Sequence[str]) -> str:
        """Return how files differ from the last commit, new ones too; made with an index of its own."""
        with tempfile.TemporaryDirectory() as folder:
            own = {"GIT_INDEX_FILE": str(Path(folder) / "index"), "GIT_LITERAL_PATHSPECS": "1"}
            self._git("read-tree", "HEAD", own=own)
            listed = "\0".join(
                path for path in paths if (self.root / path).is_file() or self._committed(path) is not None
            )
            self._git("add", "--all", "--force", "--pathspec-from-file=-", "--pathspec-file-nul", own=own, stdin=listed)
            return self._git("diff", "--cached", "--no-color", "--no-ext-diff", "HEAD", own=own)

    # What is whose

    def _uncommitted(self, paths: Iterable[str]) -> set[str]:
        """Those of some paths that differ from the last commit, in the work tree or in the index, or are untracked."""
        said = self._git("status", "--porcelain", "-z", "--untracked-files=all", "--ignored", "--no-renames", "--", ".")
        found = {row[3:].removeprefix(self._prefix) for row in said.split("\0") if row}
        folders = tuple(path for path in found if path.endswith("/"))  # ignored as a whole, or another repository
        return {path for path in paths if path in found or path.startswith(folders)}

    def _committed(self, path: str) -> str | None:
        listed = self._git("ls-tree", "--name-only", "HEAD", "--", path)
        return self._git("show", f"HEAD:./{path}") if listed else None

    def _known(self) -> dict[str, str]:
        try:
            known = json.loads(self._record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(path): str(digest) for path, digest in known.items()} if isinstance(known, dict) else {}

    def _ours(self, path: str, known: Mapping[str, str]) -> bool:
        """Is a file as an earlier run left it?"""
        return path in known and known[path] == _digest(self.text(path))

    # Writing

    def _write(self, texts: Mapping[str, str | None], known: Mapping[str, str]) -> Changed:
        digests = {path: _digest(text) for path, text in texts.items()}
        write_whole(self._record, json.dumps({**known, **digests}, indent=1, sort_keys=True) + "\n")
        done = Changed()
        for name, text in sorted(texts.items()):
            path, before = self.root / name, self.text(name)
            if before == text and not path.is_symlink():
                continue
            rows = done.deleted if text is None else done.changed if path.exists() else done.made
            if text is None:
                path.unlink()
            else:
                _replace(path, text)
            rows.append(name)
        return done

    def _git(self, *arguments: str, own: Mapping[str, str] | None = None, stdin: str = "") -> str:
        command = ["git", "-C", str(self.root), *arguments]
        try:
            done = subprocess.run(command, input=stdin.encode(), capture_output=True, check=True,
                                  env={**os.environ, **(own or {})})  # fmt: skip
        except (OSError, subprocess.CalledProcessError) as exc:
            said = (getattr(exc, "stderr", b"") or b"").decode(errors="replace").strip() or str(exc)
            raise error("E0842", f"git does not work in {self.root.as_posix()}: {said}",
                        help="the checkout has to be a git repository with a commit") from None  # fmt: skip
        return done.stdout.decode("utf-8", errors="surrogateescape")


def _digest(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def _replace(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():  # what it leads to is none of ours
            path.unlink()
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as exc:
        raise error("E0823", f"can't write {path.as_posix()}: {exc.strerror}") from None


def _would_be_lost(root: Path, paths: Sequence[str]) -> Exception:
    shown = ", ".join(paths[:_NAMED]) + (f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else "")
    return error(
        "E0846",
        f"{root.as_posix()} has changes that aren't committed in files that would be written: {shown}",
        help="nothing was written; commit them, or put them away with `git stash push --include-untracked`",
    )
