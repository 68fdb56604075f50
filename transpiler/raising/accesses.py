"""Tensor views, views of tiles, loads, stores and atomics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from transpiler.ir.tir import Value
from transpiler.ir.types import I32, TOKEN, DType, PtrTy, TensorTy, TileTy, Type, ViewTy
from transpiler.raising.refusal import refused
from transpiler.raising.types import dims, view_type
from transpiler.raising.values import Flat
from transpiler.tileir.model import Op as TileOp
from transpiler.tileir.model import tile_type

if TYPE_CHECKING:
    from transpiler.raising.lift import Lifter

_SCOPES = {"tl_blk": "tile_block", "device": "device", "sys": "sys"}


# -- views --------------------------------------------------------------------------------------------


def _tensor_view(low: Lifter, op: TileOp) -> None:
    """The parameter itself where the operands are all its own, else a tensor that the kernel makes."""
    shape, strides = (_extents(op, key) for key in ("shape", "strides"))
    name = _parameter(low, op, shape, strides)
    if name is not None:
        low.values[op.results[0]] = low.values.tensors[name]
        return
    base, *dynamic = (low.values[i] for i in op.operands)
    for v in dynamic:
        if not isinstance(v.ty, TileTy) or v.ty.dtype.bits != 32:
            low.refuse(f"sizes and strides of {v.ty} have no form in cutile 0.5, whose tensors count in i32")
    assert isinstance(base.ty, PtrTy)
    operands = [base, *(low.coerced(v, I32) for v in dynamic)]
    array = _array_of(base)
    ty = TensorTy(base.ty.dtype, len(shape))
    low.define(op, "make_tensor", operands, (ty,), array=array, static=(*shape, *strides))


def _extents(op: TileOp, key: str) -> tuple[int | None, ...]:
    """What is printed in a list of sizes or strides: numbers, and None for operands."""
    text = op.form.get(key)
    if text is None:  # only operands are printed without a list of numbers
        return (None,) * op.form.roles.count(key)
    return tuple(None if item == "?" else int(item) for item in text.split(",") if item)


def _parameter(low: Lifter, op: TileOp, shape: Sequence[int | None], strides: Sequence[int | None]) -> str | None:
    """The parameter that a tensor view is the whole of."""
    roles = [low.values.role(i) for i in op.operands]
    base = roles[0]
    if base is None or base.kind != "base":
        return None
    use = low.values.arrays[base.name]
    if (tuple(shape), tuple(strides)) != (use.dims, use.strides):
        return None
    wanted = [Flat("dim", base.name, i) for i, d in enumerate(use.dims) if d is None]
    wanted += [Flat("stride", base.name, i) for i, s in enumerate(use.strides) if s is None]
    return base.name if roles[1:] == wanted else None


def _array_of(pointer: Value) -> str:
    """The array that a pointer points into, for names; "" when it isn't plain to see."""
    seen = 0
    while pointer.op is not None and seen < 64:
        if pointer.op.opcode == "base":
            return str(pointer.op.attrs["array"])
        if pointer.op.opcode not in ("offset", "assume", "reshape", "broadcast"):
            return ""
        pointer, seen = pointer.op.operands[0], seen + 1
    return ""


def _view(low: Lifter, op: TileOp) -> None:
    tensor = low.values[op.operands[0]]
    assert isinstance(tensor.ty, TensorTy)
    ty = view_type(low.printed(op.results[0]), tensor.ty.dtype)
    array = tensor.op.attrs.get("name") or tensor.op.attrs.get("array") or "" if tensor.op is not None else ""
    low.define(op, "view", (tensor,), (ty,), array=array)


def _index_space(low: Lifter, op: TileOp) -> None:
    view = low.values[op.operands[0]]
    if isinstance(view.ty, ViewTy) and (view.ty.steps or view.ty.sparse_dim is not None):
        low.refuse("cutile 0.5 counts the tiles of partition views only")
    for axis, index in enumerate(op.results):
        if low.printed(index) != "tile<i32>":
            low.refuse("an index space of i64 has no form in cutile 0.5")
        low.values[index] = low.emit("num_tiles", (view,), (TileTy(I32),), axis=axis).result
        low.names_result(low.values[index])


# -- through views ------------------------------------------------------------------------------------


def _parts(low: Lifter, op: TileOp) -> tuple[list[Value], list[Value], Value | None]:
    """The operands by their role: plain ones, indices, token."""
    by_role: dict[str, list[Value]] = {"": [], "index": [], "token": []}
    for role, index in zip(op.form.roles, op.operands, strict=True):
        if role not in by_role:
            low.refuse(f"an operand as {role} has no form")
        by_role[role].append(low.values[index])
    tokens = by_role["token"]
    return by_role[""], [low.coerced(v, I32) for v in by_role["index"]], tokens[0] if tokens else None


def _options(low: Lifter, op: TileOp, rank: int | None = None) -> dict[str, Any]:
    """Ordering, scope, hints, and for views which indices are known to be in bounds."""
    scope = op.form.get("scope")
    attrs: dict[str, Any] = {"ordering": op.form.get("ordering"), "scope": _SCOPES[scope] if scope else None}
    attrs |= low.hints(op)
    if rank is not None:
        attrs["inbounds"] = _inbounds(low, op.form.get("inbounds"), rank)
    return attrs


def _inbounds(low: Lifter, text: str | None, rank: int) -> tuple[bool, ...]:
    if text is None:
        return (False,) * rank
    flags = tuple(item.strip() in ("true", "1") for item in text.split(","))
    if len(flags) != rank:
        low.refuse(f"inbounds [{text}] for {rank} indices")
    return flags


def _loaded(view: Value, printed: str) -> Type:
    assert isinstance(view.ty, ViewTy)
    return TileTy(view.ty.dtype, dims(tile_type(printed).shape))


def _load_view(low: Lifter, op: TileOp) -> None:
    (view,), index, token = _parts(low, op)
    attrs = _options(low, op, len(index))
    types = (_loaded(view, low.printed(op.results[0])), TOKEN)
    if token is None:
        low.define(op, "load_view", (view, *index), types, untracked=True, **attrs)
    else:
        low.define(op, "load_view", (view, *index, token), types, **attrs)


def _store_view(low: Lifter, op: TileOp) -> None:
    (value, view), index, token = _parts(low, op)
    if token is None:
        raise refused("a store without a token has no form")
    attrs = _options(low, op, len(index))
    low.define(op, "store_view", (view, *index, _stored(low, value, view), token), (TOKEN,), **attrs)


def _atomic_red_view(low: Lifter, op: TileOp) -> None:
    (view, value), index, token = _parts(low, op)
    if token is None:
        raise refused("an atomic without a token has no form")
    attrs = _options(low, op)
    if op.form.get("inbounds") not in (None, ",".join(["false"] * len(index))):
        low.refuse("an atomic with inbounds has no form in cutile 0.5")
    operands = (view, *index, _stored(low, value, view), token)
    low.define(op, "atomic_red_view", operands, (TOKEN,), mode=op.form.get("mode"), **attrs)


def _stored(low: Lifter, value: Value, where: Value) -> Value:
    dtype = getattr(where.ty, "dtype", None)
    return low.coerced(value, dtype if isinstance(dtype, DType) else None)


# -- through pointers ---------------------------------------------------------------------------------


def _pointer_parts(low: Lifter, op: TileOp, values: int) -> tuple[list[Value], Value | None, Value | None, Value]:
    """Pointer with ``values`` more operands (as the pointee's type), mask, padding, token."""
    plain, _, token = _parts(low, op)
    if token is None:
        raise refused("an access without a token has no form")
    pointer, rest = plain[0], plain[1 + values :]
    given = [_stored(low, v, pointer) for v in plain[1 : 1 + values]]
    mask = rest.pop(0) if rest and _is_mask(rest[0]) else None
    padding = _stored(low, rest.pop(0), pointer) if rest else None
    if rest:
        low.refuse("it has more operands than are known")
    return [pointer, *given], mask, padding, token


def _is_mask(v: Value) -> bool:
    """Whether an operand that follows a pointer is a mask: a padding for bools never stands without one."""
    return isinstance(v.ty, TileTy) and v.ty.dtype.category == "bool"


def _some(*values: Value | None) -> list[Value]:
    return [v for v in values if v is not None]


def _load_ptr(low: Lifter, op: TileOp) -> None:
    (pointer,), mask, padding, token = _pointer_parts(low, op, 0)
    attrs = _pointer_options(low, op)
    assert isinstance(pointer.ty, PtrTy)
    types = (TileTy(pointer.ty.dtype, pointer.ty.shape), TOKEN)
    low.define(op, "load_ptr", [pointer, *_some(mask, padding), token], types, has_mask=mask is not None,
               has_padding=padding is not None, **attrs)  # fmt: skip


def _store_ptr(low: Lifter, op: TileOp) -> None:
    operands, mask, _, token = _pointer_parts(low, op, 1)
    attrs = _pointer_options(low, op)
    low.define(op, "store_ptr", [*operands, *_some(mask), token], (TOKEN,), has_mask=mask is not None, **attrs)


def _pointer_options(low: Lifter, op: TileOp) -> dict[str, Any]:
    """The form says weak accesses with a latency only: everything else is refused."""
    attrs = _options(low, op)
    if attrs["scope"] is not None:
        low.refuse(f"{attrs['ordering']} {attrs['scope']} through pointers has no form yet")
    if "tma" in attrs:
        low.refuse("the hint allow_tma has no form for pointers in cutile 0.5")
    return attrs


def _atomic(opcode: str, values: int) -> Callable[[Lifter, TileOp], None]:
    def lift(low: Lifter, op: TileOp) -> None:
        operands, mask, padding, token = _pointer_parts(low, op, values)
        attrs = _options(low, op)
        if padding is not None or "latency" in attrs or "tma" in attrs:
            low.refuse("an atomic with a padding or hints has no form")
        if (mode := op.form.get("mode")) is not None:
            attrs["mode"] = mode
        pointer = operands[0].ty
        assert isinstance(pointer, PtrTy)
        types = (TileTy(pointer.dtype, pointer.shape), TOKEN)
        low.define(op, opcode, [*operands, *_some(mask), token], types, has_mask=mask is not None, **attrs)

    return lift


HANDLERS: dict[str, Callable[[Lifter, TileOp], None]] = {
    "make_tensor_view": _tensor_view,
    "make_partition_view": _view,
    "make_strided_view": _view,
    "make_gather_scatter_view": _view,
    "get_index_space_shape": _index_space,
    "load_view_tko": _load_view,
    "store_view_tko": _store_view,
    "atomic_red_view_tko": _atomic_red_view,
    "load_ptr_tko": _load_ptr,
    "store_ptr_tko": _store_ptr,
    "atomic_rmw_tko": _atomic("atomic_rmw", 1),
    "atomic_cas_tko": _atomic("atomic_cas", 2),
}
