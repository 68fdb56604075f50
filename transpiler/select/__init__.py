"""Selection: the Rust form of every TIR operation, one file a family."""

from __future__ import annotations

import re

from transpiler.select import arith, atomics, cast, control, index, math, memory, mma, promoted, reduce, shape
from transpiler.select.forms import Form, Table

FAMILIES = (arith, math, memory, reduce, shape, mma, cast, index, control, atomics, promoted)
TABLE = Table(row for family in FAMILIES for row in family.ROWS)

SURFACE = frozenset(
    name
    for rows in TABLE.rows.values()
    for row in rows
    for name in re.findall(r"\b([a-z_]\w*)(?:::<[^>]*>)?\(", row.template)
)
"""The functions of the kernel language that forms call: no function of ours may hide one."""

__all__ = ["FAMILIES", "SURFACE", "TABLE", "Form", "Table"]
