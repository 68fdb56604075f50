"""A kernel's closure: the kernel, the helpers it reaches and the constants it reads, and nothing else.

The closure is plain text that can be stored and read back; every piece keeps the line that it has in its file, so
that locations in the bytecode and in refusals lead to the user's source.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from transpiler.diagnostics import NO_SPAN, Diagnostic, Span, TranspileError, error
from transpiler.reference.safe import CONSTANT_ROOTS, PURE_BUILTINS, dotted, is_enum_class, unsafe_part
from transpiler.reference.source import Binding, MadeKernel, SourceModule, SourceTree, is_external

_MARK = "#@ "
_TITLE = "# Closure of a cuTile Python kernel, extracted by transpile; every piece keeps its original line number."
_FORMAT = "closure 1"


@dataclass(frozen=True)
class Segment:
    """A piece of a module: the line it starts at, and its text without the last line end."""

    line: int
    text: str


@dataclass(frozen=True)
class ClosureModule:
    """The pieces of one module, in the order of their lines."""

    name: str
    display: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Closure:
    """Everything that the reference compiler needs of the user's sources; the kernel's module comes last."""

    kernel: str
    modules: tuple[ClosureModule, ...]
    diagnostics: tuple[Diagnostic, ...] = field(default=(), compare=False)

    def to_text(self) -> str:
        """Return the closure as text that :meth:`from_text` reads back."""
        rows = [_TITLE, f"{_MARK}{_FORMAT}", f"{_MARK}kernel {self.kernel}"]
        for module in self.modules:
            rows.append(f"{_MARK}module {module.name} {module.display}")
            for segment in module.segments:
                rows.append(f"{_MARK}at {segment.line} {segment.text.count(chr(10)) + 1}")
                rows.append(segment.text)
        return "\n".join(rows) + "\n"

    @property
    def digest(self) -> str:
        """The SHA-256 of the closure's text."""
        return hashlib.sha256(self.to_text().encode()).hexdigest()

    @staticmethod
    def from_text(text: str, file: str = "") -> Closure:
        """Read what :meth:`to_text` wrote (E0214 when the text is damaged)."""
        return _Reader(text, file).read()


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self._lines = text.split("\n")
        self._file = file
        self._at = 1

    def read(self) -> Closure:
        if self._field("") != _FORMAT:
            raise self._damaged("not a closure file of this version")
        kernel = self._field("kernel")
        modules: list[ClosureModule] = []
        while self._at < len(self._lines) and self._lines[self._at].strip():
            modules.append(self._module())
        if not modules:
            raise self._damaged("no module")
        return Closure(kernel, tuple(modules))

    def _module(self) -> ClosureModule:
        name, _, display = self._field("module").partition(" ")
        segments = []
        while self._at < len(self._lines) and self._lines[self._at].startswith(f"{_MARK}at "):
            numbers = self._field("at").split()
            if len(numbers) != 2 or not all(n.isdecimal() for n in numbers):
                raise self._damaged("a line number is missing")
            line, count = map(int, numbers)
            text = self._lines[self._at : self._at + count]
            if len(text) != count:
                raise self._damaged("the file ends too early")
            segments.append(Segment(line, "\n".join(text)))
            self._at += count
        return ClosureModule(name, display, tuple(segments))

    def _field(self, name: str) -> str:
        prefix = f"{_MARK}{name} " if name else _MARK
        line = self._lines[self._at] if self._at < len(self._lines) else ""
        if not line.startswith(prefix):
            raise self._damaged(f"expected `{prefix.strip()}`")
        self._at += 1
        return line[len(prefix) :]

    def _damaged(self, why: str) -> TranspileError:
        return error(
            "E0214",
            f"the stored closure is damaged: {why}",
            Span(self._file, self._at + 1, 1),
            help="translate the source again",
        )


def extract_closure(tree: SourceTree, kernel: str) -> Closure:
    """Extract the closure of a kernel of the tree's file; raises a coded error for what can't be followed."""
    return _Extractor(tree).extract(kernel)


@dataclass
class _Parts:
    module: SourceModule
    segments: dict[tuple[int, int, str], Segment] = field(default_factory=dict)


class _Extractor:
    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._parts: dict[str, _Parts] = {}
        self._order: list[str] = []
        self._done: set[tuple[str, str]] = set()
        self._diagnostics: list[Diagnostic] = []

    def extract(self, kernel: str) -> Closure:
        main = self._tree.main
        made = self._tree.made_kernels().get(kernel)
        self._enter(main)
        if made is not None:
            self._made(main, made)
        else:
            self._kernel(main, self._find_kernel(kernel))
        self._leave(main)
        modules = tuple(self._finished(self._parts[name]) for name in self._order)
        return Closure(kernel, modules, tuple(self._diagnostics))

    def _find_kernel(self, kernel: str) -> tuple[ast.FunctionDef, ...]:
        main = self._tree.main
        chains = main.functions.get(kernel, [])
        kernels = [c for c in chains if self._tree.kernel_decorator(main, c[-1]) is not None]
        if kernels:
            return kernels[-1]
        if chains:
            raise error(
                "E0202",
                f"`{kernel}` is not a kernel",
                main.span(chains[-1][-1]),
                help="decorate it with @ct.kernel, or name another kernel",
            )
        names = ", ".join(info.name for info in self._tree.kernels()) or "none"
        raise error(
            "E0202",
            f"there is no kernel `{kernel}` in {main.display}",
            Span(main.display, 1, 1),
            help=f"kernels of this file: {names}",
        )

    # Modules in dependency order: a module is appended when everything it needs is known.

    def _enter(self, module: SourceModule) -> None:
        self._parts.setdefault(module.name, _Parts(module))

    def _leave(self, module: SourceModule) -> None:
        if module.name in self._order:
            self._order.remove(module.name)
        self._order.append(module.name)

    def _finished(self, parts: _Parts) -> ClosureModule:
        segments = tuple(segment for _, segment in sorted(parts.segments.items()))
        return ClosureModule(parts.module.name, parts.module.display, segments)

    def _add(self, module: SourceModule, node: ast.stmt, text: str | None = None) -> None:
        """Keep a statement: whole lines of a function or class, the exact text of another one."""
        first = node.lineno
        if text is None and isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            text = "".join(module.lines[first - 1 : node.end_lineno]).rstrip("\n")
        elif text is None:
            text = ast.get_source_segment(module.text, node) or ast.unparse(node)
        self._parts[module.name].segments[first, node.col_offset, text] = Segment(first, text)

    # Functions

    def _kernel(self, module: SourceModule, chain: tuple[ast.FunctionDef, ...]) -> None:
        function = chain[-1]
        decorator = self._tree.kernel_decorator(module, function)
        assert decorator is not None
        self._done.add((module.name, function.name))
        self._add(module, function)
        self._annotations(module, function)
        for name in _names(decorator):
            self._scoped(module, name.id, chain[:-1], module.span(name), hint=True)
        self._body(module, chain)

    def _made(self, module: SourceModule, made: MadeKernel) -> None:
        """A kernel that a call makes of a plain function; without a name of its own it takes the function's."""
        place: ast.stmt = made.statement or module.tree.body[-1]
        self._need(module, made.function, module.span(place))
        for binding in module.bindings[made.function]:
            if isinstance(binding.node, ast.FunctionDef):
                self._annotations(module, binding.node)
                place = made.statement or ast.Pass(lineno=binding.node.end_lineno or 1, col_offset=0)
        hints = made.hints if made.statement is not None else ()
        for expression in (made.kernel, *(hint.value for hint in hints)):
            self._expression(module, expression, (), f"a hint of `{made.name}`")
        call = ast.Call(made.kernel, [ast.Name(made.function)], list(hints))
        self._add(module, place, f"{made.name} = {ast.unparse(call)}")

    def _annotations(self, module: SourceModule, function: ast.FunctionDef) -> None:
        arguments = function.args
        for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self._annotation(module, arg.annotation)

    def _body(self, module: SourceModule, chain: tuple[ast.FunctionDef, ...]) -> None:
        function = chain[-1]
        places = {n.id: module.span(n) for n in reversed(list(_names(function)))}
        optional = _only_in_annotations(function)
        for name in sorted(module.names_used(function)):
            span = places.get(name, module.span(function))
            self._scoped(module, name, chain[:-1], span, optional=name in optional)
        for default in (*function.args.defaults, *(d for d in function.args.kw_defaults if d is not None)):
            self._expression(module, default, chain[:-1], f"a default of `{function.name}`")
        self._module_attributes(module, function)

    def _scoped(
        self,
        module: SourceModule,
        name: str,
        outer: tuple[ast.FunctionDef, ...],
        span: Span,
        *,
        hint: bool = False,
        optional: bool = False,
    ) -> None:
        """Resolve a name used in a function that may stand inside other functions."""
        for depth in range(len(outer), 0, -1):
            owner = outer[depth - 1]
            if name in _locals(owner):
                self._from_factory(module, name, outer[:depth], span, hint)
                return
        self._need(module, name, span, optional=optional)

    def _from_factory(
        self, module: SourceModule, name: str, outer: tuple[ast.FunctionDef, ...], span: Span, hint: bool
    ) -> None:
        owner = outer[-1]
        if (module.name, f"{owner.name}.{name}") in self._done:
            return
        self._done.add((module.name, f"{owner.name}.{name}"))
        if name in module.bindings:
            raise error("E0216", f"`{name}` is a name of `{owner.name}` and of the module", span, help="rename one")
        default = _default_of(owner, name)
        nested = [n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == name]
        assigned = [
            n
            for n in ast.walk(owner)
            if isinstance(n, ast.Assign | ast.AnnAssign | ast.AugAssign)
            and any(isinstance(t, ast.Name) and t.id == name for t in _targets(n))
        ]
        if len(nested) == 1 and not assigned:
            self._add(module, nested[0])
            self._body(module, (*outer, nested[0]))
        elif default is not None and not assigned:
            self._expression(module, default, outer[:-1], f"the default of `{name}`")
            self._add(module, owner, f"{name} = {ast.unparse(default)}")
        elif len(assigned) == 1 and isinstance(assigned[0], ast.Assign) and assigned[0] in owner.body:
            self._expression(module, assigned[0].value, outer, f"`{name}`")
            self._add(module, assigned[0])
        elif hint:
            self._add(module, owner, f"{name} = None")
            self._diagnostics.append(
                Diagnostic(
                    "W0202",
                    f"the hint `{name}` is an argument of `{owner.name}`: it is taken from the specialization",
                    "state the hint in the specialization",
                    "warning",
                    span,
                )
            )
        else:
            raise error(
                "E0217",
                f"`{name}` is computed by `{owner.name}`, which is not run",
                span,
                help="pass it to the kernel as a ct.Constant parameter",
            )

    def _annotation(self, module: SourceModule, node: ast.expr | None) -> None:
        """Resolve an annotation's names where they can be; the others make the annotation be dropped."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return
        for name in _names(node) if node is not None else ():
            try:
                self._need(module, name.id, NO_SPAN, optional=True)
            except TranspileError:
                continue

    # Names

    def _need(self, module: SourceModule, name: str, span: Span, *, optional: bool = False) -> None:
        if (module.name, name) in self._done:
            return
        binding = self._choose(module, name, span)
        if binding is None:
            if not self._from_star(module, name, span) and name not in vars(builtins) and not optional:
                raise error(
                    "E0203",
                    f"`{name}` is not defined in {module.display}",
                    span,
                    help="define it in this file or import it from a module beside it",
                )
            return
        self._done.add((module.name, name))
        try:
            self._bind(module, binding, span)
        except TranspileError:
            self._done.discard((module.name, name))
            if not optional:
                raise

    def _choose(self, module: SourceModule, name: str, span: Span) -> Binding | None:
        bindings = module.bindings.get(name, [])
        if len(bindings) < 2:
            return bindings[0] if bindings else None
        if all(b.is_import for b in bindings):
            return next((b for b in bindings if self._followable(b)), bindings[0])
        if any(b.conditional or isinstance(b.node, ast.AugAssign) for b in bindings):
            raise error(
                "E0216",
                f"`{name}` is bound in several places of {module.display}",
                span,
                help="bind it once, without a condition",
            )
        return bindings[-1]

    def _followable(self, binding: Binding) -> bool:
        return is_external(binding.module) or self._tree.module(binding.module) is not None

    def _bind(self, module: SourceModule, binding: Binding, span: Span) -> None:
        node = binding.node
        if binding.is_import:
            self._import(module, binding, span)
        elif isinstance(node, ast.FunctionDef):
            self._add(module, node)
            self._body(module, (node,))
        elif isinstance(node, ast.ClassDef) and is_enum_class(node):
            members = {n.id for n in _names(node) if isinstance(n.ctx, ast.Store)}
            for name in _names(node):
                if name.id not in members:
                    self._need(module, name.id, module.span(name))
            self._add(module, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            self._expression(module, node.value, (), f"`{binding.name}`")
            self._add(module, node)
        else:
            raise error(
                "E0215",
                f"`{binding.name}` can't be evaluated without running {module.display}",
                module.span(node),
                help="make it a literal, or pass it as a ct.Constant parameter",
            )

    def _import(self, module: SourceModule, binding: Binding, span: Span) -> None:
        if is_external(binding.module):
            self._add(module, binding.node, binding.statement)
            return
        target = self._tree.module(binding.module)
        if target is None:
            raise error(
                "E0204",
                f"`{binding.name}` comes from `{binding.module}`, whose source is not found",
                span,
                help="move the function next to the kernel, or install the package",
            )
        self._enter(target)
        if binding.attribute:
            inner = f"{binding.module}.{binding.attribute}"
            if binding.attribute in target.bindings or target.star_imports or self._tree.module(inner) is None:
                self._need(target, binding.attribute, span)
            self._leave(target)
        self._add(module, binding.node, binding.statement)

    def _from_star(self, module: SourceModule, name: str, span: Span) -> bool:
        for source in module.star_imports:
            text = f"from {source} import {name}"
            node = ast.Pass(lineno=1, col_offset=0)
            if is_external(source) and name not in vars(builtins):
                self._add(module, node, text)
                return True
            target = None if is_external(source) else self._tree.module(source)
            if target is not None and name in target.bindings:
                self._enter(target)
                self._need(target, name, span)
                self._leave(target)
                self._add(module, node, text)
                return True
        return False

    # Expressions

    def _expression(self, module: SourceModule, node: ast.expr, outer: tuple[ast.FunctionDef, ...], what: str) -> None:
        """Resolve the names of an expression that the worker evaluates; refuse one that would run code."""
        unsafe = unsafe_part(node) or next((c for c in self._calls(node) if not self._may_call(module, c)), None)
        if unsafe is not None:
            raise error(
                "E0215",
                f"{what} is computed by code that is not run: `{ast.unparse(unsafe)}`",
                module.span(unsafe),
                help="make it a literal, or pass it as a ct.Constant parameter",
            )
        for name in _names(node):
            self._scoped(module, name.id, outer, module.span(name))
        self._module_attributes(module, node)

    @staticmethod
    def _calls(node: ast.expr) -> Iterator[ast.Call]:
        return (n for n in ast.walk(node) if isinstance(n, ast.Call))

    def _may_call(self, module: SourceModule, call: ast.Call) -> bool:
        parts = dotted(call.func)
        if parts is None:
            return False
        if len(parts) == 1 and parts[0] not in module.bindings and parts[0] in PURE_BUILTINS:
            return True
        full = self._tree.qualified(module, call.func)
        return full is not None and full.partition(".")[0] in CONSTANT_ROOTS

    def _module_attributes(self, module: SourceModule, node: ast.AST) -> None:
        """Resolve `helpers.f` where `helpers` is a module of the user's."""
        for inner in ast.walk(node):
            parts = dotted(inner) if isinstance(inner, ast.Attribute) else None
            if parts is None or not any(
                b.is_import and not is_external(b.module) for b in module.bindings.get(parts[0], [])
            ):
                continue
            assert isinstance(inner, ast.Attribute)
            self._module_attribute(module, parts, module.span(inner))

    def _module_attribute(self, module: SourceModule, parts: tuple[str, ...], span: Span) -> None:
        binding = self._choose(module, parts[0], span)
        assert binding is not None
        name = f"{binding.module}.{binding.attribute}" if binding.attribute else binding.module
        for part in parts[1:]:
            target = self._tree.module(name)
            if target is None:
                return
            if part in target.bindings:
                self._enter(target)
                self._need(target, part, span)
                self._leave(target)
                return
            name = f"{name}.{part}"


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Name))


def _targets(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> Iterable[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else (node.target,)


def _locals(function: ast.FunctionDef) -> set[str]:
    args = function.args
    names = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    names |= {n.id for s in function.body for n in _names(s) if isinstance(n.ctx, ast.Store)}
    return names | {n.name for n in function.body if isinstance(n, ast.FunctionDef)}


def _default_of(function: ast.FunctionDef, name: str) -> ast.expr | None:
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    for arg, default in zip(reversed(plain), reversed(args.defaults), strict=False):
        if arg.arg == name:
            return default
    return next((d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if a.arg == name), None)


def _only_in_annotations(function: ast.FunctionDef) -> set[str]:
    """Names that a body reads in annotations of local variables only, which are never evaluated."""
    inside: set[int] = set()
    for node in ast.walk(function):
        annotation = node.annotation if isinstance(node, ast.AnnAssign | ast.arg) else None
        if annotation is not None:
            inside |= {id(n) for n in ast.walk(annotation)}
    if function.returns is not None:
        inside |= {id(n) for n in ast.walk(function.returns)}
    names = list(_names(function))
    return {n.id for n in names if id(n) in inside} - {n.id for n in names if id(n) not in inside}
