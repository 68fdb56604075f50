"""Conversions between element types.

"from" and "to" are dtype categories, "generic" for an element parameter; "width" compares the bits.
"""

from __future__ import annotations

from transpiler.select.forms import form, forms, other_than

FLOAT = ("float", "restricted_float", "generic")

ROWS = [
    # `convert_tile` emits nothing when the types are equal once the entry is instantiated
    form("convert", "convert_tile($0)", nest=False, source=FLOAT, target=FLOAT, rounding="nearest_even"),
    form("convert", "ftof($0, $rounding)", nest=False, source=FLOAT, target=FLOAT, rounding=other_than("nearest_even")),
    form("convert", "itof($0, $rounding)", nest=False, source=("int", "bool"), target=FLOAT),
    form("convert", "ftoi($0, rounding::NearestIntToZero)", nest=False, source=FLOAT, target=("int", "bool")),
    form("convert", "exti($0)", nest=False, source=("int", "bool"), target="int", width="wider"),
    form("convert", "trunci_wrap($0)", nest=False, source="int", target="int", width="narrower"),
    form("convert", "bitcast($0)", nest=False, source="int", target="int", width="same"),
    form("bitcast", "bitcast($0)", nest=False),
    *forms("pack unpack", "$op($0)", nest=False),
]
