"""Tiles of pointers: arithmetic, loads and stores."""

from __future__ import annotations

from typing import Any

from transpiler.tileir.elements import dtype_of, is_pointer, pointee
from transpiler.tileir.model import tile_type
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import Function, rows
from transpiler.tileir.ops.site import Site

Array = Any
_MEMORY = "ordering scope hints"


def size_of(element: str) -> int:
    """How many bytes an element takes in memory."""
    return 8 if is_pointer(element) else int(dtype_of(element).itemsize)


def _offset(site: Site) -> Function:
    """Offsets are signed and count elements."""
    size = size_of(pointee(site.element(0)))
    return lambda pointers, offsets: pointers + offsets.astype(np.int64) * np.int64(size)


def arguments(site: Site, plain: int) -> tuple[list[int], int, int]:
    """The positions of ``plain`` operands that are always there, then of the mask and the token (-1: none)."""
    places = site.role("")
    mask = next((i for i in places[plain:] if tile_type(site.operand_types[i]).element == "i1"), -1)
    return places, mask, next(iter(site.role("token")), -1)


def _load(site: Site) -> Function:
    machine, op = site.machine, site.op
    element = pointee(site.element(0))
    places, mask, token = arguments(site, 1)
    padding = next((i for i in places[1:] if i != mask), -1)
    atomic = site.get("ordering", "weak") != "weak"
    acquires = site.get("ordering") in ("acquire", "acq_rel")

    def run(*values: Any) -> tuple[Array, int]:
        result = machine.load(
            op, np.asarray(values[0]), element, values[mask] if mask >= 0 else None,
            values[padding] if padding >= 0 else None, values[token] if token >= 0 else 0, atomic=atomic,
        )  # fmt: skip
        if acquires:
            machine.acquire(np.asarray(values[0]), element)
        return result

    return run


def _store(site: Site) -> Function:
    machine, op = site.machine, site.op
    element = pointee(site.element(0))
    _, mask, token = arguments(site, 2)
    atomic = site.get("ordering", "weak") != "weak"
    releases = site.get("ordering") in ("release", "acq_rel")

    def run(*values: Any) -> int:
        if releases:
            machine.release(np.asarray(values[0]), element)
        return machine.store(
            op, np.asarray(values[0]), element, values[1], values[mask] if mask >= 0 else None,
            values[token] if token >= 0 else 0, atomic=atomic,
        )  # fmt: skip

    return run


ROWS = {
    **rows("offset", 2, make=_offset),
    **rows("load_ptr_tko", (1, 4), _MEMORY, make=_load, kind="memory", results=(2, 2)),
    **rows("store_ptr_tko", (2, 4), _MEMORY, make=_store, kind="memory"),
}
