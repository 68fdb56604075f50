"""Tiles made from numbers, and tiles taken apart and put together; element values don't change."""

from __future__ import annotations

from typing import Any

from transpiler.tileir.elements import literals
from transpiler.tileir.model import tile_type
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import MANY, Function, rows
from transpiler.tileir.ops.site import Site

Array = Any


def _constant(site: Site) -> Function:
    _, _, text = site.get("value").partition(":")
    value = literals(text, site.result_element)
    tile = np.asarray(value).reshape(site.result_shape) if np.ndim(value) else np.broadcast_to(value, site.result_shape)
    return lambda: tile if site.result_shape else tile[()]


def _iota(site: Site) -> Function:
    return lambda: np.arange(site.result_shape[0]).astype(site.result_dtype)


def _reshape(site: Site) -> Function:
    shape = site.result_shape
    return lambda a: np.reshape(a, shape) if shape else np.reshape(a, ())[()]


_SMALL = 1 << 12


def _broadcast(site: Site) -> Function:
    """Large tiles are views; for small ones a copy costs less than NumPy's bookkeeping."""
    shape, dtype = site.result_shape, site.result_dtype
    if tile_type(site.result_types[0]).size > _SMALL:
        return lambda a: np.broadcast_to(a, shape)

    def run(a: Array) -> Array:
        result = np.empty(shape, dtype)
        result[...] = a
        return result

    return run


def _permute(site: Site) -> Function:
    order = tuple(int(i) for i in site.get("permutation").split(","))
    return lambda a: np.transpose(a, order)


def _cat(site: Site) -> Function:
    axis = int(site.get("dim"))
    return lambda a, b: np.concatenate((a, b), axis)


def _slices(
    site: Site, shape: tuple[int, ...], whole: tuple[int, ...], indices: tuple[Array, ...]
) -> tuple[slice, ...]:
    """The part of a tile that indices, counted in parts, name; index 0 where there is no such part."""
    found = []
    for at, size, total in zip(indices, shape, whole, strict=True):
        number = int(at)
        if not 0 <= number < total // size:
            site.undefined(f"takes part {number} of {total // size}", where=True)
            number = 0
        found.append(slice(number * size, (number + 1) * size))
    return tuple(found)


def _extract(site: Site) -> Function:
    shape, whole = site.result_shape, tile_type(site.operand_types[0]).shape
    return lambda a, *indices: a[_slices(site, shape, whole, indices)] if shape else a


def _insert(site: Site) -> Function:
    """Replace a part of a tile: the tile to put in, the tile to put it into, indices counted in parts."""
    part, whole = (tile_type(t).shape for t in site.operand_types[:2])

    def run(value: Array, into: Array, *indices: Array) -> Array:
        result = np.array(into)
        result[_slices(site, part, whole, indices)] = value
        return result

    return run


ROWS = {
    **rows("constant", 0, "value", make=_constant),
    **rows("iota", 0, make=_iota),
    **rows("reshape", 1, make=_reshape),
    **rows("broadcast", 1, make=_broadcast),
    **rows("permute", 1, "permutation", make=_permute),
    **rows("cat", 2, "dim", make=_cat),
    **rows("extract", (1, MANY), make=_extract),
    **rows("insert", (2, MANY), make=_insert),
}
