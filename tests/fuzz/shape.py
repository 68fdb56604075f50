"""Shapes: reshape, broadcast, permute, parts."""

from __future__ import annotations

from fuzz import dtypes as dt
from fuzz.families import Producer, leaf
from fuzz.values import index, int_text, narrower, shape, shape_text, value
from fuzz.writer import Shape, Value, Writer, elements
from transpiler.rules import Rule

ANY = (*dt.NUMBERS, dt.BOOL, "float8_e4m3fn")


def method(row: Rule, x: str, *arguments: str) -> str:
    """A function of cuda.tile, or a method of a tile."""
    given = [a for a in arguments if a]
    if row.callee.startswith("Tile."):
        return f"{x}.{leaf(row)}({', '.join(given)})"
    return f"ct.{leaf(row)}({', '.join([x, *given])})"


def reshape(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(ANY), shape(w)
    rest, new = elements(of), []
    for _ in range(w.draw.number(0, 2)):
        part = w.draw.pick([s for s in (1, 2, 4, 8) if rest % s == 0])
        new.append(part)
        rest //= part
    at = w.draw.number(0, len(new))
    new.insert(at, rest)
    texts = [int_text(w, size) for size in new]
    if w.draw.chance(25):
        texts[at] = "-1"
    text = f"({', '.join(texts)}{',' * (len(new) == 1)})"
    return Value(method(row, value(w, dtype, of).text, text), dtype, tuple(new))


def expand(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(ANY), shape(w)
    at = w.draw.number(0, len(of))
    shown = at - len(of) - 1 if w.draw.chance(30) else at
    return Value(method(row, value(w, dtype, of).text, str(shown)), dtype, (*of[:at], 1, *of[at:]))


def subscript(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(ANY), shape(w, 1)
    at = w.draw.number(0, len(of))
    items = [":"] * len(of)
    items.insert(at, "None")
    if w.draw.chance(25):
        items, at = w.draw.pick(((["...", "None"], len(of)), (["None", "..."], 0)))
    return Value(f"{value(w, dtype, of).text}[{', '.join(items)}]", dtype, (*of[:at], 1, *of[at:]))


def broadcast(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(ANY), shape(w)
    return Value(method(row, value(w, dtype, narrower(w, of)).text, shape_text(w, of, plain=False)), dtype, of)


def permute(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(ANY), shape(w, 2, 3)
    axes, left = [], list(range(len(of)))
    while left:
        axes.append(left.pop(w.draw.number(0, len(left) - 1)))
    shown = [a - len(of) if w.draw.chance(15) else a for a in axes]
    text = f"({', '.join(map(str, shown))},)"
    return Value(method(row, value(w, dtype, of).text, text), dtype, tuple(of[a] for a in axes))


def transpose(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(ANY), shape(w, 2, 3)
    a, b = (0, 1) if len(of) == 2 else (w.draw.number(0, len(of) - 1), w.draw.number(-len(of), len(of) - 1))
    given = () if len(of) == 2 and w.draw.chance(60) else (str(a), str(b))
    new = list(of)
    new[a], new[b] = new[b], new[a]
    return Value(method(row, value(w, dtype, of).text, *given), dtype, tuple(new))


def cat(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(ANY), shape(w, 1)
    at = w.draw.number(-len(of), len(of) - 1)
    a, b = value(w, dtype, of).text, value(w, dtype, of).text
    new = list(of)
    new[at] *= 2
    return Value(f"ct.cat(({a}, {b}), {at})", dtype, tuple(new))


def _part(w: Writer, of: Shape) -> tuple[Shape, str]:
    """The shape and place of a sub-tile."""
    part = tuple(max(1, size // w.draw.pick((2, 1, 4))) for size in of)
    places = []
    for size, whole in zip(part, of, strict=True):
        places.append(str(w.draw.number(0, whole // size - 1)) if w.draw.chance(70) else index_below(w, whole // size))
    return part, f"({', '.join(places)},)"


def index_below(w: Writer, count: int) -> str:
    """An index at run time below a number."""
    return f"({index(w)} % {count})"


def extract(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(ANY), shape(w, 1)
    part, at = _part(w, of)
    if w.draw.chance(15):
        return Value(method(row, value(w, dtype, of).text, at, "()"), dtype) if part == (1,) * len(of) else Value(
            f"{method(row, value(w, dtype, of).text, at, shape_text(w, part))}", dtype, part)  # fmt: skip
    return Value(method(row, value(w, dtype, of).text, at, shape_text(w, part)), dtype, part)


def insert(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(ANY), shape(w, 1)
    part, at = _part(w, of)
    x, inner = value(w, dtype, of).text, value(w, dtype, part).text
    return Value(method(row, x, at, inner), dtype, of)


def item(w: Writer, row: Rule) -> Value:
    dtype = w.draw.pick(ANY)
    return Value(f"{value(w, dtype, w.draw.pick(((1,), (1, 1)))).text}.item()", dtype)


def tile_shape(w: Writer, row: Rule) -> Value:
    """A tile of another one's shape."""
    of = shape(w, 1)
    x = value(w, w.draw.pick(ANY), of).text
    if w.draw.chance(30):
        at = w.draw.number(0, len(of) - 1)
        return Value(f"ct.full((), {x}.shape[{at}], ct.int32)", "int32")
    return Value(f"ct.zeros({x}.shape, ct.float32)", "float32", of)


PRODUCERS: dict[str, Producer] = {
    **dict.fromkeys(("cuda.tile.reshape", "Tile.reshape"), reshape), "cuda.tile.expand_dims": expand,
    "operator.getitem(tile)": subscript, "cuda.tile.broadcast_to": broadcast,
    **dict.fromkeys(("cuda.tile.permute", "Tile.permute"), permute),
    **dict.fromkeys(("cuda.tile.transpose", "Tile.transpose"), transpose), "cuda.tile.cat": cat,
    **dict.fromkeys(("cuda.tile.extract", "Tile.extract"), extract),
    **dict.fromkeys(("cuda.tile.insert", "Tile.insert"), insert), "Tile.item": item, "Tile.shape": tile_shape,
}  # fmt: skip
