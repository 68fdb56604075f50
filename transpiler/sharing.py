"""Which specializations take a path that is known already, so that they share its program without specializing again.

What a kernel becomes depends on its decisions (recorded as conditions), and on what its type says: ranks, dtypes that
no entry is generic in, static dims and strides.  Constants count through the decisions alone.  The judge compares
every check with the reference for its own values, so a decision that wasn't recorded shows as a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transpiler.emit.entry import EmittedEntry
from transpiler.ir.symbolic import evaluate, identical
from transpiler.ir.tir import Condition, Kernel
from transpiler.ir.types import GENERIC_CLASS
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ParamSpec, ScalarSpec, Specialization
from transpiler.specialize.conditions import leaf_values

Shared = tuple[Kernel, EmittedEntry]


class Sharing:
    """The programs of an operator's kernels so far, by the type of their arguments."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], list[Shared]] = {}

    def find(self, kernel: str, one: Specialization) -> Shared | None:
        """Return the program of a specialization of the same type for which every decision falls the same way."""
        candidates = self._known.get(_key(kernel, one))
        if not candidates:
            return None
        values = leaf_values(one)
        return next((c for c in candidates if all(_holds(condition, values) for condition in c[1].conditions)), None)

    def add(self, kernel: str, one: Specialization, program: Kernel, emitted: EmittedEntry) -> None:
        """Remember a program."""
        self._known.setdefault(_key(kernel, one), []).append((program, emitted))


def _holds(condition: Condition, values: Mapping[tuple[Any, ...], Any]) -> bool:
    try:
        outcome = evaluate(condition.sym, values)
    except (KeyError, ArithmeticError, TypeError, ValueError):
        return False
    return identical(outcome, condition.outcome)


def _key(kernel: str, one: Specialization) -> tuple[Any, ...]:
    return kernel, *((name, *_type(param)) for name, param in one.params.items())


def _type(param: ParamSpec) -> tuple[Any, ...]:
    match param:
        case ArraySpec():
            return _array_type(param)
        case ScalarSpec(dtype=dtype):
            return "scalar", dtype
        case ConstantSpec(value=value):
            return "constant", type(value).__name__, value if isinstance(value, str) else None
        case ListSpec():
            return "list", *_array_type(param.element), param.alias_groups, param.elements_may_alias


def _array_type(array: ArraySpec) -> tuple[Any, ...]:
    dtype = "generic" if array.dtype in GENERIC_CLASS else array.dtype
    return ("array", array.ndim, array.index_dtype, dtype, array.shape_constant, array.stride_constant,
            array.alias_groups, array.may_alias_internally)  # fmt: skip
