"""Conversions."""

from __future__ import annotations

from fuzz import dtypes as dt
from fuzz.families import Producer, leaf
from fuzz.values import literal, number, shape, value
from fuzz.writer import Value, Writer, elements
from transpiler.rules import Rule

ANY = (*dt.NUMBERS, dt.BOOL, *dt.RESTRICTED)
SAME_BITS = {
    8: ("int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 16: ("int16", "uint16", "float16", "bfloat16"),
    32: ("int32", "uint32", "float32", "tfloat32"), 64: ("int64", "uint64", "float64"),
}  # fmt: skip


def astype(w: Writer, row: Rule) -> Value:
    source, target, of = w.draw.pick(ANY), w.draw.pick(ANY), shape(w)
    x = value(w, source, of).text
    mode = ""
    if dt.is_float(source) and dt.is_float(target) and w.draw.chance(30):
        mode = f", rounding_mode=ct.RoundingMode.{w.draw.pick(('RN', 'RZ', 'RM', 'RP'))}"
    text = f"{x}.astype(ct.{target}{mode})" if row.callee.startswith("Tile") else f"ct.astype({x}, ct.{target}{mode})"
    return Value(text, target, of)


def constructor(w: Writer, row: Rule) -> Value:
    """``ct.float32(x)``: of a number or a scalar."""
    dtype = w.draw.pick((*dt.NUMBERS, *dt.RESTRICTED))
    if dtype in dt.RESTRICTED:
        return Value(f"ct.{dtype}({literal(w, 'float32')})", dtype)
    inner = number(w, dtype) if w.draw.chance(60) else value(w, w.draw.pick(dt.NUMBERS)).text
    return Value(f"ct.{dtype}({inner})", dtype)


def bitcast(w: Writer, row: Rule) -> Value:
    group = SAME_BITS[w.draw.pick((32, 16, 8, 64))]
    source, target, of = w.draw.pick(group), w.draw.pick(group), shape(w)
    return Value(f"ct.bitcast({value(w, source, of).text}, ct.{target})", target, of)


def astile(w: Writer, row: Rule) -> Value:
    dtype = w.draw.pick(dt.NUMBERS)
    return Value(f"ct.astile({number(w, dtype)}, dtype=ct.{dtype})", dtype)


def python(w: Writer, row: Rule) -> Value:
    """``float``, ``int`` and ``bool`` of a constant (``bool`` of a scalar too)."""
    of = shape(w)
    if leaf(row) == "bool" and w.draw.chance(60):
        return Value(f"bool({value(w, w.draw.pick((dt.BOOL, 'int32', 'float32'))).text})", dt.BOOL)
    given = w.draw.pick((w.constant(4), w.constant(1.5, "float"), "2.75", "3"))
    dtype = "float32" if leaf(row) == "float" else "int32"
    return Value(f"({value(w, dtype, of).text} + {leaf(row)}({given}))", dtype, of)


def pack(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick((*dt.NUMBERS, "float8_e4m3fn")), shape(w, 1)
    return Value(f"ct.pack_to_bytes({value(w, dtype, of).text})", "uint8", (elements(of) * dt.bits(dtype) // 8,))


def unpack(w: Writer, row: Rule) -> Value:
    dtype, size = w.draw.pick((*dt.NUMBERS, "float8_e4m3fn")), w.draw.pick((16, 8, 64))
    text = f"ct.unpack_from_bytes({value(w, 'uint8', (size,)).text}, ct.{dtype})"
    return Value(text, dtype, (size * 8 // dt.bits(dtype),))


PRODUCERS: dict[str, Producer] = {
    "cuda.tile.astype": astype, "Tile.astype": astype, "cuda.tile.dtype_constructor": constructor,
    "cuda.tile.bitcast": bitcast, "cuda.tile.astile": astile, "builtins.float": python, "builtins.int": python,
    "builtins.bool": python, "cuda.tile.pack_to_bytes": pack, "cuda.tile.unpack_from_bytes": unpack,
}  # fmt: skip
