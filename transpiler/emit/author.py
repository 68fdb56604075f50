"""The author's functions of kernels: what host code may ask a kernel for that isn't in its ABI."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple


class Function(NamedTuple):
    """A kernel's Python function: qualified name, docstring, and its parameters where names alone don't say them."""

    qualname: str
    doc: str | None = None
    signature: str = ""


class Author(NamedTuple):
    """The author's functions of a module's kernels, and the module's dotted name."""

    functions: dict[str, Function] = {}  # noqa: RUF012 (never changed)
    origin: str = ""


def author_functions(source_text: str, kernels: Collection[str]) -> dict[str, Function]:
    """Find the functions of kernels in a module: decorated, or passed to ``ct.kernel`` under another name."""
    module = ast.parse(source_text)
    functions = {node.name: (path, node) for path, node in _functions(module, "")}
    made = dict(_made(module))
    found = {}
    for kernel in kernels:
        known = functions.get(kernel) or functions.get(made.get(kernel, ""))
        if known is not None:
            path, node = known
            found[kernel] = Function(path, ast.get_docstring(node, clean=False), _signature(node.args))
    return found


def _functions(node: ast.AST, path: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """All functions with their qualified names; of several with one name at module level the last comes last."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield from _functions(child, f"{path}{child.name}.<locals>.")
            yield f"{path}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{path}{child.name}.")
        else:
            yield from _functions(child, path)


def _made(module: ast.Module) -> Iterator[tuple[str, str]]:
    """``name = ct.kernel(function, ..)`` and ``name = ct.kernel(..)(function)``: name and function."""
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_], value=ast.Call(args=[ast.Name(id=function)])):
                yield name, function


def _signature(arguments: ast.arguments) -> str:
    """The parameters without annotations, or "" where their names say it; defaults have to be literals."""
    values = [*arguments.defaults, *(value for value in arguments.kw_defaults if value is not None)]
    plain = not (values or arguments.kwonlyargs or arguments.vararg or arguments.kwarg or arguments.posonlyargs)
    if plain or not all(isinstance(value, ast.Constant) for value in values):
        return ""
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return ast.unparse(arguments)
