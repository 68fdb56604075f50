"""Which functions of a file are kernels: decorated with ``ct.kernel``, or passed to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from transpiler.frontend.parse import SourceFile
from transpiler.frontend.resolve import Workspace, dotted_parts
from transpiler.ir import hir

KERNEL = hir.External("cuda.tile.kernel")
Chain = tuple[ast.FunctionDef, ...]
"""A function with those around it, outermost first."""

_KERNEL_CALL = re.compile(r"^(?!\s*@).*\bkernel\(", re.MULTILINE)


@dataclass(frozen=True)
class KernelSite:
    """A kernel: its name, the function, and the assignment that makes the kernel where no decorator does."""

    name: str
    owner: SourceFile
    chain: Chain
    line: int
    made_by: ast.stmt | None = None
    decorated: bool = True


def find_kernels(workspace: Workspace) -> list[KernelSite]:
    """The kernels of the main file in source order."""
    main = workspace.main
    decorated = [
        KernelSite(chain[-1].name, main, chain, chain[-1].lineno)
        for chain in main.functions
        if any(_names_kernel(workspace, d, chain[:-1]) for d in chain[-1].decorator_list)
    ]
    made = list(_made(workspace)) if _KERNEL_CALL.search(main.text) else []
    return sorted(decorated + made, key=lambda site: site.line)


def _made(workspace: Workspace) -> Iterator[KernelSite]:
    """``name = ct.kernel(fn, hints...)`` or ``name = ct.kernel(hints...)(fn)`` at module level: a kernel ``name``.

    The same call in host code makes a kernel called ``fn``.
    """
    main = workspace.main
    assigned: dict[ast.expr, tuple[str, ast.stmt]] = {
        b.value: (b.name, b.node) for bindings in main.bindings.values() for b in bindings if b.value is not None
    }
    seen: set[str] = set()
    for node in ast.walk(main.tree):
        if not isinstance(node, ast.Call) or len(node.args) != 1 or not _makes_kernel(workspace, node):
            continue
        found = _argument(workspace, node)
        if found is None:
            continue
        owner, chain = found
        name, statement = assigned.get(node, (chain[-1].name, None))
        if name not in seen and not any(_names_kernel(workspace, d, ()) for d in chain[-1].decorator_list):
            seen.add(name)
            line = statement.lineno if statement is not None else chain[-1].lineno
            yield KernelSite(name, owner, chain, line, statement, decorated=False)


def _argument(workspace: Workspace, call: ast.Call) -> tuple[SourceFile, Chain] | None:
    """The module-level function that a call has as its only argument."""
    parts = dotted_parts(call.args[0])
    ref = workspace.dotted(workspace.main, parts) if parts is not None else None
    if not isinstance(ref, hir.Global):
        return None
    owner = workspace.loaded(ref.module)
    chain = chain_of(owner, ref.name)
    return None if chain is None else (owner, chain)


def _names_kernel(workspace: Workspace, node: ast.expr, outer: Chain) -> bool:
    """Whether an expression is ``ct.kernel`` or a call of it with hints only."""
    callee = node.func if isinstance(node, ast.Call) and not node.args else node
    parts = dotted_parts(callee)
    return parts is not None and workspace.dotted(workspace.main, parts, outer[::-1]) == KERNEL


def _makes_kernel(workspace: Workspace, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Call):
        return not call.keywords and _names_kernel(workspace, call.func, ())
    return _names_kernel(workspace, call.func, ())


def chain_of(source: SourceFile, name: str) -> Chain | None:
    """The module-level function of that name, the last one if there are several."""
    nodes = [b.node for b in source.bindings.get(name, ()) if b.kind == "function"]
    return next((c for c in source.functions if nodes and c[-1] is nodes[-1]), None)
