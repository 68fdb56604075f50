"""Lists of arrays: a row of a word table becomes an array."""

from __future__ import annotations

from transpiler.ir import symbolic as sy
from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import Value
from transpiler.ir.types import I32, I64, TOKEN, PtrTy, TensorTy, TileTy, ViewTy, dim
from transpiler.rules.index import static_size
from transpiler.rules.memory import aligned_stride
from transpiler.rules.registry import Rule
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import ArrayVal, ListVal, Val


def _item(ev: Evaluator, items: Val, index: Val) -> ArrayVal:
    """``arrays[i]``: load the row, make a pointer, sizes and strides of its words, and state what is known of them."""
    assert isinstance(items, ListVal)
    at = ev.astype(ev.tile(index, "an index"), I32)
    if ev.type_of(at).rank != 0:
        ev.refuse("a list of arrays needs a scalar index")
    words = _row(ev, items, at)
    base = ev.value("int_to_ptr", (words[0],), PtrTy(items.dtype))
    base = _divisible(ev, items, base, "ptr", 0)
    sizes: list[Value] = []
    dynamic: list[Value] = []
    for what, statics, first in (
        ("dim", items.static_dims, 1),
        ("stride", items.static_strides, 1 + items.rank),
    ):
        for axis, static in enumerate(statics):
            if static is None:
                sizes.append(_size(ev, items, words[first + axis], what, axis))
                addresses_nothing = what == "stride" and items.static_dims[axis] == 1
                dynamic.append(
                    aligned_stride(ev, sizes[-1], items.dtype, items.root) if addresses_nothing else sizes[-1]
                )
            else:
                sizes.append(static_size(ev, items, static, known=False))
                ev.decide_equal(Sym(what, (items.root, axis)), sy.lit(static), True)
    known = (*items.static_dims, *items.static_strides)
    tensor = ev.value(
        "make_tensor", (base, *dynamic), TensorTy(items.dtype, items.rank), array=items.root, static=known
    )
    return ArrayVal(tensor, items.dtype, items.rank, items.root, items.static_dims, items.static_strides,
                    may_alias=items.may_alias, pointer=base, sizes=tuple(sizes))  # fmt: skip


def _row(ev: Evaluator, items: ListVal, at: Value) -> list[Value]:
    """The words of one row: pointer, dims, strides."""
    count = 1 + 2 * items.rank
    width = 1 << (count - 1).bit_length()
    tile = (dim(1), dim(width))
    view = ev.value("view", (items.table,), ViewTy(I64, tile), array=items.root)
    zero = ev.constant(0, I32)
    op = ev.emit("load_view", (view, at, zero), (TileTy(I64, tile), TOKEN), array=items.root, untracked=True,
                 latency=None, tma=None, ordering="weak", scope=None, inbounds=(False, False))  # fmt: skip
    row = op.results[0]
    one = (dim(1), dim(1))
    return [
        ev.reshape(ev.value("extract", (row, zero, ev.constant(i, I32)), TileTy(I64, one)), ()) for i in range(count)
    ]


def _size(ev: Evaluator, items: ListVal, word: Value, what: str, axis: int) -> Value:
    v = ev.value("convert", (word,), TileTy(I32))
    v = ev.value("assume", (v,), TileTy(I32), lower=0)
    return _divisible(ev, items, v, what, axis)


def _divisible(ev: Evaluator, items: ListVal, v: Value, what: str, axis: int) -> Value:
    """State a divisor that each specialization gives (1 where nothing is known)."""
    known = sy.apply("pow2_divisor", Sym("div", (items.root, what, axis)))
    return ev.value("assume", (v,), v.ty, divisor=known)


ROWS: tuple[Rule, ...] = (Rule("operator.getitem", "items, index, /", "an array of a list", _item, accepts=("list",)),)
