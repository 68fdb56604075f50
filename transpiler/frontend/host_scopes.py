"""Host code as an index: where a name, an entry of a cache or a parameter may get its value. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from transpiler.frontend.parse import SourceFile
from transpiler.frontend.resolve import dotted_parts

Function = ast.FunctionDef | ast.Lambda
Chain = tuple[Function, ...]
RETURN, YIELD = "return", "yield"


class Element(ast.expr):
    """Some element of an iterable: what a loop's variable stands for."""

    _fields: ClassVar[tuple[str, ...]] = ("value",)

    def __init__(self, value: ast.expr) -> None:
        super().__init__()
        self.value = value
        ast.copy_location(self, value)


@dataclass(frozen=True)
class Scope:
    """A place in host code: the functions around it, outermost first, and the call that leads into each (or None)."""

    index: HostIndex
    chain: Chain = ()
    vias: tuple[tuple[ast.Call, Scope] | None, ...] = ()

    def up(self, depth: int) -> Scope:
        """The scope of the first ``depth`` functions."""
        return self if depth == len(self.chain) else Scope(self.index, self.chain[:depth], self.vias[:depth])

    def into(self, function: Function, call: tuple[ast.Call, Scope] | None) -> Scope:
        """The scope of a function defined here, reached by a call."""
        return Scope(self.index, (*self.chain, function), (*self.vias, call))


Place = tuple[ast.expr, Scope]
"""An expression and where it stands."""


class HostIndex:
    """One source file: its calls, functions, and what is assigned to what."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.calls: list[tuple[ast.Call, Scope]] = []
        self.callers: dict[str, list[tuple[ast.Call, Scope]]] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.stores: dict[str, list[Place]] = {}
        self.functions: dict[str, list[Chain]] = {}
        self._assigned: dict[Function | None, dict[str, list[ast.expr]]] = {}
        for chain in source.functions:
            self.functions.setdefault(chain[-1].name, []).append(chain)
        self._walk(source.tree.body, ())
        for call, scope in self.calls:
            self.callers.setdefault((dotted_parts(call.func) or ("",))[-1], []).append((call, scope))

    def __hash__(self) -> int:
        return id(self)

    def _walk(self, nodes: Sequence[ast.AST], chain: Chain) -> None:
        """Index everything with the functions around it, in source order."""
        for node in nodes:
            match node:
                case ast.Call():
                    self.calls.append((node, self._scope(chain)))
                    if isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault" and len(node.args) == 2:
                        self._store(f"{ast.unparse(node.func.value)}[]", node.args[1], chain)
                case ast.ClassDef():
                    self.classes.setdefault(node.name, node)
                case ast.Assign():
                    for target in node.targets:
                        self._store_target(target, node.value, chain)
                case _:
                    pass
            inner = (*chain, node) if isinstance(node, ast.FunctionDef | ast.Lambda) else chain
            self._walk(list(ast.iter_child_nodes(node)), inner)

    def _store_target(self, target: ast.expr, value: ast.expr, chain: Chain) -> None:
        match target:
            case ast.Subscript():
                self._store(f"{ast.unparse(target.value)}[]", value, chain)
            case ast.Attribute():
                self._store(ast.unparse(target), value, chain)
            case ast.Tuple() | ast.List():
                for name, part in unpacked(target, value):
                    if not isinstance(name, ast.Name):
                        self._store_target(name, part, chain)
            case _:
                pass

    def _store(self, text: str, value: ast.expr, chain: Chain) -> None:
        self.stores.setdefault(text, []).append((value, self._scope(chain)))

    def _scope(self, chain: Chain) -> Scope:
        return Scope(self, chain, (None,) * len(chain))

    def assigned(self, function: Function | None, name: str) -> list[ast.expr]:
        """The values that a function (None: the module) assigns to a name, returns or yields."""
        if function not in self._assigned:
            body: Sequence[ast.AST] = self.source.tree.body if function is None else _body(function)
            found: dict[str, list[ast.expr]] = {}
            for target, value in _assignments(body, found):
                found.setdefault(target, []).append(value)
            self._assigned[function] = found
        return self._assigned[function].get(name, [])

    def appended(self, name: str, scope: Scope) -> list[Place]:
        """What is appended to a list of a name in the same function."""
        calls = [*self.callers.get("append", []), *self.callers.get("extend", [])]
        found: list[Place] = []
        for call, where in calls:
            if where.chain == scope.chain and len(call.args) == 1 and isinstance(call.func, ast.Attribute):
                owner = call.func.value
                if isinstance(owner, ast.Name) and owner.id == name:
                    many = call.func.attr == "extend"
                    found.append((Element(call.args[0]) if many else call.args[0], scope))
        return found

    def callers_of(self, function: Function) -> list[tuple[ast.Call, Scope]]:
        """The calls that may call a function of this file."""
        if isinstance(function, ast.Lambda):
            return []
        applied = [name for name, node in self.classes.items() if function in node.body and function.name == "forward"]
        calls = [(c, s) for name in applied for c, s in self.callers.get("apply", [])
                 if dotted_parts(c.func) == (name, "apply")]  # fmt: skip
        return self.callers.get(function.name, []) + calls


def _body(function: Function) -> Sequence[ast.AST]:
    return [ast.Return(function.body)] if isinstance(function, ast.Lambda) else function.body


def parameters(function: Function) -> list[str]:
    """The names of a function's parameters, keyword-only ones last."""
    args = function.args
    return [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


def default(function: Function, name: str) -> ast.expr | None:
    """The default of a parameter."""
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    pairs = list(zip(reversed(plain), reversed(args.defaults), strict=False))
    pairs += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]
    return next((value for arg, value in pairs if arg.arg == name), None)


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument of a call by its position or name; None where a starred argument may be in the way."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if not 0 <= position < len(call.args) or any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
        return None
    return call.args[position]


def passed(function: Function, name: str, call: ast.Call) -> ast.expr | None:
    """What a call passes for a parameter of a function."""
    names = parameters(function)
    shift = 1 if names[:1] in (["self"], ["cls"], ["ctx"]) else 0
    return argument(call, names.index(name) - shift, name)


def _assignments(body: Sequence[ast.AST], known: dict[str, list[ast.expr]]) -> Iterator[tuple[str, ast.expr]]:
    """Names and the values that are assigned to them, tuples item by item; not those of inner functions."""
    todo: list[ast.AST] = list(reversed(body))
    while todo:
        node = todo.pop()
        yield from _results(node)
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _names(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                yield from _names(target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                for before in known.get(name, [])[:]:
                    yield name, ast.copy_location(ast.BinOp(before, op, value), node)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                yield from _names(target, Element(value))
            case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
                yield name, value
            case _:
                pass
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            todo.extend(reversed(list(ast.iter_child_nodes(node))))


def _results(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What a function returns or yields."""
    match node:
        case ast.Return(value=ast.expr() as value):
            yield RETURN, value
        case ast.Yield(value=ast.expr() as value):
            yield YIELD, value
        case ast.YieldFrom(value=value):
            yield YIELD, Element(value)
        case _:
            pass


def _names(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    return ((name.id, part) for name, part in unpacked(target, value) if isinstance(name, ast.Name))


def unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, and what each gets: a part of a display, or a subscript of the value."""
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
        return
    for position, item in enumerate(target.elts):
        if isinstance(item, ast.Starred):
            return  # what follows has no fixed place
        if isinstance(value, ast.Tuple | ast.List) and position < len(value.elts):
            yield from unpacked(item, value.elts[position])
        else:
            part = ast.Subscript(value, ast.Constant(position), ast.Load())
            yield from unpacked(item, ast.copy_location(part, value))
