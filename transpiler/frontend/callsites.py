"""Call sites: the launches of a file's kernels, read without running the host code.

For each ``ct.launch`` (and ``exhaustive_search``): which kernels it may launch, and what is known of each argument.
What can't be found out is a warning, never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from transpiler.diagnostics import Diagnostic, Span, TranspileError
from transpiler.frontend.host_arguments import ArgKind, Argument, Constant, describe
from transpiler.frontend.host_scopes import Element, Place, Scope, argument, parameters
from transpiler.frontend.host_values import SEARCH, Resolver
from transpiler.frontend.resolve import Stamp, Workspace, dotted_parts, stamp
from transpiler.inputs import Lookups
from transpiler.ir import hir

_LAUNCHERS = {"cuda.tile.launch": (2, 3), SEARCH: (3, 4)}
"""Positions of the kernel and of the arguments among a launcher's own arguments."""
NO_LAUNCH_HELP = "give a SPEC.toml (`transpile explain E0271` shows one)"
_MAX_CALLERS = 16


@dataclass(frozen=True)
class CallSite:
    """One launch; ``arguments`` is None where the tuple can't be read.

    ``hints`` are the literal values of hints that the launch gives the kernel.
    """

    kernels: tuple[str, ...]
    arguments: tuple[Argument, ...] | None
    grid: str
    hints: tuple[tuple[str, str], ...]
    line: int


@dataclass(frozen=True)
class CallSites:
    """All launches of a file in source order, and what could not be found out about them."""

    sites: tuple[CallSite, ...]
    diagnostics: tuple[Diagnostic, ...]
    lookups: Lookups

    def of(self, kernel: str) -> tuple[CallSite, ...]:
        """The launches that may launch a kernel, those with readable arguments first."""
        found = [site for site in self.sites if kernel in site.kernels]
        return tuple(sorted(found, key=lambda site: (site.arguments is None, len(site.kernels), site.line)))


def read_call_sites(path: Path, kernels: Mapping[str, int], *, display: str | None = None) -> CallSites:
    """Read the launches of the given kernels (name to number of parameters) in the file that defines them.

    Kernels that nothing there launches are looked for in the Python files beside it that name them.  A file is read
    once a process, until something that was read for it changes.
    """
    key = path.absolute(), display, tuple(kernels.items())
    known = _read_before.get(key)
    if known is not None and all(stamp(Path(mark[0])) == mark for mark in known[0]):
        return known[1]
    found = _read(path, kernels, display)
    marks = tuple(mark for name in found.lookups.files if (mark := stamp(Path(name))) is not None)
    _read_before[key] = marks, found
    return found


_read_before: dict[tuple[Path, str | None, tuple[tuple[str, int], ...]], tuple[tuple[Stamp, ...], CallSites]] = {}


def _read(path: Path, kernels: Mapping[str, int], display: str | None) -> CallSites:
    workspace = Workspace(path, display)
    reader = _Reader(workspace, workspace.main.key, kernels)
    sites = reader.read()
    missing = kernels.keys() - {kernel for site in sites for kernel in site.kernels}
    hosts = _hosts_beside(path, missing, workspace.lookups) if missing else []
    for host in hosts:
        try:
            beside = Workspace(host, None)
        except TranspileError:
            continue  # not Python that can be read
        sites += _Reader(beside, workspace.main.key, kernels).read(quiet=True)
        workspace.lookups.add(beside.lookups)
    reader.unlaunched({kernel for site in sites for kernel in site.kernels})
    ordered = tuple(sorted(sites, key=lambda site: site.line))
    return CallSites(ordered, tuple(reader.diagnostics), workspace.lookups)


def _hosts_beside(path: Path, kernels: set[str], lookups: Lookups) -> list[Path]:
    """The files in the same folder that name a kernel and import the file."""
    found = []
    for host in lookups.python_files(path.resolve().parent):
        if host != path.resolve():
            try:
                text = host.read_text(encoding="utf-8-sig")
            except (OSError, UnicodeDecodeError):
                continue
            if path.stem in text and any(kernel in text for kernel in kernels):
                found.append(host)
    return found


class _Reader:
    """Reads the launches of one host file; ``owner`` is the module that defines the kernels."""

    def __init__(self, workspace: Workspace, owner: str, arity: Mapping[str, int]) -> None:
        self._workspace = workspace
        self._owner = owner
        self._arity = arity
        self.diagnostics: list[Diagnostic] = []
        self._resolver = Resolver(workspace, self._kernel_of)
        self._index = self._resolver.index(workspace.main.key)
        self._foreign: Resolver | None = None

    def read(self, *, quiet: bool = False) -> list[CallSite]:
        """Read every launch; ``quiet`` keeps those only whose kernel is known."""
        sites: list[CallSite] = []
        for call, scope, positions in self._launches():
            for where in self._contexts(call, scope, positions):
                sites += [site for site in self._sites(call, where, positions, quiet) if site not in sites]
        return sites

    def unlaunched(self, launched: set[str]) -> None:
        """Warn of the kernels that nothing launches."""
        for kernel in sorted(self._arity.keys() - launched):
            message = f"no launch of `{kernel}` was found in {self._workspace.main.display}"
            self._warn("W0270", message, self._kernel_span(kernel), NO_LAUNCH_HELP)

    def _kernel_of(self, node: ast.expr, scope: Scope) -> str | None:
        """The kernel that an expression names."""
        parts = dotted_parts(node)
        if parts is None:
            return None
        if len(parts) == 1 and scope.index.source.key == self._owner:
            shadowed = any(parts[0] in parameters(f) or scope.index.assigned(f, parts[0]) for f in scope.chain)
            return parts[0] if parts[0] in self._arity and not shadowed else None
        ref = self._resolver.ref(node, scope)
        known = isinstance(ref, hir.Global) and ref.module == self._owner and ref.name in self._arity
        return ref.name if known and isinstance(ref, hir.Global) else None

    def _kernel_span(self, kernel: str) -> Span:
        """The ``def`` line of a kernel."""
        for chain in self._index.functions.get(kernel, []):
            if len(chain) == 1 and isinstance(chain[0], ast.FunctionDef):
                return Span(self._workspace.main.display, chain[0].lineno, chain[0].col_offset + 1)
        return Span(self._workspace.main.display, 1, 1)

    # The launches of the file

    def _launches(self) -> Iterator[tuple[ast.Call, Scope, tuple[int, int]]]:
        """The calls of launchers, and of functions of other modules that launch what they are given."""
        for call, scope in self._index.calls:
            positions = _LAUNCHERS.get(self._resolver.external(call.func, scope))
            if positions is not None:
                yield call, scope, positions
            elif self._is_foreign(call, scope):
                yield from self._handed_on(call, scope)

    def _is_foreign(self, call: ast.Call, scope: Scope) -> bool:
        """Whether a function of another module is called with a kernel among its arguments."""
        parts = dotted_parts(call.func)
        if parts is None or parts[0] in self._index.functions:
            return False
        values = (*call.args, *(keyword.value for keyword in call.keywords))
        return any(isinstance(value, ast.Name) and self._kernel_of(value, scope) for value in values)

    def _handed_on(self, call: ast.Call, scope: Scope) -> Iterator[tuple[ast.Call, Scope, tuple[int, int]]]:
        """The launches in the function of another module, in the context of this call."""
        self._resolver.begin()
        for function, inner in list(self._resolver.callees(call, scope)):
            for launch, where in inner.index.calls:
                positions = _LAUNCHERS.get(self._resolver.external(launch.func, where))
                if positions is not None and where.chain == (function,) and inner.index is not self._index:
                    yield launch, inner, positions

    def _contexts(self, call: ast.Call, scope: Scope, positions: tuple[int, int]) -> list[Scope]:
        """One context a caller, where the launching function is handed the kernel or its arguments as one tuple."""
        if not scope.chain or scope.vias[-1] is not None:
            return [scope]
        callers = self._index.callers_of(scope.chain[-1])
        handed_kernel = self._is_handed_kernel(argument(call, positions[0], "kernel"), scope, callers)
        arguments = argument(call, positions[1], "kernel_args")
        handed_tuple = isinstance(arguments, ast.Name) and arguments.id in parameters(scope.chain[-1])
        if not callers or not (handed_kernel or handed_tuple):
            return [scope]
        outer = scope.up(len(scope.chain) - 1)
        return [outer.into(scope.chain[-1], caller) for caller in callers[:_MAX_CALLERS]]

    def _is_handed_kernel(self, node: ast.expr | None, scope: Scope, callers: list[tuple[ast.Call, Scope]]) -> bool:
        """Whether callers say which of several kernels is launched."""
        if not isinstance(node, ast.Name) or len(self._kernels(node, scope)) < 2:
            return False
        return any(self._kernel_of(n, where) for c, where in callers for n in ast.walk(c) if isinstance(n, ast.Name))

    def _kernels(self, node: ast.expr, scope: Scope) -> frozenset[str]:
        self._resolver.begin()
        return self._resolver.kernels(node, scope)

    def _warn(self, code: str, message: str, span: Span, help_text: str) -> None:
        one = Diagnostic(code, message, help_text, "warning", span)
        if one not in self.diagnostics:
            self.diagnostics.append(one)

    # One launch

    def _sites(self, call: ast.Call, scope: Scope, positions: tuple[int, int], quiet: bool) -> Iterator[CallSite]:
        """A launch as call sites: one for each tuple that its arguments may be."""
        kernel_node = argument(call, positions[0], "kernel")
        kernels = self._kernels(kernel_node, scope) if kernel_node is not None else frozenset[str]()
        span = Span(scope.index.source.display, call.lineno, call.col_offset + 1)
        if not kernels and quiet:
            return
        if not kernels and not self._launches_elsewhere(kernel_node, scope):
            message = "the kernel of this launch can't be found out"
            self._warn("W0271", message, span, "name the kernel in the launch")
        grid = argument(call, positions[0] - 1, "grid")
        grid_text = ast.unparse(grid) if grid is not None else ""
        hints = tuple(self._hints(kernel_node, scope)) if kernel_node is not None else ()
        found = list(self._arguments(call, scope, positions))
        fitting = [t for t in found if any(self._arity[k] == len(t) for k in kernels)] or (found if not kernels else [])
        if not fitting:
            if not quiet and kernels:
                self._warn("W0272", "the arguments of this launch can't be read", span,
                           "pass a tuple, or give a SPEC.toml")  # fmt: skip
            yield CallSite(tuple(sorted(kernels)), None, grid_text, hints, call.lineno)
        for items in fitting:
            taken = tuple(sorted(k for k in kernels if self._arity[k] == len(items)))
            yield CallSite(taken, tuple(self._described(items)), grid_text, hints, call.lineno)

    def _launches_elsewhere(self, node: ast.expr | None, scope: Scope) -> bool:
        """Whether the kernel is one of another module: not ours to find."""
        if self._foreign is None:
            self._foreign = Resolver(self._workspace, self._foreign_kernel)
        self._foreign.begin()
        return node is not None and bool(self._foreign.kernels(node, scope))

    def _foreign_kernel(self, node: ast.expr, scope: Scope) -> str | None:
        """The kernel of another module that an expression names."""
        ref = self._resolver.ref(node, scope)
        if not isinstance(ref, hir.Global) or ref.module == self._owner:
            return None
        index = self._resolver.index(ref.module)
        for chain in index.functions.get(ref.name, []):
            for decorator in chain[-1].decorator_list if isinstance(chain[-1], ast.FunctionDef) else ():
                callee = decorator.func if isinstance(decorator, ast.Call) else decorator
                if len(chain) == 1 and self._resolver.external(callee, Scope(index)) == "cuda.tile.kernel":
                    return ref.name
        return None

    def _arguments(self, call: ast.Call, scope: Scope, positions: tuple[int, int]) -> Iterator[list[Place]]:
        """The tuples that a launch may pass; a search makes them by a function of its configurations."""
        self._resolver.begin()
        node = argument(call, positions[1], "kernel_args")
        if self._resolver.external(call.func, scope) != SEARCH:
            yield from self._resolver.tuples(node, scope) if node is not None else []
            return
        function, space = argument(call, positions[1], "args_fn"), argument(call, 0, "search_space")
        if function is not None:
            given: list[ast.expr] = [Element(space)] if space is not None else []
            made = ast.copy_location(ast.Call(function, given, []), call)
            yield from self._resolver.tuples(made, scope)

    def _described(self, items: list[Place]) -> Iterator[Argument]:
        for node, where in items:
            self._resolver.begin()
            yield describe(self._resolver, node, where)

    def _hints(self, node: ast.expr, scope: Scope) -> Iterator[tuple[str, str]]:
        """The hints of ``kernel.replace_hints(occupancy=2)``, written here or where the value comes from."""
        self._resolver.begin()
        for value, _ in [(node, scope), *self._resolver.step(node, scope)]:
            if isinstance(value, ast.Call) and (dotted_parts(value.func) or ("",))[-1].endswith("replace_hints"):
                yield from ((k.arg, ast.unparse(k.value)) for k in value.keywords if k.arg is not None)
                return


__all__ = [
    "NO_LAUNCH_HELP", "ArgKind", "Argument", "CallSite", "CallSites", "Constant", "read_call_sites",
]  # fmt: skip
