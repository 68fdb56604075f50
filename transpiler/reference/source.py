"""The user's source file and its sibling modules, parsed and indexed but never run."""

from __future__ import annotations

import ast
import posixpath
import re
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from transpiler.diagnostics import Span, error
from transpiler.inputs import Lookups
from transpiler.reference.safe import EXTERNAL_ROOTS, dotted

_FORM_FEED = re.compile(r"^\f+", re.MULTILINE)


@dataclass(frozen=True)
class Binding:
    """One way in which a module-level name gets its value."""

    name: str
    node: ast.stmt
    module: str = ""  # for imports: the absolute module name
    attribute: str = ""  # for `from module import attribute`; empty for `import module`
    statement: str = ""  # for imports: an absolute import statement that binds this name alone
    conditional: bool = False

    @property
    def is_import(self) -> bool:
        """Whether an import statement binds the name."""
        return bool(self.module)


@dataclass(frozen=True)
class KernelInfo:
    """A kernel of a file: its name, line of ``def``, parameters, and the decorator's hints as source text."""

    name: str
    line: int
    params: tuple[str, ...]
    hints: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MadeKernel:
    """A kernel that a call makes of a plain function: ``name = ct.kernel(function, occupancy=2)``.

    ``statement`` is None where host code makes it without a module-level name; then it is called like the function.
    """

    name: str
    function: str
    kernel: ast.expr
    hints: tuple[ast.keyword, ...]
    statement: ast.stmt | None


@dataclass
class SourceModule:
    """One parsed module: module-level bindings and every function, nested ones too."""

    name: str
    path: Path
    display: str
    text: str
    tree: ast.Module
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    star_imports: list[str] = field(default_factory=list)
    functions: dict[str, list[tuple[ast.FunctionDef, ...]]] = field(default_factory=dict)

    @cached_property
    def lines(self) -> list[str]:
        """The text's lines with their line ends, as ``linecache`` wants them."""
        return [f"{line}\n" for line in self.text.removesuffix("\n").split("\n")]  # the only line end of Python

    @cached_property
    def _tables(self) -> dict[tuple[str, int], symtable.SymbolTable]:
        found: dict[tuple[str, int], symtable.SymbolTable] = {}
        todo = [symtable.symtable(self.text, self.display, "exec")]
        while todo:
            table = todo.pop()
            found[table.get_name(), table.get_lineno()] = table
            todo.extend(table.get_children())
        return found

    def names_used(self, function: ast.FunctionDef) -> set[str]:
        """Return the names that a function's body reads from outside of it."""
        lines = [function.lineno, *(d.lineno for d in function.decorator_list)]
        table = next((t for line in lines if (t := self._tables.get((function.name, line)))), None)
        names: set[str] = set()
        todo = [table] if table is not None else []
        while todo:
            current = todo.pop()
            for symbol in current.get_symbols():
                free = current is table and symbol.is_free()
                if symbol.get_name() == "__class__":  # made by the compiler where `super` is read, a parameter too
                    continue
                if free or (symbol.is_global() and symbol.is_referenced()):
                    names.add(symbol.get_name())
            todo.extend(current.get_children())
        return names

    def span(self, node: ast.expr | ast.stmt | ast.arg) -> Span:
        """Return the place of a node, for diagnostics."""
        end = (node.end_lineno or 0, (node.end_col_offset or 0) + 1)
        return Span(self.display, node.lineno, node.col_offset + 1, *end)


class SourceTree:
    """A source file together with the modules of its package that it imports.

    ``display`` is the path shown in diagnostics and written into the bytecode; by default it is relative to the
    folder that holds the file's package (or the file's own folder), so that it names no machine.
    """

    def __init__(self, path: Path, display: str | None = None) -> None:
        self._modules: dict[str, SourceModule | None] = {}
        self.lookups = Lookups()
        parts = _package_parts(path)
        self._root = path.resolve().parents[len(parts)]
        name = ".".join((*parts, path.stem)) if path.name != "__init__.py" else ".".join(parts)
        self._own_top = parts[0] if parts else ""
        relative = posixpath.join(*parts, path.name)
        self._anchor = (posixpath.dirname(relative), posixpath.dirname(display or relative))
        self.main = self._load(name, path, display or relative)
        self._modules[name] = self.main

    def kernels(self) -> tuple[KernelInfo, ...]:
        """Return the kernels of the file in source order."""
        found = []
        for chains in self.main.functions.values():
            for chain in chains:
                decorator = self.kernel_decorator(self.main, chain[-1])
                if decorator is not None:
                    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                    found.append(_kernel_info(chain[-1], chain[-1].name, chain[-1].lineno, keywords))
        for made in self.made_kernels().values():
            function = self.main.functions.get(made.function, [(None,)])[-1][-1]
            if function is not None:
                line = made.statement.lineno if made.statement is not None else function.lineno
                found.append(_kernel_info(function, made.name, line, made.hints))
        return tuple(sorted(found, key=lambda info: info.line))

    def kernels_of(self, function: str) -> tuple[str, ...]:
        """Return the kernels whose body is a function of the file: itself, or what calls of ``ct.kernel`` make."""
        names = {info.name for info in self.kernels()}
        made = [made.name for made in self.made_kernels().values() if made.function == function]
        return tuple(dict.fromkeys(([function] if function in names else []) + made))

    def made_kernels(self) -> dict[str, MadeKernel]:
        """Return the kernels that calls of ``ct.kernel`` make, by name."""
        found: dict[str, MadeKernel] = {}
        for node in ast.walk(self.main.tree):
            made = self._made(node) if isinstance(node, ast.Call) and len(node.args) == 1 else None
            if made is not None:
                found.setdefault(made.name, made)
        return found

    def _made(self, call: ast.Call) -> MadeKernel | None:
        inner = call.func if isinstance(call.func, ast.Call) else call
        argument = call.args[0]
        if not isinstance(argument, ast.Name) or self.qualified(self.main, inner.func) != "cuda.tile.kernel":
            return None
        bindings = self.main.bindings.get(argument.id, [])
        plain = [b.node for b in bindings if isinstance(b.node, ast.FunctionDef)]
        if not bindings or any(self.kernel_decorator(self.main, node) is not None for node in plain):
            return None
        assigned = [b for rows in self.main.bindings.values() for b in rows if getattr(b.node, "value", None) is call]
        name, statement = (assigned[0].name, assigned[0].node) if assigned else (argument.id, None)
        return MadeKernel(name, argument.id, inner.func, tuple(inner.keywords), statement)

    def module(self, name: str) -> SourceModule | None:
        """Return a module of the source tree by its absolute name, or None where no source file is found."""
        if name not in self._modules:
            path = self._find(name)
            self._modules[name] = None if path is None else self._load(name, path, self._display_of(name, path))
        return self._modules[name]

    def qualified(self, module: SourceModule, node: ast.expr, depth: int = 0) -> str | None:
        """Return the full external name that an expression stands for, as ``cuda.tile.kernel``, or None.

        Import aliases, re-exports inside the package and module-level aliases are followed.
        """
        parts = dotted(node)
        if parts is None or depth > 20:
            return None
        for binding in module.bindings.get(parts[0], []):
            if binding.is_import:
                base = self._qualified_import(binding, parts, depth)
                if base is not None:
                    return base
            elif isinstance(binding.node, ast.Assign | ast.AnnAssign) and binding.node.value is not None:
                base = self.qualified(module, binding.node.value, depth + 1)
                if base is not None:
                    return ".".join((base, *parts[1:]))
        if parts[0] not in module.bindings and len(parts) == 1:
            return next((f"{star}.{parts[0]}" for star in module.star_imports if is_external(star)), None)
        return None

    def kernel_decorator(self, module: SourceModule, function: ast.FunctionDef) -> ast.expr | None:
        """Return the decorator that makes a function a kernel, or None."""
        for decorator in function.decorator_list:
            callee = decorator.func if isinstance(decorator, ast.Call) else decorator
            if self.qualified(module, callee) == "cuda.tile.kernel":
                return decorator
        return None

    def _qualified_import(self, binding: Binding, parts: tuple[str, ...], depth: int) -> str | None:
        if is_external(binding.module):
            tail = (binding.attribute,) if binding.attribute else ()
            return ".".join((binding.module, *tail, *parts[1:]))
        inner = self.module(binding.module) if binding.attribute else None
        if inner is None:
            return None
        base = self.qualified(inner, ast.Name(binding.attribute), depth + 1)
        return None if base is None else ".".join((base, *parts[1:]))

    def _find(self, name: str) -> Path | None:
        top, *rest = name.split(".")
        root = self._root
        if top != self._own_top and self.lookups.module(root / top) is None:
            found = self.lookups.package(top)
            if found is None:
                return None
            root = found
        return self.lookups.module(root.joinpath(top, *rest))

    def _display_of(self, name: str, path: Path) -> str:
        depth = name.count(".") + (path.name == "__init__.py")
        relative = posixpath.join(*path.parts[-depth - 1 :])
        own, shown = self._anchor
        if own == shown or not path.is_relative_to(self._root):
            return relative
        return posixpath.normpath(posixpath.join(shown, posixpath.relpath(relative, own or ".")))

    def _load(self, name: str, path: Path, display: str) -> SourceModule:
        self.lookups.read(path)
        text = read_source(path, display)
        try:
            tree = ast.parse(text, display)
        except SyntaxError as exc:
            span = Span(display, exc.lineno or 1, exc.offset or 1)
            raise error("E0102", f"not valid Python: {exc.msg}", span, help="fix the syntax error") from None
        except (ValueError, RecursionError, MemoryError) as exc:
            raise error("E0102", f"not valid Python: {exc}", Span(display, 1, 1)) from None
        module = SourceModule(name, path, display, text, tree)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        _Indexer(module, package).visit_body(tree.body, conditional=False)
        _index_functions(module, tree.body, ())
        return module


def read_source(path: Path, display: str) -> str:
    """Read a source file as UTF-8 text (E0101 when that can't be done)."""
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        return _FORM_FEED.sub("", text)
    except OSError as exc:
        raise error("E0101", f"can't read {display}: {exc.strerror}", Span(display, 1, 1)) from None
    except UnicodeDecodeError as exc:
        raise error("E0101", f"{display} is not UTF-8 text ({exc.reason})", Span(display, 1, 1)) from None


def is_external(module: str) -> bool:
    """Whether a module is one that closures import for real (or replace by the torch stub)."""
    return module.partition(".")[0] in EXTERNAL_ROOTS


class _Indexer:
    """Collects the module-level bindings, those under ``if``, ``try`` and ``with`` too."""

    def __init__(self, module: SourceModule, package: str) -> None:
        self._module = module
        self._package = package

    def visit_body(self, body: list[ast.stmt], *, conditional: bool) -> None:
        for node in body:
            self._visit(node, conditional)

    def _visit(self, node: ast.stmt, conditional: bool) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._add(Binding(node.name, node, conditional=conditional))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._imports(node, conditional)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in _target_names(targets):
                self._add(Binding(name, node, conditional=conditional))
        else:
            for _, value in ast.iter_fields(node):
                if isinstance(value, list):
                    self._nested(value)

    def _nested(self, items: list[object]) -> None:
        for item in items:
            if isinstance(item, ast.stmt):
                self._visit(item, True)
            elif isinstance(item, ast.ExceptHandler | ast.match_case):
                self.visit_body(item.body, conditional=True)

    def _imports(self, node: ast.Import | ast.ImportFrom, conditional: bool) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                statement = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
                self._add(Binding(name, node, alias.name if alias.asname else name, "", statement, conditional))
            return
        source = self._absolute(node)
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name == "*":
                self._module.star_imports.append(source)
            elif source and source != "__future__":
                self._add(Binding(name, node, source, alias.name, _from_import(source, alias.name, name), conditional))
            elif not source:  # `from . import x` in a file without a package: a sibling file
                self._add(Binding(name, node, alias.name, "", f"import {alias.name} as {name}", conditional))

    def _absolute(self, node: ast.ImportFrom) -> str:
        source = node.module or ""
        if not node.level:
            return source
        package = self._package.split(".") if self._package else []
        kept = package[: len(package) - (node.level - 1)]
        return ".".join([*kept, *([source] if source else [])])

    def _add(self, binding: Binding) -> None:
        self._module.bindings.setdefault(binding.name, []).append(binding)


def _from_import(module: str, attribute: str, name: str) -> str:
    return f"from {module} import {attribute}" + (f" as {name}" if name != attribute else "")


def _target_names(targets: list[ast.expr]) -> Iterator[str]:
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _index_functions(module: SourceModule, body: list[ast.stmt], outer: tuple[ast.FunctionDef, ...]) -> None:
    for node in body:
        inner = outer
        if isinstance(node, ast.FunctionDef):
            inner = (*outer, node)
            module.functions.setdefault(node.name, []).append(inner)
        for _, value in ast.iter_fields(node):
            if isinstance(value, list):
                nested = [item for item in value if isinstance(item, ast.stmt)]
                handlers = [h for h in value if isinstance(h, ast.ExceptHandler)]
                _index_functions(module, nested + [s for h in handlers for s in h.body], inner)


def _package_parts(path: Path) -> tuple[str, ...]:
    folder = path.resolve().parent
    parts: list[str] = []
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    return tuple(parts)


def _kernel_info(function: ast.FunctionDef, name: str, line: int, keywords: Iterable[ast.keyword]) -> KernelInfo:
    hints = tuple((k.arg, ast.unparse(k.value)) for k in keywords if k.arg is not None)
    args = function.args
    params = tuple(a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs))
    return KernelInfo(name, line, params, hints)
