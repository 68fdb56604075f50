"""Results of single checks, by what both compilers and the judge are given."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from transpiler.cache import fingerprint
from transpiler.cache.folder import CacheFolder, key_of
from transpiler.cache.rows import cacheable, from_row, to_row
from transpiler.reference.closure import Closure
from transpiler.translation import CheckKey
from transpiler.verify import CheckResult, CheckTask, RustText

_KIND = "checks"
_ITEM = re.compile(r"    (?:pub )?(?:unsafe )?fn (\w+)")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class _Keys:
    """``exact`` covers every line number; ``bare`` none, so that only results without diagnostics go by it."""

    exact: str
    bare: str


class CheckMemo:
    """Looks results up and stores new ones; each check's key is made when it is looked up."""

    def __init__(self, folder: CacheFolder, cubins: tuple[str, ...]) -> None:
        self._folder = folder
        self._cubins = cubins
        self._keys: dict[CheckKey, _Keys] = {}
        self._parts: dict[tuple[str, str, str], str] = {}
        self._texts: dict[str, str] = {}
        self._rust: tuple[RustText, str, str] | None = None

    def find(self, key: CheckKey, rust: RustText, closure: Closure, task: CheckTask) -> CheckResult | None:
        """Return what a check gave before."""
        if self._folder.path is None or task.execute:  # what executing found isn't kept
            return None
        keys = self._keys[key] = self._keys_of(rust, closure, task)
        row = self._folder.get_json(_KIND, keys.bare) or self._folder.get_json(_KIND, keys.exact)
        return None if row is None else _result(row)

    def store(self, key: CheckKey, result: CheckResult) -> None:
        """Remember what a check gave."""
        keys = self._keys.get(key)
        if keys is None or not cacheable(result.verdict, result.diagnostics):
            return
        row = {"verdict": result.verdict, "diagnostics": [to_row(d) for d in result.diagnostics],
               "machine_code": result.machine_code, "equivalences": result.equivalences}  # fmt: skip
        plain = result.verdict == "proved" and not result.diagnostics
        self._folder.put_json(_KIND, keys.bare if plain else keys.exact, row)

    def _keys_of(self, rust: RustText, closure: Closure, task: CheckTask) -> _Keys:
        entry = task.inputs.entry if task.inputs is not None else ""
        given = [fingerprint.judge(), task.kernel, task.specialization.model_dump_json(exclude={"name"}), task.target,
                 repr(task.inputs), self._cubins]  # fmt: skip
        bare = key_of(*given, self._entry_text(rust, entry), self._closure_text(closure))
        exact = key_of(bare, *self._rust_text(rust), closure.digest, repr(task.place), repr(task.problems),
                       rust.display, task.specialization.name)  # fmt: skip
        return _Keys(exact, bare)

    def _rust_text(self, rust: RustText) -> tuple[str, str]:
        """Digest a module's text and its line map; the checks of a module come one after another."""
        if self._rust is None or self._rust[0] is not rust:
            self._rust = rust, _digest(rust.text), key_of(list(rust.lines.items()))
        return self._rust[1:]

    def _entry_text(self, rust: RustText, entry: str) -> str:
        key = rust.module, self._rust_text(rust)[0], entry
        if key not in self._parts:
            self._parts[key] = _digest(reachable_text(rust.text, entry) if entry else rust.text)
        return self._parts[key]

    def _closure_text(self, closure: Closure) -> str:
        """Digest a closure without its line numbers: they don't change what is compared."""
        if closure.digest not in self._texts:
            rows = [(m.name, m.display, [s.text for s in m.segments]) for m in closure.modules]
            self._texts[closure.digest] = key_of(rows)
        return self._texts[closure.digest]


def _result(row: Any) -> CheckResult | None:
    try:
        found = tuple(from_row(one) for one in row["diagnostics"])
        return CheckResult(row["verdict"], found, row["machine_code"], row["equivalences"], cached=True)
    except (KeyError, TypeError, ValueError):
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def reachable_text(text: str, entry: str) -> str:
    """Return a generated module's text without the functions that an entry can't reach.

    A function is kept when its name occurs in what is kept, so too much may stay but never too little.  A module
    that isn't laid out as the printer does it is returned whole.
    """
    parts = _split(text)
    if parts is None or entry not in parts.functions:
        return text
    kept: set[str] = set()
    todo = [entry, *_WORD.findall("\n".join(parts.rest))]
    while todo:
        name = todo.pop()
        if name in parts.functions and name not in kept:
            kept.add(name)
            todo += _WORD.findall(parts.functions[name])
    return "\n".join([*parts.rest, *(parts.functions[name] for name in parts.functions if name in kept)])


@dataclass
class _Parts:
    functions: dict[str, str]
    rest: list[str]


def _split(text: str) -> _Parts | None:
    """Split a module into its functions, with the comments and attributes above each, and everything else."""
    parts = _Parts({}, [])
    for head, body in _blocks(text.split("\n")):
        name = _ITEM.match(body[0]) if body else None
        if name is None:
            parts.rest += [*head, *body]
        elif name[1] in parts.functions:
            return None
        else:
            parts.functions[name[1]] = "\n".join((*head, *body))
    return parts


def _blocks(lines: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield each item of the module as what stands above it and its lines; other lines come alone."""
    head: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if _ITEM.match(line):
            end = next((i for i in range(at, len(lines)) if lines[i] == "    }"), len(lines) - 1)
            if lines[at].endswith("}"):
                end = at
            yield head, lines[at : end + 1]
            head, at = [], end + 1
        elif line.startswith(("    ///", "    #[", "    //")):
            head.append(line)
            at += 1
        else:
            yield [*head, line] if line.strip() else head, []
            head, at = [], at + 1
    yield head, []
