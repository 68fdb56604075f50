"""Selection: the Rust form of every TIR operation, one file a family."""

from __future__ import annotations

from transpiler.select import arith, atomics, cast, control, index, math, memory, mma, reduce, shape
from transpiler.select.forms import Form, Table

FAMILIES = (arith, math, memory, reduce, shape, mma, cast, index, control, atomics)
TABLE = Table(row for family in FAMILIES for row in family.ROWS)

__all__ = ["FAMILIES", "TABLE", "Form", "Table"]
