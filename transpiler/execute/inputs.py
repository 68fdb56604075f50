"""From a plan to memory and arguments for both sides; everything follows from the seed."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np

from transpiler.execute.plan import Plan
from transpiler.spec import ArraySpec, ListSpec, ParamSpec, ScalarSpec, Specialization
from transpiler.tileir.memory import Memory

Values = Literal["plain", "edge"]
Array = Any
Layouts = dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
_PERIOD = 32749
"""Longer content repeats; a prime, so that rows differ."""
_DTYPES = {"bool_": "bool", "tfloat32": "float32"}
_ML = {"bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"}


@dataclass(frozen=True)
class Inputs:
    """One call: memory, and the flat arguments of both sides (which differ for lists only)."""

    plan: Plan
    values: Values
    memory: Memory
    reference: tuple[Any, ...]
    ours: tuple[Any, ...]
    layouts: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]
    """The shape and strides, in elements, of each array."""
    open_value: float = 0.0
    """What loads give that the program leaves open: masked ones without padding (integers: 0 or 1)."""

    @property
    def grid(self) -> tuple[int, int, int]:
        """The grid."""
        return self.plan.grid

    def describe(self) -> str:
        """The call in words: shapes, scalars, grid."""
        arrays = [f"{name} {'x'.join(map(str, shape)) or 'scalar'}" for name, (shape, _) in self.layouts.items()]
        scalars = [f"{name} = {value}" for name, value in self.plan.scalars.items()]
        left_open = [f"what masked loads leave open is {self.open_value}"] if self.open_value else []
        return ", ".join([*arrays, *scalars, f"grid {'x'.join(map(str, self.plan.grid))}", *left_open])


def seed_of(*parts: object) -> int:
    """A number that depends on the parts alone."""
    return int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:8], "little")


def make(spec: Specialization, plan: Plan, values: Values, seed: object) -> Inputs:
    """Make the inputs of a plan; each array's content depends on its name, the plan's shape and the seed."""
    memory = Memory()
    layouts: Layouts = {}
    reference: list[Any] = []
    ours: list[Any] = []
    for name, param in spec.params.items():
        rng = np.random.default_rng(seed_of(seed, name, plan.shape, values))
        theirs, mine = _parameter(memory, layouts, name, param, plan, values, rng)
        reference += theirs
        ours += mine
    return Inputs(plan, values, memory, tuple(reference), tuple(ours), layouts)


def _parameter(
    memory: Memory, layouts: Layouts, name: str, param: ParamSpec, plan: Plan, values: Values, rng: np.random.Generator
) -> tuple[list[Any], list[Any]]:
    """The flat arguments of a Python parameter, for the reference and for us."""
    match param:
        case ArraySpec():
            flat = _array(memory, layouts, name, param, plan, values, rng)
            return flat, flat
        case ListSpec():
            words = [_array(memory, layouts, f"{name}[{i}]", param.element, plan, values, rng, of=name)
                     for i in range(plan.length)]  # fmt: skip
            width = 1 + 2 * param.element.ndim
            table = memory.allocate(name, np.array(words, np.int64).reshape(plan.length, width))
            return [table, plan.length], [table, plan.length, width, width, 1]
        case ScalarSpec():
            value = _scalar(param, plan.scalars[name])
            return [value], [value]
    return [], []


def _scalar(param: ScalarSpec, value: float) -> Any:
    dtype = dtype_named(param.dtype)
    return np.asarray(value).astype(dtype)[()]


def dtype_named(name: str) -> Any:
    """The dtype of a specialization's element type."""
    return np.dtype(getattr(ml_dtypes, name)) if name in _ML else np.dtype(_DTYPES.get(name, name))


def _array(
    memory: Memory,
    layouts: Layouts,
    name: str,
    array: ArraySpec,
    plan: Plan,
    values: Values,
    rng: np.random.Generator,
    of: str = "",
) -> list[Any]:
    """Allocate an array; returns address, sizes, strides."""
    shape = [plan.sizes[of or name, axis] for axis in range(array.ndim)]
    dtype = dtype_named(array.dtype)
    strides = _strides(array, shape, dtype.itemsize, padded=plan.padded)
    count = 1 + sum((size - 1) * abs(stride) for size, stride in zip(shape, strides, strict=True))
    if 0 in shape:
        count = 0
    content = fill(dtype, count, plan, values, rng, name)
    address = memory.allocate(name, content)
    layouts[name] = tuple(shape), tuple(strides)
    return [address, *shape, *strides]


def _strides(array: ArraySpec, shape: Sequence[int], itemsize: int, *, padded: bool) -> list[int]:
    """Strides as stated where they are; the other dimensions follow in row-major order, with their divisors."""
    strides = [s if s is not None else 0 for s in array.stride_constant]
    given = [axis for axis, s in enumerate(array.stride_constant) if s is not None]
    reach = 1 + sum((max(1, shape[axis]) - 1) * abs(strides[axis]) for axis in given)
    first = True
    for axis in reversed(range(array.ndim)):
        if axis in given:
            continue
        divisor = array.stride_divisible_by[axis]
        if array.shape_constant[axis] == 1:  # cuda-tile states 16 bytes of a stride that doesn't matter
            divisor = math.lcm(divisor, max(1, 16 // itemsize))
        step = reach + (max(divisor, 3) if padded and first else 0)
        first = False
        strides[axis] = -(-step // divisor) * divisor
        reach = strides[axis] * max(1, shape[axis])
    return strides


def fill(dtype: Any, count: int, plan: Plan, values: Values, rng: np.random.Generator, name: str = "") -> Array:
    """Content: floats around 0, some of them special in the ``edge`` profile; integers as the plan says."""
    if count > _PERIOD:
        return np.resize(fill(dtype, _PERIOD, plan, values, rng, name), count)
    if dtype == np.bool_:
        return rng.integers(0, 2, count).astype(dtype)
    if dtype.kind in "iu":
        return _integers(dtype, count, plan, rng, name)
    content = rng.standard_normal(count).astype(np.float32)
    if dtype.name == "float8_e8m0fnu":
        content = np.exp2(np.round(content)).astype(np.float32)
    content = content.astype(dtype)
    if values == "edge" and count:
        special = np.array(list(_special(dtype)), np.float64).astype(dtype)
        places = np.flatnonzero(rng.random(count) < min(0.3, 64 / count + 0.02))
        content[places] = special[np.resize(rng.permutation(special.size), places.size)]
    return content


def _integers(dtype: Any, count: int, plan: Plan, rng: np.random.Generator, name: str) -> Array:
    """Numbers that may be used as indices: from 0 to below the plan's bound; or segments, where each begins and how
    long they are, told apart by the array's name."""
    most = min(max(1, plan.most), int(np.iinfo(dtype).max))
    if plan.integers == "zeros":
        return np.zeros(count, dtype)
    if plan.integers == "segments" and re.search("off|indptr|cu_|cumsum|start", name.lower()):
        return np.minimum(np.arange(count) * most, np.iinfo(dtype).max).astype(dtype)
    if plan.integers == "segments":
        return np.full(count, most, dtype)
    if plan.integers == "counts":
        return np.full(count, most - 1, dtype)
    content = rng.integers(0, most, count)
    return (np.sort(content) if plan.integers == "sorted" else content).astype(dtype)


def _special(dtype: Any) -> Iterator[float]:
    """Zeros, infinities, NaN, the largest, the least normal and subnormal numbers, ones."""
    find: Any = np.finfo if dtype.name.startswith("float") and dtype.itemsize > 1 else ml_dtypes.finfo
    info = find(dtype)
    largest, tiny = float(info.max), float(info.smallest_normal)
    yield from (0.0, -0.0, 1.0, -1.0, largest, -largest, tiny, -tiny)
    if dtype.name != "float8_e8m0fnu":
        least = float(info.smallest_subnormal)
        yield from (least, -least)
    if not dtype.name.startswith(("float8_e4m3fn", "float4")):
        yield from (math.inf, -math.inf)
    if not dtype.name.startswith("float4"):
        yield math.nan
