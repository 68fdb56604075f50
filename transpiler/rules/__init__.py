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
        reduce,
        shape,
        views,
    )

    families = (advanced, arith, atomics, cast, debug, index, lists, math, memory, mma, reduce, shape, views)
    return Table(
        dataclasses.replace(row, family=module.__name__.rpartition(".")[2])
        for module in families
        for row in module.ROWS
    )


__all__ = ["Rule", "Table", "table"]
