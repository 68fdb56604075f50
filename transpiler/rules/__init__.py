"""The rule table: one file a family, one declarative row a construct."""

from __future__ import annotations

import dataclasses
import functools

from transpiler.rules.registry import Rule, Table


@functools.cache
def table() -> Table:
    """All rows; raises ValueError when two of them match the same call."""
    from transpiler.rules import (
        advanced,
        arith,
        atomics,
        cast,
        debug,
        index,
        lists,
        math,
        memory,
        mma,
        promoted,
        reduce,
        shape,
        views,
    )

    families = (advanced, arith, atomics, cast, debug, index, lists, math, memory, mma, reduce, shape, views, promoted)
    known = {row.callee for row in promoted.ROWS}  # they stand in the place of rows that said `unsupported`
    return Table(
        dataclasses.replace(row, family=module.__name__.rpartition(".")[2])
        for module in families
        for row in module.ROWS
        if row.status == "exact" or row.callee not in known
    )


__all__ = ["Rule", "Table", "table"]
