"""Tiled views, slices of arrays, lists of arrays."""

from __future__ import annotations

from fuzz.families import Producer, leaf
from fuzz.memory import access, joined, padding
from fuzz.values import place, position, shape, shape_text, value
from fuzz.writer import Array, Shape, Value, Writer, array_facts
from transpiler.rules import Rule
from transpiler.rules.atomics import MODES


def _view(w: Writer, dtype: str) -> tuple[str, Shape]:
    """A view under a name of its own, and its tile shape."""
    of = shape(w, 1)
    array = w.array(dtype, len(of))
    steps = ""
    if w.draw.chance(30):
        halves = tuple(max(1, s // w.draw.pick((1, 2))) for s in of)
        steps = f"traversal_steps={shape_text(w, halves)}"
    name = w.name("view")
    w.line(f"{name} = {array.text}.tiled_view({joined(shape_text(w, of), padding(w, dtype), steps)})")
    return name, of


def _dtype(w: Writer) -> str:
    return w.draw.pick(("float32", "float16", "int32", "bfloat16", "float64", "int8", "uint8", "int64"))


def load(w: Writer, row: Rule) -> Value:
    dtype = _dtype(w)
    name, of = _view(w, dtype)
    return Value(f"{name}.load({joined(place(w, len(of)), *access(w))})", dtype, of)


def store(w: Writer, row: Rule) -> None:
    dtype = _dtype(w)
    name, of = _view(w, dtype)
    w.line(f"{name}.store({joined(place(w, len(of)), value(w, dtype, of).text, *access(w))})")


def num_tiles(w: Writer, row: Rule) -> Value:
    name, of = _view(w, _dtype(w))
    return Value(f"{name}.num_tiles({w.draw.number(0, len(of) - 1)})", "int32")


def atomic(w: Writer, row: Rule) -> None:
    dtype = w.draw.pick(MODES[leaf(row).removeprefix("atomic_store_")][3])
    name, of = _view(w, dtype)
    w.line(f"{name}.{leaf(row)}({place(w, len(of))}, {value(w, dtype, of).text})")


def of_view(w: Writer, row: Rule) -> Value:
    """A tile of a view's dtype and shape."""
    dtype = _dtype(w)
    name, of = _view(w, dtype)
    if leaf(row) == "traversal_steps":
        return Value(f"ct.full((), {name}.traversal_steps[0], ct.int32)", "int32")
    return Value(f"ct.ones({name}.tile_shape, {name}.dtype)", dtype, of)


def array_slice(w: Writer, row: Rule) -> Value:
    dtype, of = _dtype(w), shape(w, 1)
    array = w.array(dtype, len(of))
    name = w.name("part")
    axis = w.draw.number(-len(of), len(of) - 1) if w.draw.chance(20) else w.draw.number(0, len(of) - 1)
    start = w.draw.pick(("0", position(w).text, str(w.draw.number(1, 4))))
    stop = w.draw.pick((w.constant(16), position(w).text, f"{start} + {w.draw.number(4, 16)}"))
    w.line(f"{name} = {array.text}.slice(axis={axis}, start={start}, stop={stop})")
    if w.draw.chance(40):
        w.line(f"ct.store({name}, {place(w, len(of))}, {value(w, dtype, of).text})")
    return Value(f"ct.load({joined(name, place(w, len(of)), shape_text(w, of), padding(w, dtype))})", dtype, of)


def list_item(w: Writer, row: Rule) -> Value:
    """An array of a list."""
    of, dtype = shape(w, 1, 2), w.draw.pick(("float32", "float16", "int32"))
    given = next((n for n, p in w.params.items() if isinstance(p, dict) and p.get("kind") == "list"), None)
    if given is None:
        given = w.name("xs")
        element = array_facts(w.draw, dtype, len(of))
        element.pop("index_dtype", None)
        w.params[given] = {"kind": "list", "element": element}
    element = w.params[given]["element"]
    dtype, rank = element["dtype"], element["ndim"]
    of = of if len(of) == rank else (8,) * rank
    w.use(given)
    item = Array(w.name("item"), dtype, rank)
    at = f"len({given}) - 1" if leaf(row) == "len" else position(w).text
    w.line(f"{item.text} = {given}[{at}]")
    if w.draw.chance(50):
        w.line(f"ct.store({item.text}, {place(w, rank)}, {value(w, dtype, of).text})")
    return Value(f"ct.load({item.text}, {place(w, rank)}, {shape_text(w, of)})", dtype, of)


PRODUCERS: dict[str, Producer] = {
    "Array.tiled_view": load, "Array.slice": array_slice, "TiledView.load": load, "TiledView.store": store,
    "TiledView.num_tiles": num_tiles,
    **{f"TiledView.atomic_store_{op}": atomic for op in ("add", "max", "min", "and", "or", "xor")},
    **{f"TiledView.{name}": of_view for name in ("dtype", "tile_shape", "traversal_steps")},
    "operator.getitem(list)": list_item, "builtins.len": list_item,
}  # fmt: skip
