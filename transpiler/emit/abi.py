"""KernelAbi: what kernel.rs, ffi.rs, the Python wrapper and the in-process check agree on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import Condition


@dataclass(frozen=True)
class Generic:
    """A generic of an entry, in order: a dtype parameter or an i32/bool const generic.

    ``value`` is the expression that the launcher (and the check) evaluates: a "dtype" leaf for a
    type, an expression over constants for a size, a "dim" leaf (-1 when dynamic) for a static dim.
    ``no_bool``: the entry was made for an int; a bool of the same value would be another program, or is refused.
    """

    name: str
    kind: Literal["type", "i32", "bool"]
    value: Sym
    no_bool: bool = False


@dataclass(frozen=True)
class Argument:
    """A runtime argument of an entry, in order.

    kind "tensor": ``&Tensor<E, {[..]}>`` from array parameter ``source``; "list": a table of words, one row for each
    array of list parameter ``source`` (``items``: element type and rank of the arrays); "scalar": a runtime scalar.
    """

    name: str
    kind: Literal["tensor", "list", "scalar"]
    source: str
    rust_type: str
    viewed: bool = True  # a tensor that tiles are loaded from or stored to through views
    items: tuple[str, int] | None = None
    dynamic_strides: tuple[int, ...] = ()  # axes whose stride the text reads, so that it is passed even where it is 1


@dataclass(frozen=True)
class EntryAbi:
    """One Rust entry and when it is taken: all ``conditions`` hold, and all of an alternative if there are any.

    (Specializations that end in the same text are one entry: each way to get there is an alternative.)
    ``body`` is a digest of the text with all sizes of array types dynamic: entries that agree in it are one program for
    calls whose sizes both have a place for.
    """

    name: str
    conditions: tuple[Condition, ...]
    generics: tuple[Generic, ...]
    arguments: tuple[Argument, ...]
    alternatives: tuple[tuple[Condition, ...], ...] = ()
    body: str = ""


@dataclass(frozen=True)
class KernelAbi:
    """A kernel: its C symbol, Python parameters in order (name -> role), entries and decorator hints."""

    operator: str
    kernel: str
    symbol: str
    parameters: tuple[tuple[str, Literal["array", "scalar", "constant"]], ...]
    entries: tuple[EntryAbi, ...]
    hints: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CompileInputs:
    """What the in-process compiler is given for one check of one entry (see transpiler._rust.Module.compile)."""

    entry: str
    generics: tuple[str, ...]
    strides: tuple[tuple[str, tuple[int, ...]], ...]
    specs: tuple[tuple[str, tuple[int, ...], tuple[int, ...], int], ...]
    scalar_hints: tuple[tuple[str, int], ...]
    occupancy: int | None = None
    num_ctas: int | None = None
    num_worker_warps: int | None = None
