"""Identifiers: as Python reads them, and what they are called in Rust and on disk."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

KEYWORDS = frozenset(
    """
    abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if
    impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true try
    type typeof union unsafe unsized use virtual where while yield
    """.split()  # noqa: SIM905
)
_CRATE_FOLDERS = frozenset({"src", "target", "cutile_kernels"})
_CRATE_MODULES = frozenset({"support", "std", "core", "alloc", "crate", "self", "super"})


def identifier(text: str) -> str:
    """The name that Python makes of a spelling: its NFKC form."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _in_ascii(c: str) -> str:
    """A letter without its accents, or else what Unicode calls it: ``e`` for é, ``zhe`` for ж."""
    if plain := unicodedata.normalize("NFKD", c).encode("ascii", "ignore").decode():
        return plain
    word = unicodedata.name(c, "_").rpartition(" ")[2]
    return word if c.isupper() else word.lower()


def snake(name: str) -> str:
    """A Python name as a Rust variable or function: snake case, keywords with a trailing underscore."""
    text = name if name.isascii() else "".join(map(_in_ascii, name))
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    text = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", text).lower()
    text = re.sub(r"[^0-9a-z_]", "_", text)
    if not text or text[0].isdigit():
        text = f"v{text}"
    if text.strip("_") == "":
        text = f"unused{text}"
    return f"{text}_" if text in KEYWORDS else text


def crate_module(operator: str) -> str:
    """Return the name of an operator's module in the crate."""
    name = snake(operator)
    return f"{name}_" if name in _CRATE_MODULES else name


def c_symbol(operator: str, entry: str) -> str:
    """Return the C symbol of a kernel, ``entry`` being the first of its entries."""
    return f"{snake(operator)}_{entry}"


def operator_folder(name: str) -> str:
    """An operator's name, with a line behind it where the crate has a folder of that name itself."""
    return f"{name}_" if name.casefold() in _CRATE_FOLDERS else name


def same_place(a: str, b: str) -> bool:
    """Whether two operators would share a folder where file systems ignore case, or a module of the crate."""
    return a.casefold() == b.casefold() or crate_module(a) == crate_module(b)


def file_stems(names: Iterable[str]) -> dict[str, str]:
    """A file name for each name; those that differ in case only get numbers, for file systems that ignore it."""
    taken: set[str] = set()
    out: dict[str, str] = {}
    for name in names:
        stem, number = name, 0
        while stem.casefold() in taken:
            number += 1
            stem = f"{name}_{number}"
        taken.add(stem.casefold())
        out[name] = stem
    return out
