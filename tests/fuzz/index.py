"""Positions, sizes, filled tiles, properties, promises, and what is for people."""

from __future__ import annotations

from fuzz import dtypes as dt
from fuzz.control import counted_loop, static_loop
from fuzz.families import Producer, call, leaf
from fuzz.values import int_text, known_condition, number, position, shape, shape_text, value
from fuzz.writer import Value, Writer
from transpiler.rules import Rule


def grid(w: Writer, row: Rule) -> Value:
    return Value(call(row, str(w.draw.number(0, 2))), "int32")


def arange(w: Writer, row: Rule) -> Value:
    dtype, size = w.draw.pick(dt.NUMBERS), w.draw.pick((8, 16, 4, 32, 1))
    start = w.draw.pick(("", f"start={number(w, dtype)}", f"start={value(w, dtype).text}"))
    step = w.draw.pick(("", f"step={number(w, dtype)}"))
    return Value(call(row, int_text(w, size), f"dtype=ct.{dtype}", start, step), dtype, (size,))


def full(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick((*dt.NUMBERS, dt.BOOL)), shape(w)
    if leaf(row) != "full":
        return Value(call(row, shape_text(w, of), f"ct.{dtype}"), dtype, of)
    fill = w.draw.pick((number(w, dtype), value(w, dtype).text))
    return Value(call(row, shape_text(w, of), fill, w.draw.pick((f"ct.{dtype}", f"dtype=ct.{dtype}"))), dtype, of)


def array_property(w: Writer, row: Rule) -> Value:
    array = w.array(w.draw.pick(("float32", "float16", "int32")), w.draw.number(1, 3))
    if leaf(row) == "dtype":
        of = shape(w)
        return Value(f"ct.zeros({shape_text(w, of)}, {array.text}.dtype)", array.dtype, of)
    if leaf(row) == "ndim":
        return Value(f"({value(w, 'int32').text} + {array.text}.ndim)", "int32")
    return Value(f"{array.text}.{leaf(row)}[{w.draw.number(0, array.ndim - 1)}]", "int32")


def tile_property(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(dt.NUMBERS), shape(w)
    x = value(w, dtype, of).text
    if leaf(row) == "ndim":
        return Value(f"({value(w, 'int32').text} * {x}.ndim)", "int32")
    return Value(f"{value(w, 'float32', of).text}.astype({x}.dtype)", dtype, of)


def tuple_item(w: Writer, row: Rule) -> Value:
    """An item or a part of a tuple of values."""
    of = shape(w)
    items = [value(w, "float32", of) for _ in range(w.draw.number(2, 3))]
    name = w.name("pair")
    w.line(f"{name} = ({', '.join(v.text for v in items)})")
    if leaf(row) == "slice" or w.draw.chance(30):
        return Value(f"{name}{w.draw.pick(('[1:]', '[:2]', '[::2]', '[-2:]'))}[0]", "float32", of)
    return Value(f"{name}[{w.draw.pick((0, 1, -1))}]", "float32", of)


def assumed(w: Writer, row: Rule) -> Value:
    return Value(call(row, position(w).text, str(w.draw.pick((8, 2, 16, 1)))), "int32")


def static_assert(w: Writer, row: Rule) -> None:
    text = known_condition(w)
    w.line(call(row, f"{text} or True", w.draw.pick(("", "'never'"))))


def constant(w: Writer, row: Rule) -> Value:
    of = shape(w)
    return Value(f"({value(w, 'float32', of).text} + {call(row, w.constant(4))})", "float32", of)


# -- for people ---------------------------------------------------------------------------------------


def printed(w: Writer, row: Rule) -> None:
    """One tile a statement; f-strings and formats."""
    dtype = w.draw.pick(("float32", "int32", "float16", "int64", "uint32", "float64", "int8"))
    x = value(w, dtype, shape(w)).text
    name = w.name()
    w.line(f"{name} = {x}")
    spec = "<8.3e" if dt.is_float(dtype) else "d"
    conversion = "%6.2f" if dt.is_float(dtype) else "%lld" if dtype == "int64" else "%d"
    texts = {
        "printf": f'"value {conversion}\\n", {name}',
        "format_string": f'f"value {{{name}}} end"', "format": f'f"{{{name}:{spec}}}"', "str": f'"v", str({name})',
        "repr": f'repr({name}), "v"',
    }  # fmt: skip
    how = leaf(row) if leaf(row) in texts else w.draw.pick(("format_string", "format", "str"))
    plain = f'"value", {name}, sep="="' if leaf(row) == "print" and w.draw.chance(40) else texts[how]
    if leaf(row) == "printf":
        w.line(f"ct.printf({texts['printf']})")
    else:
        w.line(f"{'ct.print' if row.callee == 'cuda.tile.print' else 'print'}({plain})")


def asserted(w: Writer, row: Rule) -> None:
    w.line(call(row, value(w, dt.BOOL, shape(w)).text, w.draw.pick(("", '"a message"'))))


def statement(w: Writer, row: Rule) -> None:
    w.line(call(row))


def in_range(w: Writer, row: Rule) -> None:
    counted_loop(w)


def in_static_iter(w: Writer, row: Rule) -> None:
    static_loop(w)


PRODUCERS: dict[str, Producer] = {
    "cuda.tile.bid": grid, "cuda.tile.num_blocks": grid, "builtins.range": in_range, "builtins.slice": tuple_item,
    "operator.getitem(tuple)": tuple_item, "cuda.tile.arange": arange,
    **{f"cuda.tile.{name}": full for name in ("full", "zeros", "ones")},
    **{f"Array.{name}": array_property for name in ("shape", "strides", "ndim", "dtype")},
    **{f"Tile.{name}": tile_property for name in ("dtype", "ndim")}, "cuda.tile.assume_divisible_by": assumed,
    "cuda.tile.static_assert": static_assert, "cuda.tile.ensure_constant": constant,
    "cuda.tile.static_iter": in_static_iter,
    **dict.fromkeys(("builtins.format_string", "builtins.format", "builtins.str", "builtins.repr", "cuda.tile.printf",
                     "cuda.tile.print", "builtins.print"), printed),
    "cuda.tile.assert_": asserted,
    **{f"cuda.tile.grid_dependency_control_{what}": statement for what in ("wait", "launch_dependents")},
}  # fmt: skip
