"""Rust names: conventions, keywords, and names of generated const generics."""

from __future__ import annotations

import re
from collections.abc import Container

from transpiler.identifiers import KEYWORDS, snake
from transpiler.ir.symbolic import LEAVES, Sym

_TYPES = """
    Self Option Some None Result Ok Err Box Vec String Arc HashMap Future IntoFuture Iterator Copy Clone Debug Default
    Send Sync Sized Drop From Into Array Context CompileOptions Device DeviceError DeviceFuture DeviceOp ElementType
    Partition PartitionMut PointerTile Scalar Shape Specialization Stream Tensor Tile TileFunctionKey TileKernel Token
    ModuleAstFn KernelInput
"""
_WORDS = {"add": "PLUS", "sub": "MINUS", "mul": "TIMES", "floordiv": "DIV", "mod": "MOD", "lshift": "SHL",
          "rshift": "SHR", "pow": "POW"}  # fmt: skip


def function_name(name: str) -> str:
    """A Python function's name as a Rust one: without leading underscores (they would mark it as unused)."""
    text = snake(name).strip("_")
    return f"{text}_" if text in KEYWORDS else text


LAUNCHERS = frozenset(map(snake, _TYPES.split())) | {"self_"}
"""Names of entries of which cutile's launcher would have the name of a type: `Option` for `option`."""


def upper(name: str) -> str:
    """A Python name as a const generic: upper snake case."""
    text = snake(name).upper().strip("_")
    return text or "N"


def unique(base: str, taken: Container[str]) -> str:
    """``base``, or the first of ``base_1``, ``base_2``.. that is free."""
    if base not in taken:
        return base
    i = 1
    stem = base.rstrip("_")
    while f"{stem}_{i}" in taken:
        i += 1
    return f"{stem}_{i}"


def describe(sym: Sym) -> str:
    """A const generic's name for a derived expression that the author gave no name."""
    if sym.op == "lit":
        return re.sub(r"\W", "_", str(sym.args[0]).replace("-", "MINUS_"))
    if sym.op == "param":
        return upper(str(sym.args[0]))
    if sym.op in ("dim", "stride"):
        return f"{upper(str(sym.args[0]))}_{'D' if sym.op == 'dim' else 'S'}{sym.args[1]}"
    if sym.op in LEAVES:
        return f"{upper(str(sym.args[0]))}_{sym.op.upper()}"
    parts = [describe(a) for a in sym.args]
    word = _WORDS.get(sym.op)
    text = f"_{word}_".join(parts) if word and len(parts) == 2 else "_".join([sym.op.strip("_").upper(), *parts])
    if len(text) > 40:
        return "DERIVED"
    return f"N_{text}" if text[:1].isdigit() else text


__all__ = ["KEYWORDS", "LAUNCHERS", "describe", "function_name", "snake", "unique", "upper"]
