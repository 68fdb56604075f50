"""Recorded compilations as specializations: one per distinct signature, with short names unique per kernel."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from transpiler.spec import (
    ArraySpec,
    ConstantSpec,
    Hints,
    KernelManifest,
    ListSpec,
    OperatorManifest,
    ParamSpec,
    Specialization,
)

_KINDS = {"ArrayConstraint": "array", "ScalarConstraint": "scalar", "ConstantConstraint": "constant",
          "ListConstraint": "list"}  # fmt: skip
_SHORT = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "tfloat32": "tf32",
    "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e8m0fnu": "e8m0", "float4_e2m1fn": "e2m1",
    "bool_": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
_ITEM_SIZE = {"float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "float32": 4, "int32": 4, "uint32": 4,
              "tfloat32": 4, "float64": 8, "int64": 8, "uint64": 8}  # fmt: skip
_HINT_NAMES = {"num_ctas": "ctas", "occupancy": "occ", "num_worker_warps": "warps", "opt_level": "opt"}
_DEFAULT_OPT_LEVEL = 3


def operators_from_recording(compiles: Sequence[dict[str, Any]]) -> tuple[OperatorManifest, ...]:
    """Turn recorded compilations into operators, sorted by module and kernel, without duplicates.

    A recording has ``module``, ``kernel``, ``params`` (names), ``constraints`` and ``options``.
    """
    found: dict[str, dict[str, dict[str, Specialization]]] = {}
    for row in compiles:
        one = specialization(row)
        key = one.model_dump_json()
        found.setdefault(row["module"], {}).setdefault(row["kernel"], {})[key] = one
    return tuple(_operator(module, found[module]) for module in sorted(found))


def array_for(dtype: str, shape: Sequence[int], strides: Sequence[int] | None = None, base: int = 16) -> ArraySpec:
    """Describe an array as the reference's JIT does: sizes of 1 and unit strides baked in, divisors up to 16.

    Shapes are known to be divisible by 16 elements, strides by 16 bytes, or else not at all.
    """
    if strides is None:
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    whole = max(1, 16 // _ITEM_SIZE.get(dtype, 1))
    return ArraySpec(
        dtype=dtype,
        ndim=len(shape),
        shape_constant=tuple(1 if n == 1 else None for n in shape),
        stride_constant=tuple(1 if n == 1 else None for n in strides),
        shape_divisible_by=tuple(16 if n % 16 == 0 else 1 for n in shape),
        stride_divisible_by=tuple(whole if n != 1 and n % whole == 0 else 1 for n in strides),
        base_addr_divisible_by=base,
        may_alias_internally=overlaps(shape, strides),
    )


def overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements may share memory, as the reference's launcher says it.

    An axis steps over nothing, or over less than the axis with the next smaller stride covers.
    """
    covered = 1
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if stride <= 0 or stride < covered:
            return True
        covered = stride * size
    return False


def operator_name(module: str) -> str:
    """Return an operator's name: its module's last part."""
    return module.rpartition(".")[2]


def _operator(module: str, kernels: dict[str, dict[str, Specialization]]) -> OperatorManifest:
    manifests = [
        KernelManifest(name=name, specializations=named([items[key] for key in sorted(items)]))
        for name, items in sorted(kernels.items())
    ]
    return OperatorManifest(name=operator_name(module), module=module, kernels=tuple(manifests))


def specialization(row: dict[str, Any]) -> Specialization:
    """Return a recorded compilation as a specialization without a name."""
    params = {name: _param(c) for name, c in zip(row["params"], row["constraints"], strict=True)}
    hints = dict(row.get("options", {}))
    if hints.get("opt_level") == _DEFAULT_OPT_LEVEL:
        del hints["opt_level"]
    return Specialization.model_validate({"name": "", "params": params, "hints": hints, "grid": row.get("grid")})


def _param(constraint: dict[str, Any]) -> dict[str, Any]:
    fields = {**constraint, "kind": _KINDS.get(constraint["kind"], constraint["kind"])}
    if "element" in fields:
        fields["element"] = _param(fields["element"])
    return fields


def named(items: Sequence[Specialization]) -> tuple[Specialization, ...]:
    """Name the specializations of one kernel after what tells them apart, and sort them by name."""
    names: list[str] = [_dtype_tag(item) for item in items]
    for token in _tokens(items):
        crowded = {name for name in names if names.count(name) > 1}
        if not crowded:
            break
        texts = [token(item) for item in items]
        for name in sorted(crowded):
            group = [i for i, known in enumerate(names) if known == name]
            if len({texts[i] for i in group}) > 1:
                for i in group:
                    names[i] = f"{name}_{texts[i]}" if texts[i] else name
    unique = _numbered(names)
    renamed = [item.model_copy(update={"name": name}) for item, name in zip(items, unique, strict=True)]
    return tuple(sorted(renamed, key=lambda item: _natural(item.name)))


def _numbered(names: list[str]) -> list[str]:
    """Number what still has a name in common with another."""
    counts: dict[str, int] = {}
    result = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        result.append(name if names.count(name) == 1 else f"{name}_v{counts[name]}")
    return result


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort key that puts tile16 before tile128."""
    parts: list[tuple[int, str]] = []
    digits = ""
    for char in f"{name}\0":
        if char.isdigit():
            digits += char
            continue
        if digits:
            parts.append((int(digits), ""))
            digits = ""
        parts.append((-1, char))
    return parts


def _dtype_tag(item: Specialization) -> str:
    """Return the arrays' floating dtypes in order of appearance, without repetition (f16, or bf16_f32)."""
    arrays = [p if isinstance(p, ArraySpec) else p.element for p in item.params.values()
              if isinstance(p, ArraySpec | ListSpec)]  # fmt: skip
    tags = list(dict.fromkeys(_SHORT[a.dtype] for a in arrays))
    if len(tags) > 1 and tags[1:] == ["f32"]:
        return tags[0]
    return "_".join(tags) or "scalar"


def _tokens(items: Sequence[Specialization]) -> list[Callable[[Specialization], str]]:
    """Return what may tell specializations apart, the most telling first: constants, hints, then array facts."""
    params = list(dict.fromkeys(name for item in items for name in item.params))
    tokens: list[Callable[[Specialization], str]] = []
    tokens += [lambda item, p=p: _constant_token(p, item.params.get(p)) for p in params]  # type: ignore[misc]
    tokens += [lambda item, h=h: _hint_token(h, item.hints) for h in Hints.model_fields]  # type: ignore[misc]
    tokens += [lambda item, p=p: _shape_token(p, item.params.get(p)) for p in params]  # type: ignore[misc]
    tokens += [lambda item, p=p: _fact_token(p, item.params.get(p)) for p in params]  # type: ignore[misc]
    return tokens


def _constant_token(name: str, param: ParamSpec | None) -> str:
    if not isinstance(param, ConstantSpec):
        return ""
    value = int(param.value) if isinstance(param.value, bool) else param.value
    return f"{_initials(name)}{value}"


def _initials(name: str) -> str:
    """Shorten a parameter's name: TILE_SIZE_M to tsm; one word stays."""
    words = [word for word in name.lower().split("_") if word]
    return words[0] if len(words) == 1 else "".join(word[0] for word in words)


def _hint_token(name: str, hints: Hints) -> str:
    value = getattr(hints, name)
    return "" if value is None else f"{_HINT_NAMES[name]}{value}".replace(" ", "")


def _shape_token(name: str, param: ParamSpec | None) -> str:
    """Return an array's shape facts: 1 for a baked-in 1, d16 for a known divisor, r for a ragged axis."""
    if not isinstance(param, ArraySpec):
        return ""
    axes = zip(param.shape_constant, param.shape_divisible_by, strict=True)
    return f"{_initials(name)}_" + "x".join(str(c) if c is not None else f"d{d}" if d > 1 else "r" for c, d in axes)


def _fact_token(name: str, param: ParamSpec | None) -> str:
    """Return an array's remaining facts: strides and the base address."""
    if not isinstance(param, ArraySpec):
        return ""
    axes = zip(param.stride_constant, param.stride_divisible_by, strict=True)
    strides = "x".join(str(c) if c is not None else f"d{d}" if d > 1 else "r" for c, d in axes)
    return f"{_initials(name)}_strides_{strides}_base{param.base_addr_divisible_by}"


def load_recording(text: str) -> list[dict[str, Any]]:
    """Return the compilations of a recording's JSON text."""
    compiles: list[dict[str, Any]] = json.loads(text)["compiles"]
    return compiles
