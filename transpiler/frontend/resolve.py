"""What a name stands for: an external thing, a module-level name of the program, a module, or nothing."""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import os
import posixpath
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from transpiler.frontend.parse import Binding, SourceFile, import_bindings, parse_source, stored_names
from transpiler.inputs import Lookups
from transpiler.ir import hir

EXTERNAL_ROOTS = sys.stdlib_module_names | {"cuda", "jax", "ml_dtypes", "numpy", "torch", "typing_extensions"}
"""Top-level packages that are never read: their names are External."""

BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))
_MAX_ALIASES = 32


@dataclass(frozen=True)
class ModuleRef:
    """A module of the program, reached by ``import`` or ``from . import utils``."""

    key: str


Stamp = tuple[str, int, int]
"""A file's path, time of change and size."""
ClosureNode = ast.FunctionDef | ast.Assign | ast.arg
"""What binds a name of an enclosing function: a nested function, an assignment, a parameter with a default."""
Ref = hir.External | hir.Global | hir.Unsupported | ModuleRef


class Workspace:
    """The user's file and the modules that it imports, read when they are needed and never run."""

    _cache: ClassVar[dict[tuple[Stamp, str, str], SourceFile]] = {}

    def __init__(self, path: Path, display: str | None) -> None:
        parts = _package_parts(path)
        self._folder = Path(os.path.realpath(path)).parent
        self._root = self._folder.parents[len(parts) - 1] if parts else self._folder
        self._own_top = parts[0] if parts else ""
        self._shown = posixpath.dirname(display or posixpath.join(*parts, path.name))
        stem = () if path.name == "__init__.py" else (path.stem,)
        key = ".".join((*parts, *stem)) or path.stem
        self.lookups = Lookups()
        self.lookups.read(path)
        self.main = _read(key, path, display or posixpath.join(*parts, path.name))
        self.modules: dict[str, SourceFile | None] = {key: self.main}
        self.closures: dict[hir.Global, tuple[tuple[ast.FunctionDef, ...], ClosureNode]] = {}

    def module(self, key: str) -> SourceFile | None:
        """Find a module of the program by its absolute name; None for an external or a missing one."""
        if key not in self.modules:
            path = self._find(key)
            if path is not None:
                self.lookups.read(path)
            self.modules[key] = None if path is None else _read(key, path, self._display(path))
        return self.modules[key]

    def loaded(self, key: str) -> SourceFile:
        """A module that is known to exist."""
        source = self.module(key)
        assert source is not None
        return source

    def _find(self, key: str) -> Path | None:
        top, *rest = key.split(".")
        root: Path | None = self._root
        if not self._is_own(top):
            root = None if top in EXTERNAL_ROOTS else self.lookups.package(top)
        if root is None:
            return None
        return self.lookups.module(root.joinpath(top, *rest))

    def _display(self, path: Path) -> str:
        if not path.is_relative_to(self._root):  # an installed package: name it from its top-level folder
            parts = _package_parts(path)
            return posixpath.join(*parts, path.name)
        return posixpath.normpath(posixpath.join(self._shown, os.path.relpath(path, self._folder).replace(os.sep, "/")))

    # Names

    def name(
        self, source: SourceFile, name: str, scopes: Iterable[ast.FunctionDef] = (), depth: int = 0, *,
        defaults: bool = False,
    ) -> Ref:  # fmt: skip
        """What a name that is not a local stands for; ``scopes`` are the enclosing functions, innermost first.

        ``defaults``: a parameter of one of them stands for its default (hints can be replaced; code can't).
        """
        for scope in scopes:
            if name in local_names(scope):
                return self._closure_variable(source, scope, name, depth, defaults=defaults)
        bindings = source.bindings.get(name)
        if bindings:
            return self._bound(source, name, bindings, depth)
        starred = self._starred(source, name, depth)
        if starred is not None:
            return starred
        if name in BUILTINS:
            return hir.External(f"builtins.{name}")
        return hir.Unsupported("E0203", f"the name `{name}`, which is not defined in {source.display}")

    def attribute(self, base: Ref, name: str, depth: int = 0) -> Ref | None:
        """What ``base.name`` stands for, or None when base is a value rather than a module or a namespace."""
        match base:
            case hir.External(name=owner):
                return external(f"{owner}.{name}")
            case ModuleRef(key=key):
                return self._member(key, name, depth)
            case hir.Unsupported():
                return base
            case _:
                return None

    def dotted(self, source: SourceFile, parts: tuple[str, ...], scopes: Iterable[ast.FunctionDef] = ()) -> Ref | None:
        """What a dotted name stands for, or None when a part of it is an attribute of a value."""
        return self._dotted(source, parts, scopes, 0)

    def _dotted(
        self, source: SourceFile, parts: tuple[str, ...], scopes: Iterable[ast.FunctionDef], depth: int
    ) -> Ref | None:
        ref: Ref | None = self.name(source, parts[0], scopes, depth)
        for part in parts[1:]:
            if ref is None:
                return None
            ref = self.attribute(ref, part, depth)
        return ref

    def _bound(self, source: SourceFile, name: str, bindings: list[Binding], depth: int) -> Ref:
        if depth > _MAX_ALIASES:
            return hir.Unsupported("E0203", f"the name `{name}`, which is defined by itself")
        binding = _only_binding(bindings)
        if binding is None and len(bindings) == 1:
            return hir.Unsupported("E0230", f"the name `{name}`, which {source.display} binds under a condition")
        if name in source.changed:
            return hir.Unsupported("E0230", f"the name `{name}`, which a function of {source.display} changes")
        if binding is None:
            return hir.Unsupported("E0230", f"the name `{name}`, which {source.display} binds in several places")
        if binding.kind == "import":
            return self._import(binding, depth)
        if binding.kind == "other":
            return hir.Unsupported("E0230", f"the name `{name}`, whose value depends on running {source.display}")
        return self._alias(source, binding, depth) or hir.Global(source.key, name)

    def _alias(self, source: SourceFile, binding: Binding, depth: int) -> Ref | None:
        """Follow ``name = other.name`` when that is an external thing, a module or a function."""
        parts = dotted_parts(binding.value)
        if binding.kind != "constant" or parts is None or parts == (binding.name,):
            return None
        target = self._dotted(source, parts, (), depth + 1)
        match target:
            case hir.External() | ModuleRef():
                return target
            case hir.Global(module=module, name=name):
                owner = self.loaded(module)
                return target if any(b.kind == "function" for b in owner.bindings.get(name, ())) else None
            case _:
                return None

    def _import(self, binding: Binding, depth: int) -> Ref:
        if binding.missing:
            return hir.Unsupported("E0204", f"the name `{binding.name}`: its relative import leaves the package")
        top = binding.module.partition(".")[0]
        if top in EXTERNAL_ROOTS and not self._is_own(top):
            return external(binding.module + (f".{binding.attribute}" if binding.attribute else ""))
        if binding.attribute:
            return self._member(binding.module, binding.attribute, depth)
        if self.module(binding.module) is not None:
            return ModuleRef(binding.module)
        return self._not_found(binding.module, "")

    def _member(self, key: str, name: str, depth: int) -> Ref:
        """``name`` of the module ``key``: something that it binds, or a submodule."""
        source = self.module(key)
        if source is not None and name in source.bindings:
            return self._bound(source, name, source.bindings[name], depth + 1)
        if self.module(f"{key}.{name}") is not None:
            return ModuleRef(f"{key}.{name}")
        if source is None:
            return self._not_found(key, name)
        starred = self._starred(source, name, depth)
        if starred is not None:
            return starred
        return hir.Unsupported("E0203", f"the name `{name}`, which is not defined in {source.display}")

    def _not_found(self, module: str, name: str) -> Ref:
        if self._is_own(module.partition(".")[0]):
            what = f"the name `{name}` of" if name else "the module"
            return hir.Unsupported("E0204", f"{what} `{module}`, whose source is not found")
        return external(f"{module}.{name}" if name else module)

    def missing(self, name: str) -> hir.Unsupported | None:
        """Say that a name's module isn't found, and where it was looked for; None for what is never read."""
        top, _, rest = name.partition(".")
        if top in EXTERNAL_ROOTS:
            return None
        if self.lookups.package(top) is not None:
            return hir.Unsupported("E0204", f"the name `{rest}`, whose source is not found in the package `{top}`")
        where = "beside the file" if self._root == self._folder else f"beside the package `{self._own_top}`"
        return hir.Unsupported("E0204", f"the name `{name}`, whose module `{top}` isn't found (looked for {top}.py and "
                               f"{top}/__init__.py {where}, and for an installed package)")  # fmt: skip

    def _is_own(self, top: str) -> bool:
        if top == self._own_top or top in EXTERNAL_ROOTS:
            return top == self._own_top
        base = self._root / top
        return self.lookups.module(base) is not None

    def _starred(self, source: SourceFile, name: str, depth: int) -> Ref | None:
        """Look a name up in the modules of ``from module import *``."""
        for star in reversed(source.stars):
            inner = self.module(star)
            if inner is not None:
                found = self._exported(inner, name, depth + 1)
                if found is not None:
                    return found
                continue
            exports = _exports(star)
            if exports is None and name in BUILTINS:
                return hir.Unsupported("E0230", f"the name `{name}`, which may come from `from {star} import *`")
            if exports is None or name in exports:
                return external(f"{star}.{name}")
        return None

    def _exported(self, source: SourceFile, name: str, depth: int) -> Ref | None:
        """A public name of a module, its own or one that it has by a star import."""
        if name.startswith("_") or depth > _MAX_ALIASES:
            return None
        if name in source.bindings:
            return self._bound(source, name, source.bindings[name], depth)
        return self._starred(source, name, depth)

    def _closure_variable(
        self, source: SourceFile, scope: ast.FunctionDef, name: str, depth: int, *, defaults: bool
    ) -> Ref:
        """A name of an enclosing function that is the same in every call of it: an import, a function, a constant."""
        found = [binding for binding in _local_imports(scope, source.package) if binding.name == name]
        if len(found) == 1:
            return self._import(found[0], depth)
        chain = next((c for c in source.functions if c[-1] is scope), None)
        bound = None if chain is None else _bound_once(scope, name)
        if chain is not None and bound is not None and (defaults or not isinstance(bound, ast.arg)):
            ref = hir.Global(source.key, f"{scope.name}.{name}")
            self.closures[ref] = chain, bound
            return ref
        return hir.Unsupported("E0231", f"the variable `{name}` of the enclosing function `{scope.name}`")


def _bound_once(scope: ast.FunctionDef, name: str) -> ClosureNode | None:
    """What alone binds a name in a function: a nested function, an assignment that always happens, a default."""
    stored = [
        n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
    ]
    nested = [n for n in ast.walk(scope) if isinstance(n, ast.FunctionDef) and n.name == name and n is not scope]
    a = scope.args
    positional = [*a.posonlyargs, *a.args]
    given = dict(zip(positional[len(positional) - len(a.defaults) :], a.defaults, strict=True))
    given |= {p: d for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}
    parameter = next((p for p in (*positional, *a.kwonlyargs, a.vararg, a.kwarg) if p and p.arg == name), None)
    if parameter is not None and parameter not in given:
        return None
    default = parameter
    if len(nested) + len(stored) + (default is not None) != 1:
        return None
    if nested:
        return nested[0] if nested[0] in scope.body and not nested[0].decorator_list else None
    if default is not None:
        return default
    return next((s for s in scope.body if isinstance(s, ast.Assign) and stored[0] in s.targets), None)


def external(name: str) -> hir.External:
    """An external thing by its public name: ``cuda.tile._stub.load`` is ``cuda.tile.load``."""
    head, *rest = name.split(".")
    if head == "cuda" and rest[:1] == ["tile"] and len(rest) > 2 and rest[1].startswith("_"):
        rest.pop(1)
    return hir.External(".".join((head, *rest)))


def dotted_parts(node: ast.expr | None) -> tuple[str, ...] | None:
    """The parts of a dotted name such as ``ct.PaddingMode.ZERO``, or None for another expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(parts))


def _local_imports(function: ast.FunctionDef, package: str) -> list[Binding]:
    """The imports in a function, looked for once."""
    cached: list[Binding] | None = getattr(function, "_local_imports", None)
    if cached is None:
        imports = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
        cached = [binding for node in imports for binding in import_bindings(node, package)]
        function._local_imports = cached  # type: ignore[attr-defined]
    return cached


def local_names(function: ast.FunctionDef) -> frozenset[str]:
    """The names that are local to a function: its parameters and whatever it assigns."""
    cached: frozenset[str] | None = getattr(function, "_local_names", None)
    if cached is None:
        a = function.args
        params = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(p for p in (a.vararg, a.kwarg) if p)]
        bound = {p.arg for p in params}
        outer: set[str] = set()
        for statement in function.body:
            _collect_bound(statement, bound, outer)
        cached = frozenset(bound - outer)
        function._local_names = cached  # type: ignore[attr-defined]
    return cached


def _collect_bound(node: ast.AST, bound: set[str], outer: set[str]) -> None:
    """Add the names that ``node`` binds in its function, not looking into inner scopes."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            bound.add(name)
            return
        case ast.Lambda():
            return
        case ast.Import() | ast.ImportFrom():
            bound.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            outer.update(names)
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            bound.add(name)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            bound.add(name)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            named = [n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
            bound.update(name for target in named for name in stored_names(target))
            return
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        _collect_bound(child, bound, outer)


def _only_binding(bindings: list[Binding]) -> Binding | None:
    """The binding that decides, or None when that depends on running the module."""
    if len(bindings) == 1:
        lone = bindings[0]
        return lone if lone.kind in ("import", "function") or not lone.conditional else None
    if all(b.kind == "function" and not b.conditional for b in bindings):
        return bindings[-1]
    imports = [b for b in bindings if b.kind == "import"]
    if imports and all(_is_none(b) for b in bindings if b.kind != "import"):
        same = len({(b.module, b.attribute) for b in imports}) == 1
        return imports[0] if same else None
    return None


def _is_none(binding: Binding) -> bool:
    """``torch = None``: the fallback of an optional import."""
    return isinstance(binding.value, ast.Constant) and binding.value.value is None


def _package_parts(path: Path) -> tuple[str, ...]:
    folder = Path(os.path.realpath(path)).parent
    parts: list[str] = []
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    return tuple(parts)


def stamp(path: Path) -> Stamp | None:
    """What changes when a file changes, or None when it can't be read."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return str(path.resolve()), stat.st_mtime_ns, stat.st_size


@cache
def _exports(module: str) -> frozenset[str] | None:
    """The names that ``from module import *`` binds, for the modules that kernels are written with."""
    if module in ("math", "operator"):
        return frozenset(name for name in dir(importlib.import_module(module)) if not name.startswith("_"))
    spec = importlib.util.find_spec(module) if module == "cuda.tile" else None
    if spec is None or spec.origin is None:
        return None
    names: set[str] = set()
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=items) | ast.Tuple(elts=items)):
                names |= {str(item.value) for item in items if isinstance(item, ast.Constant)}
            case _:
                pass
    return frozenset(names) or None


def _read(key: str, path: Path, display: str) -> SourceFile:
    """Make a module's outline once a process, until the file changes."""
    mark = stamp(path)
    if mark is None:
        return parse_source(key, path, display)  # reports why it can't be read
    identity = (mark, key, display)
    if identity not in Workspace._cache:
        Workspace._cache[identity] = parse_source(key, path, display)
    return Workspace._cache[identity]
