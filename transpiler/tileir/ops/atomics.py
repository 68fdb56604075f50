"""Atomic updates: element by element in row-major order; tile blocks come one after another."""

from __future__ import annotations

from typing import Any

from transpiler.tileir.elements import BITS, dtype_of, pointee, unsigned_dtype
from transpiler.tileir.memory import parts
from transpiler.tileir.model import is_token, walk
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.pointers import arguments
from transpiler.tileir.ops.row import MANY, Function, rows, summed
from transpiler.tileir.ops.site import Site
from transpiler.tileir.views import TileView, view_type

Array = Any
_MEMORY = "ordering scope hints"
_UFUNCS = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "add": "add", "addf": "add",
           "max": "maximum", "min": "minimum", "umax": "maximum", "umin": "minimum"}  # fmt: skip


def _combine(mode: str, element: str) -> Function:
    """What an update makes of the old value and the operand."""
    if mode == "xchg":
        return lambda old, new: new
    function: Function = getattr(np, _UFUNCS[mode])
    if mode in ("umax", "umin"):
        unsigned = unsigned_dtype(BITS[element])
        return lambda old, new: function(np.asarray(old).view(unsigned), np.asarray(new).view(unsigned)).view(old.dtype)
    return function


def update(
    site: Site, element: str, addresses: Array, mask: Array | None, token: int, step: Function,
    added: Array | None = None,
) -> tuple[Array, int]:  # fmt: skip
    """Update each element in order with ``step(old values, positions)``; returns the old values and the token.

    Elements with different addresses don't influence each other, so that only repeated addresses are done in turn.
    ``added`` holds the terms where ``step`` adds floats: noise may move such sums.
    """
    machine, op = site.machine, site.op
    flat = addresses.reshape(-1)
    if mask is not None:
        chosen = np.flatnonzero(np.broadcast_to(mask, addresses.shape).reshape(-1))
    else:
        chosen = np.arange(flat.size)
    old = np.zeros(flat.size, dtype_of(element))
    access = machine.races.begin("write", atomic=True)
    ordering = site.get("ordering", "relaxed")
    for part in parts(machine.memory, flat[chosen]):
        allocation, positions, index = machine.locate(op, part, element, "update")
        if allocation is None:
            continue
        machine.check_written(op, allocation, index, element)
        machine.mark(op, allocation, index, element)
        where = chosen if positions is None else chosen[positions]
        if ordering in ("acquire", "acq_rel"):
            machine.races.acquire(allocation, index)
        if ordering in ("release", "acq_rel"):
            machine.races.release(allocation, index)
        machine.order(op, access, allocation, index, element, token)
        view = machine.element_view(allocation, element)
        for turn in _turns(index):
            before = view[index[turn]]
            old[where[turn]] = before
            if added is not None and machine.noise is not None:
                view[index[turn]] = machine.noise.added(allocation.base, view, index[turn], added[where[turn]])
            else:
                view[index[turn]] = step(before, where[turn])
    return old.reshape(addresses.shape), token | access.bit


def _turns(index: Array) -> list[Array]:
    """Split positions so that no turn has an index twice, and equal ones stay in order."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.r_[True, ordered[1:] != ordered[:-1]] if ordered.size else np.zeros(0, bool)
    first = np.maximum.accumulate(np.where(starts, np.arange(ordered.size), 0)) if ordered.size else ordered
    rank = np.arange(ordered.size) - first
    return [order[rank == r] for r in range(int(rank.max(initial=-1)) + 1)]


def _rmw(site: Site) -> Function:
    element = pointee(site.element(0))
    combine = _combine(site.get("mode"), element)
    _, mask, token = arguments(site, 2)

    def run(*values: Any) -> tuple[Array, int]:
        addresses = np.asarray(values[0])
        operand = np.asarray(values[1]).reshape(-1)
        old, after = update(
            site, element, addresses, values[mask] if mask >= 0 else None, values[token] if token >= 0 else 0,
            lambda old, at: combine(old, operand[at]), operand if site.get("mode") == "addf" else None,
        )  # fmt: skip
        return old if addresses.shape else old[()], after

    return run


def _cas(site: Site) -> Function:
    """Compare bits and swap; a masked element gives the value it would have been compared with."""
    element = pointee(site.element(0))
    bits = unsigned_dtype(BITS[element])
    _, mask, token = arguments(site, 3)

    def run(*values: Any) -> tuple[Array, int]:
        addresses = np.asarray(values[0])
        expected, wanted = (np.ascontiguousarray(v).reshape(-1) for v in values[1:3])
        chosen = values[mask] if mask >= 0 else None

        def step(old: Array, at: Array) -> Array:
            return np.where(old.view(bits) == expected[at].view(bits), wanted[at], old)

        old, after = update(site, element, addresses, chosen, values[token] if token >= 0 else 0, step)
        if chosen is not None:
            old = np.where(chosen, old, expected.reshape(addresses.shape))
        return old if addresses.shape else old[()], after

    return run


def _red_view(site: Site) -> Function:
    plain = site.role("")
    views = [i for i in plain if site.operand_types[i].endswith(">") and "_view<" in site.operand_types[i]]
    tile = next(i for i in plain if i not in views)
    element = view_type(site.operand_types[views[0]]).tensor.element
    combine = _combine(site.get("mode"), element)
    indices, token = site.role("index"), next(iter(site.role("token")), -1)

    def run(*values: Any) -> int:
        view: TileView = values[views[0]]
        addresses, exists, problem = view.locate(tuple(values[i] for i in indices))
        if problem:
            site.machine.outside(site.op, "updates", view.tensor.base, problem)
        operand = np.asarray(values[tile]).reshape(-1)
        return update(
            site, element, addresses, exists, values[token] if token >= 0 else 0,
            lambda old, at: combine(old, operand[at]), operand if site.get("mode") == "addf" else None,
        )[1]  # fmt: skip

    return run


def _order_shows(site: Site) -> bool:
    """Whether it matters who comes first: floats are added, values are swapped, or the old value is used."""
    if site.get("mode") in ("", "xchg", "addf"):
        return True
    tiles = [r for r in site.op.results if not is_token(site.entry.values[r].type)]
    return any(r in op.operands for op in walk(site.entry.body) for r in tiles)


_ORDER = summed(1.0, "the order of updates by several tile blocks is open; here it is that of the blocks; each of the "
                "n updates is a term of a sum", _order_shows)  # fmt: skip
ROWS = {
    **rows("atomic_rmw_tko", (2, 4), _MEMORY + " mode", make=_rmw, tolerance=_ORDER, kind="memory", results=(2, 2)),
    **rows("atomic_cas_tko", (3, 5), _MEMORY, make=_cas, tolerance=_ORDER, kind="memory", results=(2, 2)),
    **rows("atomic_red_view_tko", (2, MANY), _MEMORY + " mode inbounds", make=_red_view, tolerance=_ORDER,
           kind="memory"),
}  # fmt: skip
