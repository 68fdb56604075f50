"""What an expression evaluates to during specialization."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from transpiler.diagnostics import Span
from transpiler.ir import hir
from transpiler.ir.construct import Construct
from transpiler.ir.symbolic import Sym, lit
from transpiler.ir.tir import Origin, Value
from transpiler.ir.types import DType, Shape


@dataclass(frozen=True)
class Const:
    """A Python constant (int, float, bool, str, None, Ellipsis) and the expression it came from.

    Numbers are "loosely typed": they take the dtype of what they are combined with.
    """

    value: Any
    sym: Sym
    result_of: Origin | None = field(default=None, compare=False)
    """What hands it out; what is computed with it is another constant."""


def const(value: Any) -> Const:
    """A literal constant."""
    return Const(value, lit(value) if isinstance(value, (int, float, bool, str, type(None))) else lit(None))


@dataclass(frozen=True)
class DTypeVal:
    """A dtype used as a value (``x.dtype``, ``ct.float32``)."""

    dtype: DType


@dataclass(frozen=True)
class Ref:
    """Something external by qualified name: a function, an enum member, a module attribute."""

    name: str


@dataclass(frozen=True)
class Func:
    """A helper function of the program."""

    function: hir.Function


@dataclass(frozen=True)
class Unmapped:
    """An argument that the front end can't express, such as a lambda: the call that it is for has no rule."""

    code: str
    what: str
    text: str
    span: Span


@dataclass(frozen=True)
class BoundMethod:
    """``receiver.name`` waiting to be called."""

    receiver: Val
    kind: str  # Tile, Array, TiledView, RawArrayMemory, Tuple
    name: str


@dataclass(frozen=True)
class TupleVal:
    """A tuple."""

    items: tuple[Val, ...]


@dataclass(frozen=True)
class SliceVal:
    """A slice in an index."""

    start: Val
    stop: Val
    step: Val


@dataclass(frozen=True)
class IndexSliceVal:
    """``ct.Slice(start, length)``."""

    start: Val
    length: Val


@dataclass(frozen=True)
class RangeVal:
    """``range(...)``: three i32 scalars."""

    start: Value
    stop: Value
    step: Value


@dataclass(frozen=True, eq=False)
class ArrayVal:
    """A tensor: its view value, the alias group it belongs to, and which dims and strides are static.

    Static means baked in by the launch; the kernel may rely on it at compile time only where the parameter's
    annotation says so (``compile_time``: "dim" or "stride", and the axis).
    What was made inside the kernel (a slice, an item of a list) keeps the values it was made of: its ``pointer``,
    and its ``sizes``, dims then strides.  A parameter's are read from its tensor.
    """

    tensor: Value
    dtype: DType
    rank: int
    root: str  # the array parameter it comes from
    static_dims: tuple[int | None, ...]
    static_strides: tuple[int | None, ...]
    index_bits: int = 32
    may_alias: bool = False  # its elements may overlap each other
    compile_time: frozenset[tuple[str, int]] = frozenset()
    pointer: Value | None = None
    sizes: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False)
class ListVal:
    """A list of arrays: a table of 64-bit words, one row (pointer, dims, strides) an array."""

    table: Value
    dtype: DType
    rank: int
    root: str
    static_dims: tuple[int | None, ...]
    static_strides: tuple[int | None, ...]
    may_alias: bool


@dataclass(frozen=True, eq=False)
class TiledViewVal:
    """``array.tiled_view(...)``."""

    array: ArrayVal
    tile: Shape
    padding: str | None
    order: tuple[int, ...] | None
    steps: Shape | None


@dataclass(frozen=True)
class TextVal:
    """A string with tiles in it, each with its format specification."""

    parts: tuple[str | tuple[Value, str | None], ...]


@dataclass(frozen=True)
class Undefined:
    """A name without a usable value here; using it is an error with this reason, or a Hole where it has a code."""

    reason: str
    code: str = ""


@dataclass(frozen=True)
class HoleVal:
    """The result of an unmapped construct; anything made from it is silently unmapped too."""


Val = (
    Value | Const | DTypeVal | Ref | Func | BoundMethod | TupleVal | SliceVal | IndexSliceVal | RangeVal | ArrayVal
    | ListVal | TiledViewVal | TextVal | Undefined | HoleVal | Unmapped
)  # fmt: skip


class HoleError(Exception):
    """An unmapped construct was met; ``silent`` when it only uses the result of another one.

    ``construct`` is what was met and ``inputs`` are its operands, where an override may fill it.
    """

    def __init__(
        self, code: str, message: str, span: Span, help: str = "", *, silent: bool = False,
        construct: Construct | None = None, inputs: tuple[tuple[str, str], ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.code, self.message, self.span, self.help, self.silent = code, message, span, help, silent
        self.construct, self.inputs = construct, inputs


def describe(value: Val) -> str:
    """A short description for diagnostics."""
    match value:
        case Value():
            return str(value.ty)
        case Const():
            return f"the constant {value.value!r}"
        case DTypeVal():
            return f"the dtype {value.dtype}"
        case Ref():
            return value.name
        case Func():
            return f"the function {value.function.name}"
        case TupleVal():
            return f"a tuple of {len(value.items)}"
        case ArrayVal():
            return f"the array {value.root}"
        case ListVal():
            return f"the list of arrays {value.root}"
        case Undefined():
            return f"undefined ({value.reason})"
        case TiledViewVal():
            return f"a view of {describe(value.array)}"
        case _:
            return _PHRASES[type(value)]


_PHRASES: dict[type[Val], str] = {
    BoundMethod: "a method", SliceVal: "a slice", IndexSliceVal: "a slice", RangeVal: "a range", TextVal: "a string",
    HoleVal: "something that has no mapping", Unmapped: "something that has no mapping",
}  # fmt: skip
