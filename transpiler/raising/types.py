"""The printed types and constants of Tile IR as the types and values of TIR.

Tile IR's integers have no sign, those of Rust have one: :class:`Types` takes a sign, or the dtype of a value that is
used with it.
"""

from __future__ import annotations

import math
import re

import numpy as np

from transpiler.ir.numbers import QUIET_NAN, from_bits
from transpiler.ir.types import TOKEN, Dim, DType, PtrTy, TileTy, Type, ViewTy, dim
from transpiler.raising.refusal import refused
from transpiler.tileir.forms import split_list
from transpiler.tileir.model import tile_type

ELEMENTS = {
    "i1": "bool_", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "tf32": "tfloat32",
    "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f8E8M0FNU": "float8_e8m0fnu",
    "f4E2M1FN": "float4_e2m1fn",
}  # fmt: skip
_INTEGER = re.compile(r"i(8|16|32|64)")
_POINTER = re.compile(r"ptr<(.*)>")
_VIEW = re.compile(r"(partition|strided|gather_scatter)_view<(.*)>")


def dtype_of(element: str, like: DType | None = None, signed: bool | None = None) -> DType:
    """The dtype of a printed element type; an integer takes ``signed``, else the sign of ``like``, else it has one."""
    if element in ELEMENTS:
        return DType(ELEMENTS[element])
    if (match := _INTEGER.fullmatch(element)) is None:
        raise refused(f"no type of cutile 0.5 is `{element}`")
    if signed is None and like is not None and like.is_int and str(like.bits) == match[1]:
        return like
    return DType(f"{'' if signed is not False else 'u'}int{match[1]}")


def type_of(text: str, like: DType | None = None, signed: bool | None = None) -> Type:
    """The type of a tile, of a tile of pointers, or of a token."""
    if text == "token":
        return TOKEN
    tile = tile_type(text)
    shape = dims(tile.shape)
    if (pointer := _POINTER.fullmatch(tile.element)) is not None:
        return PtrTy(dtype_of(pointer[1], like), shape)
    return TileTy(dtype_of(tile.element, like, signed), shape)


def dims(sizes: tuple[int, ...]) -> tuple[Dim, ...]:
    """Sizes as dimensions."""
    return tuple(map(dim, sizes))


def view_type(text: str, dtype: DType) -> ViewTy:
    """The type of a view; ``dtype`` is that of the tensor viewed."""
    match = _VIEW.fullmatch(text)
    if match is None:
        raise refused(f"no view of cutile 0.5 is `{text}`")
    tile: tuple[int, ...] = ()
    said: dict[str, str] = {}
    for item in split_list(match[2]):
        key, equals, value = item.partition("=")
        if key.strip() == "tile":
            tile = tuple(int(n) for n in value.strip("( )").split("x"))
        elif equals and not item.startswith("tensor_view"):
            said[key.strip()] = value.strip()
    padding, order = said.pop("padding_value", None), _numbers(said.pop("dim_map", None))
    steps = _numbers(said.pop("traversal_strides", None) or said.pop("traversal_steps", None))
    sparse = said.pop("sparse_dim", None)
    if said:
        raise refused(f"a view with {', '.join(sorted(said))} has no form in cutile 0.5")
    if order == tuple(range(len(tile))):
        order = None
    stepped = None if steps is None else dims(steps)
    return ViewTy(dtype, dims(tile), padding, order, stepped, None if sparse is None else int(sparse))


def _numbers(text: str | None) -> tuple[int, ...] | None:
    return None if text is None else tuple(int(n) for n in re.findall(r"-?\d+", text))


def constant_value(text: str, dtype: DType) -> bool | int | float:
    """The value in a constant's text ``f32: 1.0``; E0610 for one of several values, or a NaN that can't be written."""
    value = text.partition(":")[2].strip()
    if value.startswith(("[", '"')) or not value:
        raise refused(f"a constant of several values ({text[:40]}) has no form in cutile 0.5")
    if dtype.category == "bool":
        return value == "true"
    if dtype.is_int:
        return int(value)
    if not value.startswith("0x"):
        return float(np.float32(value)) if dtype.name == "float32" else float(value)
    return _of_bits(int(value, 16), dtype)


def _of_bits(bits: int, dtype: DType) -> float:
    number, sign = from_bits(bits, dtype.name), 1 << (dtype.bits - 1)
    if math.isnan(number) and bits & ~sign == QUIET_NAN.get(dtype.name):
        return math.copysign(math.nan, -1.0 if bits & sign else 1.0)
    if math.isnan(number):
        raise refused(f"the NaN {bits:#x} of {dtype} can't be written in cutile 0.5")
    return number
