"""Worker side: a specialization's plain data as the constraints and hints of ``cuda.tile.compilation``."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from cuda import tile
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ListConstraint,
    ScalarConstraint,
)

_FLOATS = {"inf": float("inf"), "+inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


class SpecializationError(Exception):
    """A specialization that doesn't fit the kernel."""


def signature(kernel: Any, params: dict[str, dict[str, Any]]) -> Any:
    """Return the kernel's signature for a specialization, with the mangled symbol filled in."""
    names = list(kernel._annotated_function.pysig.parameters)
    missing = [name for name in names if name not in params]
    unknown = [name for name in params if name not in names]
    if missing or unknown:
        parts = [f"it lacks {', '.join(missing)}"] * bool(missing) + [f"{', '.join(unknown)} unknown"] * bool(unknown)
        raise SpecializationError(f"the parameters don't match the kernel's: {'; '.join(parts)}")
    constraints = [_constraint(name, params[name]) for name in names]
    try:
        plain = KernelSignature(constraints, CallingConvention.cutile_python_v2())
        return plain.with_mangled_symbol(kernel._annotated_function.pyfunc.__name__)
    except (TypeError, ValueError, NotImplementedError) as exc:
        raise SpecializationError(str(exc)) from exc


def with_hints(kernel: Any, hints: dict[str, Any]) -> Any:
    """Return the kernel with the specialization's hints in the place of the decorator's."""
    given = {name: _hint(name, value) for name, value in hints.items() if value is not None}
    if not given:
        return kernel
    try:
        return kernel.replace_hints(**given)
    except (TypeError, ValueError) as exc:
        raise SpecializationError(f"hints: {exc}") from exc


def hints_of(kernel: Any) -> dict[str, Any]:
    """Return a kernel's hints as plain data, target-dependent ones as text."""
    values = dataclasses.asdict(kernel._compiler_options)
    return {k: v if v is None or isinstance(v, int) else repr(v) for k, v in values.items()}


def _constraint(name: str, spec: dict[str, Any]) -> Any:
    try:
        kind = spec["kind"]
        if kind == "array":
            return _array(spec)
        if kind == "scalar":
            return ScalarConstraint(_dtype(spec["dtype"]))
        if kind == "list":
            return ListConstraint(
                _array(spec["element"]),
                alias_groups=spec["alias_groups"],
                elements_may_alias=spec["elements_may_alias"],
            )
        return ConstantConstraint(_constant(spec["value"]))
    except (TypeError, ValueError, KeyError, AttributeError) as exc:
        raise SpecializationError(f"parameter `{name}`: {exc}") from exc


def _array(spec: dict[str, Any]) -> Any:
    fields = {k: v for k, v in spec.items() if k not in ("kind", "dtype", "ndim", "index_dtype")}
    return ArrayConstraint(_dtype(spec["dtype"]), spec["ndim"], index_dtype=_dtype(spec["index_dtype"]), **fields)


def _dtype(name: str) -> Any:
    return getattr(tile, name)


def _constant(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value in _FLOATS:
        return _FLOATS[value]
    raise ValueError(f'"{value}" is a string: constants of cuTile Python are numbers and bools')


def _hint(name: str, value: Any) -> Any:
    """Read a hint; text is ``ByTarget(sm_80=2, default=4)`` as the decorator would say it."""
    if not isinstance(value, str):
        return value
    try:
        call = ast.parse(value, mode="eval").body
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("ByTarget") and not call.args:
            return tile.ByTarget(**{str(k.arg): ast.literal_eval(k.value) for k in call.keywords})
        return ast.literal_eval(call)
    except (SyntaxError, ValueError, TypeError) as exc:
        raise SpecializationError(f"hint `{name}`: can't read `{value}`") from exc
