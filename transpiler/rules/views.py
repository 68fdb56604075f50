"""Tiled views of arrays, and slices of arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from transpiler.ir.tir import Value
from transpiler.ir.types import I32, TOKEN, PtrTy, TensorTy, TileTy, dim, sizes
from transpiler.rules import arith
from transpiler.rules.atomics import cast_update, mode_of
from transpiler.rules.common import array_arg, axis_arg
from transpiler.rules.index import base_of, dim_of, index_dtype, stride_of
from transpiler.rules.memory import U64, Access, aligned_stride, index_of, load_tile, padding_of, store_tile, view
from transpiler.rules.registry import Rule
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import ArrayVal, Const, DTypeVal, TiledViewVal, TupleVal, Val, const, describe


def _tiled_view(ev: Evaluator, array: Val, tile_shape: Val, padding_mode: Val, traversal_steps: Val) -> TiledViewVal:
    a = array_arg(ev, array)
    tile = ev.const_shape(tile_shape) or (dim(1),) * a.rank
    none = isinstance(traversal_steps, Const) and traversal_steps.value is None
    steps = tile if none else ev.const_shape(traversal_steps, "traversal_steps")
    if len(tile) != a.rank or len(steps) != a.rank:
        ev.refuse(f"tile_shape and traversal_steps need {a.rank} dimensions")
    adjacent = sizes(tile) == sizes(steps)
    for x, y in zip(tile, steps, strict=True):
        if adjacent or x.value != y.value:
            ev.decide_equal(x.sym, y.sym, adjacent)
        if x.value != y.value:
            break
    return TiledViewVal(a, tile, padding_of(ev, padding_mode), None, None if adjacent else steps)


def _view_arg(ev: Evaluator, v: Val) -> TiledViewVal:
    if not isinstance(v, TiledViewVal):
        ev.refuse(f"expected a tiled view, not {describe(v)}")
    return v


def _access(check_bounds: Val, latency: Val, allow_tma: Val) -> Access:
    return Access(check_bounds, latency, allow_tma, const(None), const(None))


def _load(ev: Evaluator, view: Val, index: Val, check_bounds: Val, latency: Val, allow_tma: Val) -> Value:
    v = _view_arg(ev, view)
    access = _access(check_bounds, latency, allow_tma)
    return load_tile(ev, v.array, index, v.tile, const("C"), v.padding, access, v.steps)


def _store(ev: Evaluator, view: Val, index: Val, tile: Val, check_bounds: Val, latency: Val, allow_tma: Val) -> Val:
    v = _view_arg(ev, view)
    value = ev.broadcast_to(ev.tile(tile, "the stored tile"), v.tile)
    store_tile(ev, v.array, index, value, const("C"), _access(check_bounds, latency, allow_tma), v.steps)
    return const(None)


def _num_tiles(ev: Evaluator, view_value: Val, axis: Val) -> Value:
    v = _view_arg(ev, view_value)
    at = axis_arg(ev, axis, v.array.rank)
    if v.steps is not None:
        ev.hole("E0302", "cutile 0.5 counts the tiles of a view without steps only", "compute it from x.shape")
    return ev.value(
        "num_tiles", (view(ev, v.array, v.tile, const("C"), None, v.steps),), TileTy(I32), axis=at
    )  # fmt: skip


def _atomic_store(op: str) -> Callable[..., Val]:
    def lower(ev: Evaluator, view_value: Val, index: Val, update: Val) -> Val:
        v = _view_arg(ev, view_value)
        a = v.array
        mode = mode_of(ev, op, ev.resolve(a.dtype))
        value = cast_update(ev, op, ev.broadcast_to(ev.tile(update, "the update"), v.tile), a.dtype)
        where = index_of(ev, index, a.rank)
        target = view(ev, a, v.tile, const("C"), None, v.steps)
        ev.emit("atomic_red_view", (target, *where, value), (TOKEN,), array=a.root, mode=mode, ordering="relaxed",
                scope="device")  # fmt: skip
        return const(None)

    return lower


def _constants(ev: Evaluator, v: Val, what: str) -> TupleVal:
    t = _view_arg(ev, v)
    shape = t.tile if what == "tile" else t.steps or t.tile
    return TupleVal(tuple(Const(d.value, d.sym) for d in shape))


# -- slices -------------------------------------------------------------------------------------------


def _slice(ev: Evaluator, array: Val, axis: Val, start: Val, stop: Val) -> ArrayVal:
    """``array.slice``: another base pointer and another size along one axis."""
    a = array_arg(ev, array)
    at = axis_arg(ev, axis, a.rank)
    low, high = _known(start), _known(stop)
    if (low is not None and low < 0) or (high is not None and high < 0):
        ev.refuse("a slice's bounds must not be negative")
    first = ev.tile(start, "start")
    size = arith.arithmetic(ev, "sub", stop, start)
    strides = _stated_strides(ev, a)
    offset = ev.tile(arith.arithmetic(ev, "mul", first, strides[at]))
    pointer = ev.value("offset", (base_of(ev, a), ev.astype(offset, U64)), PtrTy(a.dtype), array=a.root)
    return _resized(ev, a, at, pointer, size, strides)


def _stated_strides(ev: Evaluator, a: ArrayVal) -> tuple[Value, ...]:
    """The strides of an array that is sliced, with what is stated of them in views of it (see `viewed`)."""
    strides = [stride_of(ev, a, i) for i in range(a.rank)]
    ones = [i for i in range(a.rank) if a.static_dims[i] == 1]
    if not a.sizes and any(a.static_strides[i] == 1 for i in ones):
        for i in ones:
            if a.static_strides[i] is None:
                strides[i] = aligned_stride(ev, strides[i], a.dtype, a.root)
    return tuple(strides)


def _known(v: Val) -> int | None:
    return v.value if isinstance(v, Const) and isinstance(v.value, int) else None


def _resized(ev: Evaluator, a: ArrayVal, axis: int, pointer: Value, size: Val, strides: tuple[Value, ...]) -> ArrayVal:
    """The array at another base pointer with another size along ``axis``, which no size below 0 can be."""
    known = ev.known(size) if isinstance(size, Value) else size if isinstance(size, Const) else None
    static = None if known is None else ev.decide(known)
    if static is not None and static < 1:
        ev.hole("E0302", f"cutile 0.5 makes no arrays of known sizes below 1, and this slice has {static} elements")
    made = ev.astype(ev.tile(size), index_dtype(a))
    if static is None:
        made = ev.value("assume", (made,), ev.type_of(made), lower=0)
    static_dims = tuple(static if i == axis else d for i, d in enumerate(a.static_dims))
    dims = (made if i == axis else dim_of(ev, a, i) for i in range(a.rank))
    sizes = (*dims, *strides)
    statics = (*static_dims, *a.static_strides)
    dynamic = (v for v, static in zip(sizes, statics, strict=True) if static is None)
    tensor = ev.value("make_tensor", (pointer, *dynamic), TensorTy(a.dtype, a.rank), array=a.root, static=statics)
    return replace(a, tensor=tensor, static_dims=static_dims, pointer=pointer, sizes=sizes)


_ACCESS = "check_bounds=True, latency=None, allow_tma=None"

ROWS: tuple[Rule, ...] = (
    Rule("Array.tiled_view", "self, tile_shape, *, padding_mode=None, traversal_steps=None",
         "a view of an array in tiles", _tiled_view),
    Rule("Array.slice", "self, axis, start, stop", "part of an array along one axis", _slice),
    Rule("TiledView.load", f"self, index, *, {_ACCESS}", "load a tile", _load),
    Rule("TiledView.store", f"self, index, tile, *, {_ACCESS}", "store a tile", _store),
    Rule("TiledView.num_tiles", "self, axis", "tiles along an axis", _num_tiles),
    *(Rule(f"TiledView.atomic_store_{op}", "self, index, update, /", f"atomic {op} of a tile", _atomic_store(op))
      for op in ("add", "max", "min", "and", "or", "xor")),
    Rule("TiledView.dtype", "self", "dtype", lambda ev, v: DTypeVal(_view_arg(ev, v).array.dtype), attribute=True),
    Rule("TiledView.tile_shape", "self", "the tile's shape", lambda ev, v: _constants(ev, v, "tile"),
         attribute=True),
    Rule("TiledView.traversal_steps", "self", "elements between tiles", lambda ev, v: _constants(ev, v, "steps"),
         attribute=True),
)  # fmt: skip
