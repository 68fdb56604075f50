"""The grid, array metadata and scalar parameters; every run-time scalar is a 0-d tile."""

from __future__ import annotations

from transpiler.select.forms import form

ROWS = [
    *(form("block_id", f"tile_block_id().{i}", nest=False, axis=i) for i in range(3)),
    *(form("num_blocks", f"num_tile_blocks().{i}", nest=False, axis=i) for i in range(3)),
    form("dim", "scalar_to_tile(get_tensor_shape_meta($tensor)[$dynamic_axis])", nest=False),
    form("stride", "scalar_to_tile(strides($tensor)[$dynamic_axis])", nest=False),
]
