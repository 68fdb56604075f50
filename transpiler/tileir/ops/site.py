"""The place of an operation in an entry, as its semantics see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from transpiler.tileir.elements import dtype_of
from transpiler.tileir.model import Entry, Op, tile_type
from transpiler.tileir.ops.lazy import np

if TYPE_CHECKING:
    from transpiler.tileir.machine import Machine

Env = list[Any]
"""The values of an entry, by index."""
Signal = tuple[str, tuple[Any, ...]]
"""How a region ended: the terminator's name and its operands' values."""
Runner = Callable[[Env], "Signal | None"]


@dataclass(frozen=True)
class CompiledRegion:
    """A region that can be run: set the values of ``args``, call ``run``."""

    args: tuple[int, ...]
    run: Runner
    first: Any = None
    """What computes the first operation, of a region without control flow."""


@dataclass
class Site:
    """An operation's attributes, the exact types of its values, its compiled regions, and the machine."""

    op: Op
    entry: Entry
    machine: Machine
    regions: Sequence[CompiledRegion] = field(default_factory=tuple)

    @property
    def name(self) -> str:
        """The operation's name."""
        return self.op.form.name

    @cached_property
    def operand_types(self) -> tuple[str, ...]:
        """The types of the operands, one each."""
        return tuple(self.entry.values[v].type for v in self.op.operands)

    @cached_property
    def result_types(self) -> tuple[str, ...]:
        """The types of the results, one each."""
        return tuple(self.entry.values[v].type for v in self.op.results)

    def get(self, key: str, default: str = "") -> str:
        """An attribute, or the default."""
        return self.op.form.get(key) or default

    def has(self, key: str) -> bool:
        """Whether an attribute is there."""
        return self.op.form.get(key) is not None

    def role(self, role: str) -> list[int]:
        """The positions of the operands in a list or behind a keyword ("" for the plain ones)."""
        return [i for i, r in enumerate(self.op.form.roles) if r == role]

    @property
    def unsigned(self) -> bool:
        """Whether integers are to be read as unsigned."""
        return self.get("signedness") == "unsigned"

    def element(self, operand: int = 0) -> str:
        """The element type of an operand."""
        return tile_type(self.operand_types[operand]).element

    @cached_property
    def result_element(self) -> str:
        """The element type of the first result."""
        return tile_type(self.result_types[0]).element

    @cached_property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return tile_type(self.result_types[0]).shape

    @cached_property
    def result_dtype(self) -> Any:
        """The dtype of the first result."""
        return dtype_of(self.result_element)

    def undefined(self, what: str, where: Any) -> None:
        """Report undefined behaviour where any element of ``where`` is set."""
        if np.any(where):
            self.machine.report("undefined", self.op, what)
