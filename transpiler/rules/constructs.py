"""The constructs of Python that kernels are made of, besides calls: what each becomes.

Those that have no meaning in a kernel are in :mod:`transpiler.frontend.constructs`.
"""

from __future__ import annotations

from transpiler.ir import hir

CONSTRUCTS: dict[str, str] = {
    "assignment": "a name for a value; augmented assignment is the operator, then an assignment",
    "unpacking": "names for the items of a tuple",
    "expression statement": "evaluated for its effect",
    "if, at run time": "a branch whose results are the names that it assigns",
    "if, when translating": "the branch that the constants choose; what they chose is a condition of the entry",
    "for": "a counted loop that carries the names it assigns",
    "for, when translating": "the body once for each item of ct.static_iter",
    "while": "a loop that tests its condition first",
    "break": "leaves the loop with the values of that place",
    "continue": "the next iteration, with the values of that place",
    "return": "the value of a function; what follows moves into the branches that go on",
    "conditional expression, at run time": "a branch with one result",
    "conditional expression, when translating": "the side that the constants choose",
    "and/or, at run time": "short-circuit evaluation: a branch with one result",
    "and/or, when translating": "Python's own result",
    "star": "the items of a tuple among those of another, or as arguments",
    "tuple": "kept while translating; its items are values",
    "attribute": "a property or a method of a tile, an array or a view",
    "module-level constant": "its value",
    "helper function": "specialized where it is called, and a Rust function again where its operations survive",
    "keyword argument": "bound by the rule's signature",
    "default argument": "a helper's default, evaluated where it is called",
}

STATEMENTS: dict[type[hir.Stmt], str] = {
    hir.ExprStmt: "expression statement", hir.For: "for", hir.While: "while", hir.Break: "break",
    hir.Continue: "continue", hir.Return: "return",
}  # fmt: skip
"""Statements that are one construct whatever their operands are."""
