"""Reductions and scans."""

from __future__ import annotations

from fuzz import dtypes as dt
from fuzz.families import Producer, call, options
from fuzz.values import shape, value
from fuzz.writer import Value, Writer
from transpiler.rules import Rule


def reduction(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick((*dt.NUMBERS, dt.BOOL)), shape(w, 1)
    axes = w.draw.some(range(len(of)))
    keep = w.draw.chance(40)
    given = _axes(w, axes, len(of))
    axes = axes or tuple(range(len(of)))
    kept = tuple(1 if i in axes else s for i, s in enumerate(of) if keep or i not in axes)
    extra = ", ".join(filter(None, (f"keepdims={keep}" if keep else "", options(w, row, dtype))))
    text = call(row, value(w, dtype, of).text, given, extra)
    return Value(text, "int32" if dtype == dt.BOOL else dtype, kept)


def _axes(w: Writer, axes: tuple[int, ...], rank: int) -> str:
    if not axes:
        return w.draw.pick(("", "axis=None"))
    shown = [a - rank if w.draw.chance(30) else a for a in axes]
    if len(axes) == 1 and w.draw.chance(70):
        return w.draw.pick((str(shown[0]), f"axis={shown[0]}"))
    return f"axis=({', '.join(map(str, shown))},)"


def scan(w: Writer, row: Rule) -> Value:
    dtype, of = w.draw.pick((*dt.NUMBERS, dt.BOOL)), shape(w, 1)
    axis = w.draw.number(-len(of), len(of) - 1)
    extra = ", ".join(filter(None, ("reverse=True" if w.draw.chance(40) else "", options(w, row, dtype))))
    return Value(call(row, value(w, dtype, of).text, f"axis={axis}", extra),
                 "int32" if dtype == dt.BOOL else dtype, of)  # fmt: skip


PRODUCERS: dict[str, Producer] = {
    **{f"cuda.tile.{fn}": reduction for fn in ("sum", "prod", "max", "min")}, "cuda.tile.cumsum": scan,
}  # fmt: skip
