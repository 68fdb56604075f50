"""_bindings.py of an operator: its kernels as Python objects, and a launch function for each."""

from __future__ import annotations

import json
import keyword
from collections.abc import Mapping, Sequence
from typing import Any

from transpiler.emit.abi import EntryAbi, KernelAbi
from transpiler.emit.author import Function
from transpiler.emit.ffi import tensor_type
from transpiler.emit.naming import unique
from transpiler.emit.render import render_template
from transpiler.ir.types import DTYPE_TABLE, GENERIC_CLASS

_DECORATED = ("num_ctas", "occupancy", "opt_level", "num_worker_warps")
_OWN = ("stream", "grid", "programmatic_dependent_launch", "hints", "kernel", "args")
_BY_RUST = {rust: name for name, (rust, *_) in DTYPE_TABLE.items()}


def render_bindings(
    operator: str, abis: Sequence[KernelAbi], left_out: str = "", functions: Mapping[str, Function] | None = None,
    origin: str = "",
) -> str:  # fmt: skip
    """Render the bindings of an operator's kernels; ``left_out`` says why the library doesn't have them.

    ``functions`` are the author's functions of the kernels, in the module ``origin``.
    """
    known = functions or {}
    kernels = [
        {
            "name": abi.kernel,
            "symbol": abi.symbol,
            "parameters": [_parameter(abi, name, role) for name, role in abi.parameters],
            "names": _argument_names(abi),
            "decorated": _dict(decorated) if (decorated := _decorated(abi)) else "",
            "about": _about(known[abi.kernel], origin) if abi.kernel in known else [],
        }
        for abi in abis
    ]
    parameters = [_parameter(abi, name, role) for abi in abis for name, role in abi.parameters]
    uses = sorted({*(["Kernel"] if abis else []), *(text.partition("(")[0] for text in parameters)})
    text = render_template(
        "bindings.py.j2", operator=operator, kernels=kernels, uses=", ".join(uses),
        left_out=json.dumps(left_out, ensure_ascii=False) if left_out else "",
    )  # fmt: skip
    return text.rstrip() + "\n"


def _decorated(abi: KernelAbi) -> dict[str, Any]:
    return {name: abi.hints[name] for name in _DECORATED if abi.hints.get(name) is not None}


def _dict(items: Mapping[str, Any]) -> str:
    values = (_dict(value) if isinstance(value, dict) else repr(value) for value in items.values())
    return "{" + ", ".join(f'"{name}": {value}' for name, value in zip(items, values, strict=True)) + "}"


def _about(function: Function, origin: str) -> list[str]:
    """What the object shows of the author's function, as lines of arguments."""
    lines = [f'origin="{origin}:{function.qualname}",'] if origin else []
    if function.signature:
        lines.append(f"signature={_text(function.signature)},")
    if function.doc is not None and "\n" not in function.doc:
        lines.append(f"doc={_text(function.doc)},")
    elif function.doc is not None:
        lines += ["doc=(", *(f"    {_text(line)}" for line in function.doc.splitlines(keepends=True)), "),"]
    return lines


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _argument_names(abi: KernelAbi) -> list[str]:
    """The author's names, but for those that the launch function has itself."""
    names: list[str] = []
    for name, _ in abi.parameters:
        free = name if name.isidentifier() and not keyword.iskeyword(name) else "argument"
        names.append(unique(free, {*names, *_OWN, abi.kernel}))
    return names


def _parameter(abi: KernelAbi, name: str, role: str) -> str:
    if role != "array":
        return f'{role.capitalize()}("{name}")'
    ranks = sorted({rank for entry in abi.entries for rank in _ranks(entry, name)})
    dtypes = {dtype for entry in abi.entries for dtype in _dtypes(entry, name)}
    ordered = tuple(dtype for dtype in DTYPE_TABLE if dtype in dtypes)
    is_list = any(a.kind == "list" for entry in abi.entries for a in entry.arguments if a.source == name)
    return f'{"List" if is_list else "Array"}("{name}", ranks={_tuple(ranks)}, dtypes={_tuple(ordered)})'


def _tuple(items: Sequence[object]) -> str:
    texts = [f'"{item}"' if isinstance(item, str) else str(item) for item in items]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _ranks(entry: EntryAbi, source: str) -> list[int]:
    arguments = [a for a in entry.arguments if a.kind != "scalar" and a.source == source]
    return [a.items[1] if a.items is not None else len(tensor_type(a)[1]) for a in arguments]


def _dtypes(entry: EntryAbi, source: str) -> list[str]:
    arguments = [a for a in entry.arguments if a.kind != "scalar" and a.source == source]
    elements = [a.items[0] if a.items is not None else tensor_type(a)[0] for a in arguments]
    generic = {g.name for g in entry.generics if g.kind == "type"}
    return [dtype for e in elements for dtype in (GENERIC_CLASS if e in generic else (_BY_RUST[e],))]
