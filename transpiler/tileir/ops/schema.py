"""Every Tile IR operation that the judge knows: what it may print, what kind it is, and what it computes.

The parser accepts nothing that is not declared in these tables, so that a construct that the comparison
doesn't understand is an error and never silently ignored.  Each family's file has schema and semantics of
its operations side by side (:class:`~.row.Row`); nothing here imports NumPy before something is executed.
Kinds:

- ``pure``: the result depends on operands and attributes alone (the specification says so of each);
- ``token``: pure operations on tokens;
- ``memory``: loads, stores and atomics, ordered by tokens; a ``weak`` load is a value, all else an effect;
- ``effect``: other observable operations (print, assert, grid dependency control);
- ``control``: structured control flow and terminators; ``assume``: transparent, carries a fact.
"""

from __future__ import annotations

from transpiler.tileir.ops import (
    atomics,
    cast,
    compare,
    control,
    debug,
    floating,
    integer,
    math,
    mma,
    pointers,
    reduce,
    shape,
    sizes,
    tokens,
    views,
)
from transpiler.tileir.ops.row import EXACT as EXACT
from transpiler.tileir.ops.row import Kind as Kind
from transpiler.tileir.ops.row import Row
from transpiler.tileir.ops.row import Schema as Schema
from transpiler.tileir.ops.row import Tolerance as Tolerance

_COMPARISONS = ("equal", "not_equal", "less_than", "less_than_or_equal", "greater_than", "greater_than_or_equal")
_ORDERINGS = ("weak", "relaxed", "acquire", "release", "acq_rel")
_ATOMICS = ("and", "or", "xor", "add", "addf", "max", "min", "umax", "umin", "xchg")

WORDS: dict[str, str] = {
    **dict.fromkeys(("signed", "unsigned"), "signedness"),
    **dict.fromkeys(_COMPARISONS, "predicate"),
    **dict.fromkeys(("ordered", "unordered"), "nan_order"),
    **dict.fromkeys(_ORDERINGS, "ordering"),
    **dict.fromkeys(("tl_blk", "device", "sys"), "scope"),
    **dict.fromkeys(_ATOMICS, "mode"),
    "flush_to_zero": "flush_to_zero",
    "propagate_nan": "propagate_nan",
    "fast_acc": "fast_acc",
}
"""A bare word in an operation's text -> the attribute that it sets."""

FAMILIES = {
    "floating": floating.ROWS,
    "math": math.ROWS,
    "integer": integer.ROWS,
    "compare": compare.ROWS,
    "cast": cast.ROWS,
    "shape": shape.ROWS,
    "mma": mma.ROWS,
    "reduce": reduce.ROWS,
    "sizes": sizes.ROWS,
    "pointers": pointers.ROWS,
    "views": views.ROWS,
    "atomics": atomics.ROWS,
    "tokens": tokens.ROWS,
    "debug": debug.ROWS,
    "control": control.ROWS,
}
"""The families of operations, by their file's name."""

ROWS: dict[str, Row] = {name: row for family in FAMILIES.values() for name, row in family.items()}
"""Operation name -> schema, semantics and tolerance."""

SCHEMAS: dict[str, Schema] = {name: row.schema for name, row in ROWS.items()}
"""Operation name -> schema."""

TERMINATORS = frozenset({"yield", "continue", "break", "return"})
REGION_LAMBDAS = frozenset({"reduce", "scan"})
