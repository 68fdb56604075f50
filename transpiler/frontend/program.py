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
from transpiler.frontend.depth import too_deep
from transpiler.frontend.expressions import ExpressionLowerer
from transpiler.frontend.kernels import KERNEL, Chain, KernelSite, chain_of, find_kernels
from transpiler.frontend.lower import FunctionLowerer
from transpiler.frontend.parse import Piece, SourceFile, read_source
from transpiler.frontend.resolve import Stamp, Workspace, stamp
from transpiler.inputs import Lookups
from transpiler.ir import hir

_NO_KERNELS = (
    "looked for functions decorated with cuda.tile.kernel (`@ct.kernel`) or passed to it; "
    "where this file imports its kernels, give the file that defines them"
)
_loaded: dict[tuple[Path, str | None], tuple[tuple[Stamp, ...], hir.Program, Lookups]] = {}


def load_program(path: Path, *, display: str | None = None, host_only: bool = False) -> hir.Program:
    """Parse a file, find its kernels, and lower them and what they reach; nothing is executed.

    ``display`` is the path in spans; by default it is relative to the folder that holds the file's package.
    Raises TranspileError: E0101 unreadable, E0102 not UTF-8 or not Python, E0103 no kernels (unless ``host_only``),
    E0902 nested too deeply. A file is read once a process, until it or a module that it imports changes.
    """
    program = _load(path, display)
    if not program.kernels and not host_only:
        shown = program.modules[program.main].path
        message = f"{shown} has no kernels" if read_source(path, shown).strip() else f"{shown} is empty"
        raise error("E0103", message, Span(shown, 1, 1), help=_NO_KERNELS)
    return program


def _load(path: Path, display: str | None) -> hir.Program:
    cached = _loaded.get((path.absolute(), display))
    if cached is not None and all(stamp(Path(mark[0])) == mark for mark in cached[0]):
        return cached[1]
    with _without_collection():
        workspace = Workspace(path, display)
        try:
            program = _Loader(workspace).load()
        except RecursionError:
            raise too_deep((s.display, s.text) for s in workspace.modules.values() if s is not None) from None
    sources = [source for source in workspace.modules.values() if source is not None]
    for source in sources:
        source.forget_pieces()
    marks = tuple(mark for source in sources if (mark := stamp(source.path)) is not None)
    _loaded[path.absolute(), display] = marks, program, workspace.lookups
    return program


def program_lookups(path: Path, *, display: str | None = None) -> Lookups:
    """What was looked for to load a program."""
    _load(path, display)
    return _loaded[path.absolute(), display][2]


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
        self._todo: list[hir.Global] = []

    def load(self) -> hir.Program:
        main = self._workspace.main
        names: dict[str, None] = {}
        for site in find_kernels(self._workspace):
            function = self._kernel(site)
            if site.name in names and not self._replaces(site):
                hole = hir.Hole("E0252", CONSTRUCTS["E0252"].what, span=function.span)
                function = replace(function, body=(hole,))
            self._functions[hir.Global(main.key, site.name)] = function
            names[site.name] = None
        while self._todo:
            self._reach(self._todo.pop(0))
        return hir.Program(main.key, {m.key: m for m in self._modules()}, tuple(names))

    def _modules(self) -> Iterator[hir.Module]:
        """The modules that were read, with what was lowered of them in source order."""
        for key, source in self._workspace.modules.items():
            if source is not None:
                functions = {r.name: f for r, f in self._functions.items() if r.module == key}
                constants = {r.name: c for r, c in self._constants.items() if r.module == key}
                by_line = dict(sorted(functions.items(), key=lambda item: item[1].span.line))
                yield hir.Module(key, source.display, by_line, _in_order(constants, source))

    def _kernel(self, site: KernelSite) -> hir.Function:
        function = self._lower(site.owner, site.chain, decorators=site.decorated)
        if site.decorated:
            return function
        main = self._workspace.main
        hints: tuple[tuple[str, hir.Expr], ...] = ()
        span = function.span
        if site.made_by is not None:
            value, used = self._value(main, site.name, site.made_by)
            assert isinstance(value, hir.Call)
            made = value.func if isinstance(value.func, hir.Call) else value
            hints, span = made.kwargs, value.span
            self._todo += [ref for ref in used if ref != hir.Global(function.module, function.name)]
        decorator = hir.Call(KERNEL, (), hints, span=span) if hints else replace(KERNEL, span=span)
        return replace(function, name=site.name, module=main.key, decorators=(decorator,))

    def _replaces(self, site: KernelSite) -> bool:
        """Whether a second kernel of a name simply takes the place of the first, as in any module."""
        bindings = self._workspace.main.bindings.get(site.name, ())
        return len(site.chain) == 1 and not any(b.conditional for b in bindings)

    # Reachability

    def _reach(self, ref: hir.Global) -> None:
        if ref in self._functions or ref in self._constants:
            return
        source = self._workspace.loaded(ref.module)
        if ref in self._workspace.closures:
            self._reach_closure(source, ref)
            return
        chain = chain_of(source, ref.name)
        if chain is not None:
            self._functions[ref] = self._lower(source, chain, decorators=True)
            return
        self._constants[ref], used = self._value(source, ref.name, source.bindings[ref.name][-1].node)
        self._todo += used

    def _reach_closure(self, source: SourceFile, ref: hir.Global) -> None:
        """A function, a constant or a default of a function around the code that uses it."""
        chain, node = self._workspace.closures[ref]
        if isinstance(node, ast.FunctionDef):
            self._functions[ref] = self._lower(source, (*chain, node), decorators=False)
            return
        piece = source.piece(chain[0].lineno)
        owner = _find_function(piece, piece.module, chain[-1])
        scopes = chain if isinstance(node, ast.Assign) else chain[:-1]
        lowerer = ExpressionLowerer(self._workspace, source, piece, scopes=tuple(reversed(scopes)))
        self._constants[ref] = lowerer.lower(_closure_value(owner, ref.name.rpartition(".")[2], node))
        self._todo += lowerer.used

    def _lower(self, source: SourceFile, chain: Chain, *, decorators: bool) -> hir.Function:
        piece = source.piece(chain[0].lineno)
        node = _find_function(piece, piece.module, chain[-1])
        lowerer = FunctionLowerer(self._workspace, source, piece, chain)
        function = lowerer.function(node)
        if decorators:
            function = replace(function, decorators=lowerer.decorators(node))
        self._todo += lowerer.used
        params = tuple(replace(p, annotation=self._follow(p.annotation)) for p in function.params)
        return replace(function, params=params)

    def _value(self, source: SourceFile, name: str, node: ast.stmt) -> tuple[hir.Expr, list[hir.Global]]:
        """What a statement assigns to a module-level name, and the names that it uses."""
        piece = source.piece(node.lineno)
        lowerer = ExpressionLowerer(self._workspace, source, piece)
        value = lowerer.lower(_find_value(piece, name))
        return value, list(lowerer.used)

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


def _in_order(constants: dict[str, hir.Expr], source: SourceFile) -> dict[str, hir.Expr]:
    lines = {name: source.bindings[name][-1].node.lineno if name in source.bindings else constants[name].span.line
             for name in constants}  # fmt: skip
    return {name: constants[name] for name in sorted(constants, key=lambda name: (lines[name], name))}


def _closure_value(owner: cst.FunctionDef, name: str, node: ast.Assign | ast.arg) -> cst.BaseExpression:
    """The expression that a function assigns to a name, or the default of its parameter."""
    if isinstance(node, ast.arg):
        parameters = (*owner.params.posonly_params, *owner.params.params, *owner.params.kwonly_params)
        found = next(p.default for p in parameters if p.name.value == name)
    else:
        lines = (line for line in owner.body.body if isinstance(line, cst.SimpleStatementLine))
        assigned = (small for line in lines for small in line.body if isinstance(small, cst.Assign))
        values = (_assigned(t.target, small.value, name) for small in assigned for t in small.targets)
        found = next(v for v in values if v is not None)
    assert found is not None
    return found


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


def _find_value(piece: Piece, name: str) -> cst.BaseExpression:
    """The expression that a piece assigns to a module-level name, the last one if there are several."""
    found: cst.BaseExpression | None = None
    for line in piece.module.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            match small:
                case cst.Assign(targets=targets, value=value):
                    for target in targets:
                        found = _assigned(target.target, value, name) or found
                case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
                    found = _assigned(target, value, name) or found
                case _:
                    pass
    if found is None:
        raise LookupError(name)
    return found


def _assigned(target: cst.CSTNode, value: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
    """The part of ``value`` that assigning it to ``target`` gives to a name."""
    match target, value:
        case cst.Name(value=found), _:
            return value if found == name else None
        case cst.Tuple(elements=names) | cst.List(elements=names), cst.Tuple(elements=items) | cst.List(elements=items):
            parts = (_assigned(t.value, v.value, name) for t, v in zip(names, items, strict=False))
            return next((part for part in parts if part is not None), None)
        case _:
            return None
