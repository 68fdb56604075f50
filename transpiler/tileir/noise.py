"""Noise: results moved at random within what their rows' tolerances allow.

Running a program several times with noise says how far its outputs may be off (stochastic arithmetic after
Vignes): two programs whose outputs differ by less agree as far as the rows promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transpiler.tileir.ops.lazy import ml_dtypes, np

Array = Any


@dataclass
class Noise:
    """A source of random errors."""

    rng: Any

    @staticmethod
    def of(seed: int) -> Noise:
        """Noise that follows from a seed."""
        return Noise(np.random.default_rng(seed))

    def elementwise(self, values: Array, ulps: float) -> Array:
        """Move each element by -1, 0 or 1 times so many units in the last place."""
        values = np.asarray(values)
        if values.dtype.kind in "iub":
            return values
        wide = values.astype(np.float64)
        unit = np.maximum(_eps(values.dtype) * np.abs(wide), _least(values.dtype))
        moved = wide + self._signs(values.shape) * ulps * np.where(wide == 0, 0.0, unit)
        return np.where(np.isfinite(wide), moved, wide).astype(values.dtype)[()]

    def summed(self, values: Array, magnitude: Array, count: int) -> Array:
        """Move sums of ``count`` terms, whose absolute values add up to ``magnitude``."""
        values = np.asarray(values)
        if values.dtype.kind in "iub":
            return values
        wide = values.astype(np.float64)
        moved = wide + self._signs(values.shape) * count * _eps(values.dtype) * magnitude
        return np.where(np.isfinite(wide) & np.isfinite(moved), moved, wide).astype(values.dtype)[()]

    def _signs(self, shape: tuple[int, ...]) -> Array:
        return self.rng.integers(-1, 2, shape)


def _info(dtype: Any) -> Any:
    find: Any = np.finfo if dtype.kind == "f" and dtype.itemsize > 1 else ml_dtypes.finfo
    return find(dtype)


def _eps(dtype: Any) -> float:
    return float(_info(dtype).eps)


def _least(dtype: Any) -> float:
    return float(_info(dtype).smallest_subnormal)
