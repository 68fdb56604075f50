"""Which family of producers draws which rows of the rule table."""

from __future__ import annotations

from collections.abc import Callable

from fuzz.writer import Value, Writer
from transpiler.rules import Rule

Producer = Callable[[Writer, Rule], Value | None]
"""Writes a use of a row: statements, or an expression that the caller gives a name."""


def leaf(row: Rule) -> str:
    """The last part of a callee: ``add`` of ``cuda.tile.add``."""
    return row.callee.rpartition(".")[2]


def call(row: Rule, *arguments: str) -> str:
    """A call of a function of cuda.tile or of Python's own."""
    name = row.callee.replace("cuda.tile.", "ct.").removeprefix("builtins.")
    return f"{name}({', '.join(a for a in arguments if a)})"


def options(w: Writer, row: Rule, *dtypes: str) -> str:
    """The keyword arguments that the row's signature has, for operands of these dtypes."""
    floats = all(d in ("float16", "bfloat16", "float32", "float64") for d in dtypes)
    single = all(d == "float32" for d in dtypes)
    out = []
    if "rounding_mode" in row.signature and floats and w.draw.chance(35):
        modes: tuple[str, ...] = ("RN", "RZ", "RM", "RP")
        if leaf(row) in ("truediv", "exp", "tanh", "sqrt") and single:
            modes = {"truediv": (*modes, "FULL", "APPROX"), "sqrt": (*modes, "APPROX")}.get(
                leaf(row), ("FULL", "APPROX"))  # fmt: skip
        elif leaf(row) in ("exp", "tanh"):
            modes = ("FULL",)
        out.append(f"rounding_mode=ct.RoundingMode.{w.draw.pick(modes)}")
    if "flush_to_zero" in row.signature and single and w.draw.chance(35):
        out.append("flush_to_zero=True")
    if "propagate_nan" in row.signature and floats and w.draw.chance(35):
        out.append("propagate_nan=True")
    return ", ".join(out)
