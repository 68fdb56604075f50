"""The host module of an operator: the author's module with the launches of our kernels in it.

A LibCST codemod: kernels become the objects of ``_bindings``, ``ct.launch``, ``ct.kernel`` where it decorates again,
``ct.compiler_timeout`` and ``exhaustive_search`` those of the runtime, which hand kernels that weren't translated on to
cuda.tile.  Everything else stays as it is: public functions, autograd classes, caches, tuning.  What only kernels
used, and that needs cuda.tile, goes.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import libcst as cst

from transpiler.emit.naming import unique
from transpiler.identifiers import identifier

_LAUNCH, _SEARCH = "launch", "exhaustive_search"
_KERNEL = "cuda.tile.kernel"
_HINTED = "replace_hints"
_REPLACED = {
    "cuda.tile.launch": _LAUNCH,
    "cuda.tile.tune.exhaustive_search": _SEARCH,
    "cuda.tile.tune.Measurement": "Measurement",
    "cuda.tile.tune.TuningResult": "TuningResult",
    "cuda.tile.compiler_timeout": "compiler_timeout",
    _KERNEL: "tile_kernel",
}
_NEEDS_TILE = "cuda"
_REGISTER = ".register_impl"
_TILEGYM_BACKEND = {"cutile": "cutile-rs"}


def render_host(source_text: str, kernels: Collection[str], *, package: str = "", source: str = "") -> str:
    """Rewrite a host module so that it launches the given kernels from ``_bindings``.

    ``package`` is the dotted package that the module is in: relative imports are made absolute with it.
    """
    module = ast.parse(source_text)
    nodes = list(ast.walk(module))
    imports = _Imports.of(nodes, package)
    device = [one for node in nodes if (one := _kernel_code(node, kernels)) is not None]
    codemod = _Codemod(imports, frozenset(kernels), _names(nodes), _unchanged(nodes, imports, kernels))
    whole = [node for node in module.body if isinstance(node, ast.FunctionDef) and node in device]
    tree = cst.parse_module(_without_bodies(source_text, whole))
    tree = tree.visit(codemod)
    if codemod.uses:
        tree = _with_imports(tree, codemod)
    tree = _with_note(tree, source)
    return _without_device_code(tree, imports, {name for node in device for name in _loaded(node)})


def _kernel_code(node: ast.AST, kernels: Collection[str]) -> ast.AST | None:
    """Return what of a statement is replaced because it makes a kernel."""
    match node:
        case ast.FunctionDef(name=name, decorator_list=[_, *_]) if name in kernels:
            return node
        case ast.Assign(targets=[ast.Name(id=name), *_], value=ast.Call() as call) if name in kernels:
            return call if _decorates(call) else None
    return None


def _decorates(call: ast.Call | cst.Call) -> bool:
    """Is it a call of something like ``ct.kernel``, or of ``ct.kernel(..)``? (Not ``k.replace_hints(..)``.)"""
    function = call.func.func if isinstance(call.func, ast.Call | cst.Call) else call.func
    match function:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return not name.endswith(_HINTED)
        case cst.Attribute(attr=name) | (cst.Name() as name):
            return not _name(name).endswith(_HINTED)
    return False


def _without_bodies(text: str, kernels: Sequence[ast.FunctionDef]) -> str:
    """Leave only the heads of functions that will be replaced whole: LibCST takes long to read their bodies."""
    lines = text.split("\n")
    for kernel in reversed(kernels):
        first, last = kernel.decorator_list[0].lineno - 1, kernel.end_lineno or kernel.lineno
        if lines[first].startswith("@"):
            body = lines[kernel.body[0].lineno - 1]
            indent = body[: len(body) - len(body.lstrip())] or " "
            lines[first:last] = ["@_", f"def {kernel.name}():", f"{indent}pass"]
    return "\n".join(lines)


def _unchanged(nodes: Iterable[ast.AST], imports: _Imports, kernels: Collection[str]) -> frozenset[str]:
    """The names of functions in which there is nothing to replace."""
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    changed = {f.name for f in functions if any(_to_change(node, imports, kernels) for node in ast.walk(f))}
    return frozenset(f.name for f in functions) - changed


def _to_change(node: ast.AST, imports: _Imports, kernels: Collection[str]) -> bool:
    match node:
        case ast.ImportFrom(level=level):
            return level > 0
        case ast.Name() | ast.Attribute():
            name = imports.resolve(node)
            return name in _REPLACED or name.endswith(_REGISTER)
    return _kernel_code(node, kernels) is not None


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    """All identifiers of the module."""
    found = set()
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.alias():
                found.add((node.asname or node.name).partition(".")[0])
    return found


@dataclass
class _Imports:
    """What names stand for, by the module's imports; a name that is bound in another way too stands for nothing."""

    package: str
    bound: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: Iterable[ast.AST], package: str) -> _Imports:
        imports = cls(package)
        other: set[str] = set()
        for node in nodes:
            match node:
                case ast.Import():
                    for alias in node.names:
                        imports._bind(alias.asname or alias.name.partition(".")[0], _target(alias))
                case ast.ImportFrom():
                    base = imports.absolute(node.level, node.module or "")
                    for alias in node.names:
                        imports._bind(alias.asname or alias.name, f"{base}.{alias.name}")
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                    other.add(name)
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                    other.add(name)
        imports.bound = {name: target for name, target in imports.bound.items() if name not in other}
        return imports

    def _bind(self, name: str, target: str) -> None:
        self.bound[name] = target if self.bound.get(name, target) == target else ""

    def absolute(self, level: int, module: str) -> str:
        """Return the dotted name of a module that is imported relatively; with the dots where it isn't known."""
        if not level:
            return module
        parts = self.package.split(".") if self.package else []
        if len(parts) < level:
            return "." * level + module
        return ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])])

    def resolve(self, node: cst.BaseExpression | ast.expr) -> str:
        """Return the dotted name that an expression stands for, or ""."""
        parts: list[str] = []
        while isinstance(node, cst.Attribute | ast.Attribute):
            parts.append(_name(node.attr) if isinstance(node, cst.Attribute) else node.attr)
            node = node.value
        name = _name(node) if isinstance(node, cst.Name) else node.id if isinstance(node, ast.Name) else ""
        base = self.bound.get(name)
        return ".".join([base, *reversed(parts)]) if base else ""

    def needs_tile(self, name: str) -> bool:
        """Does a name stand for something of cuda.tile?"""
        target = self.bound.get(name, "")
        return target == _NEEDS_TILE or target.startswith("cuda.tile")


def _name(node: cst.Name) -> str:
    """A name as Python reads it, and ``ast`` has it."""
    return identifier(node.value)


def _target(alias: ast.alias) -> str:
    return alias.name if alias.asname else alias.name.partition(".")[0]


class _Codemod(cst.CSTTransformer):
    """Replaces kernels, launches and searches; remembers what is needed instead."""

    def __init__(
        self, imports: _Imports, kernels: frozenset[str], names: set[str], unchanged: frozenset[str]
    ) -> None:  # fmt: skip
        super().__init__()
        self._imports, self._kernels, self._unchanged = imports, kernels, unchanged
        self.runtime, self.bindings = unique("_cutile", names), unique("_kernels", names)
        self.uses: set[str] = set()
        self._depth = 0  # functions around

    # Kernels

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:  # noqa: N802
        inside = not self._is_kernel(node) and _name(node.name) not in self._unchanged
        self._depth += inside
        return inside

    def _is_kernel(self, node: cst.FunctionDef) -> bool:
        return _name(node.name) in self._kernels and bool(node.decorators)

    def leave_FunctionDef(  # noqa: N802
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.BaseStatement:
        if not self._is_kernel(original_node):
            self._depth -= _name(original_node.name) not in self._unchanged
            return updated_node
        name = _name(original_node.name)
        kernel = self._kernel(name)
        hints = self._variable_hints(original_node) if self._depth else []
        if hints:
            kernel = cst.Call(cst.Attribute(kernel, cst.Name(_HINTED)), hints)
        assign = cst.Assign([cst.AssignTarget(cst.Name(name))], kernel)
        return cst.SimpleStatementLine([assign], leading_lines=updated_node.leading_lines)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:  # noqa: N802
        """A kernel that is made by calling ``ct.kernel``."""
        target, value = original_node.targets[0].target, original_node.value
        if isinstance(target, cst.Name) and isinstance(value, cst.Call) and _decorates(value):
            name = _name(target)
            return updated_node.with_changes(value=self._kernel(name)) if name in self._kernels else updated_node
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:  # noqa: N802
        """A kernel that is made of a plain function by host code; a registration."""
        if self._imports.resolve(original_node.func).endswith(_REGISTER):
            return updated_node.with_changes(args=_with_our_backend(updated_node.args))
        function = original_node.func.func if isinstance(original_node.func, cst.Call) else original_node.func
        first = updated_node.args[0].value if updated_node.args and not updated_node.args[0].keyword else None
        if self._imports.resolve(function) == _KERNEL and isinstance(first, cst.Name) and _name(first) in self._kernels:
            kernel = updated_node.args[0].with_changes(value=self._kernel(_name(first)))
            return updated_node.with_changes(args=[kernel, *updated_node.args[1:]])
        return updated_node

    def _variable_hints(self, node: cst.FunctionDef) -> list[cst.Arg]:
        """The hints that a decorator takes from the function around: they differ from kernel to kernel."""
        calls = [d.decorator for d in node.decorators if isinstance(d.decorator, cst.Call)]
        hints = [arg for call in calls if self._imports.resolve(call.func) == _KERNEL for arg in call.args]
        literal = (cst.Integer, cst.SimpleString)
        varying = [arg for arg in hints if arg.keyword is not None and not isinstance(arg.value, literal)]
        return [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in varying]

    def _kernel(self, name: str) -> cst.BaseExpression:
        self.uses.add(self.bindings)
        return cst.Attribute(cst.Name(self.bindings), cst.Name(name))

    # Launches

    def leave_Attribute(  # noqa: N802
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        # The name after the dot was visited like a name by itself.
        return self._replaced(original_node, updated_node.with_changes(attr=original_node.attr))

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:  # noqa: N802
        return self._replaced(original_node, updated_node)

    def _replaced(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        function = _REPLACED.get(self._imports.resolve(original))
        if function is None:
            return updated
        self.uses.add(self.runtime)
        return cst.Attribute(cst.Name(self.runtime), cst.Name(function))

    def visit_Attribute(self, node: cst.Attribute) -> bool:  # noqa: N802
        return not self._imports.resolve(node)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:  # noqa: N802
        """Keywords of calls were visited as names: put them back."""
        return updated_node.with_changes(keyword=original_node.keyword)

    # Imports, TileGym's registry

    def visit_Import(self, node: cst.Import) -> bool:  # noqa: N802
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:  # noqa: N802
        return False

    def leave_ImportFrom(  # noqa: N802
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom:
        level = len(original_node.relative)
        name = cst.helpers.get_full_name_for_node(original_node.module) if original_node.module else ""
        absolute = self._imports.absolute(level, name or "")
        if not level or absolute.startswith("."):
            return updated_node
        module = cst.parse_expression(absolute)
        assert isinstance(module, cst.Name | cst.Attribute)
        return updated_node.with_changes(relative=(), module=module, whitespace_after_from=cst.SimpleWhitespace(" "))

    def visit_Decorator(self, node: cst.Decorator) -> bool:  # noqa: N802
        """``@ct.kernel`` of what wasn't translated stays."""
        decorator = node.decorator.func if isinstance(node.decorator, cst.Call) else node.decorator
        return self._imports.resolve(decorator) != _KERNEL


def _with_our_backend(args: Sequence[cst.Arg]) -> list[cst.Arg]:
    """``register_impl(.., backend="cutile")`` must not take the place of the module it came from."""
    return [_other_backend(arg, arg.keyword is None and place == 1) for place, arg in enumerate(args)]


def _other_backend(arg: cst.Arg, positional: bool) -> cst.Arg:
    is_backend = positional or (arg.keyword is not None and arg.keyword.value == "backend")
    if not is_backend or not isinstance(arg.value, cst.SimpleString):
        return arg
    backend = _TILEGYM_BACKEND.get(str(arg.value.evaluated_value))
    return arg if backend is None else arg.with_changes(value=cst.SimpleString(f'"{backend}"'))


# -- Imports of ours ----------------------------------------------------------------------------------


def _with_imports(tree: cst.Module, codemod: _Codemod) -> cst.Module:
    """Add our imports after the module's own at its top."""
    lines = []
    if codemod.runtime in codemod.uses:
        lines.append(f"from .. import _runtime as {codemod.runtime}\n")
    if codemod.bindings in codemod.uses:
        lines.append(f"from . import _bindings as {codemod.bindings}\n")
    place = _after_imports(tree.body)
    added = [cst.parse_statement(line) for line in lines]
    return tree.with_changes(body=[*tree.body[:place], *added, *tree.body[place:]])


def _after_imports(body: Sequence[cst.BaseStatement]) -> int:
    """Return the place after the leading docstring and imports."""
    place = 0
    for i, statement in enumerate(body):
        if _is_import(statement):
            place = i + 1
        elif not (i == 0 and _is_docstring(statement)):
            break
        elif place == 0:
            place = 1
    return place


def _is_import(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(small, cst.Import | cst.ImportFrom) for small in statement.body
    )


def _is_docstring(statement: cst.BaseStatement) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, cst.SimpleString | cst.ConcatenatedString)
    )


def _with_note(tree: cst.Module, source: str) -> cst.Module:
    origin = f" from {source}" if source else ""
    note = cst.EmptyLine(
        comment=cst.Comment(f"# Generated{origin} by the cuTile transpiler: launches run Rust kernels.")
    )
    return tree.with_changes(header=[note, *tree.header])


# -- What is left over --------------------------------------------------------------------------------


class _Row(NamedTuple):
    """A top-level statement, its code, the names that it defines (see :func:`_binds`) and those that it reads."""

    statement: cst.BaseStatement
    code: str
    binds: frozenset[str]
    loads: frozenset[str]


def _without_device_code(tree: cst.Module, imports: _Imports, used_by_kernels: set[str]) -> str:
    """Print a module without what only kernels used and that needs cuda.tile, and imports that nothing uses then."""
    rows = _parsed(tree)
    dead = _device_rows(rows, imports, used_by_kernels)
    rows = [row for i, row in enumerate(rows) if i not in dead]
    used = {name for row in rows for name in row.loads}
    kept = [tree.code_for_node(line) for line in tree.header]
    space: Sequence[cst.EmptyLine] = ()
    for row in rows:
        pruned = _pruned(row.statement, used, imports)
        if pruned is None:
            space = space or _blank_lines(row.statement)
        else:
            spaced = _spaced(pruned, space)
            kept.append(row.code if spaced is row.statement else tree.code_for_node(spaced))
            space = ()
    kept += [tree.code_for_node(line) for line in tree.footer]
    text = "".join(kept)
    return text if tree.has_trailing_newline else text.removesuffix(tree.default_newline)


def _device_rows(rows: Sequence[_Row], imports: _Imports, used_by_kernels: set[str]) -> set[int]:
    """Find the statements that kernels needed, that need cuda.tile themselves, and that nothing else uses."""
    bound, loaded = [row.binds for row in rows], [row.loads for row in rows]
    reached, tile = set(used_by_kernels), {name for name in imports.bound if imports.needs_tile(name)}
    known = 0
    while known != (known := len(reached) + len(tile)):
        needed = [i for i, names in enumerate(bound) if names & reached]
        reached |= {name for i in needed for name in loaded[i]}
        tile |= {name for i in needed if loaded[i] & tile for name in bound[i]}
    dead = {i for i, names in enumerate(bound) if names & reached and loaded[i] & tile}
    while True:
        alive = {name for i, names in enumerate(loaded) if i not in dead for name in names}
        saved = {i for i in dead if bound[i] & alive}
        if not saved:
            return dead
        dead -= saved


def _blank_lines(statement: cst.BaseStatement) -> Sequence[cst.EmptyLine]:
    return [line for line in getattr(statement, "leading_lines", ()) if line.comment is None]


def _spaced(statement: cst.BaseStatement, space: Sequence[cst.EmptyLine]) -> cst.BaseStatement:
    """Give a statement the blank lines of one before it that went, unless it has some."""
    lines = getattr(statement, "leading_lines", ())
    if not space or any(line.comment is None for line in lines):
        return statement
    return statement.with_changes(leading_lines=[*space, *lines])


def _parsed(tree: cst.Module) -> list[_Row]:
    """Look at each top-level statement's syntax tree; one line may hold several small statements."""
    codes = [tree.code_for_node(statement) for statement in tree.body]
    parts = iter(ast.parse("".join(codes)).body)
    rows: list[_Row] = []
    for statement, code in zip(tree.body, codes, strict=True):
        count = len(statement.body) if isinstance(statement, cst.SimpleStatementLine) else 1
        part = ast.Module(list(islice(parts, count)), [])
        rows.append(_Row(statement, code, frozenset(_binds(part)), frozenset(_loaded(part))))
    return rows


def _loaded(tree: ast.AST) -> Iterator[str]:
    """Names that are read; the names in ``__all__`` count."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            yield from (
                c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant) and isinstance(c.value, str)
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value  # perhaps an annotation in quotes


def _binds(tree: ast.Module) -> set[str]:
    """The names that a top-level function or assignment defines; nothing for other statements."""
    match tree.body:
        case [ast.FunctionDef(name=name)]:
            return {name}
        case [ast.Assign(targets=targets)] if all(isinstance(t, ast.Name) for t in targets):
            return {t.id for t in targets if isinstance(t, ast.Name)}
        case [ast.AnnAssign(target=ast.Name(id=name))]:
            return {name}
    return set()


def _pruned(statement: cst.BaseStatement, used: set[str], imports: _Imports) -> cst.BaseStatement | None:
    """Take imports of cuda.tile that nothing uses out of a statement; None when nothing is left of it."""
    if not isinstance(statement, cst.SimpleStatementLine) or not _is_import(statement):
        return statement
    kept = [small for item in statement.body if (small := _pruned_import(item, used, imports)) is not None]
    if not kept:
        return None
    return statement if tuple(kept) == tuple(statement.body) else statement.with_changes(body=kept)


def _pruned_import(item: cst.BaseSmallStatement, used: set[str], imports: _Imports) -> cst.BaseSmallStatement | None:
    assert isinstance(item, cst.Import | cst.ImportFrom)
    if isinstance(item.names, cst.ImportStar):
        return item
    names = [alias for alias in item.names if (name := _bound_name(alias)) in used or not imports.needs_tile(name)]
    if len(names) == len(item.names):
        return item
    if not names:
        return None
    names[-1] = names[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return item.with_changes(names=names)


def _bound_name(alias: cst.ImportAlias) -> str:
    name = identifier(alias.evaluated_alias or alias.evaluated_name)
    return name.partition(".")[0]
