"""What an expression of host code may stand for: other expressions, kernels, tuples of arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import islice, product

from transpiler.frontend.host_scopes import (
    RETURN,
    YIELD,
    Chain,
    Element,
    Function,
    HostIndex,
    Place,
    Scope,
    argument,
    default,
    parameters,
    passed,
)
from transpiler.frontend.resolve import Workspace, dotted_parts
from transpiler.ir import hir

KernelOf = Callable[[ast.expr, Scope], str | None]
SEARCH = "cuda.tile.tune.exhaustive_search"
_MAX_DEPTH = 20
_BUDGET = 4000
_MAX_PLACES = 48
_MAX_TUPLES = 16
_COLLECTIONS = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted", "builtins.reversed", "builtins.set"})
_HINTED = frozenset({"replace_hints", "cached_replace_hints"})


class Resolver:
    """Follows expressions through assignments, calls, caches, loops and constructors of one or more files."""

    def __init__(self, workspace: Workspace, kernel_of: KernelOf) -> None:
        self.workspace = workspace
        self._kernel_of = kernel_of
        self._indices: dict[str, HostIndex] = {}
        self._active: set[tuple[int, Scope]] = set()
        self._budget = _BUDGET
        self._refs: dict[tuple[str, tuple[str, ...], Chain], object] = {}

    def index(self, module: str) -> HostIndex:
        """The index of a module of the program, made once."""
        if module not in self._indices:
            self._indices[module] = HostIndex(self.workspace.loaded(module))
        return self._indices[module]

    def external(self, node: ast.expr, scope: Scope) -> str:
        """The external name that an expression stands for, or the empty string."""
        ref = self.ref(node, scope)
        return ref.name if isinstance(ref, hir.External) else ""

    def ref(self, node: ast.expr, scope: Scope) -> object:
        """What a dotted name stands for: see :meth:`Workspace.dotted`."""
        parts = dotted_parts(node)
        if parts is None:
            return None
        key = scope.index.source.key, parts, scope.chain
        if key not in self._refs:
            functions = [f for f in scope.chain[::-1] if isinstance(f, ast.FunctionDef)]
            self._refs[key] = self.workspace.dotted(scope.index.source, parts, functions)
        return self._refs[key]

    # One step: where the value comes from

    def begin(self) -> None:
        """Start a new question: how much is followed for one is limited."""
        self._budget = _BUDGET
        self._active.clear()

    def step(self, node: ast.expr, scope: Scope) -> Iterator[Place]:
        """The expressions that an expression may get its value from; none where it is what it says.

        While the caller looks at one of them, the expression itself isn't followed again.
        """
        key = id(node), scope
        if key in self._active or len(self._active) > _MAX_DEPTH or self._budget <= 0:
            return
        self._budget -= 1
        self._active.add(key)
        try:
            yield from islice(self._step(node, scope), _MAX_PLACES)
        finally:
            self._active.discard(key)

    def _step(self, node: ast.expr, scope: Scope) -> Iterator[Place]:
        match node:
            case ast.Name(id=name):
                yield from self._named(name, scope)
            case ast.IfExp(body=body, orelse=orelse):
                yield from ((body, scope), (orelse, scope))
            case ast.BoolOp(values=values):
                yield from ((value, scope) for value in values)
            case ast.NamedExpr(value=value) | ast.Await(value=value) | ast.Starred(value=value):
                yield value, scope
            case ast.Subscript():
                yield from self._subscript(node, scope)
            case ast.Attribute():
                yield from self._attribute(node, scope)
            case Element(value=value):
                yield from self.elements(value, scope)
            case ast.Call():
                yield from self._call(node, scope)
            case _:
                pass

    def _named(self, name: str, scope: Scope) -> Iterator[Place]:
        """The values of a local name, of a parameter, or of a name of a module."""
        for depth in range(len(scope.chain), 0, -1):
            function, where = scope.chain[depth - 1], scope.up(depth)
            found = scope.index.assigned(function, name)
            yield from ((value, where) for value in found)
            if name in parameters(function):
                if not found:
                    yield from self._passed(function, name, where)
                return
            if found:
                return
        found = scope.index.assigned(None, name)
        yield from ((value, Scope(scope.index)) for value in found)
        if not found:
            yield from self._imported(ast.Name(name, ast.Load()), scope)

    def _passed(self, function: Function, name: str, scope: Scope) -> Iterator[Place]:
        """What the callers pass for a parameter, or else its default."""
        via = scope.vias[-1]
        calls = [via] if via is not None else scope.index.callers_of(function)
        for call, where in calls:
            value = passed(function, name, call)
            if value is not None:
                yield value, where
        value = default(function, name)
        if value is not None:
            yield value, scope.up(len(scope.chain) - 1)

    def is_open(self, node: ast.expr, scope: Scope) -> bool:
        """Whether other files may decide on a value: a parameter of a function that they can call."""
        if not isinstance(node, ast.Name):
            return False
        for depth in range(len(scope.chain), 0, -1):
            function = scope.chain[depth - 1]
            if scope.index.assigned(function, node.id):
                return False
            if node.id in parameters(function):
                return depth == 1 and scope.vias[0] is None and isinstance(function, ast.FunctionDef)
        return False

    def _imported(self, node: ast.expr, scope: Scope) -> Iterator[Place]:
        """The value of a name of another module."""
        ref = self.ref(node, scope)
        if isinstance(ref, hir.Global) and ref.module != scope.index.source.key:
            index = self.index(ref.module)
            yield from ((value, Scope(index)) for value in index.assigned(None, ref.name))

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Iterator[Place]:
        """Items of displays, and what was stored into a cache."""
        position = node.slice.value if isinstance(node.slice, ast.Constant) else None
        for base, where in self.displays(node.value, scope):
            if isinstance(base, ast.Dict):
                for key, value in zip(base.keys, base.values, strict=True):
                    same = isinstance(key, ast.Constant) and key.value == position
                    if position is None or same:
                        yield value, where
            elif isinstance(position, int) and -len(base.elts) <= position < len(base.elts):
                yield base.elts[position], where
            elif position is None:
                yield from ((item, where) for item in base.elts)
        if dotted_parts(node.value) is not None:
            yield from self._stored(node.value, "[]", scope)

    def _stored(self, owner: ast.expr, suffix: str, scope: Scope) -> Iterator[Place]:
        """What is stored under a name: ``cache[key] = ...``, ``Class.cache[key] = ...``, ``self.x = ...``."""
        yield from scope.index.stores.get(f"{ast.unparse(owner)}{suffix}", [])
        ref = self.ref(owner, scope)
        if isinstance(ref, hir.Global) and ref.module != scope.index.source.key:
            yield from self.index(ref.module).stores.get(f"{ref.name}{suffix}", [])

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Iterator[Place]:
        """A field of what a constructor made, the best configuration of a search, or what was stored."""
        yield from self._stored(node, "", scope)
        yield from self._imported(node, scope)
        searched = self._searched(node, scope)
        if searched:
            yield from searched
            return
        for call, where in self.constructors(node.value, scope):
            value = self._field(call, node.attr, where)
            if value is not None:
                yield value, where

    def _searched(self, node: ast.Attribute, scope: Scope) -> list[Place]:
        """``result.best.config`` is an element of the search space."""
        inner = node.value
        if node.attr != "config" or not isinstance(inner, ast.Attribute) or inner.attr != "best":
            return []
        found = []
        for call, where in self.constructors(inner.value, scope):
            space = argument(call, 0, "search_space")
            if self.external(call.func, where) == SEARCH and space is not None:
                found.append((Element(space), where))
        return [place for value, where in found for place in self.step(value, where)]

    def _field(self, call: ast.Call, name: str, scope: Scope) -> ast.expr | None:
        """The argument of a constructor that becomes a field."""
        keyword = argument(call, -1, name)
        if keyword is not None:
            return keyword
        owner = (dotted_parts(call.func) or ("",))[-1]
        node = scope.index.classes.get(owner)
        fields = [] if node is None else [s for s in node.body if isinstance(s, ast.AnnAssign)]
        names = [s.target.id for s in fields if isinstance(s.target, ast.Name)]
        if name not in names:
            return None
        return argument(call, names.index(name), name) or fields[names.index(name)].value

    def _call(self, node: ast.Call, scope: Scope) -> Iterator[Place]:
        """What a function of the program returns; ``cache.get(key)``; ``next(iter(xs))``."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "setdefault", "pop") and node.args:
            item = ast.copy_location(ast.Subscript(node.func.value, node.args[0], ast.Load()), node)
            yield from self._subscript(item, scope)
            yield from ((value, scope) for value in node.args[1:2])
        if self.external(node.func, scope) in ("builtins.next", "builtins.iter") and node.args:
            yield Element(node.args[0]), scope
        for chain, via in self.callees(node, scope):
            yield from ((value, via) for value in via.index.assigned(chain, RETURN))

    def callees(self, node: ast.Call, scope: Scope) -> Iterator[tuple[Function, Scope]]:
        """The functions of the program that a call may call, with the scope of their bodies for this call."""
        for function, where in self._functions(node.func, scope):
            yield function, where.into(function, (node, scope))

    def _functions(self, node: ast.expr, scope: Scope) -> Iterator[tuple[Function, Scope]]:
        """The functions that an expression may be, each with the scope that it is defined in."""
        if isinstance(node, ast.Lambda):
            yield node, scope
            return
        defined = list(self._defined(node, scope))
        yield from defined
        if not defined and isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.IfExp):
            for value, where in self.step(node, scope):
                yield from self._functions(value, where)

    def _defined(self, node: ast.expr, scope: Scope) -> Iterator[tuple[Function, Scope]]:
        """The ``def``s of a name: in the functions around, at module level, or in another module."""
        if isinstance(node, ast.Name):
            local = [c for c in scope.index.functions.get(node.id, []) if c[:-1] == scope.chain[: len(c) - 1]]
            innermost = max(map(len, local), default=0)
            yield from ((c[-1], scope.up(len(c) - 1)) for c in local if len(c) == innermost)
            if local or any(node.id in parameters(function) for function in scope.chain):
                return
        ref = self.ref(node, scope)
        if isinstance(ref, hir.Global):
            index = self.index(ref.module)
            yield from ((c[-1], Scope(index)) for c in index.functions.get(ref.name, []) if len(c) == 1)

    # Several steps

    def displays(self, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.Tuple | ast.List | ast.Dict, Scope]]:
        """The tuples, lists and dictionaries that an expression may be."""
        if isinstance(node, ast.Tuple | ast.List | ast.Dict):
            yield node, scope
            return
        for value, where in self.step(node, scope):
            yield from self.displays(value, where)

    def constructors(self, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.Call, Scope]]:
        """The calls that may have made a value, those of functions of the program followed to what they return."""
        followed = False
        for value, where in self.step(node, scope):
            followed = True
            yield from self.constructors(value, where)
        if not followed and isinstance(node, ast.Call):
            yield node, scope

    def elements(self, node: ast.expr, scope: Scope) -> Iterator[Place]:
        """The elements of an iterable: of displays, comprehensions, generators, and of lists that grow."""
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
                for item in items:
                    if isinstance(item, ast.Starred):
                        yield from self.elements(item.value, scope)
                    else:
                        yield item, scope
                return
            case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item) | ast.SetComp(elt=item):
                yield item, scope
                return
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                yield from self.elements(left, scope)
                yield from self.elements(right, scope)
                return
            case ast.Subscript(value=value, slice=ast.Slice()):
                yield from self.elements(value, scope)
                return
            case ast.Call() if node.args and self.external(node.func, scope) in _COLLECTIONS:
                yield from self.elements(node.args[0], scope)
                return
            case ast.Call():
                for function, via in self.callees(node, scope):
                    yield from ((value, via) for value in via.index.assigned(function, YIELD))
            case _:
                pass
        for value, where in self.step(node, scope):
            yield from self.elements(value, where)
        if isinstance(node, ast.Name):
            yield from scope.index.appended(node.id, scope)

    def tuples(self, node: ast.expr, scope: Scope) -> list[list[Place]]:
        """The tuples that an expression may be, each as its items; empty where none can be read."""
        return list(islice(self._tuples(node, scope), _MAX_TUPLES))

    def _tuples(self, node: ast.expr, scope: Scope) -> Iterator[list[Place]]:
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items):
                parts = [self.tuples(i.value, scope) if isinstance(i, ast.Starred) else [[(i, scope)]] for i in items]
                yield from ([item for part in choice for item in part] for choice in product(*parts))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                for first, second in product(self.tuples(left, scope), self.tuples(right, scope)):
                    yield [*first, *second]
            case ast.Call() if node.args and self.external(node.func, scope) in ("builtins.tuple", "builtins.list"):
                yield from self._tuples(node.args[0], scope)
            case _:
                for value, where in self.step(node, scope):
                    yield from self._tuples(value, where)

    def kernels(self, node: ast.expr, scope: Scope) -> frozenset[str]:
        """The kernels that an expression may stand for."""
        name = self._kernel_of(node, scope)
        if name is not None:
            return frozenset({name})
        if isinstance(node, ast.Call) and (dotted_parts(node.func) or ("",))[-1] in _HINTED:
            owner = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None
            return self.kernels(owner or (node.args[0] if node.args else node.func), scope)
        found = frozenset[str]()
        for value, where in self.step(node, scope):
            found |= self.kernels(value, where)
        if not found and isinstance(node, ast.Call):  # wrapped by something that isn't understood
            for value in (*node.args, *(keyword.value for keyword in node.keywords)):
                found |= self.kernels(value, scope)
        if not found and isinstance(node, ast.Attribute):  # kernel._pyfunc
            found = self.kernels(node.value, scope)
        return found
