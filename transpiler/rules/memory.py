"""Loads, stores, gathers and scatters. Tokens are threaded later, by the token order pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transpiler.ir.symbolic import Sym, apply, lit
from transpiler.ir.tir import Value
from transpiler.ir.types import I32, TOKEN, DType, PtrTy, Shape, TensorTy, TileTy, ViewTy, dim
from transpiler.rules import arith
from transpiler.rules.common import array_arg, axis_arg, enum_arg, int_tuple, optional_int
from transpiler.rules.index import base_of, dim_of, stride_of
from transpiler.rules.registry import Rule, unsupported
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import ArrayVal, Const, TupleVal, Val, const

U64 = DType("uint64")


# -- views --------------------------------------------------------------------------------------------


def view(ev: Evaluator, a: ArrayVal, tile: Shape, order: Val, padding: str | None, steps: Shape | None = None) -> Value:
    """A partition (or strided) view of an array."""
    axes = _order(ev, order, a.rank)
    if len(tile) != a.rank:
        ev.refuse(f"a tile of rank {len(tile)} for an array of rank {a.rank}")
    return ev.value("view", (viewed(ev, a),), ViewTy(a.dtype, tile, padding, axes, steps), array=a.root)


def viewed(ev: Evaluator, a: ArrayVal) -> Value:
    """The tensor to make views of.

    A unit stride of an axis of size 1 must not be taken for the contiguous one: the reference hands it
    over as a run-time value, and calls it 16-byte aligned since it addresses nothing.
    """
    singletons = [i for i in range(a.rank) if a.static_dims[i] == 1 and a.static_strides[i] == 1]
    if not singletons:
        return a.tensor
    base = base_of(ev, a)
    dims = [dim_of(ev, a, i) for i in range(a.rank)]
    strides = [stride_of(ev, a, i) for i in range(a.rank)]
    for i in (axis for axis in range(a.rank) if a.static_dims[axis] == 1):
        stride = ev.constant(1, I32) if i in singletons else strides[i]
        if i in singletons or a.static_strides[i] is None:
            strides[i] = aligned_stride(ev, stride, a.dtype, a.root)
    static_strides = tuple(None if i in singletons else s for i, s in enumerate(a.static_strides))
    statics = (*a.static_dims, *static_strides)
    dynamic = [v for v, static in zip((*dims, *strides), statics, strict=True) if static is None]
    return ev.value("make_tensor", (base, *dynamic), TensorTy(a.dtype, a.rank), array=a.root,
                    static=statics)  # fmt: skip


def aligned_stride(ev: Evaluator, stride: Value, d: DType, array: str) -> Value:
    """The stride of an axis of size 1, stated to be 16-byte aligned."""
    elements = lit(16 // (d.bits // 8 or 1)) if d.of is None else apply("floordiv", lit(16), Sym("itemsize", (array,)))
    return ev.value("assume", (stride,), ev.type_of(stride), divisor=elements)


def _order(ev: Evaluator, order: Val, rank: int) -> tuple[int, ...] | None:
    if isinstance(order, Const) and isinstance(order.value, str):
        if order.value not in ("C", "F"):
            ev.refuse(f"order must be 'C', 'F' or a tuple, not {order.value!r}")
        axes = tuple(range(rank)) if order.value == "C" else tuple(reversed(range(rank)))
    else:
        axes = tuple(a % rank if -rank <= a < rank else -1 for a in int_tuple(ev, order, "order"))
    if sorted(axes) != list(range(rank)):
        ev.refuse(f"order {axes} isn't a permutation of {rank} axes")
    return None if axes == tuple(range(rank)) else axes


def index_of(ev: Evaluator, index: Val, rank: int) -> tuple[Value, ...]:
    """Tile indices as i32 scalars."""
    items = index.items if isinstance(index, TupleVal) else (index,)
    if len(items) != rank:
        ev.refuse(f"{len(items)} indices for an array of rank {rank}")
    return tuple(scalar_index(ev, i) for i in items)


def scalar_index(ev: Evaluator, i: Val) -> Value:
    """A tile index as an i32 scalar."""
    v = ev.tile(i, "an index")
    ty = ev.type_of(v)
    if ty.rank != 0 or not ty.dtype.is_int:
        ev.refuse(f"an index must be an integer scalar, not {ty}")
    return ev.astype(v, I32)


@dataclass(frozen=True)
class Access:
    """The arguments that loads and stores through views share."""

    check_bounds: Val
    latency: Val
    allow_tma: Val
    memory_order: Val
    memory_scope: Val

    def attributes(self, ev: Evaluator, rank: int) -> dict[str, Any]:
        """As attributes of the TIR operation."""
        checked = bool(ev.decided(self.check_bounds, "check_bounds"))
        tma = None if _none(self.allow_tma) else bool(ev.decided(self.allow_tma, "allow_tma"))
        scope = enum_arg(ev, self.memory_scope)
        return {
            "latency": _latency(ev, self.latency),
            "tma": tma,
            "ordering": enum_arg(ev, self.memory_order) or "weak",
            "scope": None if scope == "none" else scope,
            "inbounds": (not checked,) * rank,
        }


def _none(v: Val) -> bool:
    return isinstance(v, Const) and v.value is None


def _latency(ev: Evaluator, v: Val) -> int | None:
    n = optional_int(ev, v, "latency")
    if n is not None and not 1 <= n <= 10:
        ev.refuse(f"latency must be between 1 and 10, not {n}")
    return n


def padding_of(ev: Evaluator, v: Val) -> str | None:
    """A padding mode, None when it is undetermined."""
    mode = enum_arg(ev, v)
    return None if mode == "undetermined" else mode


def load_tile(
    ev: Evaluator, a: ArrayVal, index: Val, shape: Shape, order: Val, padding: str | None, access: Access,
    steps: Shape | None = None,
) -> Value:  # fmt: skip
    """Load a tile through a view; a 0-d tile goes through a view of ones."""
    where = index_of(ev, index, a.rank)
    tile = shape or (dim(1),) * a.rank
    v = view(ev, a, tile, order, padding, steps)
    op = ev.emit(
        "load_view", (v, *where), (TileTy(a.dtype, tile), TOKEN), array=a.root, **access.attributes(ev, a.rank)
    )
    return ev.reshape(op.results[0], shape)


def store_tile(
    ev: Evaluator, a: ArrayVal, index: Val, tile: Val, order: Val, access: Access, steps: Shape | None = None
) -> None:
    """Store a tile through a view."""
    value = ev.implicit_cast(tile, a.dtype, "the stored tile")
    where = index_of(ev, index, a.rank)
    shape = ev.type_of(value).shape or (dim(1),) * a.rank
    value = ev.reshape(value, shape)
    v = view(ev, a, shape, order, None, steps)
    ev.emit(
        "store_view",
        (v, *where, value),
        (TOKEN,),
        array=a.root,
        may_alias=a.may_alias or None,
        **access.attributes(ev, a.rank),
    )


def _load(
    ev: Evaluator, array: Val, index: Val, shape: Val, order: Val, padding_mode: Val, check_bounds: Val,
    latency: Val, allow_tma: Val, memory_order: Val, memory_scope: Val,
) -> Value:  # fmt: skip
    a = array_arg(ev, array)
    access = Access(check_bounds, latency, allow_tma, memory_order, memory_scope)
    return load_tile(ev, a, index, ev.const_shape(shape), order, padding_of(ev, padding_mode), access)


def _store(
    ev: Evaluator, array: Val, index: Val, tile: Val, order: Val, check_bounds: Val, latency: Val,
    allow_tma: Val, memory_order: Val, memory_scope: Val,
) -> Val:  # fmt: skip
    a = array_arg(ev, array)
    store_tile(ev, a, index, tile, order, Access(check_bounds, latency, allow_tma, memory_order, memory_scope))
    return const(None)


def _num_tiles(ev: Evaluator, array: Val, axis: Val, shape: Val, order: Val) -> Value:
    a = array_arg(ev, array)
    at = axis_arg(ev, axis, a.rank)
    v = view(ev, a, ev.const_shape(shape) or (dim(1),) * a.rank, order, None)
    return ev.value("num_tiles", (v,), TileTy(I32), axis=at)


# -- gather and scatter -------------------------------------------------------------------------------


def address(ev: Evaluator, a: ArrayVal, indices: Val, check_bounds: Val, mask: Val) -> tuple[Value, Value | None]:
    """The pointer tile of a gather or scatter and its mask (None: every lane is accessed)."""
    items = indices.items if isinstance(indices, TupleVal) else (indices,)
    if len(items) != a.rank:
        ev.refuse(f"{len(items)} indices for an array of rank {a.rank}")
    tiles = [_index_tile(ev, i) for i in items]
    shape: Shape = ()
    for t in tiles:
        shape = ev.broadcast_shapes(shape, ev.type_of(t).shape)
    checked = bool(ev.decided(check_bounds, "check_bounds"))
    offset: Value | None = None
    bounds: Value | None = None
    for axis, t in enumerate(tiles):
        index = ev.broadcast_to(ev.astype(t, U64), shape)
        if checked:
            bounds = _and(ev, bounds, _in_bounds(ev, index, dim_of(ev, a, axis)))
        delta = _scaled(ev, index, stride_of(ev, a, axis))
        offset = delta if offset is None else arith.raw_arithmetic(ev, "add", offset, delta)
    pointer = base_of(ev, a)
    if offset is not None:
        pointer = ev.broadcast_to(pointer, shape)
        pointer = ev.value("offset", (pointer, offset), PtrTy(a.dtype, shape), array=a.root)
    return pointer, _with_mask(ev, mask, bounds, shape)


def _index_tile(ev: Evaluator, i: Val) -> Value:
    v = ev.tile(i, "an index")
    if not ev.type_of(v).dtype.is_int:
        ev.refuse(f"an index must be an integer, not {ev.type_of(v).dtype}")
    return v


def _in_bounds(ev: Evaluator, index: Value, size: Value) -> Value:
    limit = ev.broadcast_to(ev.astype(size, U64), ev.type_of(index).shape)
    return arith.raw_compare(ev, "lt", index, limit)


def _scaled(ev: Evaluator, index: Value, stride: Value) -> Value:
    s = ev.broadcast_to(ev.astype(stride, U64), ev.type_of(index).shape)
    return arith.raw_arithmetic(ev, "mul", index, s)


def _and(ev: Evaluator, a: Value | None, b: Value) -> Value:
    return b if a is None else ev.value("andi", (a, b), ev.type_of(a))


def _with_mask(ev: Evaluator, mask: Val, bounds: Value | None, shape: Shape) -> Value | None:
    if _none(mask):
        return bounds
    m = ev.tile(mask, "the mask")
    if ev.type_of(m).dtype.category != "bool":
        ev.refuse(f"a mask must be bool, not {ev.type_of(m).dtype}")
    m = ev.broadcast_to(m, shape)
    return m if bounds is None else _and(ev, bounds, m)


def _gather(
    ev: Evaluator, array: Val, indices: Val, mask: Val, padding_value: Val, check_bounds: Val, latency: Val
) -> Value:
    a = array_arg(ev, array)
    pointer, m = address(ev, a, indices, check_bounds, mask)
    assert isinstance(pointer.ty, PtrTy)
    shape = pointer.ty.shape
    padding = ev.broadcast_to(ev.implicit_cast(padding_value, a.dtype, "the padding value"), shape)
    operands = (pointer, *((m,) if m is not None else ()), padding)
    op = ev.emit("load_ptr", operands, (TileTy(a.dtype, shape), TOKEN), array=a.root, has_mask=m is not None,
                 has_padding=True, latency=_latency(ev, latency))  # fmt: skip
    return op.results[0]


def _scatter(ev: Evaluator, array: Val, indices: Val, value: Val, mask: Val, check_bounds: Val, latency: Val) -> Val:
    a = array_arg(ev, array)
    pointer, m = address(ev, a, indices, check_bounds, mask)
    assert isinstance(pointer.ty, PtrTy)
    v = ev.broadcast_to(ev.implicit_cast(value, a.dtype, "the stored value"), pointer.ty.shape)
    operands = (pointer, v, *((m,) if m is not None else ()))
    ev.emit("store_ptr", operands, (TOKEN,), array=a.root, has_mask=m is not None, latency=_latency(ev, latency))
    return const(None)


_VIEW_ACCESS = "check_bounds=True, latency=None, allow_tma=None, memory_order=None, memory_scope=None"

ROWS: tuple[Rule, ...] = (
    Rule("cuda.tile.load", f"array, /, index, shape, *, order='C', padding_mode=None, {_VIEW_ACCESS}",
         "load a tile through a partition view", _load),
    Rule("cuda.tile.store", f"array, /, index, tile, *, order='C', {_VIEW_ACCESS}",
         "store a tile through a partition view", _store),
    Rule("cuda.tile.num_tiles", "array, /, axis, shape, order='C'", "tiles along an axis", _num_tiles),
    Rule("cuda.tile.gather",
         "array, indices, /, *, mask=None, padding_value=0, check_bounds=True, latency=None",
         "load elements through pointers", _gather),
    Rule("cuda.tile.scatter", "array, indices, value, /, *, mask=None, check_bounds=True, latency=None",
         "store elements through pointers", _scatter),
    unsupported("Array.get_raw_memory", "raw memory isn't mapped", "self"),
)  # fmt: skip
