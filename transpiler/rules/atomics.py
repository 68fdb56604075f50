"""Atomics, synchronization and printing."""

from __future__ import annotations

from transpiler.rules.registry import Rule, unsupported

_ATOMIC = "array, indices, update, /, *, check_bounds=True, memory_order=None, memory_scope=None"
_NOT_YET = "not built yet"

ROWS: tuple[Rule, ...] = (
    *(unsupported(f"cuda.tile.atomic_{op}", _NOT_YET, _ATOMIC)
      for op in ("xchg", "add", "max", "min", "and", "or", "xor")),
    unsupported("cuda.tile.atomic_cas", _NOT_YET,
                "array, indices, expected, desired, /, *, check_bounds=True, memory_order=None, memory_scope=None"),
    *(unsupported(f"TiledView.{name}", _NOT_YET)
      for name in ("load", "store", "num_tiles", "atomic_store_add", "atomic_store_max", "atomic_store_min",
                   "atomic_store_and", "atomic_store_or", "atomic_store_xor")),
    *(unsupported(f"TiledView.{name}", _NOT_YET, attribute=True)
      for name in ("dtype", "tile_shape", "traversal_steps")),
    unsupported("cuda.tile.print", _NOT_YET),
    unsupported("cuda.tile.printf", _NOT_YET),
    unsupported("builtins.print", _NOT_YET),
    unsupported("cuda.tile.assert_", _NOT_YET, "cond, /, message=None"),
    unsupported("cuda.tile.grid_dependency_control_wait", _NOT_YET, ""),
    unsupported("cuda.tile.grid_dependency_control_launch_dependents", _NOT_YET, ""),
)  # fmt: skip
