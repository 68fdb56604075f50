"""Constants by their bits: read as NumPy reads them, and printed in one way."""

from __future__ import annotations

import random

import numpy as np
import pytest

from transpiler.diagnostics import TranspileError
from transpiler.tileir import parse_entry
from transpiler.tileir.constants import by_bits, constant_bits, is_uniform
from transpiler.tileir.elements import BITS, dtype_of, literals, unsigned_dtype

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


@pytest.mark.parametrize(
    ("value", "uniform"),
    [
        ("i32:7", True),
        ("i1:true", True),
        ("f32:-1.500000e+00", True),
        ("f32:1.6777216E+7", True),
        ("bf16:0x7FC0", True),
        ("i32:[7, 7]", False),
        ('i32:"0x0700000007000000"', False),
        ('i1:"0x01"', False),
        ("i32:", False),
        ("i32:dense<7>", False),
        ("i32:7, 8", False),
        ("", False),
    ],
)
def test_only_one_number_is_a_value_of_all_elements(value: str, uniform: bool) -> None:
    assert is_uniform(value) == uniform


def constant(value: str, type_text: str) -> str:
    return f"entry @k() optimization_hints=<default = {{}}> {{\n  %k = constant <{value}> : {type_text}\n  return\n}}\n"


def test_the_bytes_of_many_elements_are_read() -> None:
    assert literals('"0x0000803F000000BF"', "f32").tolist() == [1.0, -0.5]
    assert literals('"0x803F00BF"', "bf16").astype(float).tolist() == [1.0, -0.5]
    assert literals('"0x010000000000000002FFFFFFFFFFFFFF"', "i64").tolist() == [1, -254]
    assert literals('"0x010001"', "i1").tolist() == [True, False, True]
    (op, _) = parse_entry(constant('i16: "0x0100FEFF"', "tile<2x1xi16>")).body.ops
    assert op.form.get("value") == 'i16:"0x0100FEFF"'


@pytest.mark.parametrize(
    ("value", "type_text"),
    [
        ('i16: "0x0100FE"', "tile<2xi16>"),
        ('i16: "0x0100FEFF"', "tile<4xi16>"),
        ('i16: "0x0100FEFF"', "tile<2xi8>"),
        ('i16: "0100FEFF"', "tile<2xi16>"),
        ('i16: "0x0100FEF"', "tile<2xi16>"),
        ('i16: "0x01" "00FEFF"', "tile<2xi16>"),
        ('ptr: "0x0100FEFF"', "tile<2xptr<i8>>"),
    ],
)
def test_bytes_that_are_not_those_of_the_tile_are_an_error(value: str, type_text: str) -> None:
    with pytest.raises(TranspileError, match="E0683"):
        parse_entry(constant(value, type_text))
