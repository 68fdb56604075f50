"""Arithmetic, comparison, bits and selection."""

from __future__ import annotations

from fuzz import dtypes as dt
from fuzz.families import Producer, call, leaf, options
from fuzz.values import condition, known_condition, narrower, number, position, shape, value
from fuzz.writer import Shape, Value, Writer
from transpiler.rules import Rule

SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "eq": "==",
    "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<",
    "rshift": ">>", "invert": "~", "neg": "-", "pos": "+", "not_": "not ",
}  # fmt: skip
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "equal", "not_equal", "less", "less_equal", "greater",
               "greater_equal")  # fmt: skip
_BITS = (*dt.INTS, dt.BOOL)
SAME = ("and_", "or_", "xor", "lshift", "rshift", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_lshift",
        "bitwise_rshift")  # fmt: skip
"""Operations whose operands must have one dtype."""
DOMAINS: dict[str, tuple[str, ...]] = {
    "floordiv": (*dt.INTS, "float32"), "cdiv": dt.INTS, "mod": dt.NUMBERS, "divmod": dt.INTS, "pow": dt.FLOATS,
    "atan2": ("float32", "float64", "float16", "bfloat16"), "and_": _BITS, "or_": _BITS, "xor": _BITS,
    "bitwise_and": _BITS, "bitwise_or": _BITS, "bitwise_xor": _BITS, "lshift": dt.INTS, "rshift": dt.INTS,
    "bitwise_lshift": dt.INTS, "bitwise_rshift": dt.INTS, "invert": _BITS, "bitwise_not": _BITS,
}  # fmt: skip


def _domain(row: Rule) -> tuple[str, ...]:
    if leaf(row) in COMPARISONS:
        return (*dt.NUMBERS, dt.BOOL)
    return DOMAINS.get(leaf(row), dt.NUMBERS)


def second(w: Writer, dtype: str, shape: Shape, *, mixed: bool = True) -> tuple[str, str]:
    """The other operand: its text, and the dtype of the result; ``mixed``: it may have another dtype."""
    match w.draw.number(0, 9 if mixed else 8):
        case 0 | 1 | 2 | 3 | 4:
            return value(w, dtype, shape).text, dtype
        case 5 | 6:
            return number(w, dtype), dtype
        case 7 | 8:
            return value(w, dtype, narrower(w, shape)).text, dtype
        case _:
            fitting = [d for d in (*dt.NUMBERS, dt.BOOL) if dt.promoted(dtype, d)]
            other = w.draw.pick(fitting)
            common = dt.promoted(dtype, other)
            assert common is not None
            return value(w, other, shape).text, common


def written(row: Rule, a: str, b: str, extra: str = "") -> str:
    """The row's operation on two operands."""
    if row.callee.startswith("operator."):
        return f"({a} {SYMBOLS[leaf(row)]} {b})"
    return call(row, a, b, extra)


def binary(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(_domain(row)), shape(w)
    a = value(w, dtype, of).text
    b, common = second(w, dtype, of, mixed=leaf(row) not in SAME)
    if w.draw.chance(25):
        a, b = b, a
    text = written(row, a, b, options(w, row, dtype, common))
    if leaf(row) in COMPARISONS:
        return Value(text, dt.BOOL, of)
    if leaf(row) == "truediv" and not dt.is_float(common):
        common = "float32"
    return Value(text, common, of)


def remainder(w: Writer, row: Rule) -> Value:
    """Both results of a division."""
    dtype, of = w.draw.pick(_domain(row)), shape(w)
    b, common = second(w, dtype, of)
    quotient, rest = w.name(), w.name()
    w.line(f"{quotient}, {rest} = {call(row, value(w, dtype, of).text, b)}")
    w.bind(Value(quotient, common, of))
    return Value(rest, common, of)


def power(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(dt.FLOATS), shape(w)
    exponent = w.draw.pick(("2", "3", "0.5", "-1", value(w, dtype, of).text, value(w, "int32", of).text,
                            value(w, "int8", of).text, number(w, "int32")))  # fmt: skip
    return Value(written(row, value(w, dtype, of).text, exponent), dtype, of)


def unary(w: Writer, row: Rule) -> Value:
    domain = {"invert": _BITS, "bitwise_not": _BITS}.get(leaf(row), dt.NUMBERS)
    dtype, of = w.draw.pick(domain), shape(w)
    a = value(w, dtype, of).text
    return Value(f"({SYMBOLS[leaf(row)]}{a})" if row.callee.startswith("operator.") else call(row, a), dtype, of)


def negation(w: Writer, row: Rule) -> Value:
    """``not`` of a scalar condition."""
    inner = w.draw.pick((condition(w), known_condition(w)))
    a, b = value(w, "float32").text, value(w, "float32").text
    return Value(f"({a} if not ({inner}) else {b})", "float32")


def identity(w: Writer, row: Rule) -> Value:
    """``is``: of None, of dtypes."""
    word = "is" if leaf(row) == "is_" else "is not"
    left, right = w.draw.pick(((w.constant(4), "None"), ("None", "None"), ("None", w.constant(2))))
    of = shape(w)
    a, b = value(w, "float32", of), value(w, "float32", of)
    return Value(f"({a.text} if {left} {word} {right} else {b.text})", "float32", of)


def membership(w: Writer, row: Rule) -> Value:
    items = [w.draw.pick((str(w.draw.number(0, 4)), position(w).text, w.constant(4)))
             for _ in range(w.draw.number(1, 3))]  # fmt: skip
    item = w.draw.pick((position(w).text, w.constant(4)))
    word = w.draw.pick(("in", "not in"))
    a, b = value(w, "int32"), value(w, "int32")
    return Value(f"({a.text} if {item} {word} ({', '.join(items)},) else {b.text})", "int32")


def where(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick((*dt.NUMBERS, dt.BOOL)), shape(w)
    b, common = second(w, dtype, of)
    a = value(w, dtype, of).text
    if w.draw.chance(30):
        a, b = b, a
    cond = value(w, dt.BOOL, w.draw.pick((of, narrower(w, of)))).text
    return Value(call(row, cond, a, b), common, of)


def host_minimum(w: Writer, row: Rule) -> Value:
    """min and max of Python, of scalars or constants."""
    dtype, of = w.draw.pick(dt.NUMBERS), w.draw.pick(((), shape(w)))
    b, common = second(w, dtype, of)
    return Value(call(row, value(w, dtype, of).text, b), common, of)


PRODUCERS: dict[str, Producer] = {
    **{f"operator.{op}": binary for op in ("add", "sub", "mul", "truediv", "floordiv", "mod", "eq", "ne", "lt", "le",
                                           "gt", "ge", "and_", "or_", "xor", "lshift", "rshift")},
    **{f"cuda.tile.{op}": binary for op in ("add", "sub", "mul", "truediv", "floordiv", "cdiv", "mod", "minimum",
                                            "maximum", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor",
                                            "bitwise_lshift", "bitwise_rshift", "equal", "not_equal", "less",
                                            "less_equal", "greater", "greater_equal")},
    **{f"builtins.{op}": host_minimum for op in ("min", "max")},
    **dict.fromkeys(("builtins.divmod", "cuda.tile.divmod"), remainder),
    **dict.fromkeys(("operator.pow", "cuda.tile.pow"), power),
    **dict.fromkeys(("operator.invert", "cuda.tile.bitwise_not", "operator.neg", "cuda.tile.negative", "operator.pos"),
                    unary),
    "operator.not_": negation, "operator.is_": identity, "operator.is_not": identity,
    "operator.contains": membership, "cuda.tile.where": where,
}  # fmt: skip
