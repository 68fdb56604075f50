"""Which tile block this is, of how many; sizes of views and of their index spaces."""

from __future__ import annotations

from typing import Any

from transpiler.tileir.ops.row import MANY, Function, rows
from transpiler.tileir.ops.site import Site
from transpiler.tileir.views import TileView

Array = Any


def _block_id(site: Site) -> Function:
    dtype, machine = site.result_dtype, site.machine
    return lambda: tuple([dtype.type(i) for i in machine.block])


def _block_count(site: Site) -> Function:
    dtype, machine = site.result_dtype, site.machine
    return lambda: tuple([dtype.type(i) for i in machine.grid])


def _numbers(site: Site, sizes: tuple[int, ...]) -> Any:
    """Sizes as the results' type."""
    given = tuple([site.result_dtype.type(size) for size in sizes])
    return given[0] if len(site.op.results) == 1 else given


def _index_space(site: Site) -> Function:
    return lambda view: _numbers(site, view.index_space())


def _tensor_shape(site: Site) -> Function:
    return lambda view: _numbers(site, view.tensor.shape if isinstance(view, TileView) else view.shape)


ROWS = {
    **rows("get_tile_block_id", 0, make=_block_id, static=False, results=(3, 3)),
    **rows("get_num_tile_blocks", 0, make=_block_count, static=False, results=(3, 3)),
    **rows("get_index_space_shape", 1, make=_index_space, results=(1, MANY)),
    **rows("get_tensor_shape", 1, make=_tensor_shape, results=(1, MANY)),
}
