"""One entry: the function, its ABI, and the key under which equal entries are one."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from typing import Any

from transpiler.diagnostics import Diagnostic
from transpiler.emit.abi import Argument, EntryAbi, Generic
from transpiler.emit.functions import Function, Functions, called, dedent, with_mut
from transpiler.emit.generics import Generics, declared
from transpiler.emit.lower import Lowering
from transpiler.emit.naming import snake
from transpiler.emit.outline import outline
from transpiler.emit.scopes import Key, name_variables
from transpiler.ir import rust
from transpiler.ir.construct import FilledSite, Fragments, HoleSite
from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import ArrayUse, Condition, Kernel
from transpiler.ir.trace import RuleTrace, joined
from transpiler.ir.types import DType
from transpiler.select import TABLE, Table
from transpiler.select.declarations import DECLARATIONS

_FUNCTION_SIZE = r"A\d+"  # a size of an array that a function takes
_SUPPORTED_SCALARS = ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                      "bfloat16", "float32", "float64")  # fmt: skip


@dataclass(frozen=True)
class EmittedEntry:
    """An entry without its name. ``key`` is its text: entries with equal keys are one.

    ``literals`` are conditions that the text adds to the kernel's own: constants that it fixes.
    """

    kernel: str
    key: str
    function: rust.Fn
    names: dict[Key, str]
    generics: tuple[Generic, ...]
    arguments: tuple[Argument, ...]
    conditions: tuple[Condition, ...]
    declarations: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    functions: tuple[Function, ...] = ()
    arrays: dict[str, ArrayUse] = field(default_factory=dict)
    trace: RuleTrace = field(default_factory=RuleTrace, compare=False)
    sites: tuple[HoleSite, ...] = field(default=(), compare=False)
    filled: tuple[FilledSite, ...] = field(default=(), compare=False)

    def abi(self, name: str) -> EntryAbi:
        """The entry's ABI under a name."""
        return EntryAbi(name, self.conditions, self.generics, self.arguments, body=self._body())

    def _body(self) -> str:
        """A digest of the text with all sizes of array types dynamic."""
        names = [g.name for g in self.generics if g.value.op == "dim"]
        sizes = rf"\b(?:{'|'.join([*names, _FUNCTION_SIZE])})\b"
        text = re.sub(rf"\n{sizes}: .*", "", self.key)
        text = re.sub(rf"const {sizes}: i32(, )?", "", " ".join(text.split()))
        text = re.sub(r"(@\w+)::<[^()]*>(?=\()", r"\1", re.sub(sizes, "-1", text))  # the types of results are written
        return hashlib.sha256(re.sub(r"[ ,]+(?=[>)])|(?<=[<(=]) +", "", text).encode()).hexdigest()


def emit_entry(
    kernel: Kernel, name: str = "", forms: Table = TABLE, fragments: Fragments | None = None
) -> EmittedEntry:
    """Translate one residual program. ``name`` is what the function is called (the kernel's name if empty).

    ``forms`` is what selection chooses from; ``fragments`` fill operations that it has no row for.
    """
    generics = Generics(kernel)
    functions = Functions(forms=forms, fragments=fragments or {})
    lowering = Lowering(kernel, generics, outline(kernel).body, functions, False)
    body = lowering.run()
    params = [("param", n) for n in kernel.params if n in kernel.arrays or n in kernel.scalars]
    hints: dict[Key, str] = {p: p[1] for p in params}
    hints |= {key: v.hint for key, v in lowering.variables.items()}
    names = name_variables(body, hints, params, called(body) | functions.bases())
    names_called = called(body).union(*(called(f.fn.body) for f in functions.items))
    body = with_mut(body, {k for k, v in lowering.variables.items() if v.mutable})
    arguments = tuple(_argument(kernel, generics, n, names["param", n]) for _, n in params)
    collected = generics.collected()
    function = rust.Fn(
        name or snake(kernel.name),
        declared(collected),
        tuple(f"{a.name}: {a.rust_type}" for a in arguments),
        "",
        body,
        attrs=_attributes(kernel, lowering, body),
        docs=tuple(dedent(kernel.docstring)),
        comments=kernel.comments,
        unsafe=True,
        public=True,
        span=kernel.span,
    )
    return EmittedEntry(
        kernel.name,
        _key(function, names, collected, functions),
        function,
        names,
        collected,
        arguments,
        (*kernel.conditions, *(c for s, c in lowering.literals.items() if s not in _known(kernel))),
        tuple(n for n in DECLARATIONS if n in names_called),
        (*kernel.holes, *lowering.diagnostics),
        tuple(functions.items),
        kernel.arrays,
        joined((kernel.trace, functions.trace)),
        (*kernel.sites, *functions.sites),
        (*kernel.filled, *functions.filled),
    )


def _known(kernel: Kernel) -> set[Sym]:
    return {c.sym for c in kernel.conditions}


def _argument(kernel: Kernel, generics: Generics, source: str, name: str) -> Argument:
    if source in kernel.arrays:
        use = kernel.arrays[source]
        items = (generics.element(use.items[0]), use.items[1]) if use.items is not None else None
        return Argument(name, "list" if items else "tensor", source, generics.tensor_type(source), use.viewed, items)
    return Argument(name, "scalar", source, generics.element(DType(kernel.scalars[source].name)))


def _attributes(kernel: Kernel, lowering: Lowering, body: tuple[rust.Stmt, ...]) -> tuple[str, ...]:
    hints = _optimization_hints(kernel.hints)
    options = ["unchecked_accesses = true", *([f"optimization_hints = ({hints})"] if hints else [])]
    out = [f"#[cutile::entry({', '.join(options)})]"]
    allowed = ["unreachable_code", "unused_variables"] * ("cuda_tile_assert!" in called(body)) + [
        "unused_assignments"
    ] * lowering.dummies
    if allowed:
        out.insert(0, f"#[allow({', '.join(allowed)})]")
    return tuple(out)


_HINTS = {"num_ctas": "num_cta_in_cga", "occupancy": "occupancy", "num_worker_warps": "num_worker_warps_per_cta"}


def _optimization_hints(hints: dict[str, Any]) -> str:
    """``default = (occupancy = 2,), sm_100 = (..,)``."""
    targets: dict[str, list[str]] = {}
    for name, rust_name in _HINTS.items():
        value = hints.get(name)
        if value is None:
            continue
        by_target = value if isinstance(value, dict) else {"default": value}
        for target, v in by_target.items():
            targets.setdefault(target, []).append(f"{rust_name} = {v}")
    order = sorted(targets, key=lambda t: (t != "default", t))
    return " ".join(f"{t} = ({', '.join(targets[t])},)," for t in order)


def _key(function: rust.Fn, names: dict[Key, str], generics: tuple[Generic, ...], functions: Functions) -> str:
    """The text under a neutral name, its functions, and what the generics stand for."""
    printer = rust.Printer(names)
    printer.function(replace(function, name="entry", span=function.span), 0)
    text = "\n".join(line.text for line in printer.lines)
    return "\n".join(
        [text, *(f"{f.base} {f.text}" for f in functions.items), *(f"{g.name}: {g.value}" for g in generics)]
    )
