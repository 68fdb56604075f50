"""Reading the compile-time arguments that rules share."""

from __future__ import annotations

from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import ArrayVal, Const, HoleError, HoleVal, Ref, TupleVal, Val, describe

_ENUMS = {
    "RN": "nearest_even", "RZ": "zero", "RM": "negative_inf", "RP": "positive_inf", "RA": "nearest_away",
    "FULL": "full", "APPROX": "approx", "RZI": "nearest_int_to_zero",
}  # fmt: skip


def enum_arg(ev: Evaluator, v: Val) -> str | None:
    """An enum member's value in lower case (``PaddingMode.NEG_INF`` -> "neg_inf"), or None."""
    match v:
        case Const(value=None):
            return None
        case Ref(name) if name.startswith("cuda.tile."):
            leaf = name.rpartition(".")[2]
            return _ENUMS.get(leaf, leaf.lower()) if ".RoundingMode." in name else leaf.lower()
        case HoleVal():
            raise HoleError("", "", ev.span, silent=True)
        case _:
            ev.refuse(f"expected an enum member, not {describe(v)}")


def flag(ev: Evaluator, v: Val) -> bool:
    """A compile-time bool."""
    return bool(ev.decided(v, "a flag"))


def optional_int(ev: Evaluator, v: Val, what: str) -> int | None:
    """A compile-time int or None."""
    if isinstance(v, Const) and v.value is None:
        return None
    return int(ev.decided(v, what))


def int_tuple(ev: Evaluator, v: Val, what: str) -> tuple[int, ...]:
    """A compile-time tuple of ints (a single int is a tuple of one)."""
    items = v.items if isinstance(v, TupleVal) else (v,)
    return tuple(int(ev.decided(i, what)) for i in items)


def axis_arg(ev: Evaluator, v: Val, rank: int) -> int:
    """A compile-time axis, normalized."""
    axis = int(ev.decided(v, "axis"))
    if not -rank <= axis < rank:
        ev.refuse(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def array_arg(ev: Evaluator, v: Val) -> ArrayVal:
    """An array."""
    if isinstance(v, HoleVal):
        raise HoleError("", "", ev.span, silent=True)
    if not isinstance(v, ArrayVal):
        ev.refuse(f"expected an array, not {describe(v)}")
    return v
