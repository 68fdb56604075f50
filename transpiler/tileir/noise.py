"""Noise: results moved at random within what their rows' tolerances allow.

Running a program several times with noise says how far its outputs may be off (stochastic arithmetic after
Vignes): two programs whose outputs differ by less agree as far as the rows promise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from transpiler.tileir.elements import dtype_of
from transpiler.tileir.ops.lazy import ml_dtypes, np

Array = Any


@dataclass(frozen=True)
class Terms:
    """What finite terms of a sum add up to: the positive ones, and the negative ones without their sign."""

    up: Array
    down: Array
    special: Array
    """Whether there is an infinity or NaN among the terms."""

    @staticmethod
    def of(terms: Array, add: Callable[[Array], Array]) -> Terms:
        """Add up terms with ``add``."""
        wide = np.asarray(terms).astype(np.float64)
        finite = np.isfinite(wide)
        wide = np.where(finite, wide, 0.0)
        return Terms(add(np.maximum(wide, 0.0)), add(np.maximum(-wide, 0.0)), add(~finite) > 0)


@dataclass
class _Updates:
    """The sums that atomics make in the elements of an allocation."""

    clean: Array
    """What they would be without noise."""
    left: Array
    """What was stored."""
    terms: Terms
    count: Array

    @staticmethod
    def of(values: Array) -> _Updates:
        """No element was updated yet."""
        up, down, special, count = (np.zeros(values.shape) for _ in range(4))
        return _Updates(values.copy(), values.copy(), Terms(up, down, special > 0), count)


@dataclass
class Noise:
    """A source of random errors."""

    rng: Any
    _updates: dict[int, _Updates] = field(default_factory=dict)

    @staticmethod
    def of(seed: int) -> Noise:
        """Noise that follows from a seed."""
        return Noise(np.random.default_rng(seed))

    def elementwise(self, values: Array, ulps: float) -> Array:
        """Move each element by up to so many units in the last place."""
        values = np.asarray(values)
        if values.dtype.kind in "iub":
            return values
        wide = values.astype(np.float64)
        unit = np.maximum(_eps(values.dtype) * np.abs(wide), _least(values.dtype))
        moved = wide + self._signs(values.shape) * ulps * np.where(wide == 0, 0.0, unit)
        return np.where(np.isfinite(wide), moved, wide).astype(values.dtype)[()]

    def summed(self, values: Array, terms: Terms, count: Array, factor: float = 1.0) -> Array:
        """Move sums of ``count`` terms by up to ``factor * sqrt(count) * eps * sum(|term|)``.

        Where the positive terms alone, or the negative ones, are more than the largest number, some order of adding
        overflows: to their infinity, or to NaN when it meets the other one.
        """
        values = np.asarray(values)
        if values.dtype.kind in "iub":
            return values
        wide = values.astype(np.float64)
        slack = factor * np.sqrt(count) * _eps(values.dtype) * (terms.up + terms.down)
        moved = np.where(np.isfinite(wide), wide + self._signs(values.shape) * slack, wide)
        largest = float(_info(values.dtype).max)
        if np.any(np.maximum(terms.up, terms.down) + slack > largest):
            moved = self._overflown(moved, terms, slack, largest)
        with np.errstate(over="ignore"):
            return moved.astype(values.dtype)[()]

    def added(self, place: int, values: Array, index: Array, operand: Array) -> Array:
        """What ``operand`` makes of the elements at ``index``, each once, of ``values``, an allocation's at ``place``.

        Their updates are the terms of a sum, as long as nothing else is stored there.
        """
        sums = self._updates.setdefault(place, _Updates.of(values))
        before = values[index]
        other = (sums.count[index] == 0) | ((before != sums.left[index]) & ~np.isnan(before))
        start, term = (Terms.of(terms, np.asarray) for terms in (before, operand))
        sums.terms.up[index] = np.where(other, start.up, sums.terms.up[index]) + term.up
        sums.terms.down[index] = np.where(other, start.down, sums.terms.down[index]) + term.down
        sums.terms.special[index] = np.where(other, start.special, sums.terms.special[index]) | term.special
        sums.count[index] = np.where(other, 1, sums.count[index]) + 1
        sums.clean[index] = np.where(other, before, sums.clean[index]) + operand
        terms = Terms(sums.terms.up[index], sums.terms.down[index], sums.terms.special[index])
        sums.left[index] = self.summed(sums.clean[index], terms, sums.count[index])
        return sums.left[index]

    def _overflown(self, values: Array, terms: Terms, slack: Array, largest: float) -> Array:
        """Let sums stay as they are, or become what they may in another order."""
        up, down = terms.up + slack > largest, terms.down + slack > largest
        choice = self.rng.integers(0, 4, np.shape(values))
        meet = np.where(terms.special, (up & (values == -np.inf)) | (down & (values == np.inf)), up & down)
        moved = np.where(up & ~terms.special & (choice == 1), np.inf, values)
        moved = np.where(down & ~terms.special & (choice == 2), -np.inf, moved)
        return np.where(meet & (choice == 3), np.nan, moved)

    def _signs(self, shape: tuple[int, ...]) -> Array:
        """From -1 to 1, a third of them at the ends: what comes after may round the largest moves away."""
        return np.clip(self.rng.uniform(-1.5, 1.5, shape), -1.0, 1.0)


def least_normal(element: str) -> float:
    """The least positive number of an element type that isn't subnormal."""
    return float(_info(dtype_of(element)).smallest_normal)


def _info(dtype: Any) -> Any:
    find: Any = np.finfo if dtype.kind == "f" and dtype.itemsize > 1 else ml_dtypes.finfo
    return find(dtype)


def _eps(dtype: Any) -> float:
    return float(_info(dtype).eps)


def _least(dtype: Any) -> float:
    return float(_info(dtype).smallest_subnormal)
