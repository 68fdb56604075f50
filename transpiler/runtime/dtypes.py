"""Element types: their codes in the C interface, and the names that array libraries give them."""

from __future__ import annotations

NAMES = (
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64", "tfloat32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn",
)  # fmt: skip
"""The names in cuda.tile; a type's code is its position."""

CODES = {name: code for code, name in enumerate(NAMES)}
# torch, cupy and numpy say "bool" and, packed, "float4_e2m1fn_x2".
BY_NAME = {**CODES, "bool": CODES["bool_"], "float4_e2m1fn_x2": CODES["float4_e2m1fn"]}
SIZES = (1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 4, 1, 1, 1, 1)
"""Bytes of an element in memory, by code."""

BY_TYPESTR = {
    "b1": CODES["bool_"], "i1": CODES["int8"], "i2": CODES["int16"], "i4": CODES["int32"], "i8": CODES["int64"],
    "u1": CODES["uint8"], "u2": CODES["uint16"], "u4": CODES["uint32"], "u8": CODES["uint64"],
    "f2": CODES["float16"], "f4": CODES["float32"], "f8": CODES["float64"],
}  # fmt: skip
"""By the type string of the array interface, without its byte order."""

BY_DLPACK = {
    (0, 8): CODES["int8"], (0, 16): CODES["int16"], (0, 32): CODES["int32"], (0, 64): CODES["int64"],
    (1, 8): CODES["uint8"], (1, 16): CODES["uint16"], (1, 32): CODES["uint32"], (1, 64): CODES["uint64"],
    (2, 16): CODES["float16"], (2, 32): CODES["float32"], (2, 64): CODES["float64"], (4, 16): CODES["bfloat16"],
    (6, 8): CODES["bool_"], (10, 8): CODES["float8_e4m3fn"], (12, 8): CODES["float8_e5m2"],
    (14, 8): CODES["float8_e8m0fnu"], (17, 4): CODES["float4_e2m1fn"],
}  # fmt: skip
"""By type code and bits of DLPack."""
