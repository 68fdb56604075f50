"""Views, and loads and stores through them."""

from __future__ import annotations

from typing import Any

from transpiler.tileir.ops.row import MANY, Function, rows
from transpiler.tileir.ops.site import Site
from transpiler.tileir.views import TensorView, TileView, padding_value, tensor_type, view_type

Array = Any
_MEMORY = "ordering scope hints inbounds"


def _tensor_view(site: Site) -> Function:
    """Dynamic sizes and strides come in the order of the question marks in the type."""
    kind = tensor_type(site.result_types[0])

    def run(base: Array, *numbers: Array) -> TensorView:
        given = iter([int(n) for n in numbers])
        shape = tuple([next(given) if size is None else size for size in kind.shape])
        strides = tuple([next(given) if stride is None else stride for stride in kind.strides])
        return TensorView(kind, int(base), shape, strides)

    return run


def _tile_view(site: Site) -> Function:
    kind = view_type(site.result_types[0])
    return lambda tensor: TileView(kind, tensor)


def _token(site: Site) -> int:
    """The position of the token operand, or -1."""
    return next(iter(site.role("token")), -1)


def _load(site: Site) -> Function:
    machine, op = site.machine, site.op
    kind = view_type(site.operand_types[0])
    element = kind.tensor.element
    padding = padding_value(kind.padding, element)
    indices, token = site.role("index"), _token(site)
    first, last = indices[0], indices[-1] + 1

    def run(view: TileView, *rest: Any) -> tuple[Array, int]:
        values = (view, *rest)
        addresses, exists, problem = view.locate(values[first:last])
        if problem:
            machine.outside(op, "reads", view.tensor.base, problem)
        return machine.load(op, addresses, element, exists, padding, values[token] if token >= 0 else 0)

    return run


def _store(site: Site) -> Function:
    machine, op = site.machine, site.op
    element = view_type(site.operand_types[1]).tensor.element
    indices, token = site.role("index"), _token(site)
    first, last = indices[0], indices[-1] + 1

    def run(tile: Array, view: TileView, *rest: Any) -> int:
        values = (tile, view, *rest)
        addresses, exists, problem = view.locate(values[first:last])
        if problem:
            machine.outside(op, "writes", view.tensor.base, problem)
        return machine.store(op, addresses, element, tile, exists, values[token] if token >= 0 else 0)

    return run


ROWS = {
    **rows("make_tensor_view", (1, MANY), "shape strides", make=_tensor_view),
    **rows("make_partition_view make_strided_view make_gather_scatter_view", 1, make=_tile_view),
    **rows("load_view_tko", (1, MANY), _MEMORY, make=_load, kind="memory", results=(2, 2)),
    **rows("store_view_tko", (2, MANY), _MEMORY, make=_store, kind="memory"),
}
