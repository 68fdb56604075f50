"""Emulated global memory: arrays at addresses far apart, so that any access outside of them is seen.

An address is a 64-bit integer.  Each allocation has a window of 2**40 bytes and starts in its middle:
what is reached by adding to or subtracting from a pointer is in an array or in nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from transpiler.tileir.ops.lazy import np

_WINDOW = 40
_MIDDLE = 1 << (_WINDOW - 1)
Array = Any
"""A NumPy array."""


@dataclass
class Allocation:
    """One array: its bytes, which of them were written (None: all), the size of its elements."""

    name: str
    base: int
    data: Array
    itemsize: int
    dtype: Any
    shape: tuple[int, ...]
    written: Array | None = None

    def array(self) -> Array:
        """The content as the array that was allocated."""
        return self.data.view(self.dtype).reshape(self.shape)

    def copy(self) -> Allocation:
        """A copy that shares nothing."""
        written = None if self.written is None else self.written.copy()
        return replace(self, data=self.data.copy(), written=written)


@dataclass
class Memory:
    """All allocations; ``allocate`` returns the address of the first byte."""

    allocations: list[Allocation] = field(default_factory=list)

    def allocate(self, name: str, content: Array, *, initialized: bool = True) -> int:
        """Put a contiguous copy of ``content`` into memory; uninitialized content is known but may not be read."""
        content = np.ascontiguousarray(content)
        base = (len(self.allocations) + 1 << _WINDOW) + _MIDDLE
        data = content.reshape(-1).view(np.uint8).copy()
        written = None if initialized else np.zeros(data.size, bool)
        self.allocations.append(
            Allocation(name, base, data, content.dtype.itemsize, content.dtype, content.shape, written)
        )
        return base

    def copy(self) -> Memory:
        """A copy that shares nothing."""
        return Memory([a.copy() for a in self.allocations])

    def find(self, address: int) -> Allocation | None:
        """The allocation in whose window an address lies."""
        index = (int(address) >> _WINDOW) - 1
        return self.allocations[index] if 0 <= index < len(self.allocations) else None

    def __getitem__(self, name: str) -> Array:
        """The content of the allocation called ``name``."""
        return next(a for a in self.allocations if a.name == name).array()


@dataclass(frozen=True)
class Part:
    """The elements of an access that lie in one allocation: flat positions in the tile, offsets in bytes."""

    allocation: Allocation | None
    positions: Array | None
    """None: the whole tile, in order."""
    offsets: Array


def parts(memory: Memory, addresses: Array) -> list[Part]:
    """Split flat addresses by allocation."""
    if addresses.size == 0:
        return []
    windows = addresses >> _WINDOW
    first = int(windows[0])
    if (windows == first).all():
        return [_part(memory, first, None, addresses)]
    found = []
    for window in np.unique(windows).tolist():
        positions = np.flatnonzero(windows == window)
        found.append(_part(memory, window, positions, addresses[positions]))
    return found


def _part(memory: Memory, window: int, positions: Array | None, addresses: Array) -> Part:
    allocation = memory.allocations[window - 1] if 1 <= window <= len(memory.allocations) else None
    return Part(allocation, positions, addresses - ((window << _WINDOW) + _MIDDLE))
