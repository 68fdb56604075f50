"""What the in-process compiler is given for one check: generics, strides and facts of a specialization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transpiler.emit.abi import CompileInputs, EntryAbi, Generic
from transpiler.ir.symbolic import evaluate
from transpiler.ir.types import DTYPE_TABLE
from transpiler.spec import ArraySpec, ListSpec, Specialization
from transpiler.specialize.conditions import leaf_values

_MAX_DIVISOR = 1024


def generic_value(generic: Generic, values: Mapping[tuple[Any, ...], Any]) -> str:
    """A generic's value as the compiler and rustc write it."""
    value = evaluate(generic.value, values)
    if generic.kind == "type":
        return DTYPE_TABLE[value][0]
    if generic.kind == "bool":
        return str(bool(value)).lower()
    return str(-1 if value is None else int(value))


def divisor(d: int) -> int:
    """The power of two in a known divisor, as far as the reference uses it."""
    return min(d & -d, _MAX_DIVISOR) if d else _MAX_DIVISOR


def _stride_divisor(p: ArraySpec, axis: int, viewed: bool) -> int:
    """A stride's divisor; that of an axis of size 1 addresses nothing, so views call it 16-byte aligned."""
    known = divisor(p.stride_divisible_by[axis])
    bits = max(DTYPE_TABLE[p.dtype][1], 8)  # a bool is a byte
    return max(known, 128 // bits) if viewed and p.shape_constant[axis] == 1 else known


def compile_inputs(entry: EntryAbi, spec: Specialization, target: str) -> CompileInputs:
    """Evaluate an entry's generics, collect the facts about its arguments, resolve the hints for ``target``."""
    values = leaf_values(spec)
    strides: list[tuple[str, tuple[int, ...]]] = []
    specs: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = []
    for argument in entry.arguments:
        p = spec.params[argument.source]
        if isinstance(p, ListSpec):  # a table of words: pointer, dims and strides of each array
            strides.append((argument.name, (1 + 2 * p.element.ndim, 1)))
        if argument.kind != "tensor" or not isinstance(p, ArraySpec):
            continue
        strides.append((argument.name, tuple(-1 if s is None else s for s in p.stride_constant)))
        specs.append(
            (
                argument.name,
                tuple(map(divisor, p.shape_divisible_by)),
                tuple(_stride_divisor(p, axis, argument.viewed) for axis in range(p.ndim)),
                divisor(p.base_addr_divisible_by),
            )
        )
    hints = spec.hints
    return CompileInputs(
        entry=entry.name,
        generics=tuple(generic_value(g, values) for g in entry.generics),
        strides=tuple(strides),
        specs=tuple(specs),
        scalar_hints=(),
        occupancy=hints.resolved("occupancy", target),
        num_ctas=hints.num_ctas,
        num_worker_warps=hints.num_worker_warps,
    )
