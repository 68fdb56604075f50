"""What no rule maps, as data: the construct of a Hole, the place where it was met, and what may fill it.

A construct is described by what decides its Rust: the callee or opcode, dtypes (``generic`` for an element parameter)
and ranks of its operands, and the compile-time arguments. Names, lines and sizes don't count, so that one override
serves every place and every specialization that the same Rust is right for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from transpiler.diagnostics import Diagnostic, Span
from transpiler.ir import rust

if TYPE_CHECKING:
    from transpiler.ir.tir import Op, Value

RAISED_MODEL = "reference"
"""Who wrote what was made of the reference's Tile IR."""
ConstructKind = Literal["call", "operation", "statement", "other"]
"""``call``: a callee or attribute without a row of the rule table; ``operation``: an operation of TIR without a form;
``statement``: a statement without a meaning; ``other``: what a piece of Rust in its place can't mend."""


@dataclass(frozen=True)
class Construct:
    """``operands``: the types of ``$0``, ``$1``..; ``arguments``: how each was passed, as (name, text)."""

    kind: ConstructKind
    name: str
    operands: tuple[str, ...] = ()
    arguments: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that name the construct."""
        data = json.dumps([self.kind, self.name, self.operands, self.arguments], ensure_ascii=True)
        return hashlib.sha256(data.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class HoleSite:
    """A Hole where it was met. Types are those of this specialization: (name or "", type) of each operand and result.

    ``results`` is None where only the reference knows them; ``kernel`` is the kernel's name.
    """

    construct: Construct
    diagnostic: Diagnostic
    inputs: tuple[tuple[str, str], ...] = ()
    results: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True)
class ResultType:
    """The type of a fragment's result in terms of its operands.

    ``dtype``: ``$0`` (that operand's) or a dtype's name (``float32``). ``shape``: ``$0``, or one item a dimension: an
    integer or ``$0.1`` (a dimension of an operand).
    """

    dtype: str
    shape: str | tuple[int | str, ...]


@dataclass(frozen=True)
class Fragment:
    """Rust in the place of a construct: statements, the last of which is the value.

    ``$0``, ``$1``.. are the operands and ``$shape``, ``$type``, ``$element`` those of the result. ``key`` names the
    override that it came from, ``model`` who wrote that.
    """

    key: str
    model: str
    results: tuple[ResultType, ...]
    body: tuple[rust.Stmt, ...] = field(repr=False)

    def __str__(self) -> str:
        return self.key


@dataclass(frozen=True)
class FilledSite:
    """A Hole that an override filled: the construct, the override's key and writer, and the line of Python.

    ``kind`` is ``raised`` where what fills it was made of the reference's Tile IR.
    """

    construct: Construct
    key: str
    model: str
    file: str
    line: int
    kind: Literal["rust", "raised"] = "rust"


Fragments = Mapping[str, Fragment]
"""Fragments by the digest of their construct: what selection is given beside its tables."""


@dataclass(frozen=True)
class RaisedCall:
    """What a call becomes that the reference's own operations fill: the Hole, its override's key, and the program."""

    construct: Construct
    key: str
    ops: tuple[Op, ...]
    results: tuple[Value, ...]


Filler = Callable[[Construct, Sequence["Value"], "Span"], RaisedCall | None]
"""Fills a call without a rule from the reference's Tile IR; None where it has nothing for it."""
