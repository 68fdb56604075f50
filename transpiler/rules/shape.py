"""Shapes: reshape, broadcast, permute, concatenate, extract."""

from __future__ import annotations

from transpiler.ir import symbolic as sy
from transpiler.ir.tir import Value
from transpiler.ir.types import I32, Dim, Shape, TileTy, dim, sizes
from transpiler.rules.common import axis_arg, int_tuple, optional_int
from transpiler.rules.registry import Rule
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import Const, SliceVal, TupleVal, Val, describe


def reshape(ev: Evaluator, x: Val, shape: Val) -> Value:
    """``reshape``; one dimension may be -1."""
    v = ev.tile(x)
    return ev.reshape(v, _resolve_minus_one(ev, ev.type_of(v).shape, ev.const_shape(shape)))


def _resolve_minus_one(ev: Evaluator, old: Shape, new: Shape) -> Shape:
    holes = [i for i, d in enumerate(new) if d.value == -1]
    if not holes:
        return new
    if len(holes) > 1:
        ev.refuse("only one dimension can be -1")
    rest = [d for i, d in enumerate(new) if i != holes[0]]
    missing = _quotient(ev, list(old), rest)
    return tuple(missing if i == holes[0] else d for i, d in enumerate(new))


def _quotient(ev: Evaluator, over: list[Dim], under: list[Dim]) -> Dim:
    """The product of ``over`` divided by that of ``under``, cancelling equal dimensions."""
    for d in list(under):
        match = next((o for o in over if o.sym == d.sym), None)
        if match is not None:
            over.remove(match)
            under.remove(d)
    top, bottom = dim(1), dim(1)
    for d in over:
        top = Dim(top.value * d.value, sy.apply("mul", top.sym, d.sym))
    for d in under:
        bottom = Dim(bottom.value * d.value, sy.apply("mul", bottom.sym, d.sym))
    if bottom.value == 0 or top.value % bottom.value:
        ev.refuse(f"{top.value} elements can't be split by {bottom.value}")
    return Dim(top.value // bottom.value, sy.apply("floordiv", top.sym, bottom.sym))


def _expand_dims(ev: Evaluator, x: Val, axis: Val) -> Value:
    v = ev.tile(x)
    shape = ev.type_of(v).shape
    at = axis_arg(ev, axis, len(shape) + 1)
    return ev.reshape(v, (*shape[:at], dim(1), *shape[at:]))


def _subscript(ev: Evaluator, x: Val, key: Val) -> Value:
    """``x[:, None]``: only None, full slices and one Ellipsis."""
    v = ev.tile(x)
    shape = list(ev.type_of(v).shape)
    items = list(key.items) if isinstance(key, TupleVal) else [key]
    kinds = [_index_kind(ev, k) for k in items]
    if kinds.count("...") > 1 or kinds.count(":") > len(shape):
        ev.refuse("too many indices for the tile")
    if "..." in kinds:
        at = kinds.index("...")
        kinds[at : at + 1] = [":"] * (len(shape) - kinds.count(":"))
    out: list[Dim] = []
    for k in kinds:
        out.append(dim(1) if k == "None" else shape.pop(0))
    return ev.reshape(v, (*out, *shape))


def _index_kind(ev: Evaluator, k: Val) -> str:
    match k:
        case Const(value=None):
            return "None"
        case Const(value=v) if v is ...:
            return "..."
        case SliceVal(Const(value=None), Const(value=None), Const(value=None)):
            return ":"
        case _:
            ev.refuse(f"a tile can't be indexed with {describe(k)}", "use ct.extract or .item()")


def _broadcast(ev: Evaluator, x: Val, shape: Val) -> Value:
    return ev.broadcast_to(ev.tile(x), ev.const_shape(shape))


def permute(ev: Evaluator, v: Value, axes: tuple[int, ...]) -> Value:
    """Reorder dimensions."""
    ty = ev.type_of(v)
    perm = tuple(a % ty.rank if -ty.rank <= a < ty.rank else -1 for a in axes)
    if sorted(perm) != list(range(ty.rank)):
        ev.refuse(f"{axes} isn't a permutation of {ty.rank} axes")
    return ev.value("permute", (v,), TileTy(ty.dtype, tuple(ty.shape[a] for a in perm)), perm=perm)


def _permute(ev: Evaluator, x: Val, axes: Val) -> Value:
    return permute(ev, ev.tile(x), int_tuple(ev, axes, "axes"))


def _transpose(ev: Evaluator, x: Val, axis0: Val, axis1: Val) -> Value:
    v = ev.tile(x)
    rank = ev.type_of(v).rank
    a, b = optional_int(ev, axis0, "axis0"), optional_int(ev, axis1, "axis1")
    if a is None and b is None:
        if rank != 2:
            ev.refuse("transpose of a tile with more than 2 dimensions needs its axes")
        a, b = 0, 1
    if a is None or b is None or not (-rank <= a < rank and -rank <= b < rank):
        ev.refuse("transpose needs both axes, in range")
    order = list(range(rank))
    order[a % rank], order[b % rank] = order[b % rank], order[a % rank]
    return permute(ev, v, tuple(order))


def _cat(ev: Evaluator, tiles: Val, axis: Val) -> Value:
    if not isinstance(tiles, TupleVal) or len(tiles.items) != 2:
        ev.hole("E0302", "ct.cat of other than two tiles")
    a, b = ev.tile(tiles.items[0]), ev.tile(tiles.items[1])
    ta, tb = ev.type_of(a), ev.type_of(b)
    at = axis_arg(ev, axis, ta.rank)
    d = ev.promote_dtypes(ta.dtype, tb.dtype)
    if ta.dtype.name != tb.dtype.name:
        ev.refuse(f"ct.cat of {ta.dtype} and {tb.dtype}")
    total = Dim(ta.shape[at].value + tb.shape[at].value, sy.apply("add", ta.shape[at].sym, tb.shape[at].sym))
    shape = (*ta.shape[:at], total, *ta.shape[at + 1 :])
    return ev.value("cat", (a, b), TileTy(d, shape), axis=at)


def _extract(ev: Evaluator, x: Val, index: Val, shape: Val) -> Value:
    v, out = ev.tile(x), ev.const_shape(shape)
    ty = ev.type_of(v)
    part = out or (dim(1),) * ty.rank
    result = ev.value("extract", (v, *_place(ev, ty, part, index)), TileTy(ty.dtype, part))
    return ev.reshape(result, out)


def _insert(ev: Evaluator, x: Val, index: Val, value: Val) -> Value:
    v, part = ev.tile(x), ev.tile(value)
    ty, given = ev.type_of(v), ev.type_of(part)
    if ty.dtype.name != given.dtype.name:
        ev.refuse(f"a tile of {given.dtype} can't be inserted into one of {ty.dtype}")
    ev.unify(ty.dtype, given.dtype)
    part = part if given.rank else ev.reshape(part, (dim(1),) * ty.rank)
    return ev.value("insert", (part, v, *_place(ev, ty, ev.type_of(part).shape, index)), ev.type_of(v))


def _place(ev: Evaluator, ty: TileTy, part: Shape, index: Val) -> tuple[Value, ...]:
    """The index of a sub-tile, counted in sub-tiles."""
    items = index.items if isinstance(index, TupleVal) else (index,)
    if len(items) != ty.rank or len(part) != ty.rank:
        ev.refuse(f"a part of a tile of rank {ty.rank} needs {ty.rank} indices and dimensions")
    for whole, size, item in zip(sizes(ty.shape), sizes(part), items, strict=True):
        known = item if isinstance(item, Const) else ev.known(item)
        if size == 0 or whole % size or (known is not None and not 0 <= known.value < whole // size):
            ev.refuse(f"the tile of shape {sizes(ty.shape)} has no such part of shape {sizes(part)}")
    return tuple(ev.astype(ev.tile(i), I32) for i in items)


def _item(ev: Evaluator, x: Val) -> Value:
    v = ev.tile(x)
    if any(s != 1 for s in sizes(ev.type_of(v).shape)):
        ev.refuse("item() needs a tile of one element")
    return ev.reshape(v, ())


def _shape(ev: Evaluator, x: Val) -> TupleVal:
    return TupleVal(tuple(Const(d.value, d.sym) for d in ev.type_of(ev.tile(x)).shape))


_METHODS: tuple[Rule, ...] = (
    Rule("Tile.reshape", "x, shape", "reshape", reshape),
    Rule("Tile.permute", "x, axes", "reorder dimensions", _permute),
    Rule("Tile.transpose", "x, axis0=None, axis1=None", "swap two dimensions", _transpose),
    Rule("Tile.extract", "x, index, shape", "a sub-tile at a tile index", _extract),
    Rule("Tile.item", "x", "the only element", _item),
    Rule("Tile.shape", "x", "the shape, as constants", _shape, attribute=True),
)

ROWS: tuple[Rule, ...] = (
    Rule("cuda.tile.reshape", "x, /, shape", "reshape", reshape),
    Rule("cuda.tile.expand_dims", "x, /, axis", "a new dimension of size 1", _expand_dims),
    Rule("operator.getitem", "x, key, /", "x[:, None]: new dimensions of size 1", _subscript, accepts=("tile",)),
    Rule("cuda.tile.broadcast_to", "x, /, shape", "broadcast", _broadcast),
    Rule("cuda.tile.permute", "x, /, axes", "reorder dimensions", _permute),
    Rule("cuda.tile.transpose", "x, /, axis0=None, axis1=None", "swap two dimensions", _transpose),
    Rule("cuda.tile.cat", "tiles, /, axis", "concatenate two tiles", _cat),
    Rule("cuda.tile.extract", "x, /, index, shape", "a sub-tile at a tile index", _extract),
    Rule("cuda.tile.insert", "x, /, index, value", "a tile with a sub-tile replaced", _insert),
    Rule("Tile.insert", "x, index, value", "a tile with a sub-tile replaced", _insert),
    *_METHODS,
)
