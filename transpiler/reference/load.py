"""Worker side: turn a closure's text into a ``cuda.tile`` kernel object.

Functions are compiled, never called; constants are evaluated by expressions that :mod:`.safe` allows; imports reach
the external modules listed there and the closure's own modules only.
"""

from __future__ import annotations

import ast
import importlib
import linecache
from types import ModuleType
from typing import Any

from cuda import tile

from transpiler.reference.closure import Closure, ClosureModule, Segment
from transpiler.reference.safe import CONSTANT_ROOTS, PURE_BUILTINS, dotted, is_enum_class, unsafe_part
from transpiler.reference.source import is_external
from transpiler.reference.torch_stub import make_torch


class LoadError(Exception):
    """A closure that can't be rebuilt: code, message and place."""

    def __init__(self, code: str, message: str, file: str, line: int) -> None:
        super().__init__(message)
        self.code = code
        self.file = file
        self.line = line


class LoadedKernel:
    """A kernel object and the source lines that the reference compiler has to see when it reads it."""

    def __init__(self, closure: Closure) -> None:
        self._lines = {module.display: _overlay(module) for module in closure.modules}
        loader = _Loader(closure)
        self.kernel = loader.load()

    def activate(self) -> None:
        """Make ``inspect`` find this closure's lines under the display paths; closures of one file differ in them."""
        for display, lines in self._lines.items():
            linecache.cache[display] = (sum(map(len, lines)), None, lines, display)


def _overlay(module: ClosureModule) -> list[str]:
    """Return the module's text with empty lines for everything that isn't in the closure."""
    last = max((s.line + s.text.count("\n") for s in module.segments), default=0)
    lines = ["\n"] * last
    for segment in module.segments:
        for number, text in enumerate(segment.text.split("\n"), segment.line - 1):
            if lines[number] == "\n":  # what a call adds on a function's last line isn't the source of anything
                lines[number] = text + "\n"
    return lines


class _Loader:
    def __init__(self, closure: Closure) -> None:
        self._closure = closure
        self._modules = {module.name: ModuleType(module.name) for module in closure.modules}
        self._deferred: list[tuple[dict[str, Any], str, str, str, str, int]] = []
        self._torch = make_torch(tile)

    def load(self) -> Any:
        for module in self._closure.modules:
            for segment in module.segments:
                self._run(module, segment)
        for namespace, name, source, attribute, file, line in self._deferred:
            namespace[name] = self._attribute(source, attribute, file, line)
        main = self._closure.modules[-1]
        kernel = vars(self._modules[main.name]).get(self._closure.kernel)
        if not isinstance(kernel, tile.kernel):
            raise LoadError("E0214", f"the closure has no kernel `{self._closure.kernel}`", main.display, 1)
        return kernel

    def _run(self, module: ClosureModule, segment: Segment) -> None:
        namespace = vars(self._modules[module.name])
        try:
            for node in _parse(segment, module.display):
                self._statement(node, namespace, module, segment)
        except LoadError:
            raise
        except Exception as exc:
            what = f"{type(exc).__name__}: {exc}"
            raise LoadError("E0218", f"a constant can't be evaluated: {what}", module.display, segment.line) from exc

    def _statement(self, node: ast.stmt, namespace: dict[str, Any], module: ClosureModule, segment: Segment) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node, namespace, module.display, segment.line)
            return
        if isinstance(node, ast.FunctionDef):
            _prepare_function(node, namespace)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            node = ast.copy_location(ast.Assign([node.target], node.value), node)
        if not _allowed(node, namespace):
            raise LoadError(
                "E0214", "the closure holds a statement that is never evaluated", module.display, segment.line
            )
        code = compile(ast.Module([node], []), module.display, "exec", dont_inherit=True)
        exec(code, namespace)

    # Imports

    def _import(self, node: ast.Import | ast.ImportFrom, namespace: dict[str, Any], file: str, line: int) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                namespace[name] = self._module(alias.name, alias.asname is not None, file, line)
            return
        source = node.module or ""
        for alias in node.names:
            target = self._modules.get(source)
            if target is not None and alias.name not in vars(target) and f"{source}.{alias.name}" not in self._modules:
                self._deferred.append((namespace, alias.asname or alias.name, source, alias.name, file, line))
            else:
                namespace[alias.asname or alias.name] = self._attribute(source, alias.name, file, line)

    def _module(self, name: str, whole: bool, file: str, line: int) -> Any:
        """Return the module called ``name``, or for ``import a.b`` its top-level package."""
        top = name.partition(".")[0]
        if name in self._modules:
            return self._modules[name] if whole else self._package(name)
        if top == "torch":
            return self._torch
        if not is_external(name):
            raise LoadError("E0204", f"the closure imports `{name}`", file, line)
        try:
            module = importlib.import_module(name)
            return module if whole else importlib.import_module(top)
        except ImportError as exc:
            raise LoadError("E0204", f"`{name}` can't be imported: {exc}", file, line) from exc

    def _package(self, name: str) -> ModuleType:
        parts = name.split(".")
        for depth in range(len(parts) - 1, 0, -1):
            outer = self._modules.setdefault(".".join(parts[:depth]), ModuleType(".".join(parts[:depth])))
            setattr(outer, parts[depth], self._modules[".".join(parts[: depth + 1])])
        return self._modules[parts[0]]

    def _attribute(self, source: str, name: str, file: str, line: int) -> Any:
        inner = f"{source}.{name}" if source else name
        if source not in self._modules and inner in self._modules:
            return self._modules[inner]
        module = self._module(source, True, file, line)
        if hasattr(module, name):
            return getattr(module, name)
        if inner in self._modules or (is_external(source) and source.partition(".")[0] != "torch"):
            return self._module(inner, True, file, line)
        raise LoadError("E0203", f"`{name}` is not defined in `{source}`", file, line)


def _parse(segment: Segment, file: str) -> list[ast.stmt]:
    """Parse a piece at its original line, indented ones (methods of a branch or factory) included."""
    if segment.text[:1].isspace():
        tree = ast.parse("if True:\n" + segment.text, file)
        ast.increment_lineno(tree, segment.line - 2)
        outer = tree.body[0]
        assert isinstance(outer, ast.If)
        return outer.body
    tree = ast.parse(segment.text, file)
    ast.increment_lineno(tree, segment.line - 1)
    return tree.body


def _allowed(node: ast.stmt, namespace: dict[str, Any]) -> bool:
    """Whether a statement runs nothing but what :mod:`.safe` allows; a stored closure may have been changed."""
    if isinstance(node, ast.FunctionDef):
        evaluated = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None), *node.decorator_list]
        return all(_may_evaluate(expression, namespace) for expression in evaluated)
    if isinstance(node, ast.ClassDef):
        members = [s.value for s in node.body if isinstance(s, ast.Assign)]
        return is_enum_class(node) and all(_may_evaluate(value, namespace) for value in members)
    return isinstance(node, ast.Assign) and _may_evaluate(node.value, namespace)


def _may_evaluate(node: ast.expr, namespace: dict[str, Any]) -> bool:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    return unsafe_part(node) is None and all(_may_call(call, namespace) for call in calls)


def _may_call(call: ast.Call, namespace: dict[str, Any]) -> bool:
    parts = dotted(call.func) or ("",)
    if parts[0] not in namespace:
        return len(parts) == 1 and parts[0] in PURE_BUILTINS
    value = namespace[parts[0]]
    for part in parts[1:]:
        value = getattr(value, part, None)
    owner = value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", ""))
    return owner.partition(".")[0] in CONSTANT_ROOTS


def _prepare_function(node: ast.FunctionDef, namespace: dict[str, Any]) -> None:
    """Keep cuda.tile's decorators (any other is the identity) and the annotations that can be evaluated."""
    node.decorator_list = [d for d in node.decorator_list if _is_tile_decorator(d, namespace)]
    node.returns = None
    args = node.args
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if arg is not None and arg.annotation is not None and not _evaluable(arg.annotation, namespace):
            arg.annotation = None


def _is_tile_decorator(node: ast.expr, namespace: dict[str, Any]) -> bool:
    parts = dotted(node.func if isinstance(node, ast.Call) else node)
    value: Any = namespace.get(parts[0]) if parts else None
    for part in parts[1:] if parts else ():
        value = getattr(value, part, None)
    return value is tile.kernel or str(getattr(value, "__module__", "")).startswith("cuda.tile")


def _evaluable(node: ast.expr, namespace: dict[str, Any]) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return False
    if unsafe_part(node) is not None or any(isinstance(n, ast.Call) for n in ast.walk(node)):
        return False
    try:
        eval(compile(ast.Expression(node), "<annotation>", "eval"), dict(namespace))
    except Exception:
        return False
    return True
