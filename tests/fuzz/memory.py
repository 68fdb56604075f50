"""Loads, stores, gathers, scatters and atomics."""

from __future__ import annotations

from fuzz import dtypes as dt
from fuzz.families import Producer, leaf
from fuzz.values import literal, narrower, place, shape, shape_text, value
from fuzz.writer import Array, Shape, Value, Writer
from transpiler.rules import Rule
from transpiler.rules.atomics import MODES

PADDING = ("ZERO", "UNDETERMINED", "NEG_INF", "POS_INF", "NAN", "NEG_ZERO")


def padding(w: Writer, dtype: str) -> str:
    """A padding mode that exists for a dtype."""
    if not w.draw.chance(50):
        return ""
    return f"padding_mode=ct.PaddingMode.{w.draw.pick(PADDING if dtype in dt.FLOATS else PADDING[:2])}"


def access(w: Writer, *, order: bool = True) -> list[str]:
    """What may be said of an access through a view."""
    out = []
    if w.draw.chance(15):
        out.append("check_bounds=False")
    if w.draw.chance(20):
        out.append(f"latency={w.draw.number(1, 10)}")
    if w.draw.chance(20):
        out.append(f"allow_tma={w.draw.chance(50)}")
    return out


def orderings(w: Writer, names: tuple[str, ...]) -> list[str]:
    """A memory order and scope."""
    if not w.draw.chance(15):
        return []
    out = [f"memory_order=ct.MemoryOrder.{w.draw.pick(names)}"]
    if "WEAK" not in out[0]:
        out.append(f"memory_scope=ct.MemoryScope.{w.draw.pick(('DEVICE', 'SYS', 'BLOCK'))}")
    return out


def axes_order(w: Writer, rank: int) -> str:
    """The order of an array's axes in a view."""
    if rank < 2 or not w.draw.chance(25):
        return ""
    left, out = list(range(rank)), []
    while left:
        out.append(left.pop(w.draw.number(0, len(left) - 1)))
    return f"order={w.draw.pick((chr(39) + 'F' + chr(39), '(' + ', '.join(map(str, out)) + ')'))}"


def joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def load(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(dt.STORABLE), shape(w, 1)
    array = w.array(dtype, len(of))
    said = joined(axes_order(w, len(of)), padding(w, dtype), *access(w), *orderings(w, ("RELAXED", "ACQUIRE", "WEAK")))
    names = ("index=", "shape=") if w.draw.chance(40) else ("", "")
    text = joined(array.text, names[0] + place(w, len(of)), names[1] + shape_text(w, of), said)
    return Value(f"ct.load({text})", dtype, of)


def store(w: Writer, row: Rule) -> None:
    dtype, of = w.draw.pick(dt.STORABLE), shape(w, 1)
    array = w.array(dtype, len(of))
    said = joined(axes_order(w, len(of)), *access(w), *orderings(w, ("RELAXED", "RELEASE", "WEAK")))
    x = value(w, dtype, of).text
    w.line(f"ct.store({joined(array.text, place(w, len(of)), x, said)})")


def store_value(w: Writer, v: Value) -> None:
    """Store a value whatever it is, so that it isn't dead."""
    if v.dtype not in dt.STORABLE:
        v = Value(f"{v.text}.astype(ct.float32)", "float32", v.shape)
    rank = max(len(v.shape), 1)
    array = w.array(v.dtype, rank)
    w.line(f"ct.store({array.text}, {place(w, rank)}, {v.text})")


def num_tiles(w: Writer, row: Rule) -> Value:
    of = shape(w, 1)
    array = w.array(w.draw.pick(dt.FLOATS), len(of))
    axis = w.draw.number(0, len(of) - 1)
    text = joined(array.text, f"axis={axis}", f"shape={shape_text(w, of)}", axes_order(w, len(of)))
    return Value(f"ct.num_tiles({text})", "int32")


# -- pointers -----------------------------------------------------------------------------------------


def positions(w: Writer, rank: int, of: Shape) -> str:
    """Index tiles that broadcast to a shape."""
    out = []
    for axis in range(rank):
        part = of if axis == 0 else w.draw.pick((of, narrower(w, of)))
        out.append(value(w, w.draw.pick(("int32", "int32", "int64", "uint32", "int16")), part).text)
    if rank == 1 and w.draw.chance(60):
        return out[0]
    return f"({', '.join(out)},)"


def _checked(w: Writer) -> str:
    return "check_bounds=False" if w.draw.chance(15) else ""


def _latency(w: Writer) -> str:
    return f"latency={w.draw.number(1, 10)}" if w.draw.chance(15) else ""


def _mask(w: Writer, of: Shape) -> str:
    return f"mask={value(w, dt.BOOL, w.draw.pick((of, narrower(w, of)))).text}" if w.draw.chance(45) else ""


def gather(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick((*dt.NUMBERS, dt.BOOL)), shape(w)
    array = w.array(dtype, w.draw.number(1, 3))
    at = positions(w, array.ndim, of)
    pad = f"padding_value={literal(w, dtype)}" if w.draw.chance(40) else ""
    return Value(f"ct.gather({joined(array.text, at, _mask(w, of), pad, _checked(w), _latency(w))})", dtype, of)


def scatter(w: Writer, row: Rule) -> None:
    dtype, of = w.draw.pick((*dt.NUMBERS, dt.BOOL)), shape(w)
    array = w.array(dtype, w.draw.number(1, 3))
    at = positions(w, array.ndim, of)
    x = literal(w, dtype) if w.draw.chance(20) else value(w, dtype, w.draw.pick((of, narrower(w, of)))).text
    w.line(f"ct.scatter({joined(array.text, at, x, _mask(w, of), _checked(w), _latency(w))})")


_ORDERS = ("RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL")


def atomic(w: Writer, row: Rule) -> Value:
    op = leaf(row).removeprefix("atomic_")
    dtype, of = w.draw.pick(MODES[op][3]), shape(w)
    array = w.array(dtype, w.draw.number(1, 2))
    update = value(w, dtype, w.draw.pick((of, narrower(w, of)))).text
    text = joined(array.text, positions(w, array.ndim, of), update, _checked(w), *orderings(w, _ORDERS))
    return Value(f"ct.{leaf(row)}({text})", dtype, of)


def swap(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick(("int32", "uint32", "int64", "uint64", "float32", "float64")), shape(w)
    array = w.array(dtype, 1)
    old, new = (value(w, dtype, of).text if w.draw.chance(60) else literal(w, dtype) for _ in range(2))
    text = joined(array.text, positions(w, 1, of), old, new, _checked(w), *orderings(w, _ORDERS))
    return Value(f"ct.atomic_cas({text})", dtype, of)


# -- advanced indexing --------------------------------------------------------------------------------


def _where(w: Writer, array: Array, of: Shape) -> str:
    sparse = w.draw.number(0, array.ndim - 1)
    parts = []
    for axis, size in enumerate(of):
        if axis == sparse:
            parts.append(value(w, "int32", (size,)).text)
        else:
            parts.append(f"ct.Slice({value(w, 'int32').text}, {size})")
    return f"({', '.join(parts)})"


def _advanced(w: Writer) -> tuple[str, Array, Shape]:
    of = shape(w, 2)
    dtype = w.draw.pick(("float32", "float16", "bfloat16", "int32", "int8"))
    return dtype, w.array(dtype, len(of)), of


def load_advanced(w: Writer, row: Rule) -> Value:
    dtype, array, of = _advanced(w)
    said = joined(padding(w, dtype), _latency(w), "allow_tma=False" if w.draw.chance(20) else "")
    return Value(f"ct.load_advanced_indexing({joined(array.text, _where(w, array, of), said)})", dtype, of)


def store_advanced(w: Writer, row: Rule) -> None:
    dtype, array, of = _advanced(w)
    at, x = _where(w, array, of), value(w, dtype, of).text
    w.line(f"ct.store_advanced_indexing({joined(array.text, at, x, _latency(w))})")


PRODUCERS: dict[str, Producer] = {
    "cuda.tile.load": load, "cuda.tile.store": store, "cuda.tile.num_tiles": num_tiles, "cuda.tile.gather": gather,
    "cuda.tile.scatter": scatter, **{f"cuda.tile.atomic_{op}": atomic for op in MODES}, "cuda.tile.atomic_cas": swap,
    "cuda.tile.load_advanced_indexing": load_advanced, "cuda.tile.store_advanced_indexing": store_advanced,
    "cuda.tile.Slice": load_advanced,
}  # fmt: skip
