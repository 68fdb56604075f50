"""From a file to a :class:`~transpiler.ir.hir.Program`: its kernels and everything that they reach."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import libcst as cst

from transpiler.diagnostics import Span, error
from transpiler.frontend.constructs import CONSTRUCTS
from transpiler.frontend.expressions import ExpressionLowerer
from transpiler.frontend.lower import FunctionLowerer
from transpiler.frontend.parse import Piece, SourceFile
from transpiler.frontend.resolve import Stamp, Workspace, dotted_parts, stamp
from transpiler.ir import hir

KERNEL = hir.External("cuda.tile.kernel")
_Chain = tuple[ast.FunctionDef, ...]
_loaded: dict[tuple[Path, str | None], tuple[tuple[Stamp, ...], hir.Program]] = {}


def load_program(path: Path, *, display: str | None = None) -> hir.Program:
    """Parse a file, find its kernels, and lower them and what they reach; nothing is executed.

    ``display`` is the path in spans; by default it is relative to the folder that holds the file's package.
    Raises TranspileError: E0101 unreadable, E0102 not UTF-8 or not Python, E0103 no kernels.
    A file is read once a process, until it or a module that it imports changes.
    """
    cached = _loaded.get((path.absolute(), display))
    if cached is not None and all(stamp(Path(mark[0])) == mark for mark in cached[0]):
        return cached[1]
    with _without_collection():
        workspace = Workspace(path, display)
        program = _Loader(workspace).load()
    sources = [source for source in workspace.modules.values() if source is not None]
    for source in sources:
        source.forget_pieces()
    marks = tuple(mark for source in sources if (mark := stamp(source.path)) is not None)
    _loaded[path.absolute(), display] = marks, program
    return program


def kernel_names(program: hir.Program) -> tuple[str, ...]:
    """The kernels of the main module, in source order."""
    return program.kernels


def decorator_hints(function: hir.Function) -> list[tuple[str, hir.Expr]]:
    """The keyword hints of the kernel decorator, such as ``occupancy``, in source order."""
    for decorator in function.decorators:
        if isinstance(decorator, hir.Call) and decorator.func == KERNEL:
            return list(decorator.kwargs)
    return []


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pause the cyclic garbage collector: while trees grow, it takes a third of the time and finds nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Loader:
    """Lowers kernels first, then whatever the lowered code uses, each thing once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._functions: dict[hir.Global, hir.Function] = {}
        self._constants: dict[hir.Global, hir.Expr] = {}
        self._kernels: dict[str, int] = {}
        self._todo: list[hir.Global] = []

    def load(self) -> hir.Program:
        main = self._workspace.main
        for chain in main.functions:
            if self._is_kernel(main, chain):
                self._kernel(main, chain)
        for name, bindings in main.bindings.items():
            for binding in bindings:
                if binding.kind == "constant" and isinstance(binding.value, ast.Call):
                    self._factory(main, name, binding.node)
        if not self._kernels:
            raise error("E0103", f"{main.display} has no kernels", Span(main.display, 1, 1),
                        help="a kernel is a function decorated with cuda.tile.kernel (`@ct.kernel`), or passed to it")  # fmt: skip
        while self._todo:
            self._reach(self._todo.pop(0))
        names = sorted(self._kernels, key=lambda name: self._kernels[name])
        return hir.Program(main.key, {m.key: m for m in self._modules()}, tuple(names))

    def _modules(self) -> Iterator[hir.Module]:
        """The modules that were read, with what was lowered of them in source order."""
        for key, source in self._workspace.modules.items():
            if source is not None:
                functions = {r.name: f for r, f in self._functions.items() if r.module == key}
                constants = {r.name: c for r, c in self._constants.items() if r.module == key}
                by_line = dict(sorted(functions.items(), key=lambda item: item[1].span.line))
                yield hir.Module(key, source.display, by_line, _in_order(constants, source))

    # Kernels

    def _is_kernel(self, source: SourceFile, chain: _Chain) -> bool:
        return any(self._names_kernel(source, d, chain[:-1]) for d in chain[-1].decorator_list)

    def _names_kernel(self, source: SourceFile, node: ast.expr, outer: _Chain) -> bool:
        """Whether an expression is ``ct.kernel`` or a call of it with hints only."""
        callee = node.func if isinstance(node, ast.Call) and not node.args else node
        parts = dotted_parts(callee)
        return parts is not None and self._workspace.dotted(source, parts, outer[::-1]) == KERNEL

    def _kernel(self, source: SourceFile, chain: _Chain) -> None:
        function = self._lower(source, chain, decorators=True)
        if function.name in self._kernels and (len(chain) > 1 or self._is_conditional(source, function.name)):
            hole = hir.Hole("E0252", CONSTRUCTS["E0252"].what, span=function.span)
            function = replace(function, body=(hole,))
        self._add_kernel(function)

    def _add_kernel(self, function: hir.Function) -> None:
        self._functions[hir.Global(function.module, function.name)] = function
        self._kernels[function.name] = function.span.line

    def _is_conditional(self, source: SourceFile, name: str) -> bool:
        return any(b.conditional for b in source.bindings.get(name, ()))

    def _factory(self, source: SourceFile, name: str, node: ast.stmt) -> None:
        """``name = ct.kernel(fn, hints...)`` and ``name = ct.kernel(hints...)(fn)``: a kernel called ``name``."""
        call = getattr(node, "value", None)
        if not isinstance(call, ast.Call) or len(call.args) != 1 or not self._makes_kernel(source, call):
            return
        parts = dotted_parts(call.args[0])
        ref = self._workspace.dotted(source, parts) if parts is not None else None
        if not isinstance(ref, hir.Global):
            return
        owner = self._workspace.loaded(ref.module)
        chain = _chain(owner, ref.name)
        if chain is None:
            return
        value = self._constant(source, name, node)
        decorator = value.func if isinstance(value, hir.Call) and isinstance(value.func, hir.Call) else value
        function = self._lower(owner, chain, decorators=False)
        self._add_kernel(replace(function, name=name, module=source.key, decorators=(decorator,), span=value.span))

    def _makes_kernel(self, source: SourceFile, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Call):
            return not call.keywords and self._names_kernel(source, call.func, ())
        return self._names_kernel(source, call.func, ())

    # Reachability

    def _reach(self, ref: hir.Global) -> None:
        if ref in self._functions or ref in self._constants:
            return
        source = self._workspace.loaded(ref.module)
        chain = _chain(source, ref.name)
        if chain is not None:
            self._functions[ref] = self._lower(source, chain, decorators=True)
            return
        node = source.bindings[ref.name][-1].node
        self._constants[ref] = self._constant(source, ref.name, node)

    def _lower(self, source: SourceFile, chain: _Chain, *, decorators: bool) -> hir.Function:
        piece = source.piece(chain[0].lineno)
        node = _find_function(piece, piece.module, chain[-1])
        lowerer = FunctionLowerer(self._workspace, source, piece, chain)
        function = lowerer.function(node)
        if decorators:
            function = replace(function, decorators=lowerer.decorators(node))
        self._todo += lowerer.used
        params = tuple(replace(p, annotation=self._follow(p.annotation)) for p in function.params)
        return replace(function, params=params)

    def _constant(self, source: SourceFile, name: str, node: ast.stmt) -> hir.Expr:
        piece = source.piece(node.lineno)
        lowerer = ExpressionLowerer(self._workspace, source, piece)
        value = lowerer.lower(_find_value(piece, name, node.lineno))
        self._todo += lowerer.used
        return value

    def _follow(self, annotation: hir.Expr | None) -> hir.Expr | None:
        """Replace an alias such as ``ConstInt`` by what it stands for, at the place of the annotation."""
        seen: set[hir.Global] = set()
        while isinstance(annotation, hir.Global) and annotation not in seen:
            seen.add(annotation)
            self._reach(hir.Global(annotation.module, annotation.name))
            target = self._constants.get(annotation)
            if target is None:
                break
            annotation = replace(target, span=annotation.span)
        return annotation


def _chain(source: SourceFile, name: str) -> _Chain | None:
    """The module-level function of that name, the last one if there are several."""
    bindings = source.bindings.get(name, ())
    nodes = [b.node for b in bindings if b.kind == "function"]
    return next((c for c in source.functions if nodes and c[-1] is nodes[-1]), None)


def _in_order(constants: dict[str, hir.Expr], source: SourceFile) -> dict[str, hir.Expr]:
    lines = {name: source.bindings[name][-1].node.lineno for name in constants}
    return {name: constants[name] for name in sorted(constants, key=lambda name: (lines[name], name))}


def _find_function(piece: Piece, root: cst.CSTNode, function: ast.FunctionDef) -> cst.FunctionDef:
    """The LibCST node of an ``ast`` function: the one whose name stands on its line."""
    if isinstance(root, cst.FunctionDef) and root.name.value == function.name:  # noqa: SIM102
        if piece.span(root.name).line == function.lineno:
            return root
    for child in root.children:
        if isinstance(child, cst.BaseStatement | cst.BaseSuite | cst.Else | cst.Finally | cst.ExceptHandler):
            try:
                return _find_function(piece, child, function)
            except LookupError:
                continue
    raise LookupError(function.name)


def _find_value(piece: Piece, name: str, line: int) -> cst.BaseExpression:
    """The expression that the statement on ``line`` assigns to a name."""
    found: cst.BaseExpression | None = None
    for statement in piece.module.body:
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for small in statement.body:
            match small:
                case cst.Assign(targets=targets, value=value):
                    names = [t.target.value for t in targets if isinstance(t.target, cst.Name)]
                case cst.AnnAssign(target=cst.Name(value=target), value=cst.BaseExpression() as value):
                    names = [target]
                case _:
                    continue
            if name in names:
                found = value
    if found is None:
        raise LookupError(f"{name} on line {line}")
    return found
