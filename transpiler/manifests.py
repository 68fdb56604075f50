"""Writing manifests: corpora as compact, deterministic TOML that :mod:`transpiler.corpora` reads back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tomlkit
from tomlkit.items import InlineTable, Table

from transpiler.spec import (
    ArraySpec,
    ConstantSpec,
    Corpus,
    KernelManifest,
    ListSpec,
    OperatorManifest,
    ParamSpec,
    ScalarSpec,
    Specialization,
)

_FLOATS = {"inf", "-inf", "nan"}


def to_toml(corpus: Corpus, comment: str = "") -> str:
    """Return a corpus as TOML, defaults left out; ``comment`` becomes the head of the file."""
    document = tomlkit.document()
    for line in comment.splitlines():
        document.add(tomlkit.comment(line))
    document.add("name", tomlkit.item(corpus.name))
    if corpus.target != Corpus.model_fields["target"].default:
        document.add("target", tomlkit.item(corpus.target))
    if corpus.include:
        document.add("include", _column(corpus.include))
    if corpus.operators:
        operators = tomlkit.aot()
        for operator in corpus.operators:
            operators.append(_operator(operator))
        document.add("operators", operators)
    return tomlkit.dumps(document)


def _column(items: Iterable[str]) -> Any:
    array = tomlkit.array()
    for item in items:
        array.append(item)
    return array.multiline(True)


def _operator(operator: OperatorManifest) -> Table:
    table = tomlkit.table()
    table.add("name", operator.name)
    if operator.module is not None:
        table.add("module", operator.module)
    if operator.path is not None:
        table.add("path", operator.path)
    if operator.host_only:
        table.add("host_only", True)
    if operator.kernels:
        kernels = tomlkit.aot()
        for kernel in operator.kernels:
            kernels.append(_kernel(kernel))
        table.add("kernels", kernels)
    return table


def _kernel(kernel: KernelManifest) -> Table:
    table = tomlkit.table()
    table.add("name", kernel.name)
    if kernel.specializations:
        items = tomlkit.aot()
        for specialization in kernel.specializations:
            items.append(_specialization(specialization))
        table.add("specializations", items)
    return table


def _specialization(specialization: Specialization) -> Table:
    table = tomlkit.table()
    table.add("name", specialization.name)
    if specialization.target is not None:
        table.add("target", specialization.target)
    if specialization.grid is not None:
        table.add("grid", list(specialization.grid))
    hints = {k: v for k, v in specialization.hints.model_dump().items() if v is not None}
    if hints:
        table.add("hints", _inline(hints))
    for name, param in specialization.params.items():
        table.append(tomlkit.key(["params", name]), tomlkit.item(param_item(param)))
    return table


def param_item(param: ParamSpec) -> Any:
    """Return a parameter as a TOML value, in its shortest form."""
    if isinstance(param, ConstantSpec):
        plain = isinstance(param.value, bool | int | float) or param.value in _FLOATS
        return param.value if plain else _inline({"value": param.value})
    if isinstance(param, ScalarSpec):
        return param.dtype
    if isinstance(param, ArraySpec):
        return _inline(array_fields(param))
    assert isinstance(param, ListSpec)
    rest = {k: v for k, v in param.model_dump(exclude={"kind", "element"}).items() if v != _default(ListSpec, k)}
    return _inline({"element": array_fields(param.element), **rest})


def _inline(fields: dict[str, Any]) -> InlineTable:
    table = tomlkit.inline_table()
    for name, value in fields.items():
        table.append(name, _inline(value) if isinstance(value, dict) else list(value) if _is_list(value) else value)
    return table


def _is_list(value: object) -> bool:
    return isinstance(value, tuple | list)


def _default(model: Any, name: str) -> Any:
    return model.model_fields[name].default


def array_fields(array: ArraySpec) -> dict[str, Any]:
    """Return the fields of an array that aren't defaults, per-axis lists as short as the schema allows."""
    bare = ArraySpec(dtype=array.dtype, ndim=array.ndim, stride_constant=array.stride_constant)
    plain = ArraySpec(dtype=array.dtype, ndim=array.ndim)
    fields: dict[str, Any] = {"dtype": array.dtype, "ndim": array.ndim}
    for name in ArraySpec.model_fields:
        value = getattr(array, name)
        default = getattr(plain if name == "stride_constant" else bare, name)
        if name not in ("kind", "dtype", "ndim") and value != default:
            fields[name] = _short(value) if _is_list(value) and name != "alias_groups" else value
    return fields


def _short(values: tuple[int | None, ...]) -> int | list[int | str]:
    if len(set(values)) == 1 and values[0] is not None:
        return values[0]
    return ["?" if value is None else value for value in values]
