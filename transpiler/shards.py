"""The operators of a batch by name: no two alike, and their checks dealt out to several machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from transpiler.diagnostics import error
from transpiler.identifiers import crate_module

Wanted = frozenset[tuple[str, str, str]]
"""Operator, kernel and specialization of the checks that a run does."""
Names = tuple[str, Sequence[tuple[str, Sequence[str]]]]
"""An operator, and each kernel of it with the names of its specializations."""


def shard(operators: Iterable[Names], index: int, count: int) -> Wanted:
    """Return the checks that shard ``index`` (from 1) of ``count`` does.

    Checks are dealt out in groups of one kernel, the largest groups first to the shard with the least.
    """
    kernels = [(operator, kernel, names) for operator, rows in operators for kernel, names in rows]
    size = max(1, -(-sum(len(names) for _, _, names in kernels) // (count * 8)))
    groups: list[list[tuple[str, str, str]]] = []
    for operator, kernel, names in kernels:
        keys = [(operator, kernel, name) for name in names]
        groups += [keys[i : i + size] for i in range(0, len(keys), size)]
    shards: list[list[tuple[str, str, str]]] = [[] for _ in range(count)]
    for group in sorted(groups, key=lambda g: (-len(g), g)):
        min(shards, key=len).extend(group)
    return frozenset(shards[index - 1])


class Named(Protocol):
    """An operator, wherever it is from."""

    @property
    def name(self) -> str:
        """The operator's name."""

    @property
    def shown(self) -> str:
        """Its source's path for people."""


def distinct_names(operators: Sequence[Named]) -> None:
    """Raise E0806 when two sources would share an operator's name, and so its folder, or its module of the crate."""
    folders: dict[str, Named] = {}
    modules: dict[str, Named] = {}
    for one in operators:
        others = folders.setdefault(one.name.casefold(), one), modules.setdefault(crate_module(one.name), one)
        for other in others:
            if other is not one:
                raise error("E0806", f"{other.shown} and {one.shown} would both become {_operator(other, one)}",
                            help="translate them one at a time, each with its own `-o`, or rename one")  # fmt: skip


def _operator(a: Named, b: Named) -> str:
    if a.name == b.name:
        return f"the operator `{a.name}`"
    return f"one operator: `{a.name}` and `{b.name}` are the same to Rust, or to file systems that ignore case"
