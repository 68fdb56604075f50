"""The functions that an entry calls: outlined groups of operations, equal ones once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from transpiler.diagnostics import Diagnostic
from transpiler.emit.generics import FunctionGenerics, Generics, declared
from transpiler.emit.naming import function_name, snake
from transpiler.emit.outline import Group
from transpiler.emit.scopes import name_variables
from transpiler.ir import rust
from transpiler.ir.construct import FilledSite, Fragments, HoleSite
from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import Condition, Kernel, Value
from transpiler.ir.trace import RuleTrace
from transpiler.ir.types import TensorTy, ViewTy
from transpiler.select import TABLE, Table

Key = Hashable


@dataclass
class Function:
    """A function before it has its final name: it is called by its ``id``."""

    id: str
    base: str
    fn: rust.Fn
    names: dict[Key, str]
    text: str  # under a neutral name, callees by their ids


@dataclass
class Functions:
    """The functions of one entry, callees before callers."""

    items: list[Function] = field(default_factory=list)
    trace: RuleTrace = field(default_factory=RuleTrace)  # the forms that the entry and its functions are written with
    forms: Table = TABLE
    fragments: Fragments = field(default_factory=dict)  # what fills operations without a form
    sites: list[HoleSite] = field(default_factory=list)
    filled: list[FilledSite] = field(default_factory=list)

    def add(self, base: str, fn: rust.Fn, names: dict[Key, str]) -> str:
        """The id of a function, shared with an equal one."""
        printer = rust.Printer(names)
        printer.function(replace(fn, name="f"), 0)
        text = "\n".join(line.text for line in printer.lines)
        for known in self.items:
            if known.base == base and known.text == text:
                return known.id
        name = f"@{len(self.items)}"
        self.items.append(Function(name, base, fn, names, text))
        return name

    def bases(self) -> set[str]:
        """The names that the functions would like to have."""
        return {f.base for f in self.items}


@dataclass
class Lowered:
    """What a caller needs of a function."""

    id: str
    arguments: tuple[str, ...]
    turbofish: bool
    nest: bool
    clash: bool  # arguments must be variables
    diagnostics: list[Diagnostic]
    literals: dict[Sym, Condition]


@dataclass(frozen=True)
class FunctionParts:
    """A function that isn't lowered from operations."""

    generics: tuple[str, ...]
    params: tuple[str, ...]
    returns: str
    body: tuple[rust.Stmt, ...]
    names: dict[Key, str]
    docs: tuple[str, ...]


def add_function(functions: Functions, base: str, parts: FunctionParts) -> str:
    """Add a function as it is; returns its id."""
    fn = rust.Fn("", parts.generics, parts.params, parts.returns, parts.body, docs=parts.docs)
    return functions.add(base, fn, parts.names)


_DOCS = {
    "gather": "`ct.gather`: loads single elements{}.",
    "scatter": "`ct.scatter`: stores single elements{}.",
    "floor_mod": "Python's `%`: the result has the sign of the divisor.",
    "atomic": "`ct.{}`: updates single elements{}.",
}


def dedent(docstring: str) -> list[str]:
    """The lines of a docstring."""
    return inspect.cleandoc(docstring).splitlines() if docstring.strip() else []


def _docs(group: Group) -> tuple[str, ...]:
    if group.kind != "access":
        return tuple(dedent(group.docs.docstring))
    checked = any(op.opcode == "cmpi" for op in group.body.ops)
    where = " of an array, those inside of its bounds" if checked else " of an array"
    kind = group.name.split("_")[0]
    if kind == "atomic":
        return (_DOCS["atomic"].format("_".join(group.name.split("_")[:2]), where),)
    text = _DOCS.get(kind, _DOCS.get(group.name))
    return (text.format(where),) if text else ()


def lower_function(kernel: Kernel, outer: Generics, group: Group, functions: Functions) -> Lowered:
    """Write the function of a group."""
    from transpiler.emit.lower import Lowering

    same = len(group.outputs) > 1 and any(outer.depends(v.ty) for v in group.outputs)
    generics = FunctionGenerics(outer, {c.sym: n for n, c in group.consts}, same)
    low = Lowering(kernel, generics, group.body, functions, group.kind == "access", group.site)
    params: list[Key] = []
    for i, (name, v) in enumerate(group.params):
        params.append(("arg", i))
        low.variable(params[-1], name, param_type(generics, v), v)
    low.frozen.append(frozenset(params))
    body = low.run()
    hints: dict[Key, str] = {key: variable.hint for key, variable in low.variables.items()}
    names = name_variables(body, hints, params, called(body) | functions.bases() | {snake(group.name)})
    returns = [generics.type(v.ty) for v in group.outputs]
    local = generics.local()
    texts = [low.variables[key].type for key in params]
    turbofish = generics.needs_turbofish or not all(any(_mentions(t, g.name) for t in texts) for g in local)
    fn = rust.Fn(
        "",
        declared(local),
        tuple(f"{names[key]}: {text}" for key, text in zip(params, texts, strict=True)),
        returns[0] if len(returns) == 1 else f"({', '.join(returns)})",
        with_mut(body, {k for k, v in low.variables.items() if v.mutable}),
        docs=_docs(group),
        comments=group.docs.comments,
        attrs=("#[allow(unused_assignments)]",) * low.dummies,
    )
    base = function_name(group.name)
    arguments = generics.arguments()
    clash = generics.clashes()
    nest = group.pure and not turbofish and not clash
    id = functions.add(base, fn, names)
    return Lowered(id, arguments, turbofish, nest, clash, low.diagnostics, low.literals)


def param_type(generics: Generics, v: Value) -> str:
    """The type of a function's parameter: arrays and views by reference."""
    text = generics.value_type(v)
    return f"&{text}" if isinstance(v.ty, TensorTy | ViewTy) else text


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def called(body: tuple[rust.Stmt, ...]) -> set[str]:
    """Library functions that are called: variables must not have their names."""
    return {
        e.func.split("::")[0]
        for stmt in rust.walk(body)
        for root in rust.expressions_of(stmt)
        for e in rust.subexpressions(root)
        if isinstance(e, rust.Call) and not e.func.startswith("@")
    }


def with_mut(body: tuple[rust.Stmt, ...], mutable: set[Key]) -> tuple[rust.Stmt, ...]:
    """Mark the variables that are assigned."""

    def mark(stmt: rust.Stmt) -> rust.Stmt:
        if isinstance(stmt, rust.Let):
            stmt = replace(stmt, mut=tuple(k in mutable for k in stmt.vars))
        match stmt:
            case rust.For() | rust.Loop():
                return replace(stmt, body=with_mut(stmt.body, mutable))
            case rust.Let(value=rust.If() as e) | rust.Assign(value=rust.If() as e) | rust.Do(value=rust.If() as e):
                new = replace(e, then=with_mut(e.then, mutable), other=with_mut(e.other, mutable))
                return replace(stmt, value=new)
            case _:
                return stmt

    return tuple(map(mark, body))
