"""How much of each array dimension a program's tiles cover: what inputs have to be as large as."""

from __future__ import annotations

from collections.abc import Sequence

from transpiler.tileir.model import Entry, Op, tile_type, walk
from transpiler.tileir.views import view_type

_TRANSPARENT = frozenset({"assume", "exti", "trunci", "reshape", "broadcast"})


def tile_extents(entry: Entry) -> dict[int, int]:
    """Return the largest tile that walks along each size, by the number of the flat parameter that holds the size.

    Views say it; for pointers it is the tile of indices that a size is compared with.
    """
    definitions = {result: op for op in walk(entry.body) for result in op.results}
    places = {value: number for number, value in enumerate(entry.params)}
    found: dict[int, int] = {}

    def root(value: int) -> int:
        while (op := definitions.get(value)) is not None and op.name in _TRANSPARENT:
            value = op.operands[0]
        return places.get(value, -1)

    def note(value: int, extent: int) -> None:
        if (place := root(value)) >= 0:
            found[place] = max(found.get(place, 1), extent)

    for op in walk(entry.body):
        if op.name in ("make_partition_view", "make_strided_view", "make_gather_scatter_view"):
            tensor = definitions.get(op.operands[0])
            if tensor is not None:
                _view(entry, op, tensor, note)
        elif op.name == "cmpi":
            for bound, index in (op.operands, op.operands[::-1]):
                note(bound, _extent(entry, definitions, index))
    return found


def _view(entry: Entry, op: Op, tensor: Op, note: object) -> None:
    """A tile view's extents belong to the dynamic sizes of its tensor view."""
    assert callable(note)
    kind = view_type(entry.values[op.results[0]].type)
    sizes = [v for v, role in zip(tensor.operands, tensor.form.roles, strict=True) if role == "shape"]
    dynamic = iter(sizes)
    by_dimension = [next(dynamic, None) if size is None else None for size in kind.tensor.shape]
    for extent, dim in zip(kind.tile, kind.dims, strict=True):
        if (size := by_dimension[dim]) is not None:
            note(size, extent)


def _extent(entry: Entry, definitions: dict[int, Op], value: int) -> int:
    """The number of elements of an index before it was broadcast."""
    smallest = _size(entry, value)
    while (op := definitions.get(value)) is not None and op.name in _TRANSPARENT:
        value = op.operands[0]
        smallest = min(smallest, _size(entry, value))
    if op is not None and op.name in ("addi", "subi"):
        return min(smallest, max(_extent(entry, definitions, v) for v in op.operands))
    return smallest


def _size(entry: Entry, value: int) -> int:
    text = entry.values[value].type
    return tile_type(text).size if text.startswith("tile<") else 1


def grid_axes(entry: Entry) -> Sequence[int]:
    """Return the axes of the grid that the program looks at."""
    used = {v for op in walk(entry.body) for v in op.operands}
    axes = set()
    for op in walk(entry.body):
        if op.name in ("get_tile_block_id", "get_num_tile_blocks"):
            axes |= {i for i, result in enumerate(op.results) if result in used}
    return sorted(axes)
