"""Which expressions of a module may be evaluated to rebuild a kernel's constants.

The closure runs none of the user's code but such expressions: literals, operators on them, names,
and calls of a few pure builtins or of functions of the external modules listed here.
"""

from __future__ import annotations

import ast

EXTERNAL_ROOTS = frozenset({
    "builtins", "collections", "cuda", "dataclasses", "enum", "functools", "math", "ml_dtypes", "numpy", "operator",
    "torch", "types", "typing", "typing_extensions",
})  # fmt: skip
"""Top-level modules that a closure may import; ``torch`` is replaced by a stub that only knows dtypes."""

CONSTANT_ROOTS = frozenset({"cuda", "math", "ml_dtypes", "numpy", "operator", "torch", "typing"})
"""External modules whose functions a constant's expression may call."""

PURE_BUILTINS = frozenset({
    "abs", "bool", "dict", "divmod", "float", "frozenset", "int", "len", "list", "max", "min", "pow", "range",
    "round", "set", "slice", "sorted", "str", "sum", "tuple",
})  # fmt: skip

_PLAIN_NODES = (
    ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List,
    ast.Dict, ast.Set, ast.Subscript, ast.Slice, ast.Starred, ast.keyword, ast.JoinedStr, ast.FormattedValue,
    ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


def root_name(node: ast.expr) -> str | None:
    """Return the name that a dotted expression starts with, or None for any other expression."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def dotted(node: ast.expr) -> tuple[str, ...] | None:
    """Return the parts of a dotted name such as ``ct.PaddingMode.ZERO``, or None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(parts))


def unsafe_part(node: ast.expr) -> ast.expr | None:
    """Return the first sub-expression that can't be evaluated without running code, or None.

    Calls are allowed here when they call a dotted name; :mod:`.closure` decides which names.
    """
    if isinstance(node, ast.Attribute):
        return unsafe_part(node.value) if not node.attr.startswith("__") else node
    if isinstance(node, ast.Call):
        if dotted(node.func) is None:
            return node
    elif not isinstance(node, _PLAIN_NODES):
        return node
    for child in ast.iter_child_nodes(node):
        inner = child.value if isinstance(child, ast.keyword) else child
        if isinstance(inner, ast.expr):
            found = unsafe_part(inner)
            if found is not None:
                return found
    return None


def is_enum_class(node: ast.ClassDef) -> bool:
    """Tell whether a class has plain names as bases and a body of assignments only, as enumerations do."""
    if node.decorator_list or node.keywords or not all(dotted(base) for base in node.bases):
        return False
    return all(_is_plain_member(statement) for statement in node.body)


def _is_plain_member(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return all(isinstance(t, ast.Name) for t in node.targets) and unsafe_part(node.value) is None
    return isinstance(node, ast.Pass)
