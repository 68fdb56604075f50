"""Values of a wanted type: a name in scope, a constant, a load, or an expression of other values."""

from __future__ import annotations

from fuzz import dtypes as dt
from fuzz.writer import LIMIT, SIZES, Shape, Value, Writer, elements

DEPTH_LIMIT = 2


# -- numbers and shapes -------------------------------------------------------------------------------


def int_text(w: Writer, value: int) -> str:
    """A known integer: a literal, a constant parameter, or arithmetic on one."""
    draw = w.draw
    if value < 1 or not draw.chance(40):
        return str(value)
    match draw.number(0, 5):
        case 0 | 1 | 2:
            return w.constant(value)
        case 3 if value > 1:
            return f"({w.constant(value // 2)} * 2)" if value % 2 == 0 else f"({w.constant(value - 1)} + 1)"
        case 4:
            return f"({w.constant(value * 2)} // 2)"
        case _:
            return f"min({w.constant(value)}, {w.constant(value * 4)})"


def shape_text(w: Writer, shape: Shape, *, plain: bool = True) -> str:
    """A shape as an argument; ``plain`` says that a number may stand for a tuple of one."""
    if plain and len(shape) == 1 and w.draw.chance(30):
        return int_text(w, shape[0])
    return f"({', '.join(int_text(w, size) for size in shape)}{',' * (len(shape) == 1)})"


def shape(w: Writer, low: int = 0, high: int = 3) -> Shape:
    """A shape: often one that is in scope."""
    known = [v.shape for v in w.frame.visible if low <= len(v.shape) <= high]
    if known and w.draw.chance(60):
        return w.draw.pick(list(dict.fromkeys(known)))
    rank = w.draw.pick([r for r in (1, 2, 0, 3, 4) if low <= r <= high])
    out: list[int] = []
    for _ in range(rank):
        out.append(w.draw.pick([s for s in SIZES if s * elements(out) <= LIMIT]))
    return tuple(out)


def literal(w: Writer, dtype: str) -> str:
    """A Python number that fits a dtype."""
    if dtype == dt.BOOL:
        return w.draw.pick(("True", "False"))
    if dt.is_float(dtype):
        value = w.draw.pick(dt.FLOAT_LITERALS)
        if dtype == "float16" and value > 60000:
            value = 4.0
        return repr(-value) if w.draw.chance(15) else repr(value)
    value_ = w.draw.pick(dt.INT_LITERALS)
    return str(-value_) if dt.signed(dtype) and w.draw.chance(15) else str(value_)


def number(w: Writer, dtype: str) -> str:
    """A Python number, perhaps a constant parameter or arithmetic on one."""
    draw = w.draw
    if dtype == dt.BOOL or not draw.chance(40):
        return literal(w, dtype)
    if dt.is_float(dtype):
        name = w.constant(draw.pick((0.25, 1.5, 0.3)), "float")
        return draw.pick((name, f"({name} * 2.0)", f"(1.0 / {name})", f"(-{name})", f"float({w.constant(4)})"))
    name = w.constant(draw.pick((2, 4, 8)))
    return draw.pick((name, f"({name} + 1)", f"({name} // 2)", f"({name} * 3 - 1)", f"max({name}, 3)"))


# -- values -------------------------------------------------------------------------------------------


def value(w: Writer, dtype: str, shape: Shape = ()) -> Value:
    """An expression of exactly this type."""
    known = [v for v in w.frame.visible if v.dtype == dtype and v.shape == shape]
    ways = ["known"] * 6 * bool(known) + ["fill", "load", "load"]
    if w.depth < DEPTH_LIMIT:
        ways += ["cast", "broadcast", "arithmetic"] if dtype not in dt.RESTRICTED else ["cast"]
    if not shape and dtype in ("int32", "float32", "int64"):
        ways += ["scalar", "scalar"]
    way = w.draw.pick(ways)
    if way == "known":
        return w.draw.pick(known)
    w.depth += 1
    try:
        return _MADE[way](w, dtype, shape)
    finally:
        w.depth -= 1


def filled(w: Writer, dtype: str, shape: Shape) -> Value:
    """A tile of one number, or a range."""
    if dtype in dt.RESTRICTED:
        return Value(f"ct.full({shape_text(w, shape)}, {literal(w, 'float32')}, ct.{dtype})", dtype, shape)
    if shape and dtype in dt.NUMBERS and len(shape) == 1 and w.draw.chance(30):
        return Value(f"ct.arange({int_text(w, shape[0])}, dtype=ct.{dtype})", dtype, shape)
    text = literal(w, dtype)
    if not shape and dtype != dt.BOOL and w.draw.chance(30):
        return Value(f"ct.{dtype}({text})", dtype, shape)
    return Value(f"ct.full({shape_text(w, shape)}, {text}, dtype=ct.{dtype})", dtype, shape)


def _loaded(w: Writer, dtype: str, shape: Shape) -> Value:
    if dtype not in dt.STORABLE:
        return _cast(w, dtype, shape)
    array = w.array(dtype, max(len(shape), 1))
    text = shape_text(w, shape or (1,) * array.ndim)
    made = Value(f"ct.load({array.text}, {place(w, array.ndim)}, {text})", dtype, shape or (1,) * array.ndim)
    return made if shape else Value(f"{made.text}.item()", dtype)


def _cast(w: Writer, dtype: str, shape: Shape) -> Value:
    others = [v for v in w.frame.visible if v.shape == shape and v.dtype != dtype]
    source = w.draw.pick(others) if others else value(w, "float32" if dtype != "float32" else "int32", shape)
    return Value(f"{source.text}.astype(ct.{dtype})", dtype, shape)


def _broadcast(w: Writer, dtype: str, shape: Shape) -> Value:
    inner = narrower(w, shape)
    source = value(w, dtype, inner)
    return Value(f"ct.broadcast_to({source.text}, {shape_text(w, shape, plain=False)})", dtype, shape)


def _arithmetic(w: Writer, dtype: str, shape: Shape) -> Value:
    if dtype == dt.BOOL:
        other = w.draw.pick(("int32", "float32", "int16", "uint8", "float16"))
        a, b = value(w, other, shape), value(w, other, shape)
        return Value(f"({a.text} {w.draw.pick(('<', '>=', '==', '!=', '>', '<='))} {b.text})", dtype, shape)
    a, b = value(w, dtype, shape), value(w, dtype, shape)
    if w.draw.chance(30):
        c = value(w, dtype, shape)
        return Value(f"({a.text} * {b.text} {w.draw.pick('+-')} {c.text})", dtype, shape)
    return Value(f"({a.text} {w.draw.pick('+-*')} {b.text})", dtype, shape)


def _scalar(w: Writer, dtype: str, shape: Shape) -> Value:
    if dtype == "int32" and w.draw.chance(60):
        return position(w)
    return w.scalar(dtype)


_MADE = {
    "fill": filled, "load": _loaded, "cast": _cast, "broadcast": _broadcast, "arithmetic": _arithmetic,
    "scalar": _scalar,
}  # fmt: skip


def narrower(w: Writer, shape: Shape) -> Shape:
    """A shape that broadcasts to another one."""
    kept = shape[w.draw.number(0, len(shape)) :] if shape else ()
    return tuple(1 if w.draw.chance(30) else size for size in kept)


# -- scalars ------------------------------------------------------------------------------------------


def position(w: Writer) -> Value:
    """An int32 scalar that differs between blocks or iterations, or is a parameter."""
    scalars = [v for v in w.frame.visible if v.dtype == "int32" and not v.shape]
    ways = ["bid", "parameter", "size"] + ["known"] * 3 * bool(scalars)
    match w.draw.pick(ways):
        case "known":
            return w.draw.pick(scalars)
        case "parameter":
            return w.scalar()
        case "size":
            array = w.array(w.draw.pick(("float32", "int32")), w.draw.number(1, 2))
            return Value(f"{array.text}.shape[{w.draw.number(0, array.ndim - 1)}]", "int32")
        case _:
            return Value(f"ct.bid({w.draw.number(0, 2)})", "int32")


def index(w: Writer) -> str:
    """A tile index along an axis."""
    if w.draw.chance(40):
        return str(w.draw.number(0, 3))
    base = position(w).text
    return w.draw.pick((base, base, f"({base} + 1)", f"({base} * 2)", f"({base} % 2)"))


def place(w: Writer, rank: int) -> str:
    """The indices of a tile in an array."""
    if rank == 1 and w.draw.chance(40):
        return index(w)
    return f"({', '.join(index(w) for _ in range(rank))}{',' * (rank == 1)})"


def condition(w: Writer) -> str:
    """A scalar condition at run time."""
    match w.draw.number(0, 4):
        case 0 | 1:
            a = position(w).text
            other = w.draw.pick((str(w.draw.number(0, 4)), position(w).text))
            return f"{a} {w.draw.pick(('>', '<', '>=', '<=', '==', '!='))} {other}"
        case 2:
            return value(w, dt.BOOL).text
        case 3:
            return f"{condition(w)} {w.draw.pick(('and', 'or'))} {condition(w)}"
        case _:
            return f"{value(w, 'float32').text} > {literal(w, 'float32')}"


def known_condition(w: Writer) -> str:
    """A condition that the constants decide."""
    size = w.constant(w.draw.pick((4, 8, 2)))
    ways = [f"{size} > 4", f"{size} == 4", w.constant(w.draw.chance(50), "bool"), f"{size} % 2 == 0 and {size} < 8",
            f"not {w.constant(w.draw.chance(50), 'bool')}"]  # fmt: skip
    if w.arrays:
        array = w.draw.pick(w.arrays)
        ways.append(f"{w.use(array.text)}.dtype == ct.{w.draw.pick(('float32', array.dtype))}")
    return w.draw.pick(ways)
