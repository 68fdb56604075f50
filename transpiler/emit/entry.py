"""One entry: the function, its ABI, and the key under which equal entries are one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from transpiler.diagnostics import Diagnostic
from transpiler.emit.abi import Argument, EntryAbi, Generic
from transpiler.emit.generics import Generics, declared
from transpiler.emit.lower import Lowering
from transpiler.emit.naming import snake
from transpiler.emit.scopes import Key, name_variables
from transpiler.ir import rust
from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import ArrayUse, Condition, Kernel
from transpiler.ir.types import DType
from transpiler.select.declarations import DECLARATIONS

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
    helpers: tuple[rust.Fn, ...] = ()
    arrays: dict[str, ArrayUse] = field(default_factory=dict)

    def abi(self, name: str) -> EntryAbi:
        """The entry's ABI under a name."""
        return EntryAbi(name, self.conditions, self.generics, self.arguments)


def emit_entry(kernel: Kernel, name: str = "") -> EmittedEntry:
    """Translate one residual program. ``name`` is what the function is called (the kernel's name if empty)."""
    generics = Generics(kernel)
    lowering = Lowering(kernel, generics)
    body = lowering.run()
    params = [("param", n) for n in kernel.params if n in kernel.arrays or n in kernel.scalars]
    hints: dict[Key, str] = {p: p[1] for p in params}
    hints |= {key: v.hint for key, v in lowering.variables.items()}
    names = name_variables(body, hints, params, set(_called(body)))
    body = _with_mut(body, lowering)
    arguments = tuple(_argument(kernel, generics, n, names["param", n]) for _, n in params)
    collected = generics.collected()
    function = rust.Fn(
        name or snake(kernel.name),
        declared(collected),
        tuple(f"{a.name}: {a.rust_type}" for a in arguments),
        "",
        body,
        attrs=_attributes(kernel, lowering),
        docs=tuple(_dedent(kernel.docstring)),
        comments=kernel.comments,
        unsafe=True,
        public=True,
        span=kernel.span,
    )
    return EmittedEntry(
        kernel.name,
        _key(function, names, collected),
        function,
        names,
        collected,
        arguments,
        (*kernel.conditions, *(c for s, c in lowering.literals.items() if s not in _known(kernel))),
        tuple(sorted(_declarations(body))),
        tuple(lowering.diagnostics),
        arrays=kernel.arrays,
    )


def _known(kernel: Kernel) -> set[Sym]:
    return {c.sym for c in kernel.conditions}


def _dedent(text: str) -> list[str]:
    import inspect

    return inspect.cleandoc(text).splitlines() if text.strip() else []


def _argument(kernel: Kernel, generics: Generics, source: str, name: str) -> Argument:
    if source in kernel.arrays:
        return Argument(name, "tensor", source, generics.tensor_type(source))
    return Argument(name, "scalar", source, generics.element(DType(kernel.scalars[source].name)))


def _with_mut(body: tuple[rust.Stmt, ...], lowering: Lowering) -> tuple[rust.Stmt, ...]:
    """Mark the variables that are assigned."""

    def mark(stmt: rust.Stmt) -> rust.Stmt:
        if isinstance(stmt, rust.Let):
            stmt = replace(stmt, mut=tuple(k is not None and lowering.variables[k].mutable for k in stmt.vars))
        match stmt:
            case rust.For() | rust.Loop():
                return replace(stmt, body=_with_mut(stmt.body, lowering))
            case rust.Let(value=rust.If() as e) | rust.Assign(value=rust.If() as e) | rust.Do(value=rust.If() as e):
                new = replace(e, then=_with_mut(e.then, lowering), other=_with_mut(e.other, lowering))
                return replace(stmt, value=new)
            case _:
                return stmt

    return tuple(map(mark, body))


def _expressions(body: tuple[rust.Stmt, ...]) -> Iterator[rust.Expr]:
    for stmt in rust.walk(body):
        for e in rust.expressions_of(stmt):
            yield from rust.subexpressions(e)


def _called(body: tuple[rust.Stmt, ...]) -> Iterator[str]:
    """Functions that are called: variables must not have their names."""
    for e in _expressions(body):
        if isinstance(e, rust.Call):
            yield e.func.split("::")[0]


def _declarations(body: tuple[rust.Stmt, ...]) -> set[str]:
    return {name for name in _called(body) if name in DECLARATIONS}


def _attributes(kernel: Kernel, lowering: Lowering) -> tuple[str, ...]:
    hints = _optimization_hints(kernel.hints)
    options = ["unchecked_accesses = true", *([f"optimization_hints = ({hints})"] if hints else [])]
    out = [f"#[cutile::entry({', '.join(options)})]"]
    asserts = any(
        isinstance(e, rust.Call) and e.func == "cuda_tile_assert!" for e in _expressions(tuple(lowering.block))
    )
    allowed = ["unreachable_code"] * asserts + ["unused_assignments"] * lowering.dummies
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


def _key(function: rust.Fn, names: dict[Key, str], generics: tuple[Generic, ...]) -> str:
    """The text under a neutral name, and what the generics stand for."""
    printer = rust.Printer(names)
    printer.function(replace(function, name="entry", span=function.span), 0)
    text = "\n".join(line.text for line in printer.lines)
    return text + "\n" + "\n".join(f"{g.name}: {g.value}" for g in generics)
