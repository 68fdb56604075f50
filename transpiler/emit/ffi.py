"""ffi.rs of an operator: one C symbol a kernel, and the table by which a call finds its entry."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from transpiler.diagnostics import error
from transpiler.emit.abi import Argument, EntryAbi, Generic, KernelAbi
from transpiler.emit.format import rustfmt
from transpiler.emit.naming import unique, upper
from transpiler.emit.render import render_template
from transpiler.emit.rust_values import Scope, conjunction, to_rust
from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import Condition
from transpiler.ir.types import DTYPE_TABLE, GENERIC_CLASS
from transpiler.specialize.conditions import condition_text, necessary

_TENSOR = re.compile(r"^&\s*Tensor\s*<\s*(\w+)\s*,\s*\{\s*\[(.*)\]\s*\}\s*>$")
# Rust name of an element type -> variant of the support crate's DType.
VARIANTS = {rust: rust.upper() if rust != "bool" else "Bool" for rust, *_ in DTYPE_TABLE.values()}


def render_ffi(operator: str, abis: Sequence[KernelAbi], module: str) -> str:
    """Render ffi.rs of an operator whose kernels are in ``kernel::<module>``."""
    kernels = []
    taken: set[str] = {"PROGRAM"}
    for abi in abis:
        table = unique(upper(abi.kernel), taken)
        taken.add(table)
        kernels.append(
            {
                "name": abi.kernel,
                "symbol": abi.symbol,
                "table": table,
                "arrays": _names(abi, "array"),
                "scalars": _names(abi, "scalar"),
                "constants": _names(abi, "constant"),
                "opt_levels": _opt_levels(abi.hints.get("opt_level")),
                "entries": [_entry(abi, entry) for entry in specific_first(abi.entries)],
            }
        )
    text = render_template("ffi.rs.j2", operator=operator, module=module, kernels=kernels, uses=_uses(kernels))
    return rustfmt(text)


def check_kernel(abi: KernelAbi) -> None:
    """Raise E0620 when a kernel can't be called through the C interface."""
    for entry in abi.entries:
        _entry(abi, entry)


def specific_first(entries: Sequence[EntryAbi]) -> list[EntryAbi]:
    """Order entries by the number of conditions, most first; equal ones stay in order."""
    return sorted(entries, key=lambda e: -min(map(len, e.alternatives or (e.conditions,))))


def _names(abi: KernelAbi, role: str) -> str:
    return ", ".join(f'"{name}"' for name, r in abi.parameters if r == role)


def places(abi: KernelAbi) -> dict[str, tuple[str, int]]:
    """Return each parameter's kind and its position among the parameters of that kind."""
    counts: dict[str, int] = {}
    out: dict[str, tuple[str, int]] = {}
    for name, role in abi.parameters:
        out[name] = (role, counts.get(role, 0))
        counts[role] = counts.get(role, 0) + 1
    return out


def _opt_levels(hint: Any) -> str:
    if hint is None:
        return ""
    by_target = hint if isinstance(hint, dict) else {"default": hint}
    return ", ".join(f'("{target}", {level})' for target, level in sorted(by_target.items()))


def _uses(kernels: Sequence[dict[str, Any]]) -> list[str]:
    """Name what of the support module the tables use."""
    text = " ".join(str(kernel["entries"]) for kernel in kernels)
    functions = [
        name for name in ("count", "dtype", "extent", "flag", "size") if re.search(rf"\b(?<![.:]){name}\(", text)
    ]
    lines = [f"use crate::support::choose::{{{', '.join(functions)}}};"] if functions else []
    if "py::" in text:
        lines.append("use crate::support::py;")
    types = [name for name in ("DType", "Element", "Entry", "Extent", "Generic", "Param") if f"{name}::" in text]
    types += ["Entry"] if "Entry {" in text and "Entry" not in types else []
    names = ", ".join(sorted({*types, "Kernel", "Launch", "Program", "RawValue", "TensorDesc", "self"}, key=_order))
    return [*lines, f"use crate::support::{{{names}}};"]


def _order(name: str) -> tuple[bool, str]:
    return name != "self", name


# -- Entries ------------------------------------------------------------------------------------------


def _entry(abi: KernelAbi, entry: EntryAbi) -> str:
    scope = Scope(places(abi))
    positions = {g.name: i for i, g in enumerate(entry.generics)}
    generics = ", ".join(_generic(g, scope) for g in entry.generics)
    params = ", ".join(_param(a, scope_index(abi, a), positions) for a in entry.arguments)
    return (
        f'Entry {{ name: "{entry.name}", when: {to_rust(Sym("lit", (_when(entry),)), str)}, '
        f"applies: {_applies(entry, scope)}, generics: &[{generics}], params: &[{params}] }}"
    )


def scope_index(abi: KernelAbi, argument: Argument) -> int:
    """Return the position of an argument's source among the parameters of its kind."""
    return places(abi)[argument.source][1]


def _when(entry: EntryAbi) -> str:
    texts = list(dict.fromkeys(condition_text(path) for path in entry.alternatives or (entry.conditions,)))
    return texts[0] if len(texts) == 1 else " or ".join(f"({text})" for text in texts)


def _applies(entry: EntryAbi, scope: Scope) -> str:
    common = entry.conditions
    rest = [tuple(c for c in necessary(path) if c not in common) for path in entry.alternatives]
    groups = [] if not all(rest) else list(dict.fromkeys(rest))
    shared: tuple[Condition, ...] = necessary(common)
    syms = [c.sym for group in (shared, *groups) for c in group]

    def body(leaf: Any) -> str:
        parts = [conjunction(shared, leaf)] if shared or not groups else []
        if groups:
            either = " || ".join(f"({conjunction(g, leaf)})" if len(g) > 1 else conjunction(g, leaf) for g in groups)
            parts.append(f"({either})" if len(groups) > 1 and parts else either)
        return " && ".join(parts)

    return scope.closure(syms, body)


def _generic(generic: Generic, scope: Scope) -> str:
    match generic.kind:
        case "type":
            known = ", ".join(f"DType::{VARIANTS[DTYPE_TABLE[name][0]]}" for name in GENERIC_CLASS)
            value = scope.closure([generic.value], lambda leaf: f"dtype({to_rust(generic.value, leaf)})")
            return f'Generic::Type("{generic.name}", &[{known}], {value})'
        case "i32":
            read = "extent" if generic.value.op == "dim" else "count" if generic.no_bool else "size"
            value = scope.closure([generic.value], lambda leaf: f"{read}({to_rust(generic.value, leaf)})")
            return f'Generic::Size("{generic.name}", {value})'
        case "bool":
            value = scope.closure([generic.value], lambda leaf: f"flag({to_rust(generic.value, leaf)})")
            return f'Generic::Flag("{generic.name}", {value})'


def _param(argument: Argument, index: int, positions: dict[str, int]) -> str:
    if argument.kind == "scalar":
        dtype = VARIANTS[argument.rust_type]
        return f'Param::Scalar {{ name: "{argument.name}", index: {index}, dtype: DType::{dtype} }}'
    element, extents = tensor_type(argument)
    if argument.items is not None:
        element, rank = argument.items
    kind = f"Generic({positions[element]})" if element in positions else f"Fixed(DType::{VARIANTS[element]})"
    if argument.items is not None:
        return f'Param::List {{ name: "{argument.name}", index: {index}, element: Element::{kind}, rank: {rank} }}'
    texts = ", ".join(f"Extent::{_extent(e, positions)}" for e in extents)
    viewed = str(argument.viewed).lower()
    return (
        f'Param::Array {{ name: "{argument.name}", index: {index}, element: Element::{kind}, extents: &[{texts}], '
        f"viewed: {viewed}, dynamic_strides: &[{', '.join(map(str, argument.dynamic_strides))}] }}"
    )


def tensor_type(argument: Argument) -> tuple[str, tuple[str, ...]]:
    """Return the element and the extents in the type of an array argument, as they are written."""
    match = _TENSOR.match(argument.rust_type)
    if match is None:
        raise error("E0620", f"`{argument.name}: {argument.rust_type}` can't be passed through the C interface")
    return match[1], tuple(e.strip() for e in match[2].split(",") if e.strip())


def _extent(text: str, positions: dict[str, int]) -> str:
    if text == "-1":
        return "Dynamic"
    return f"Generic({positions[text]})" if text in positions else f"Static({int(text)})"
