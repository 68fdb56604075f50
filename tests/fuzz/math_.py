"""Unary mathematics."""

from __future__ import annotations

from fuzz import dtypes as dt
from fuzz.families import Producer, call, leaf, options
from fuzz.values import shape, value
from fuzz.writer import Value, Writer
from transpiler.rules import Rule


def unary(w: Writer, row: Rule) -> Value:
    domain = dt.FLOATS if leaf(row) in ("floor", "ceil", "isnan") else dt.NUMBERS
    dtype = w.draw.pick(domain if w.draw.chance(30) else dt.FLOATS)
    of = shape(w)
    text = call(row, value(w, dtype, of).text, options(w, row, dtype))
    if leaf(row) == "isnan":
        return Value(text, dt.BOOL, of)
    return Value(text, dtype if leaf(row) == "abs" or dt.is_float(dtype) else "float32", of)


def host(w: Writer, row: Rule) -> Value:
    """A function of the math module, of a constant at the top of the module."""
    of, name = shape(w), w.name("CONSTANT_")
    number = w.draw.pick(("2.0", "0.5", "1.75", "4"))
    w.globals.append(f"{name} = {row.callee}({number})")
    return Value(f"({value(w, 'float32', of).text} * {name})", "float32", of)


_NAMED = ("log", "log2", "sin", "cos", "tan", "sinh", "cosh", "floor", "ceil", "abs", "exp2", "rsqrt", "exp", "tanh",
          "sqrt", "isnan")  # fmt: skip
PRODUCERS: dict[str, Producer] = {
    **{f"cuda.tile.{fn}": unary for fn in _NAMED},
    "builtins.abs": unary,
    **{f"math.{fn}": host for fn in ("sqrt", "exp", "log", "log2", "floor", "ceil", "sin", "cos", "tanh")},
}
