"""The output folder: written whole or not at all, checked again without the sources it came from.

    DIR/manifest.json            operators, kernels, entries, specializations, compile inputs, digests
    DIR/Cargo.toml, lib.rs       the crate of all operators in DIR
    DIR/<operator>/kernel.rs     the translation, and whatever else is rendered for an operator
    DIR/<operator>/reference/    the closure of each kernel: all that the reference compiler needs

Everything is written to a folder beside DIR first and moved into place with signals held back.  Operators of
earlier runs stay; so does every file that is not ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from transpiler.diagnostics import Span, TranspileError, error
from transpiler.identifiers import same_place
from transpiler.spec import InnerPath, Model
from transpiler.temporary import signals_held, temporary_folder
from transpiler.translation import KERNEL_FILE, OperatorPlan, Translation

MANIFEST = "manifest.json"
FORMAT = "cutile-rs 1"
CrateFiles = Callable[[Sequence[str]], dict[str, str]]
"""Renders the files at the top of DIR from the names of the operators that its library has."""


class StoredOperator(Model):
    """An operator in the manifest: its plan, the digest of each file that was written, and whether the crate has it."""

    plan: OperatorPlan
    files: dict[InnerPath, str]
    in_library: bool = True


class Manifest(Model):
    """The whole of manifest.json; ``files`` are those at the top of DIR."""

    format: str
    tool: dict[str, str]
    files: dict[InnerPath, str] = Field(default_factory=dict)
    operators: tuple[StoredOperator, ...] = ()


@dataclass(frozen=True)
class StoredText:
    """An operator read back: its plan, the text of kernel.rs as it is now, and whether it was changed since."""

    plan: OperatorPlan
    text: str
    changed: bool


class OutputFolder:
    """DIR, for writing and for reading back; ``removed``: operators whose folders were deleted, once it was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.removed: tuple[str, ...] = ()
        self._shown = path.as_posix()

    # Reading

    def changed(self, manifest: Manifest) -> tuple[str, ...]:
        """Files that aren't as they were written, or are gone; kernel.rs aside, which a check reads as it is."""
        written = dict(manifest.files)
        for stored in manifest.operators:
            name = stored.plan.name
            written |= {f"{name}/{p}": d for p, d in stored.files.items() if p != KERNEL_FILE}
        return tuple(path for path, known in sorted(written.items()) if self._digest(path) != known)

    def _digest(self, path: str) -> str | None:
        try:
            return digest((self.path / path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            return None

    def load(self) -> Manifest:
        """Read the manifest without the operators that were removed: E0821 when there is none, E0822 when damaged."""
        manifest = self._whole()
        there = [(self.path / stored.plan.name).is_dir() for stored in manifest.operators]
        kept = [stored for stored, is_there in zip(manifest.operators, there, strict=True) if is_there]
        self.removed = tuple(o.plan.name for o, is_there in zip(manifest.operators, there, strict=True) if not is_there)
        return manifest.model_copy(update={"operators": tuple(kept)})

    def _whole(self) -> Manifest:
        file = self.path / MANIFEST
        try:
            text = file.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            raise error("E0821", f"{self._shown} has no {MANIFEST}: it isn't a folder that transpile wrote",
                        help="name the folder that was given to `-o`") from None  # fmt: skip
        except (OSError, UnicodeDecodeError) as exc:
            raise error("E0822", f"can't read {self._shown}/{MANIFEST}: {_reason(exc)}") from None
        return self._parse(text)

    def _parse(self, text: str) -> Manifest:
        where = f"{self._shown}/{MANIFEST}"
        again = "translate the sources again into a new folder"
        try:
            data = json.loads(text)
        except ValueError as exc:
            raise error("E0822", f"{where} is damaged: {exc}", Span(where, getattr(exc, "lineno", 1), 1),
                        help=again) from None  # fmt: skip
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise error("E0822", f"{where} was written by another version of transpile", Span(where, 1, 1), help=again)
        try:
            return Manifest.model_validate_json(text)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise error(
                "E0822", f"{where} is damaged: {place}: {first['msg']}", Span(where, 1, 1), help=again
            ) from None

    def read(self, stored: StoredOperator) -> StoredText:
        """Read an operator's kernel.rs as it is now."""
        return StoredText(stored.plan, text := self._text(stored.plan.name, KERNEL_FILE),
                          digest(text) != stored.files.get(KERNEL_FILE))  # fmt: skip

    def closure_text(self, operator: str, path: str) -> str:
        """Read a kernel's closure."""
        return self._text(operator, path)

    def _text(self, operator: str, name: str) -> str:
        try:
            return (self.path / operator / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise error("E0822", f"can't read {self._shown}/{operator}/{name}: {_reason(exc)}",
                        help="translate the source again") from None  # fmt: skip

    # Writing

    def refuse_foreign(self, names: Sequence[str] = ()) -> None:
        """Raise E0820 when the path holds something that isn't ours, before any work is done.

        ``names`` are the operators to write: E0806 where one would take the place of another one there.
        """
        way_out = "choose another folder with `-o`, or move it away"
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise error("E0820", f"{self._shown} is not a folder", help=way_out)
        if any(self.path.iterdir()) and not (self.path / MANIFEST).exists():
            raise error(
                "E0820", f"{self._shown} holds other files: it isn't a folder that transpile wrote", help=way_out
            )
        if (self.path / MANIFEST).exists():
            self._refuse_shared(names, [stored.plan.name for stored in self.load().operators])

    def _refuse_shared(self, names: Sequence[str], there: Sequence[str]) -> None:
        for name in names:
            other = next((one for one in there if one != name and same_place(one, name)), None)
            if other is not None:
                raise error("E0806", f"{self._shown} has the operator `{other}`, and `{name}` is the same to Rust, "
                            "or to file systems that ignore case",
                            help="choose another folder with `-o`, or rename the file")  # fmt: skip

    def _refuse_one_symbol(self, plans: Sequence[OperatorPlan]) -> None:
        """Raise E0806 when two kernels would have the same C symbol."""
        owners: dict[str, str] = {}
        for plan in plans:
            for symbol, kernel in plan.symbols.items():
                if symbol in owners:
                    raise error("E0806", f"{owners[symbol]} and `{kernel}` of `{plan.name}` would both be the C symbol "
                                f"`{symbol}` in {self._shown}",
                                help="choose another folder with `-o` for one of them, or rename its file")  # fmt: skip
                owners[symbol] = f"`{kernel}` of `{plan.name}`"

    def write(self, translations: Sequence[Translation], tool: dict[str, str], crate: CrateFiles) -> None:
        """Add operators to DIR, or replace them; E0820 and E0823 leave it as it was.

        Operators whose folders were deleted are forgotten; ``removed`` names them.
        """
        names = [translation.plan.name for translation in translations]
        self.refuse_foreign(names)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _staging(self.path) as stage, _locked(self.path):
                manifest = self._stage(stage, translations, tool, crate)
                with signals_held():
                    self._commit(stage, manifest, names)
            self.removed = tuple(name for name in self.removed if name not in names)
        except OSError as exc:
            raise error("E0823", f"can't write {self._shown}: {_reason(exc)}", help="choose another folder with `-o`"
                        ) from None  # fmt: skip

    def _stage(
        self, stage: Path, translations: Sequence[Translation], tool: dict[str, str], crate: CrateFiles
    ) -> Manifest:
        """Write everything into the staging folder; returns the manifest that it will have."""
        known = {o.plan.name: o for o in self._old().operators}
        for translation in translations:
            name = translation.plan.name
            if name not in known and (self.path / name).exists():
                raise error("E0820", f"{self._shown}/{name} is there already and wasn't written by transpile",
                            help="choose another folder with `-o`, or move it away")  # fmt: skip
            _write_files(stage / name, translation.files | _closure_files(translation))
            known[name] = stored_operator(translation)
        operators = tuple(known[name] for name in sorted(known))
        self._refuse_one_symbol([o.plan for o in operators])
        top = crate([o.plan.name for o in operators if o.in_library])
        _write_files(stage, top)
        manifest = Manifest(
            format=FORMAT, tool=tool, files={path: digest(text) for path, text in sorted(top.items())},
            operators=operators,
        )  # fmt: skip
        _write_files(stage, {MANIFEST: manifest.model_dump_json(indent=1, exclude_defaults=True) + "\n"})
        return manifest

    def _old(self) -> Manifest:
        return self.load() if (self.path / MANIFEST).exists() else Manifest(format=FORMAT, tool={})

    def _commit(self, stage: Path, manifest: Manifest, names: Sequence[str]) -> None:
        """Move the staged files into place; the manifest last."""
        if not self.path.exists() or not any(self.path.iterdir()):
            if self.path.exists():
                self.path.rmdir()
            os.replace(stage, self.path)
            return
        for name in names:
            place = self.path / name
            if place.exists():
                self._keep_foreign(place, stage / name)
                os.replace(place, stage / f".old-{name}")
            os.replace(stage / name, place)
        for path in (*manifest.files, MANIFEST):
            (self.path / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(stage / path, self.path / path)

    def _keep_foreign(self, old: Path, new: Path) -> None:
        """Move files that aren't ours from an operator's old folder to its new one."""
        ours = {o.plan.name: set(o.files) for o in self._old().operators}.get(old.name, set())
        for file in sorted(p for p in old.rglob("*") if p.is_file()):
            relative = file.relative_to(old)
            target = new / relative
            if relative.as_posix() not in ours and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, target)


def stored_operator(translation: Translation) -> StoredOperator:
    """Return an operator as the manifest has it."""
    files = translation.files | _closure_files(translation)
    digests = {path: digest(text) for path, text in sorted(files.items())}
    return StoredOperator(plan=translation.plan, files=digests, in_library=translation.plan.in_library)


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _closure_files(translation: Translation) -> dict[str, str]:
    kernels = {k.name: k.closure for k in translation.plan.kernels}
    return {kernels[name]: closure.to_text() for name, closure in translation.closures.items() if kernels.get(name)}


def _write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


@contextlib.contextmanager
def _staging(path: Path) -> Iterator[Path]:
    """Make a folder beside ``path``, with the rights that folders get here."""
    with temporary_folder(f".{path.name}.transpile-", path.parent) as stage:
        mask = os.umask(0)
        os.umask(mask)
        stage.chmod(0o777 & ~mask)
        yield stage


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other runs from changing the same folder meanwhile."""
    handle = os.open(path if path.is_dir() else path.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _reason(exc: Exception) -> str:
    return (exc.strerror or str(exc)) if isinstance(exc, OSError) else "it is not UTF-8 text"


__all__ = [
    "FORMAT", "MANIFEST", "Manifest", "OutputFolder", "StoredOperator", "StoredText", "TranspileError", "digest",
    "stored_operator",
]  # fmt: skip
