"""Printed constants as bits: what a float's text stands for, without NumPy.

A constant with one value for all elements prints ``TYPE:NUMBER`` (``f32:1.500000e+00``, ``f32:0x7FC00000``,
``i32:-5``), where hexadecimal digits are the float's bits.  Other constants print nested lists of numbers or, from
101 elements on, ``TYPE:"0x.."``: the bytes of all elements in row-major order, an element in little-endian order and
in at least one byte.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache

_FORMATS = {"f64": (11, 52), "f32": (8, 23), "f16": (5, 10), "bf16": (8, 7), "f8E5M2": (5, 2), "f8E4M3FN": (4, 3)}
"""Bits of the exponent and of the stored significand."""
_INTEGERS = {f"i{bits}": bits for bits in (8, 16, 32, 64)}

_ONE_NUMBER = re.compile(r"\w+:(?:true|false|[-+]?\d[\w.+-]*)")
_BYTES = re.compile(r'(\w+):"0x((?:[0-9A-F]{2})*)"')


@lru_cache(maxsize=4096)
def is_uniform(value: str) -> bool:
    """Say whether a printed constant is one number for all elements; whatever else it may be, it isn't known to be."""
    return _ONE_NUMBER.fullmatch(value) is not None


def dense_bytes(value: str) -> bytes | None:
    """Return the bytes of a constant that prints them, else None; ValueError for quoted text that holds no bytes."""
    if '"' not in value:
        return None
    match = _BYTES.fullmatch(value)
    if match is None:
        raise ValueError(value)
    return bytes.fromhex(match[2])


def width(element: str) -> int | None:
    """Return how many bits an element has, of the types whose constants have a form by bits; else None."""
    if element in _FORMATS:
        return 1 + sum(_FORMATS[element])
    return _INTEGERS.get(element)


@lru_cache(maxsize=4096)
def constant_bits(value: str) -> tuple[str, int] | None:
    """Return (element type, bits) of a printed constant with one value; None where it isn't known."""
    element, _, text = value.partition(":")
    size = width(element)
    if size is None:
        return None
    try:
        if element in _INTEGERS:
            return element, int(text) & ((1 << size) - 1)
        if text.startswith("0x"):
            bits = int(text, 16)
            return (element, bits) if bits >> size == 0 else None
        bits = _encode(element, float(text), Fraction(text))
    except ValueError:
        return None
    return None if bits < 0 else (element, bits)


def _encode(element: str, sign: float, value: Fraction) -> int:
    """Round to the nearest number of the type, to even at ties; -1 for what is no finite number of it."""
    exponent_bits, stored = _FORMATS[element]
    bias = (1 << (exponent_bits - 1)) - 1
    size = abs(value)
    exponent = max(_exponent(size), 1 - bias)
    significand = round(size / Fraction(2) ** (exponent - stored))
    if significand >> (stored + 1):
        significand, exponent = significand >> 1, exponent + 1
    normal = significand >> stored
    field = exponent + bias if normal else 0
    highest = (1 << exponent_bits) - 1
    special = field >= highest and (element != "f8E4M3FN" or field > highest or significand & 7 == 7)
    if special:
        return -1
    negative = math.copysign(1.0, sign) < 0
    return (int(negative) << (exponent_bits + stored)) | (field << stored) | (significand & ((1 << stored) - 1))


def _exponent(size: Fraction) -> int:
    """Return the exponent of a number's leading bit (very low for 0)."""
    if size == 0:
        return -(1 << 20)
    estimate = size.numerator.bit_length() - size.denominator.bit_length()
    return estimate if size >= Fraction(2) ** estimate else estimate - 1


@lru_cache(maxsize=4096)
def by_bits(element: str, bits: int) -> str:
    """Print a constant in its normal form: integers in decimal, floats as all their bits (``f16:0x3C00``)."""
    size = width(element)
    assert size is not None, element
    if element in _INTEGERS:
        return f"{element}:{bits - (1 << size) if bits >> (size - 1) else bits}"
    return f"{element}:0x{bits:0{size // 4}X}"


@lru_cache(maxsize=4096)
def converted(value: str, element: str) -> str | None:
    """Convert a float constant to another float type, rounded to the nearest (to even at ties); print its bits.

    An infinity stays one. None for a NaN, and where a number is no finite one of the other type: what an overflow
    gives is left to the device.
    """
    found = constant_bits(value)
    if found is None or found[0] not in _FORMATS or element not in _FORMATS:
        return None
    if (sign := _infinity(*found)) is not None:
        return None if element == "f8E4M3FN" else by_bits(element, _infinite(element, sign))
    number = _decode(*found)
    if number is None:
        return None
    negative, size = number
    bits = _encode(element, -1.0 if negative else 1.0, size)
    return None if bits < 0 else by_bits(element, bits)


def _infinity(element: str, bits: int) -> int | None:
    """Return the sign bit of an infinity, None for all else."""
    return next((sign for sign in (0, 1) if element != "f8E4M3FN" and bits == _infinite(element, sign)), None)


def _infinite(element: str, sign: int) -> int:
    exponent_bits, stored = _FORMATS[element]
    return (sign << (exponent_bits + stored)) | (((1 << exponent_bits) - 1) << stored)


def _decode(element: str, bits: int) -> tuple[bool, Fraction] | None:
    """Return the sign and the size of a finite float."""
    exponent_bits, stored = _FORMATS[element]
    highest, bias = (1 << exponent_bits) - 1, (1 << (exponent_bits - 1)) - 1
    field, fraction = bits >> stored & highest, bits & ((1 << stored) - 1)
    if field == highest:  # of f8E4M3FN some of these are numbers, too: they aren't folded
        return None
    significand = fraction | (1 << stored if field else 0)
    return bool(bits >> (exponent_bits + stored)), significand * Fraction(2) ** (max(field, 1) - bias - stored)
