"""Atomics and the operations that order or report."""

from __future__ import annotations

from collections.abc import Callable

from transpiler.ir.tir import Value
from transpiler.ir.types import TOKEN, DType, PtrTy, TileTy
from transpiler.rules.common import array_arg, enum_arg
from transpiler.rules.memory import address
from transpiler.rules.registry import Rule
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import Val, const

_WORDS = ("int32", "int64", "uint32", "uint64")
_NUMBERS = (*_WORDS, "float32", "float64")
# operation -> (mode of signed integers, of unsigned ones, of floats; dtypes; needs the exact dtype)
MODES: dict[str, tuple[str, str, str | None, tuple[str, ...], bool]] = {
    "xchg": ("xchg", "xchg", "xchg", _NUMBERS, False),
    "add": ("add", "add", "addf", (*_NUMBERS, "float16", "bfloat16"), False),
    "max": ("max", "umax", None, _WORDS, False),
    "min": ("min", "umin", None, _WORDS, False),
    "and": ("and", "and", None, _WORDS, True),
    "or": ("or", "or", None, _WORDS, True),
    "xor": ("xor", "xor", None, _WORDS, True),
}


def mode_of(ev: Evaluator, op: str, d: DType) -> str:
    """The read-modify-write mode for a dtype."""
    signed, unsigned, floating, dtypes, _ = MODES[op]
    if d.name not in dtypes:
        ev.refuse(f"atomic {op} isn't defined for {d}")
    mode = floating if d.is_float else signed if d.signed else unsigned
    assert mode is not None
    return mode


def cast_update(ev: Evaluator, op: str, update: Val, d: DType) -> Value:
    """The update in the array's dtype; bitwise operations don't convert."""
    if not MODES[op][4]:
        return ev.implicit_cast(update, d, "the update")
    v = ev.tile(update, "the update")
    if ev.type_of(v).dtype.name != d.name:
        ev.refuse(f"atomic {op} needs an update of {d}, not {ev.type_of(v).dtype}")
    return v


def _order(ev: Evaluator, memory_order: Val, memory_scope: Val) -> dict[str, str]:
    order = enum_arg(ev, memory_order) or "acq_rel"
    scope = enum_arg(ev, memory_scope) or "device"
    if order == "weak" or scope == "none":
        ev.refuse("an atomic needs a memory order and scope other than WEAK and NONE")
    return {"ordering": order, "scope": scope}


def _rmw(op: str) -> Callable[..., Value]:
    def lower(
        ev: Evaluator, array: Val, indices: Val, update: Val, check_bounds: Val, memory_order: Val, memory_scope: Val
    ) -> Value:
        a = array_arg(ev, array)
        mode = mode_of(ev, op, ev.resolve(a.dtype))
        pointer, mask = address(ev, a, indices, check_bounds, const(None))
        assert isinstance(pointer.ty, PtrTy)
        shape = pointer.ty.shape
        value = cast_update(ev, op, ev.broadcast_to(ev.tile(update, "the update"), shape), a.dtype)
        operands = (pointer, value, *((mask,) if mask is not None else ()))
        result = ev.emit("atomic_rmw", operands, (TileTy(a.dtype, shape), TOKEN), array=a.root, mode=mode,
                         has_mask=mask is not None, **_order(ev, memory_order, memory_scope))  # fmt: skip
        return result.results[0]

    return lower


def _cas(
    ev: Evaluator, array: Val, indices: Val, expected: Val, desired: Val, check_bounds: Val, memory_order: Val,
    memory_scope: Val,
) -> Value:  # fmt: skip
    a = array_arg(ev, array)
    if ev.resolve(a.dtype).name not in _NUMBERS:
        ev.refuse(f"atomic_cas isn't defined for {a.dtype}")
    pointer, mask = address(ev, a, indices, check_bounds, const(None))
    assert isinstance(pointer.ty, PtrTy)
    shape = pointer.ty.shape
    old = ev.broadcast_to(ev.implicit_cast(expected, a.dtype, "the expected value"), shape)
    new = ev.broadcast_to(ev.implicit_cast(desired, a.dtype, "the desired value"), shape)
    operands = (pointer, old, new, *((mask,) if mask is not None else ()))
    result = ev.emit("atomic_cas", operands, (TileTy(a.dtype, shape), TOKEN), array=a.root,
                     has_mask=mask is not None, **_order(ev, memory_order, memory_scope))  # fmt: skip
    return result.results[0]


_ATOMIC = "array, indices, update, /, *, check_bounds=True, memory_order=None, memory_scope=None"

ROWS: tuple[Rule, ...] = (
    *(Rule(f"cuda.tile.atomic_{op}", _ATOMIC, f"atomic {op}, returns the old values", _rmw(op)) for op in MODES),
    Rule("cuda.tile.atomic_cas",
         "array, indices, expected, desired, /, *, check_bounds=True, memory_order=None, memory_scope=None",
         "compare and swap, returns the old values", _cas),
)  # fmt: skip
