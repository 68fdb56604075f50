"""The choices that a kernel is made of. Each shrinks to its first alternative, to no, and to the smallest number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Draw:
    """Choices drawn by hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def pick(self, items: Sequence[T]) -> T:
        """One of some items."""
        return items[self.number(0, len(items) - 1)] if len(items) > 1 else items[0]

    def number(self, low: int, high: int) -> int:
        """An integer between two, both included."""
        return self._draw(st.integers(low, high))

    def chance(self, percent: int) -> bool:
        """Yes in so many cases of a hundred."""
        return self.number(0, 99) >= 100 - percent

    def some(self, items: Sequence[T], percent: int = 50) -> tuple[T, ...]:
        """Each of the items, or not."""
        return tuple(item for item in items if self.chance(percent))
