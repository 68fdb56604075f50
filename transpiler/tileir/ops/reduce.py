"""Reductions and scans, in an order of our own that is always the same.

The body is run on whole slices.  A reduction first combines the first element with the identity, then
neighbours pairwise, as a tree: associativity is all that it needs.  A scan goes from element to element.
"""

from __future__ import annotations

from typing import Any

from transpiler.tileir.elements import dtype_of, literal
from transpiler.tileir.model import tile_type
from transpiler.tileir.noise import Terms
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import MANY, Function, rows, summed
from transpiler.tileir.ops.site import Env, Site
from transpiler.tileir.text import split_list

Array = Any
Combine = Any
"""(env, elements, accumulators) -> accumulators: one array for each tile."""


def _identities(site: Site) -> list[Any]:
    """The identity of each tile."""
    found = []
    for item, type_text in zip(split_list(site.get("identities")), site.operand_types, strict=True):
        found.append(literal(item.partition(":")[0], tile_type(type_text).element))
    return found


def _combine(site: Site) -> Combine:
    """Run the body; its arguments are pairs of an element and an accumulator, tile by tile."""
    body = site.regions[0]
    if (single := _single(site)) is not None:
        return single
    dtypes = [dtype_of(tile_type(t).element) for t in site.operand_types]

    def combine(env: Env, elements: list[Array], accumulators: list[Array]) -> list[Array]:
        for i, (element, accumulator) in enumerate(zip(elements, accumulators, strict=True)):
            env[body.args[2 * i]], env[body.args[2 * i + 1]] = element, accumulator
        signal = body.run(env)
        assert signal is not None
        shape = elements[0].shape
        return [_shaped(v, shape, t) for v, t in zip(signal[1], dtypes, strict=True)]

    return combine


def _single(site: Site) -> Combine | None:
    """A body of one operation on its two arguments needs no environment."""
    region, body = site.op.regions[0], site.regions[0]
    if len(region.ops) != 2 or body.first is None:
        return None
    op, end = region.ops
    if end.operands != op.results or len(op.results) != 1 or sorted(op.operands) != sorted(region.args):
        return None
    function = body.first
    if op.operands == region.args:
        return lambda _env, elements, accumulators: [function(elements[0], accumulators[0])]
    return lambda _env, elements, accumulators: [function(accumulators[0], elements[0])]


def _shaped(value: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    if np.shape(value) != shape:  # the body doesn't depend on the elements
        value = np.broadcast_to(value, shape)
    return value.astype(dtype, copy=False)


def _inexact(site: Site) -> bool:
    """Whether the order of combining shows: floats are added or multiplied."""
    names = {op.name for region in site.op.regions for op in region.ops}
    return bool(names & {"addf", "mulf", "subf", "fma", "divf"})


def _multiplies(site: Site) -> bool:
    """Whether elements are multiplied: roundings then are relative to the product."""
    return [op.name for region in site.op.regions for op in region.ops] == ["mulf", "yield"]


def _reduce(site: Site) -> Function:
    axis, operands, results = int(site.get("dim")), site.op.operands, site.op.results
    identities, combine = _identities(site), _combine(site)
    inexact, product, machine = _inexact(site), _multiplies(site), site.machine

    def run(env: Env) -> None:
        tiles = [np.moveaxis(env[v], axis, 0) for v in operands]
        start = [np.broadcast_to(i, t[:1].shape) for i, t in zip(identities, tiles, strict=True)]
        first = combine(env, [t[:1] for t in tiles], start)
        level = [np.concatenate((f, t[1:])) for f, t in zip(first, tiles, strict=True)]
        while (size := level[0].shape[0]) > 1:
            even = size // 2 * 2
            paired = combine(env, [t[1:even:2] for t in level], [t[0:even:2] for t in level])
            level = (
                [np.concatenate((p, t[even:])) for p, t in zip(paired, level, strict=True)] if even < size else paired
            )
        for result, tile in zip(results, level, strict=True):
            env[result] = tile[0]
        if machine.noise is not None and inexact:
            for result, tile in zip(results, tiles, strict=True):
                terms = Terms.of(env[result], np.asarray) if product else Terms.of(tile, lambda t: t.sum(0))
                env[result] = machine.noise.summed(env[result], terms, tile.shape[0])

    return run


def _scan(site: Site) -> Function:
    axis, operands, results = int(site.get("dim")), site.op.operands, site.op.results
    identities, combine = _identities(site), _combine(site)
    backwards = site.get("reverse", "false") == "true"
    inexact, product, machine = _inexact(site), _multiplies(site), site.machine

    def run(env: Env) -> None:
        tiles = [np.moveaxis(env[v], axis, 0) for v in operands]
        outputs = [np.empty(t.shape, t.dtype) for t in tiles]
        running = [np.broadcast_to(i, t.shape[1:]) for i, t in zip(identities, tiles, strict=True)]
        places = range(tiles[0].shape[0])
        for at in reversed(places) if backwards else places:
            running = combine(env, [t[at] for t in tiles], running)
            for output, value in zip(outputs, running, strict=True):
                output[at] = value
        for result, output in zip(results, outputs, strict=True):
            env[result] = np.moveaxis(output, 0, axis)
        if machine.noise is not None and inexact:
            for result, tile in zip(results, tiles, strict=True):
                terms = Terms.of(tile, lambda t: np.moveaxis(t.cumsum(0), 0, axis))
                terms = Terms.of(env[result], np.asarray) if product else terms
                env[result] = machine.noise.summed(env[result], terms, tile.shape[0])

    return run


_ORDER = (
    "the order in which elements are combined is open; integers and extrema are exact in any order; a product is a sum "
    "of one term, itself"
)
ROWS = {
    **rows("reduce", (1, MANY), "dim identities", make=_reduce, tolerance=summed(1.0, _ORDER, _inexact), regions=1,
           results=(1, MANY)),
    **rows("scan", (1, MANY), "dim identities reverse", make=_scan, tolerance=summed(1.0, _ORDER, _inexact), regions=1,
           results=(1, MANY)),
}  # fmt: skip
