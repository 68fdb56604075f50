"""HIR as text, the language of the front end's tests: one statement a line.

``::name`` is a module-level name of the same module, ``module::name`` one of another; external
things stand under their qualified names; ``<E0233 a lambda>`` is what can't be expressed.
"""

from __future__ import annotations

from collections.abc import Iterator

from transpiler.ir import hir

_INDENT = "    "


def print_program(program: hir.Program, *, comments: bool = False) -> str:
    """Every module of a program: constants, then functions."""
    return "\n".join(_module(m, comments) for m in program.modules.values() if m.constants or m.functions)


def print_function(function: hir.Function, *, comments: bool = False) -> str:
    """A function with its decorators, parameters and statements."""
    return "\n".join(_Printer(function.module, comments).function(function)) + "\n"


def print_expr(expr: hir.Expr, module: str = "") -> str:
    """An expression, seen from ``module``."""
    return _Printer(module, comments=False).expr(expr)


def _module(module: hir.Module, comments: bool) -> str:
    printer = _Printer(module.key, comments)
    lines = [f"module {module.key}"]
    lines += [f"::{name} = {printer.expr(value)}" for name, value in module.constants.items()]
    for function in module.functions.values():
        lines += ["", *printer.function(function)]
    return "\n".join(lines) + "\n"


class _Printer:
    def __init__(self, module: str, comments: bool) -> None:
        self._module = module
        self._comments = comments

    # Functions

    def function(self, function: hir.Function) -> Iterator[str]:
        yield from self._above(function.comments, "")
        yield from (f"@{self.expr(decorator)}" for decorator in function.decorators)
        if self._comments and any(p.comment for p in function.params):
            yield f"def {function.name}("
            for param in function.params:
                yield f"{_INDENT}{self._param(param)}," + (f"  # {param.comment}" if param.comment else "")
            yield "):"
        else:
            yield f"def {function.name}({', '.join(map(self._param, function.params))}):"
        if self._comments and function.docstring:
            yield f"{_INDENT}{function.docstring!r}"
        yield from self._block(function.body, _INDENT)
        yield from self._above(function.trailing_comments, _INDENT)

    def _param(self, param: hir.Param) -> str:
        annotation = "" if param.annotation is None else f": {self.expr(param.annotation)}"
        default = "" if param.default is None else f" = {self.expr(param.default)}"
        return f"{param.name}{annotation}{default}"

    def _above(self, comments: tuple[str, ...], indent: str) -> Iterator[str]:
        if self._comments:
            yield from (f"{indent}# {comment}".rstrip() for comment in comments)

    # Statements

    def _block(self, body: tuple[hir.Stmt, ...], indent: str) -> Iterator[str]:
        if not body:
            yield f"{indent}pass"
        for statement in body:
            yield from self._statement(statement, indent)

    def _statement(self, s: hir.Stmt, indent: str) -> Iterator[str]:
        yield from self._above(s.comments, indent)
        trailing = f"  # {s.trailing}" if self._comments and s.trailing else ""
        yield f"{indent}{self._head(s)}{trailing}"
        match s:
            case hir.If():
                yield from self._block(s.then, indent + _INDENT)
                if s.orelse:
                    yield f"{indent}else:"
                    yield from self._block(s.orelse, indent + _INDENT)
            case hir.For() | hir.While():
                yield from self._block(s.body, indent + _INDENT)
            case _:
                pass

    def _head(self, s: hir.Stmt) -> str:
        match s:
            case hir.Assign():
                return f"{self._target(s.target)} = {self.expr(s.value)}"
            case hir.ExprStmt():
                return self.expr(s.value)
            case hir.If():
                return f"if {self.expr(s.cond)}:"
            case hir.For():
                return f"for {self._target(s.target)} in {self.expr(s.iterable)}:"
            case hir.While():
                return f"while {self.expr(s.cond)}:"
            case hir.Return():
                return "return" if s.value is None else f"return {self.expr(s.value)}"
            case hir.Break():
                return "break"
            case hir.Continue():
                return "continue"
            case hir.Hole():
                return f"<{s.code} {s.what}>"
            case _:
                raise TypeError(type(s).__name__)

    def _target(self, target: hir.Target) -> str:
        return target.name if target.name is not None else _tuple([self._target(item) for item in target.items])

    # Expressions

    def expr(self, e: hir.Expr) -> str:
        match e:
            case hir.Const():
                return "..." if e.value is Ellipsis else repr(e.value)
            case hir.Local() | hir.External():
                return e.name
            case hir.Global():
                return f"{'' if e.module == self._module else e.module}::{e.name}"
            case hir.Tuple_():
                return _tuple([self.expr(item) for item in e.items])
            case hir.Star():
                return f"*{self.expr(e.value)}"
            case hir.Attr():
                value = self.expr(e.value)
                return f"({value}).{e.name}" if isinstance(e.value, hir.Const) else f"{value}.{e.name}"
            case hir.Call():
                args = [self.expr(a) for a in e.args] + [f"{name}={self.expr(a)}" for name, a in e.kwargs]
                return f"{self.expr(e.func)}({', '.join(args)})"
            case hir.IfExp():
                return f"({self.expr(e.then)} if {self.expr(e.cond)} else {self.expr(e.orelse)})"
            case hir.BoolOp():
                return f"({self.expr(e.left)} {e.op} {self.expr(e.right)})"
            case hir.Unsupported():
                return f"<{e.code} {e.what}>"


def _tuple(items: list[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
