"""A plan: the sizes, numbers and grid of one call, without the content of its arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from transpiler.execute.extents import grid_axes, tile_extents
from transpiler.spec import ArraySpec, ListSpec, ScalarSpec, Specialization
from transpiler.tileir.model import Entry

Shape = Literal["normal", "ragged", "one", "empty"]
Integers = Literal["small", "sorted", "zeros", "counts", "segments"]
Axis = tuple[str, int]
_MOST_ELEMENTS = 1 << 18


@dataclass(frozen=True)
class Plan:
    """What a call is made with; ``padded`` leaves room between rows."""

    shape: Shape
    sizes: Mapping[Axis, int]
    scalars: Mapping[str, int | float]
    grid: tuple[int, int, int] = (1, 1, 1)
    integers: Integers = "small"
    most: int = 2
    """Integer arrays hold numbers below this."""
    length: int = 2
    """How many arrays a list has."""
    padded: bool = False


@dataclass(frozen=True)
class Dimensions:
    """Which dimensions a specialization leaves open, and what tiles walk along them."""

    free: Mapping[Axis, tuple[int, int]] = field(default_factory=dict)
    """Name and axis -> extent of the tile (0: unknown), divisor."""
    fixed: Mapping[Axis, int] = field(default_factory=dict)
    axes: Sequence[int] = ()
    """The axes of the grid that count."""


def dimensions(spec: Specialization, reference: Entry) -> Dimensions:
    """Read a specialization's dimensions and the reference's tiles."""
    extents = tile_extents(reference)
    free: dict[Axis, tuple[int, int]] = {}
    fixed: dict[Axis, int] = {}
    place = 0
    for name, param in spec.params.items():
        if isinstance(param, ListSpec):
            _array(name, param.element, [0] * param.element.ndim, free, fixed)
            place += 2
        elif isinstance(param, ArraySpec):
            _array(name, param, [extents.get(place + 1 + i, 0) for i in range(param.ndim)], free, fixed)
            place += 1 + 2 * param.ndim
        elif isinstance(param, ScalarSpec):
            place += 1
    return Dimensions(free, fixed, grid_axes(reference))


def _array(
    name: str, array: ArraySpec, tiles: Sequence[int], free: dict[Axis, tuple[int, int]], fixed: dict[Axis, int]
) -> None:
    for axis, constant in enumerate(array.shape_constant):
        if constant is not None:
            fixed[name, axis] = constant
        else:
            free[name, axis] = (tiles[axis], array.shape_divisible_by[axis])


def sizes(
    spec: Specialization, dims: Dimensions, shape: Shape, *, unknown: int = 16, factor: int = 1
) -> dict[Axis, int]:
    """Choose sizes: dimensions with equal tiles and equal divisors are equal, so that arrays fit each other.

    Where an array would get too large, all sizes above some bound are that bound.
    """
    chosen = dict(dims.fixed)
    for bound in (1 << 20, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
        for at, (extent, divisor) in dims.free.items():
            wanted = min(bound, _wanted(extent or unknown, shape, factor))
            chosen[at] = -(-wanted // divisor) * divisor
        if fits(spec, chosen):
            break
    return chosen


def _wanted(extent: int, shape: Shape, factor: int) -> int:
    """The size before it is rounded up to a divisor."""
    if shape == "empty":
        return 0
    if shape == "one":
        return 1
    if extent == 1:
        return 2 * factor if shape == "normal" else 3
    if shape == "normal":
        return extent * factor * (2 if extent <= 64 else 1)
    return extent + extent // 4 - 1 if extent <= 128 else extent - extent // 4 - 1


def fits(spec: Specialization, chosen: Mapping[Axis, int], most: int = _MOST_ELEMENTS) -> bool:
    """Whether no array gets too large."""
    arrays = [(name, p.element if isinstance(p, ListSpec) else p) for name, p in spec.params.items()]
    return all(
        math.prod(chosen[name, axis] for axis in range(array.ndim)) <= most
        for name, array in arrays if isinstance(array, ArraySpec)
    )  # fmt: skip
