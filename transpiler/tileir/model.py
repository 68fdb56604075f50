"""The model of a Tile IR program: module, entry, region, operation, value.

It holds what the disassembler prints, for either front end, without judging it.  SSA names are
resolved while parsing: a value is an index into :attr:`Entry.values`.  What an operation is apart
from its operands (name, attributes, operand roles, types) is its :class:`Form`; equal forms are one
object, so that comparing them costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from transpiler.diagnostics import Span, error

Hints = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""``optimization_hints``: per key (``default`` or a target) the printed options, sorted."""


class Loc(NamedTuple):
    """A source location of the debug information; the path is as printed."""

    file: str
    line: int
    column: int

    @property
    def in_python(self) -> Span:
        """The place in the author's source, for what cuda-tile wrote: its columns begin at 0."""
        return Span(self.file, self.line, self.column + 1)


@dataclass(frozen=True, eq=False)
class Form:
    """An operation without its operands: equal text apart from SSA names gives the same form.

    ``attributes`` keep the printed order (``mmai`` prints two signednesses); ``roles`` has one item
    per operand: "" for a plain operand, else the list or keyword it stands in (``index``, ``shape``,
    ``strides``, ``token``).  ``hints`` is not part of what is compared structurally.
    """

    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    roles: tuple[str, ...] = ()
    operand_types: tuple[str, ...] = ()
    result_types: tuple[str, ...] = ()
    hints: Hints = ()
    template: str = field(default="", repr=False)
    """The printed text with ``%`` for each operand, to print it again."""
    key: int = field(init=False, repr=False)
    """Equal for two forms exactly when they differ in nothing but hints."""

    def __post_init__(self) -> None:
        content = (self.name, self.attributes, self.roles, self.operand_types, self.result_types)
        object.__setattr__(self, "key", _intern(content, self))

    def get(self, key: str) -> str | None:
        """Return the first attribute called ``key``, or None."""
        for name, value in self.attributes:
            if name == key:
                return value
        return None


_KEYS: dict[object, int] = {}
FORMS: list[Form] = []
"""The first form of each key."""


def _intern(content: object, form: Form) -> int:
    key = _KEYS.setdefault(content, len(FORMS))
    if key == len(FORMS):
        FORMS.append(form)
    return key


@dataclass(slots=True)
class Op:
    """One operation; ``results`` and ``operands`` are indices into the entry's values."""

    form: Form
    results: tuple[int, ...]
    operands: tuple[int, ...]
    line: int
    loc: str = ""
    regions: list[Region] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The operation's name without the dialect prefix."""
        return self.form.name


@dataclass(slots=True)
class Region:
    """A region of one block; no operation of Tile IR has a region of several."""

    args: tuple[int, ...] = ()
    ops: list[Op] = field(default_factory=list)


class Value(NamedTuple):
    """An SSA value as printed."""

    name: str
    type: str


@dataclass
class Entry:
    """A kernel: the parameters are ``values[:len(params)]``."""

    name: str
    hints: Hints
    params: tuple[int, ...]
    values: list[Value]
    body: Region
    line: int
    locations: LocationTable

    def location(self, op: Op) -> Loc | None:
        """Return where the operation comes from: the innermost place that is not in cuda.tile's own code."""
        frames = self.locations.frames(op.loc)
        own = [f for f in frames if "/cuda/tile/" not in f.file]
        return next(iter(own or frames), None)


@dataclass
class Module:
    """All entries of one disassembled bytecode file."""

    entries: list[Entry]

    def entry(self, name: str | None = None) -> Entry:
        """Return the entry called ``name``, or the only one; E0685 when there is no such entry."""
        found = [e for e in self.entries if name is None or e.name == name]
        if len(found) == 1:
            return found[0]
        names = ", ".join(e.name for e in self.entries) or "none"
        wanted = f"`{name}`" if name else "exactly one"
        raise error("E0685", f"the Tile IR has these entries: {names}; wanted {wanted}")


class LocationTable:
    """The ``#locN = ...`` aliases at the end of ``tileirdisasm -g``'s text, resolved on demand."""

    def __init__(self, lines: dict[str, str] | None = None) -> None:
        self._lines = {} if lines is None else lines

    def frames(self, text: str) -> list[Loc]:
        """Return the places of a location, the innermost of inlined calls first; empty when unknown."""
        found: list[Loc] = []
        work = [text]
        while work and len(found) < 64:
            at = work.pop().strip()
            if at.startswith(('loc("', '"')):
                if (place := _file_location(at)) is not None:
                    found.append(place)
            elif at.startswith("#") and at in self._lines:
                work.append(self._lines[at])
            elif (inner := _inner(at)) is not None:
                work.extend(reversed(inner))
        return found


def _inner(text: str) -> tuple[str, ...] | None:
    """Return the locations inside ``text``: a call's callee and caller, or a scope's place."""
    if text.startswith("loc(callsite(") and text.endswith("))"):
        return tuple(text[13:-2].split(" at ", 1))
    if text.startswith("callsite(") and text.endswith(")"):
        return tuple(text[9:-1].split(" at ", 1))
    if text.startswith("#cuda_tile.di_loc<"):
        return (text[18:].split(" in ", 1)[0],)
    return (text[4:-1],) if text.startswith("loc(") else None


def _file_location(text: str) -> Loc | None:
    """Read ``"FILE":LINE:COLUMN``, with or without ``loc(...)`` around it."""
    parts = text.removeprefix("loc(").removesuffix(")").rsplit(":", 2)
    if len(parts) != 3 or not parts[1].isdigit() or not parts[2].isdigit():
        return None
    return Loc(parts[0].strip('"'), int(parts[1]), int(parts[2]))


def walk(region: Region) -> Iterator[Op]:
    """Yield the operations of a region and of the regions below, in program order."""
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from walk(inner)


@dataclass(frozen=True)
class TileType:
    """``tile<2x4xf32>``: shape and element type (``ptr<f32>`` for pointers)."""

    shape: tuple[int, ...]
    element: str

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for dim in self.shape:
            count *= dim
        return count

    def with_shape(self, shape: tuple[int, ...]) -> str:
        """Print the tile type of this element type and another shape."""
        return "tile<" + "".join(f"{d}x" for d in shape) + self.element + ">"


@lru_cache(maxsize=8192)
def tile_type(text: str) -> TileType:
    """Parse ``tile<...>``; E0684 for any other type."""
    if not (text.startswith("tile<") and text.endswith(">")):
        raise error("E0684", f"`{text}` is not a tile type", Span("", 0, 0))
    dims: list[int] = []
    rest = text[5:-1]
    while rest[0].isdigit():
        size, _, rest = rest.partition("x")
        dims.append(int(size))
    return TileType(tuple(dims), rest)


def is_token(type_text: str) -> bool:
    """Say whether a printed type is the type of tokens."""
    return type_text == "token"
