"""Advanced indexing: one axis takes a tile of positions, each other axis a slice of known length."""

from __future__ import annotations

from transpiler.ir.tir import Value
from transpiler.ir.types import TOKEN, Dim, Shape, TileTy, ViewTy, sizes
from transpiler.rules.common import array_arg
from transpiler.rules.memory import Access, padding_of, scalar_index, viewed
from transpiler.rules.registry import Rule
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import ArrayVal, HoleError, HoleVal, IndexSliceVal, TupleVal, Val, const, describe


def _slice(ev: Evaluator, start: Val, length: Val) -> IndexSliceVal:
    for v, what in ((start, "start"), (length, "length")):
        ty = ev.type_of(ev.tile(v, what))
        if ty.rank != 0 or not ty.dtype.is_int or not ty.dtype.signed:
            ev.refuse(f"the {what} of a ct.Slice must be a signed integer scalar, not {ty}")
    return IndexSliceVal(start, length)


def _positions(ev: Evaluator, a: ArrayVal, indices: Val) -> tuple[tuple[Value, ...], Shape, int]:
    """The index of each axis, the tile's shape, and the axis that takes a tile of positions."""
    if a.rank < 2:
        ev.refuse("advanced indexing needs an array of rank 2 or more", "use ct.gather or ct.scatter")
    if not isinstance(indices, TupleVal) or len(indices.items) != a.rank:
        ev.refuse(f"advanced indexing of an array of rank {a.rank} needs a tuple of {a.rank} indices")
    index, tile, sparse = [], [], []
    for axis, item in enumerate(indices.items):
        value, size, is_sparse = _axis(ev, item, axis)
        index.append(value)
        tile.append(size)
        sparse += [axis] * is_sparse
    if len(sparse) != 1:
        ev.refuse(f"exactly one index must be a 1-D integer tile, not {len(sparse)}")
    return tuple(index), tuple(tile), sparse[0]


def _axis(ev: Evaluator, item: Val, axis: int) -> tuple[Value, Dim, bool]:
    """One axis: where it is read, how many elements, and whether by a tile of positions."""
    if isinstance(item, HoleVal):
        raise HoleError("", "", ev.span, silent=True)
    if isinstance(item, IndexSliceVal):
        length = ev.const_int(item.length, f"the length of the slice at axis {axis}")
        return scalar_index(ev, item.start), Dim(length.value, length.sym), False
    if not isinstance(item, Value):
        ev.refuse(f"the index at axis {axis} must be a 1-D integer tile or a ct.Slice, not {describe(item)}")
    ty = ev.type_of(item)
    if ty.rank != 1 or not ty.dtype.is_int:
        ev.refuse(f"the index at axis {axis} must be a 1-D integer tile or a ct.Slice, not {ty}")
    if ty.dtype.bits > 32:
        ev.refuse("64-bit positions can't be narrowed to 32 bits implicitly", "convert them with ct.astype")
    return item, ty.shape[0], True


def _access(latency: Val, allow_tma: Val) -> Access:
    return Access(const(True), latency, allow_tma, const(None), const(None))


def _load(ev: Evaluator, array: Val, indices: Val, padding_mode: Val, latency: Val, allow_tma: Val) -> Value:
    a = array_arg(ev, array)
    index, tile, axis = _positions(ev, a, indices)
    ty = ViewTy(a.dtype, tile, padding_of(ev, padding_mode), sparse_dim=axis)
    view = ev.value("view", (viewed(ev, a),), ty, array=a.root)
    op = ev.emit("load_view", (view, *index), (TileTy(a.dtype, tile), TOKEN), array=a.root,
                 **_access(latency, allow_tma).attributes(ev, a.rank))  # fmt: skip
    return op.results[0]


def _store(ev: Evaluator, array: Val, indices: Val, tile: Val, latency: Val, allow_tma: Val) -> Val:
    a = array_arg(ev, array)
    index, shape, axis = _positions(ev, a, indices)
    value = ev.implicit_cast(tile, a.dtype, "the stored tile")
    given = ev.type_of(value).shape
    if sizes(given) != sizes(shape):
        ev.refuse(f"a tile of shape {sizes(given)} for indices of shape {sizes(shape)}")
    for x, y in zip(given, shape, strict=True):
        ev.decide_equal(x.sym, y.sym, True)
    view = ev.value("view", (viewed(ev, a),), ViewTy(a.dtype, shape, sparse_dim=axis), array=a.root)
    ev.emit("store_view", (view, *index, value), (TOKEN,), array=a.root, may_alias=a.may_alias or None,
            **_access(latency, allow_tma).attributes(ev, a.rank))  # fmt: skip
    return const(None)


ROWS: tuple[Rule, ...] = (
    Rule("cuda.tile.Slice", "start, length, /", "a range of an axis in advanced indexing", _slice),
    Rule("cuda.tile.load_advanced_indexing",
         "array, indices, /, *, padding_mode=None, latency=None, allow_tma=None",
         "load slices of an array at given positions", _load),
    Rule("cuda.tile.store_advanced_indexing", "array, indices, tile, /, *, latency=None, allow_tma=None",
         "store slices of an array at given positions", _store),
)  # fmt: skip
