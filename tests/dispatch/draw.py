"""Random arguments for a kernel: those of a specialization, with everything changed that a launcher looks at."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ffi_build import FakeTensor, steps

from transpiler.ir.types import DTYPE_TABLE
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ScalarSpec, Specialization

_FLOATS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
_CONSTANTS: tuple[Any, ...] = (True, False, 0, 1, 2, 16, -1, 0.0, -0.0, 1.0, 0.5, 2.0, float("inf"))
_EXTENTS = (0, 1, 2, 3, 16, 17, 48, 64)
_BASE = 0x7F00_0000_0000


@dataclass(frozen=True)
class Drawn:
    """One call of a kernel: its arguments by the kernel's parameters, and which of these are constants."""

    operator: str
    kernel: str
    like: Specialization
    arguments: tuple[Any, ...]

    @property
    def constants(self) -> tuple[bool, ...]:
        """Which parameters are constants."""
        return tuple(isinstance(param, ConstantSpec) for param in self.like.params.values())


def draw(rng: random.Random, operator: str, kernel: str, specializations: Sequence[Specialization]) -> Drawn:
    """Draw a call; about a third of its parameters differ from one of the kernel's specializations."""
    like = rng.choice(specializations)
    rate = rng.choice((0.0, 0.15, 0.4))
    return Drawn(operator, kernel, like, tuple(_argument(rng, param, rate) for param in like.params.values()))


def _argument(rng: random.Random, param: object, rate: float) -> Any:
    changed = rng.random() < rate
    match param:
        case ArraySpec():
            return array(rng, param, rate)
        case ListSpec(element=element):
            return [array(rng, element, rate / 2) for _ in range(rng.randint(1, 3))]
        case ScalarSpec(dtype=dtype):
            dtype = rng.choice(("int32", "float32", "bool_", dtype)) if changed and rng.random() < 0.3 else dtype
            return {"float32": 0.5, "int32": 7, "int64": 1 << 40, "bool_": True}[dtype]
        case ConstantSpec(value=value):
            value = _FLOATS.get(value, value) if isinstance(value, str) else value
            return _constant(rng, value) if changed else value
    raise AssertionError(param)


def _constant(rng: random.Random, value: Any) -> Any:
    if isinstance(value, int) and rng.random() < 0.5:
        return rng.choice((int(value), bool(value), float(value), value * 2, not value))
    return rng.choice(_CONSTANTS)


def array(rng: random.Random, spec: ArraySpec, rate: float) -> FakeTensor:
    """Draw an array; what isn't changed has the facts that the specification states."""
    rank, dtype = spec.ndim, spec.dtype
    if rng.random() < rate / 4:
        rank = max(0, rank + rng.choice((-1, 1)))
    if rng.random() < rate:
        dtype = rng.choice(("float16", "bfloat16", "float32", "float64", "int32", "int8", "bool_", "int64"))
    shape = tuple(_extent(rng, spec, axis, rate) for axis in range(rank))
    strides = _strides(rng, spec, shape, max(1, 16 // (DTYPE_TABLE[dtype][1] // 8 or 1)), rate)
    aligned = spec.base_addr_divisible_by % 16 == 0
    if rng.random() < rate:
        aligned = not aligned
    address = _BASE + 65536 * rng.randrange(1024) + (0 if aligned else 8)
    return FakeTensor(shape, strides, f"torch.{dtype.rstrip('_')}", address)


def _extent(rng: random.Random, spec: ArraySpec, axis: int, rate: float) -> int:
    if axis >= spec.ndim or rng.random() < rate / 2:
        return rng.choice(_EXTENTS)
    if spec.shape_constant[axis] is not None:
        return int(spec.shape_constant[axis] or 0)
    return rng.choice((16, 48, 64)) if spec.shape_divisible_by[axis] % 16 == 0 else rng.choice((3, 17, 33))


def _strides(rng: random.Random, spec: ArraySpec, shape: tuple[int, ...], whole: int, rate: float) -> tuple[int, ...]:
    """Rows one after the other, those of 1 first; then gaps, windows that overlap, steps of 0, or all 1."""
    out, rank = steps(spec, shape, whole), len(shape)
    change = rng.random()
    if rank and change < rate / 2:
        out[rng.randrange(rank)] = rng.choice((0, 1, 1, 2, 3, 8, 16, 32))
    elif change < rate:
        order = list(range(rank))
        rng.shuffle(order)
        out = [out[axis] for axis in order]
    return tuple(out)


__all__ = ["Drawn", "draw"]
