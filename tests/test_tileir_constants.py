"""Constants by their bits: read as NumPy reads them, and printed in one way."""

from __future__ import annotations

import random

import numpy as np
import pytest

from transpiler.tileir.constants import by_bits, constant_bits
from transpiler.tileir.elements import BITS, dtype_of, unsigned_dtype

FLOATS = ("f64", "f32", "f16", "bf16", "f8E5M2", "f8E4M3FN")


def numbers(element: str) -> list[int]:
    """Bits of ordinary, subnormal, largest and smallest numbers of both signs."""
    size = BITS[element]
    if size == 8:
        return list(range(256))
    dice = random.Random(element)
    near = [0, 1, 2, (1 << (size - 1)) - 1, *(1 << i for i in range(size - 1))]
    return [
        b ^ sign for b in (*near, *(dice.getrandbits(size - 1) for _ in range(300))) for sign in (0, 1 << (size - 1))
    ]


@pytest.mark.parametrize("element", FLOATS)
def test_decimal_text_is_read_as_the_nearest_number(element: str) -> None:
    read = 0
    for bits in numbers(element):
        value = np.array(bits, unsigned_dtype(BITS[element])).view(dtype_of(element))[()]
        if not np.isfinite(float(value)):
            assert constant_bits(by_bits(element, bits)) == (element, bits)
            continue
        exact = f"{float(value):.17e}" if element == "f64" else f"{float(np.float64(value)):.12e}"
        assert constant_bits(f"{element}:{exact}") == (element, bits), exact
        read += 1
    assert read > 100


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        ("f32:1.500000e+00", 0x3FC00000),
        ("f32:-0.000000e+00", 0x80000000),
        ("f32:0.123456791", 0x3DFCD6EA),
        ("f32:1.6777216E+7", 0x4B800000),
        ("f32:0x7FC00001", 0x7FC00001),
        ("f16:6.550400e+04", 0x7BFF),
        ("bf16:0xFF80", 0xFF80),
        ("f8E4M3FN:4.480000e+02", 0x7E),
        ("i32:-1", 0xFFFFFFFF),
    ],
)
def test_bits_of_printed_constants(value: str, bits: int) -> None:
    assert constant_bits(value) == (value.partition(":")[0], bits)


@pytest.mark.parametrize(
    "value",
    [
        "f32:[1.0, 2.0]",
        'f32:"0x0000803F"',
        "f16:7.0e+04",
        "f8E4M3FN:4.80e+02",
        "f16:0x17C00",
        "f32:nan",
        "tf32:1.0",
        "i1:true",
        "i32:",
        "",
    ],
)
def test_what_is_no_single_number_has_no_bits(value: str) -> None:
    assert constant_bits(value) is None


def test_the_normal_form_is_printed_with_all_digits_and_signed() -> None:
    assert by_bits("f32", 0x123) == "f32:0x00000123"
    assert by_bits("f16", 0x3C00) == "f16:0x3C00"
    assert by_bits("i16", 0xFFFF) == "i16:-1"
    assert by_bits("i64", 5) == "i64:5"
