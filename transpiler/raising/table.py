"""What each regular operation of Tile IR is in TIR, one row an operation.

TIR mirrors Tile IR, so a row says little: the opcode, how the printed attributes read, and what the sign of Tile IR's
signless integers has to be.  An attribute that a row doesn't name is a refusal, never ignored.  From TIR on raised
code is written by the forms that translated code is written with (``select``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Sign = Literal["free", "stated", "compared", "result", "matched"]
"""``free``: any integer dtype will do, operands get that of operand ``like``; ``stated``: the attribute says the
operands'; ``compared``: the same, but signed numbers can be compared as unsigned ones too; ``result``: the attribute
says the result's; ``matched``: every operand keeps its own."""

PREDICATES = {
    "equal": "eq", "not_equal": "ne", "less_than": "lt", "less_than_or_equal": "le", "greater_than": "gt",
    "greater_than_or_equal": "ge",
}  # fmt: skip
ROUNDINGS = frozenset({"nearest_even", "zero", "positive_inf", "negative_inf", "approx", "full"})


def _rounding(value: str) -> str | None:
    return value if value in ROUNDINGS else None


def _present(value: str) -> bool:
    return True


# printed attribute -> (attribute of TIR, how it is read; None is a value that has no form)
ATTRIBUTES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "rounding": ("rounding", _rounding),
    "flush_to_zero": ("ftz", _present),
    "propagate_nan": ("nan", _present),
    "predicate": ("predicate", PREDICATES.get),
    "nan_order": ("ordered", lambda v: v == "ordered"),
    "permutation": ("perm", lambda v: tuple(int(n) for n in v.split(","))),
    "dim": ("axis", int),
    "fast_acc": ("fast", _present),
}


@dataclass(frozen=True)
class Row:
    """One operation. ``result`` is where its type comes from: what is printed, or the type of an operand."""

    name: str
    opcode: str
    attributes: frozenset[str] = frozenset()
    sign: Sign = "free"
    result: Literal["printed", "operand", "bool"] = "printed"
    like: int = 0  # the operand whose dtype the result has


def _rows(
    names: str, attributes: str = "", *, opcode: str = "", sign: Sign = "free",
    result: Literal["printed", "operand", "bool"] = "operand", like: int = 0,
) -> list[Row]:  # fmt: skip
    found = frozenset(attributes.split())
    return [Row(name, opcode or name, found, sign, result, like) for name in names.split()]


ROWS: tuple[Row, ...] = (
    # floats
    *_rows("addf subf mulf divf fma sqrt", "rounding flush_to_zero"),
    *_rows("exp2 rsqrt", "flush_to_zero"),
    *_rows("exp tanh", "rounding"),
    *_rows("remf atan2 negf absf floor ceil sin cos tan sinh cosh log log2"),
    *_rows("pow fpowf powf", opcode="pow"),
    *_rows("fpowi", sign="matched"),
    *_rows("minf maxf", "flush_to_zero propagate_nan"),
    *_rows("cmpf", "predicate nan_order", result="bool"),
    # integers
    *_rows("addi subi muli shli andi ori xori negi absi"),
    *_rows("divi", "rounding signedness", sign="stated"),
    *_rows("remi shri mini maxi", "signedness", sign="stated"),
    *_rows("cmpi", "predicate signedness", sign="compared", result="bool"),
    *_rows("select", like=1),
    # conversions
    *_rows("ftof", "rounding", opcode="convert", result="printed"),
    *_rows("itof", "rounding signedness", opcode="convert", sign="stated", result="printed"),
    *_rows("ftoi", "signedness", opcode="convert", sign="result", result="printed"),
    *_rows("exti", "signedness", opcode="convert", sign="stated", result="printed"),
    *_rows("trunci", opcode="convert", result="printed"),
    *_rows("bitcast pack unpack", sign="matched", result="printed"),
    *_rows("int_to_ptr", result="printed"),
    # shapes
    *_rows("iota reshape broadcast", sign="matched", result="printed"),
    *_rows("permute", "permutation", sign="matched", result="printed"),
    *_rows("cat", "dim", result="printed"),
    *_rows("extract", sign="matched", result="printed"),
    *_rows("insert", sign="matched", result="printed"),
    # matrices (mmai has two signs: see lift.py)
    *_rows("mmaf", "fast_acc", opcode="mma", sign="matched", like=2),
    *_rows("mmaf_scaled", opcode="mma_scaled", sign="matched", like=2),
    # pointers and tokens
    *_rows("offset", sign="matched", result="operand"),
    *_rows("make_token join_tokens", sign="matched", result="printed"),
)
TABLE: dict[str, Row] = {row.name: row for row in ROWS}

ORDERS: dict[str, tuple[int, ...]] = {"mmaf_scaled": (0, 3, 1, 4, 2)}
"""Operations whose operands TIR has in another order: which of Tile IR's stands at each place."""
UNRAISABLE: dict[str, str] = dict.fromkeys(
    ("mulhi", "mulhii", "ptr_to_int", "ptr_to_ptr", "get_tensor_shape"),
    "no form is written for it, as cuTile Python makes no use of it",
)
"""Operations that the judge knows and that have no row, and why."""
