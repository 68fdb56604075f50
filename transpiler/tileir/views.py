"""Views at run time: which addresses the tile at an index covers, and which of its elements exist."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from transpiler.tileir.elements import dtype_of, not_executable
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.text import split_list

Array = Any
ViewKind = Literal["partition_view", "strided_view", "gather_scatter_view"]


@dataclass(frozen=True)
class TensorType:
    """``tensor_view<?x4xf32, strides=[?,1]>``: None stands for what is only known at run time."""

    element: str
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...]


@dataclass(frozen=True)
class ViewType:
    """A tile view's static part; ``dims`` says which dimension of the tensor a tile's dimension walks along."""

    kind: ViewKind
    tile: tuple[int, ...]
    steps: tuple[int, ...]
    """How far apart tiles with neighbouring indices start: the tile's size, what the type says, or one element."""
    dims: tuple[int, ...]
    padding: str
    sparse: int
    """The dimension whose index is a tile of rows; -1 for none."""
    tensor: TensorType


@dataclass(frozen=True)
class TensorView:
    """An array in memory: address, and shape and strides in elements."""

    type: TensorType
    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Outside:
    """A tile index that a view doesn't have: the tensor's dimension, its tiles, the size that would do (0: none)."""

    index: int
    dim: int
    count: int
    needed: int


@dataclass(frozen=True)
class TileView:
    """A tensor view taken apart into tiles."""

    type: ViewType
    tensor: TensorView

    def index_space(self) -> tuple[int, ...]:
        """How many tiles there are in each dimension; along the sparse one, how many rows."""
        return tuple(
            self.tensor.shape[d] if i == self.type.sparse else -(-self.tensor.shape[d] // step)
            for i, (d, step) in enumerate(zip(self.type.dims, self.type.steps, strict=True))
        )

    def locate(self, indices: tuple[Array, ...]) -> tuple[Array, Array | None, Outside | None]:
        """Return the addresses of a tile's elements, which of them exist (None: all), and what is wrong, if anything.

        Indices are unsigned; outside of the index space the behaviour is undefined, here nothing exists there.
        """
        kind, space, tensor = self.type, self.index_space(), self.tensor
        size = dtype_of(tensor.type.element).itemsize
        base, spread = tensor.base, _flat(len(kind.tile))
        exists: Array | None = None
        problem: Outside | None = None
        for i, (extent, step, dim) in enumerate(zip(kind.tile, kind.steps, kind.dims, strict=True)):
            count, stride = tensor.shape[dim], tensor.strides[dim] * size
            if i == kind.sparse:
                rows = _unsigned(indices[i])
                first, last = int(rows.min()), int(rows.max()) + 1
                offsets = rows
            else:
                number = int(_unsigned(indices[i]))
                if not 0 <= number < space[i]:
                    given = int(indices[i])
                    problem = Outside(given, dim, space[i], given * step + 1 if given > 0 else int(given == 0))
                first, last = number * step, number * step + extent
                offsets = _range(extent)
                base += min(first, count) * stride  # beyond it nothing exists
            if extent > 1 or i == kind.sparse:
                spread = spread + (offsets * stride).reshape(_along(i, extent, len(kind.tile)))
            if first < 0 or last > count:
                places = offsets if i == kind.sparse else offsets + first
                inside = ((places >= 0) & (places < count)).reshape(_along(i, extent, len(kind.tile)))
                exists = inside if exists is None else exists & inside
        addresses = np.broadcast_to(base + spread, kind.tile)
        return addresses, None if exists is None else np.broadcast_to(exists, kind.tile), problem


@lru_cache(maxsize=64)
def _flat(rank: int) -> Array:
    return np.zeros((1,) * rank, np.int64)


@lru_cache(maxsize=256)
def _range(extent: int) -> Array:
    return np.arange(extent, dtype=np.int64)


@lru_cache(maxsize=256)
def _along(axis: int, extent: int, rank: int) -> tuple[int, ...]:
    return tuple(extent if i == axis else 1 for i in range(rank))


def _unsigned(index: Array) -> Array:
    """Indices are unsigned; 64-bit ones that don't fit stay negative, which is outside as well."""
    wide = np.asarray(index).astype(np.int64)
    return wide if index.dtype.itemsize == 8 else wide & ((1 << 8 * index.dtype.itemsize) - 1)


_KINDS: dict[str, ViewKind] = {"partition_view": "partition_view", "strided_view": "strided_view",
                               "gather_scatter_view": "gather_scatter_view"}  # fmt: skip
_SHAPE = re.compile(r"((?:(?:\d+|\?)x)*)(.+)")
_TENSOR = re.compile(r"tensor_view<(.*?)(?:,\s*strides=\[(.*)\])?>$")


def _sizes(text: str) -> tuple[int | None, ...]:
    return tuple(None if part.strip() == "?" else int(part) for part in text.split(",") if part.strip())


@lru_cache(maxsize=1024)
def tensor_type(text: str) -> TensorType:
    """Parse ``tensor_view<...>``; E0689 for any other text."""
    match = _TENSOR.fullmatch(text)
    shape = _SHAPE.fullmatch(match[1]) if match else None
    if match is None or shape is None:
        raise not_executable(text)
    return TensorType(shape[2], _sizes(shape[1].replace("x", ",")), _sizes(match[2] or ""))


@lru_cache(maxsize=1024)
def view_type(text: str) -> ViewType:
    """Parse the type of a partition, strided or gather/scatter view; E0689 for any other text."""
    name, _, body = text.partition("<")
    fields: dict[str, str] = {}
    for item in split_list(body.removesuffix(">")):
        if item.startswith("tensor_view<"):
            fields["tensor"] = item
        else:
            key, _, value = item.partition("=")
            fields[key.strip()] = value.strip()
    kind = _KINDS.get(name)
    if kind is None or "tensor" not in fields:
        raise not_executable(text)
    tile = _numbers(fields["tile"].replace("x", ","))
    steps = _numbers(fields["traversal_strides"]) if "traversal_strides" in fields else tile
    if "sparse_dim" in fields:  # the other dimensions are indexed by where a tile begins
        steps = (1,) * len(tile)
    dims = _numbers(fields["dim_map"]) if "dim_map" in fields else tuple(range(len(tile)))
    return ViewType(kind, tile, steps, dims, fields.get("padding_value", ""), int(fields.get("sparse_dim", -1)),
                    tensor_type(fields["tensor"]))  # fmt: skip


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.strip("()[]").split(",") if part.strip())


def padding_value(name: str, element: str) -> Any:
    """What elements that don't exist are loaded as; None where that is open."""
    if not name:
        return None
    dtype = dtype_of(element)
    values = {"zero": 0.0, "neg_zero": -0.0, "nan": float("nan"), "pos_inf": float("inf"),
              "neg_inf": float("-inf")}  # fmt: skip
    value = values[name]
    if dtype.kind in "iub":
        return dtype.type(0)
    return np.float32(value).astype(dtype)
