"""Positions and sizes: block ids, ranges, arange, constants, properties of arrays."""

from __future__ import annotations

from collections.abc import Callable

from transpiler.ir import symbolic as sy
from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import Value
from transpiler.ir.types import I32, DType, PtrTy, TileTy
from transpiler.rules import arith
from transpiler.rules.common import array_arg
from transpiler.rules.registry import Rule, unsupported
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import (
    ArrayVal,
    Const,
    DTypeVal,
    ListVal,
    RangeVal,
    SliceVal,
    TupleVal,
    Val,
    const,
    describe,
)


def _grid(opcode: str) -> Callable[..., Value]:
    def lower(ev: Evaluator, axis: Val) -> Value:
        at = ev.decided(axis, "axis")
        if at not in (0, 1, 2):
            ev.refuse(f"axis must be 0, 1 or 2, not {at}")
        return ev.value(opcode, (), TileTy(I32), axis=at)

    return lower


def _range(ev: Evaluator, *args: Val) -> RangeVal:
    if not 1 <= len(args) <= 3:
        ev.refuse(f"range() takes 1 to 3 arguments, not {len(args)}")
    start, stop, step = {1: (const(0), *args, const(1)), 2: (*args, const(1)), 3: args}[len(args)]
    if isinstance(step, Const) and step.value <= 0:
        ev.refuse("a loop's step must be positive")
    bounds = [_bound(ev, v) for v in (start, stop, step)]
    wide = next((ev.type_of(b).dtype for b in bounds if ev.type_of(b).dtype.bits == 64), I32)
    return RangeVal(*(ev.astype(b, wide) for b in bounds))


def _bound(ev: Evaluator, v: Val) -> Value:
    t = ev.tile(v, "a loop bound")
    ty = ev.type_of(t)
    if ty.rank != 0 or not ty.dtype.is_int:
        ev.refuse(f"a loop bound must be an integer scalar, not {ty}")
    return t


def _arange(ev: Evaluator, size: Val, dtype: Val, start: Val, step: Val) -> Val:
    d = ev.dtype_arg(dtype)
    shape = ev.const_shape(size)
    iota = ev.value("iota", (), TileTy(d if d.is_int else I32, shape))
    result: Val = ev.astype(iota, d)
    if not _is_known(ev, step, 1):
        result = arith.arithmetic(ev, "mul", result, ev.astype(ev.tile(step), d))
    if not _is_known(ev, start, 0):
        result = arith.arithmetic(ev, "add", result, ev.astype(ev.tile(start), d))
    return result


def _is_known(ev: Evaluator, v: Val, value: int) -> bool:
    """Is it a number, or a known scalar, that is ``value``? A decision where it depends on parameters."""
    known = v if isinstance(v, Const) else ev.known_exactly(v)
    return known is not None and bool(ev.decide(Const(known.value == value, sy.apply("eq", known.sym, sy.lit(value)))))


def _full(ev: Evaluator, shape: Val, fill_value: Val, dtype: Val) -> Value:
    d, s = ev.dtype_arg(dtype), ev.const_shape(shape)
    if isinstance(fill_value, Const):
        return ev.number(fill_value, d, _converted(fill_value, d), s)
    v = ev.tile(fill_value)
    if ev.type_of(v).rank != 0:
        ev.refuse("ct.full needs a scalar value")
    if (c := ev.known_exactly(v)) is not None:
        return ev.constant(c.value, d, s, _converted(c, d))
    return ev.broadcast_to(ev.astype(v, d), s)


def _converted(c: Const, d: DType) -> Sym:
    if not sy.leaves_of(c.sym) or isinstance(c.value, float) == d.is_float:
        return c.sym
    return sy.apply("float" if d.is_float else "int", c.sym)


def _filled(value: int) -> Callable[..., Value]:
    return lambda ev, shape, dtype: _full(ev, shape, const(value), dtype)


# -- arrays -------------------------------------------------------------------------------------------


def dim_of(ev: Evaluator, a: ArrayVal, axis: int) -> Value:
    """The size of an axis."""
    return _metadata(ev, a, axis, "dim", a.static_dims[axis])


def stride_of(ev: Evaluator, a: ArrayVal, axis: int) -> Value:
    """The stride of an axis in elements."""
    return _metadata(ev, a, axis, "stride", a.static_strides[axis])


def base_of(ev: Evaluator, a: ArrayVal) -> Value:
    """The pointer to the first element."""
    return a.pointer or ev.value("base", (a.tensor,), PtrTy(a.dtype), array=a.root)


def _metadata(ev: Evaluator, a: ArrayVal, axis: int, what: str, static: int | None) -> Value:
    ev.metadata.add((a.root, what))
    if a.sizes:
        return a.sizes[axis + a.rank * (what == "stride")]
    if static is not None:
        return static_size(ev, a, static, known=(what, axis) in a.compile_time)
    return ev.value(what, (a.tensor,), TileTy(index_dtype(a)), axis=axis)


def index_dtype(a: ArrayVal | ListVal) -> DType:
    """The dtype of an array's sizes and strides."""
    return DType("int64") if isinstance(a, ArrayVal) and a.index_bits == 64 else I32


def static_size(ev: Evaluator, a: ArrayVal | ListVal, size: int, *, known: bool) -> Value:
    """A size that the launch bakes in: a number in the end, but a value at run time to the kernel unless ``known``."""
    if known:
        return ev.constant(size, index_dtype(a))
    return ev.value("constant", (), TileTy(index_dtype(a)), value=size, sym=sy.lit(size), baked=True)


def _array_shape(ev: Evaluator, a: Val) -> TupleVal:
    array = array_arg(ev, a)
    return TupleVal(tuple(dim_of(ev, array, i) for i in range(array.rank)))


def _array_strides(ev: Evaluator, a: Val) -> TupleVal:
    array = array_arg(ev, a)
    return TupleVal(tuple(stride_of(ev, array, i) for i in range(array.rank)))


def _item_of_tuple(ev: Evaluator, t: Val, key: Val) -> Val:
    assert isinstance(t, TupleVal)
    if isinstance(key, SliceVal):
        parts = [ev.decided(v, "slice") if not _is_none(v) else None for v in (key.start, key.stop, key.step)]
        return TupleVal(t.items[slice(*parts)])
    i = ev.decided(key, "index")
    if not isinstance(i, int) or not -len(t.items) <= i < len(t.items):
        ev.refuse(f"index {i} is out of range for {len(t.items)} items")
    return t.items[i]


def _is_none(v: Val) -> bool:
    return isinstance(v, Const) and v.value is None


def _len(ev: Evaluator, x: Val) -> Val:
    if isinstance(x, TupleVal):
        return const(len(x.items))
    if isinstance(x, ListVal):
        return ev.value("dim", (x.table,), TileTy(I32), axis=0)
    ev.hole("E0301", f"len() of {describe(x)} has no rule")


def _assume_divisible(ev: Evaluator, x: Val, divisor: Val) -> Val:
    v = ev.tile(x)
    d = ev.decided(divisor, "divisor")
    if d < 1:
        ev.refuse(f"a divisor must be positive, not {d}")
    if v.constant is not None:  # there is nothing to promise
        return v
    return ev.value("assume", (v,), ev.type_of(v), divisor=d)


def _static_iter(ev: Evaluator, iterable: Val) -> Val:
    if not isinstance(iterable, TupleVal):
        ev.refuse("static_iter() can only be what a `for` loop goes over")
    return iterable


def _static_assert(ev: Evaluator, condition: Val, message: Val) -> Val:
    if not ev.decided(condition, "static_assert's condition"):
        text = message.value if isinstance(message, Const) and message.value else "a static assertion failed"
        ev.refuse(str(text))
    return const(None)


def _ensure_constant(ev: Evaluator, value: Val) -> Val:
    if not isinstance(value, Const):
        ev.refuse("ensure_constant needs a constant")
    return value


def _next_power_of_2(ev: Evaluator, n: Val) -> Val:
    c = ev.const_int(n, "the argument")
    return Const(sy.OPERATORS["next_power_of_2"][0](c.value), sy.apply("next_power_of_2", c.sym))


ROWS: tuple[Rule, ...] = (
    Rule("cuda.tile.bid", "axis", "the block's id along an axis", _grid("block_id")),
    Rule("cuda.tile.num_blocks", "axis", "the number of blocks along an axis", _grid("num_blocks")),
    Rule("builtins.range", "*args", "a counted loop's bounds", _range),
    Rule("builtins.slice", "start, stop, step, /", "a slice of an index", lambda ev, a, b, c: SliceVal(a, b, c)),
    Rule("builtins.len", "x, /", "the length of a tuple or of a list of arrays", _len),
    Rule("operator.getitem", "t, key, /", "an item of a tuple", _item_of_tuple, accepts=("tuple",)),
    Rule("cuda.tile.arange", "size, /, *, dtype, start=0, step=1", "0, 1, .., size - 1", _arange),
    Rule("cuda.tile.full", "shape, fill_value, dtype", "a splat", _full),
    Rule("cuda.tile.zeros", "shape, dtype", "zeros", _filled(0)),
    Rule("cuda.tile.ones", "shape, dtype", "ones", _filled(1)),
    Rule("Array.shape", "a", "sizes: constants where static", _array_shape, attribute=True),
    Rule("Array.strides", "a", "strides in elements", _array_strides, attribute=True),
    Rule("Array.ndim", "a", "rank", lambda ev, a: const(array_arg(ev, a).rank), attribute=True),
    Rule("Array.dtype", "a", "dtype", lambda ev, a: DTypeVal(array_arg(ev, a).dtype), attribute=True),
    Rule("Tile.dtype", "x", "dtype", lambda ev, x: DTypeVal(ev.type_of(ev.tile(x)).dtype), attribute=True),
    Rule("Tile.ndim", "x", "rank", lambda ev, x: const(ev.type_of(ev.tile(x)).rank), attribute=True),
    Rule("cuda.tile.assume_divisible_by", "x, divisor", "a promise about a scalar", _assume_divisible),
    Rule("cuda.tile.static_assert", "condition, message=None, /", "checked while translating", _static_assert),
    Rule("cuda.tile.ensure_constant", "value, /", "a constant stays one", _ensure_constant),
    unsupported("cuda.tile.static_eval", "arbitrary Python at compile time isn't executed by the translator"),
    Rule("cuda.tile.static_iter", "iterable", "the items of a loop that is unrolled", _static_iter),
    unsupported("Array.foreign_pointer", "raw pointers aren't mapped", "a", attribute=True),
    unsupported("Array.from_foreign", "raw pointers aren't mapped", "pointer, shape, strides"),
)
