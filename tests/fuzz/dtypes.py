"""What is known of dtypes when kernels are drawn: classes, promotion, literals."""

from __future__ import annotations

from transpiler.ir.types import DTYPE_TABLE

SIGNED = ("int32", "int64", "int16", "int8")
UNSIGNED = ("uint32", "uint64", "uint16", "uint8")
INTS = (*SIGNED, *UNSIGNED)
FLOATS = ("float32", "float16", "bfloat16", "float64")
NUMBERS = (*FLOATS, *INTS)
RESTRICTED = ("float8_e4m3fn", "float8_e5m2", "tfloat32")
BOOL = "bool_"
STORABLE = (*NUMBERS, BOOL, "float8_e4m3fn", "float8_e5m2")
"""What arrays are made of."""

INT_LITERALS = (1, 2, 3, 0, 5, 7, 16, 100)
FLOAT_LITERALS = (1.0, 0.5, 2.0, 0.0, 3.25, 0.1, 1e-3, 1e30, 0.7071067811865476)


def bits(dtype: str) -> int:
    """The width in bits."""
    return DTYPE_TABLE[dtype][1]


def is_float(dtype: str) -> bool:
    """Whether it is a float on which arithmetic is defined."""
    return dtype in FLOATS


def signed(dtype: str) -> bool:
    """Whether it is a signed integer or a float."""
    return DTYPE_TABLE[dtype][3]


def promoted(a: str, b: str) -> str | None:
    """The dtype that two tiles have in common, None where the reference wants a conversion."""
    if a == b:
        return a
    if a in RESTRICTED or b in RESTRICTED:
        return None
    rank = {BOOL: 0, **dict.fromkeys(INTS, 1), **dict.fromkeys(FLOATS, 2)}
    if rank[a] != rank[b]:
        return a if rank[a] > rank[b] else b
    if signed(a) != signed(b) or {a, b} == {"float16", "bfloat16"}:
        return None
    return a if bits(a) > bits(b) else b
