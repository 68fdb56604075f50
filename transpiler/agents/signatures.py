"""Candidates: the functions of cutile that a Hole's Rust may call, read from the source that was built in."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from transpiler.ir.construct import Construct
from transpiler.select.declarations import DECLARATIONS

LIMIT = 10
_WORD = re.compile(r"[a-z0-9]+")
_DECLARED = re.compile(r"((?:unsafe )?fn \w+.*?)\s*\{\n", re.DOTALL)
_SAME = {"minimum": "minf mini", "maximum": "maxf maxi", "where": "select", "arange": "iota", "astype": "convert",
         "sum": "reduce_sum", "prod": "reduce_prod", "cumsum": "scan_sum", "truediv": "divf", "floordiv": "divi",
         "mod": "remi remf", "matmul": "mma", "transpose": "permute", "full": "constant"}  # fmt: skip
"""Names of Python's side that share no word with the ones of Tile IR."""


@dataclass(frozen=True)
class Function:
    """A function: its name, declaration, first line of documentation, Tile IR operation and choices."""

    name: str
    signature: str
    doc: str
    operation: str
    choices: tuple[str, ...]

    def shown(self) -> str:
        """Return it as a task has it: the declaration, and what its modes can be."""
        said = f"  // {'; '.join(self.choices)}" if self.choices else ""
        return f"{self.signature}{said}"


@cache
def functions() -> tuple[Function, ...]:
    """Return every public function of the installed crate, then those that generated modules declare themselves."""
    from transpiler import _rust

    found = tuple(
        Function(name, _bounded(signature), doc, operation.removeprefix("cuda_tile."), tuple(choices))
        for name, signature, doc, operation, choices, _file, _line in _rust.callables()
    )
    return found + tuple(_declared())


def _bounded(signature: str) -> str:
    """Leave out bounds that say nothing to a caller."""
    return signature.replace(": ElementType", "")


def _declared() -> list[Function]:
    out = []
    for name, text in DECLARATIONS.items():
        found = _DECLARED.search(text)
        if found is not None:
            operation = re.search(r'name = "cuda_tile\.(\w+)"', text)
            signature = " ".join(found[1].split()).replace("( ", "(").replace(", )", ")").replace(": ElementType", "")
            out.append(Function(name, signature, "", operation[1] if operation else "", ()))
    return out


def candidates(construct: Construct, operations: Collection[str]) -> tuple[str, ...]:
    """Return the declarations that fit the reference's operations first, then those whose names share a word."""
    leaf = construct.name.rpartition(".")[2]
    words = {*_WORD.findall(leaf.lower()), *_SAME.get(leaf, "").split()}
    ranked = []
    for index, one in enumerate(functions()):
        own = _WORD.findall(one.name.lower())
        score = 4 * (one.operation in operations) + 3 * (one.name in words or one.name == leaf)
        score += sum(word in words for word in own if len(word) > 2)
        if score and (one.operation or score > 2):
            ranked.append((-score, index, one.shown()))
    return tuple(dict.fromkeys(text for _, _, text in sorted(ranked)[:LIMIT]))
