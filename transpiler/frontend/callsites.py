"""Call sites: the launches of a file's kernels, read without running the host code.

For each ``ct.launch`` (and ``exhaustive_search``): which kernels it may launch, and what is known of each argument.
What can't be found out is a warning, never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transpiler.diagnostics import Diagnostic, Span
from transpiler.frontend.resolve import Workspace, dotted_parts
from transpiler.ir import hir

ArgKind = Literal["tensor", "int", "float", "bool", "str", "unknown"]
Constant = bool | int | float | str

_LAUNCHERS = {"cuda.tile.launch": (2, 3), "cuda.tile.tune.exhaustive_search": (3, 4)}
"""Positions of the kernel and of the arguments among a launcher's own arguments."""
_CREATORS = frozenset({"empty", "zeros", "ones", "full", "rand", "randn", "tensor", "arange"})
_SAME = frozenset({"contiguous", "clone", "detach", "empty_like", "zeros_like", "ones_like", "requires_grad_"})
_RESHAPERS = frozenset({"view", "reshape"})
_MAX_DEPTH = 6
NO_LAUNCH_HELP = "give a SPEC.toml (`transpile explain E0271` shows one)"
_RETURN = "return"
_Chain = tuple[ast.FunctionDef, ...]


@dataclass(frozen=True)
class Argument:
    """What a call site says of one argument of a kernel.

    ``value`` is a literal that the host code passes, ``choices`` are the literals where a variable may have several;
    ``like`` is another argument with the same dtype.
    """

    text: str
    line: int
    kind: ArgKind = "unknown"
    value: Constant | None = None
    choices: tuple[Constant, ...] = ()
    power_of_two: bool = False
    dtype: str | None = None
    rank: int | None = None
    like: str = ""


@dataclass(frozen=True)
class CallSite:
    """One launch; ``arguments`` is None where the tuple can't be read."""

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

    def of(self, kernel: str) -> tuple[CallSite, ...]:
        """The launches that may launch a kernel, those with readable arguments first."""
        found = [site for site in self.sites if kernel in site.kernels]
        return tuple(sorted(found, key=lambda site: (site.arguments is None, len(site.kernels), site.line)))


def read_call_sites(path: Path, kernels: Mapping[str, int], *, display: str | None = None) -> CallSites:
    """Read the launches of the given kernels (name to number of parameters) in the file that defines them."""
    return _Reader(Workspace(path, display), kernels).read()


@dataclass(frozen=True)
class _Scope:
    """A place in host code: the functions around it, outermost first; ``via`` is the call that leads there."""

    chain: _Chain
    via: tuple[ast.Call, _Scope] | None = None

    def up(self, depth: int) -> _Scope:
        """The scope of the first ``depth`` functions."""
        return self if depth == len(self.chain) else _Scope(self.chain[:depth])


class _Reader:
    def __init__(self, workspace: Workspace, arity: Mapping[str, int]) -> None:
        self._workspace = workspace
        self._source = workspace.main
        self._arity = arity
        self._diagnostics: list[Diagnostic] = []
        calls = list(_calls(self._source.tree.body, ()))
        self._launches = [
            (call, scope, positions)
            for call, scope in calls
            if (positions := _LAUNCHERS.get(self._external(call.func, scope)))
        ]
        self._callers: dict[str, list[tuple[ast.Call, _Scope]]] = {}
        for call, scope in calls:
            self._callers.setdefault((dotted_parts(call.func) or ("",))[-1], []).append((call, scope))
        self._functions: dict[str, list[_Chain]] = {}
        for chain in self._source.functions:
            self._functions.setdefault(chain[-1].name, []).append(chain)
        self._indices: dict[ast.FunctionDef, dict[str, list[ast.expr]]] = {}

    def read(self) -> CallSites:
        sites: list[CallSite] = []
        for call, scope, positions in self._launches:
            for where in self._contexts(call, scope, positions):
                site = self._site(call, where, positions)
                if site not in sites:
                    sites.append(site)
        launched = {kernel for site in sites for kernel in site.kernels}
        for kernel in sorted(self._arity.keys() - launched):
            message = f"no launch of `{kernel}` was found in {self._source.display}"
            self._warn("W0270", message, self._kernel_span(kernel), NO_LAUNCH_HELP)
        return CallSites(tuple(sorted(sites, key=lambda site: site.line)), tuple(self._diagnostics))

    def _kernel_span(self, kernel: str) -> Span:
        """The ``def`` line of a kernel."""
        for chain in self._functions.get(kernel, []):
            if len(chain) == 1:
                return Span(self._source.display, chain[0].lineno, chain[0].col_offset + 1)
        return Span(self._source.display, 1, 1)

    def _contexts(self, call: ast.Call, scope: _Scope, positions: tuple[int, int]) -> list[_Scope]:
        """One context a caller, where the launching function is handed the kernel or its arguments as one tuple."""
        if not scope.chain:
            return [scope]
        callers = self._callers.get(scope.chain[-1].name, [])
        handed_kernel = self._is_handed_kernel(_argument(call, positions[0], "kernel"), scope, callers)
        arguments = _argument(call, positions[1], "kernel_args")
        handed_tuple = isinstance(arguments, ast.Name) and arguments.id in _parameters(scope.chain[-1])
        return [_Scope(scope.chain, c) for c in callers] if callers and (handed_kernel or handed_tuple) else [scope]

    def _is_handed_kernel(self, node: ast.expr | None, scope: _Scope, callers: list[tuple[ast.Call, _Scope]]) -> bool:
        """Whether callers say which of several kernels is launched."""
        if not isinstance(node, ast.Name) or len(self._kernel_names(node, scope, 0)) < 2:
            return False
        return any(isinstance(n, ast.Name) and n.id in self._arity for c, _ in callers for n in ast.walk(c))

    def _warn(self, code: str, message: str, span: Span, help_text: str) -> None:
        self._diagnostics.append(Diagnostic(code, message, help_text, "warning", span))

    def _external(self, node: ast.expr, scope: _Scope) -> str:
        parts = dotted_parts(node)
        ref = None if parts is None else self._workspace.dotted(self._source, parts, scope.chain[::-1])
        return ref.name if isinstance(ref, hir.External) else ""

    def _site(self, call: ast.Call, scope: _Scope, positions: tuple[int, int]) -> CallSite:
        kernel_node = _argument(call, positions[0], "kernel")
        arguments_node = _argument(call, positions[1], "kernel_args") or _argument(call, positions[1], "args_fn")
        kernels = self._kernel_names(kernel_node, scope, 0) if kernel_node is not None else frozenset()
        span = Span(self._source.display, call.lineno, call.col_offset + 1)
        if not kernels:
            self._warn("W0271", "the kernel of this launch can't be found out", span, "name the kernel in the launch")
        arguments = None
        found = self._tuple(arguments_node, scope, 0) if arguments_node is not None else None
        if found is None:
            self._warn("W0272", "the arguments of this launch can't be read", span, "pass a tuple, or give a SPEC.toml")
        else:
            arguments = self._arguments(*found)
            kernels = frozenset(k for k in kernels if self._arity[k] == len(arguments)) or kernels
        grid = _argument(call, positions[0] - 1, "grid")
        hints = self._hints(kernel_node, scope) if kernel_node is not None else ()
        return CallSite(tuple(sorted(kernels)), arguments, ast.unparse(grid) if grid else "", hints, call.lineno)

    # Which kernel

    def _kernel_names(self, node: ast.expr, scope: _Scope, depth: int) -> frozenset[str]:
        """The kernels that an expression may stand for."""
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        direct = frozenset(name for name in names if name in self._arity)
        if direct or depth > _MAX_DEPTH:
            return direct
        found = frozenset[str]()
        for name in dict.fromkeys(names):
            for value, where in (*self._values(name, scope), *self._returns(name, scope)):
                found |= self._kernel_names(value, where, depth + 1)
        return found or (self._near(scope, node.id) if isinstance(node, ast.Name) else found)

    def _returns(self, name: str, scope: _Scope) -> Iterator[tuple[ast.expr, _Scope]]:
        """What a function of the file returns."""
        for chain in self._local_functions(name, scope):
            yield from ((value, _Scope(chain)) for value in self._assigned(chain[-1], _RETURN))

    def _near(self, scope: _Scope, name: str) -> frozenset[str]:
        """For an entry of a tuning cache: the kernel that the same function tunes."""
        if not scope.chain or name in _parameters(scope.chain[-1]):
            return frozenset()
        return frozenset(n.id for n in ast.walk(scope.chain[-1]) if isinstance(n, ast.Name) and n.id in self._arity)

    def _hints(self, node: ast.expr, scope: _Scope) -> tuple[tuple[str, str], ...]:
        """The hints of ``kernel.replace_hints(occupancy=2)``, written here or in an assignment."""
        nodes = [node]
        if isinstance(node, ast.Name):
            nodes += [value for value, _ in self._values(node.id, scope)]
        for value in nodes:
            if isinstance(value, ast.Call) and (dotted_parts(value.func) or ("",))[-1].endswith("replace_hints"):
                return tuple((k.arg, ast.unparse(k.value)) for k in value.keywords if k.arg is not None)
        return ()

    # Where a local name gets its value

    def _values(self, name: str, scope: _Scope) -> Iterator[tuple[ast.expr, _Scope]]:
        """The expressions that may be the value of a local name or parameter, with their scopes."""
        for depth in range(len(scope.chain), 0, -1):
            function = scope.chain[depth - 1]
            where = scope.up(depth)
            found = self._assigned(function, name)
            if found:
                yield from ((value, where) for value in found)
                return
            if name in _parameters(function):
                yield from self._passed(function, name, where)
                return
        for binding in self._source.bindings.get(name, []):
            if binding.value is not None:
                yield binding.value, _Scope(())

    def _passed(self, function: ast.FunctionDef, name: str, scope: _Scope) -> Iterator[tuple[ast.expr, _Scope]]:
        """What the callers in this file pass for a parameter, or else its default."""
        names = _parameters(function)
        for call, where in [scope.via] if scope.via is not None else self._callers.get(function.name, []):
            shift = 1 if names[:1] in (["self"], ["ctx"]) else 0
            value = _argument(call, names.index(name) - shift, name)
            if value is not None and not isinstance(value, ast.Starred):
                yield value, where
        default = _default(function, name)
        if default is not None:
            yield default, scope.up(len(scope.chain) - 1)

    # Arguments

    def _tuple(self, node: ast.expr, scope: _Scope, depth: int) -> tuple[list[ast.expr], _Scope] | None:
        """Find the tuple display that an argument expression stands for."""
        if isinstance(node, ast.Tuple | ast.List):
            starred = any(isinstance(item, ast.Starred) for item in node.elts)
            return None if starred else (list(node.elts), scope)
        if depth > _MAX_DEPTH:
            return None
        if isinstance(node, ast.Lambda):
            return self._tuple(node.body, scope, depth + 1)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._tuple(node.func, scope, depth + 1)
        if isinstance(node, ast.Name):
            for chain in self._local_functions(node.id, scope):
                returned = self._assigned(chain[-1], _RETURN)
                if len(returned) == 1:
                    where = _Scope(chain, scope.via if chain[:-1] == scope.chain else None)
                    return self._tuple(returned[0], where, depth + 1)
            for value, where in self._values(node.id, scope):
                found = self._tuple(value, where, depth + 1)
                if found is not None:
                    return found
        return None

    def _local_functions(self, name: str, scope: _Scope) -> list[_Chain]:
        """The functions that a name may stand for: those defined in the functions around, or at module level."""
        return [c for c in self._functions.get(name, []) if c[:-1] == scope.chain[: len(c) - 1]]

    def _assigned(self, function: ast.FunctionDef, name: str) -> list[ast.expr]:
        """The values that a function assigns to a name; :data:`_RETURN` stands for what it returns."""
        if function not in self._indices:
            index: dict[str, list[ast.expr]] = {}
            for target, value in _assignments(function):
                index.setdefault(target, []).append(value)
            self._indices[function] = index
        return self._indices[function].get(name, [])

    def _arguments(self, nodes: list[ast.expr], scope: _Scope) -> tuple[Argument, ...]:
        return tuple(self._describe(node, scope) for node in nodes)

    def _describe(self, node: ast.expr, scope: _Scope) -> Argument:
        known = _Known(self, scope)
        found = known.look(node, 0)
        return Argument(ast.unparse(node), node.lineno, **found)  # type: ignore[arg-type]

    def values(self, name: str, scope: _Scope) -> list[tuple[ast.expr, _Scope]]:
        """See :meth:`_values`; for the argument descriptions."""
        return list(self._values(name, scope))

    def demands(self, scope: _Scope) -> list[ast.expr]:
        """The conditions that the functions around assert, outermost first."""
        return [test for function in scope.chain for test in _asserted(function)]

    def external(self, node: ast.expr, scope: _Scope) -> str:
        """The external name that an expression stands for, or the empty string."""
        return self._external(node, scope)


class _Known:
    """What is known of a host expression: a literal, a size, a tensor and its dtype or rank."""

    def __init__(self, reader: _Reader, scope: _Scope) -> None:
        self._reader = reader
        self._scope = scope

    def look(self, node: ast.expr, depth: int) -> dict[str, object]:
        """Return the fields of :class:`Argument` that are known."""
        value = _literal(node)
        if value is not None:
            return {"kind": _kind_of(value), "value": value}
        if depth > _MAX_DEPTH:
            return {}
        match node:
            case ast.Name():
                return self._named(node, depth)
            case ast.Call():
                return self._call(node, depth)
            case ast.Subscript(value=ast.Attribute(attr="shape")):
                return {"kind": "int"}
            case ast.Compare() | ast.BoolOp():
                return {"kind": "bool"}
            case ast.UnaryOp(op=ast.Not()):
                return {"kind": "bool"}
            case ast.IfExp():
                return _common([self.look(node.body, depth + 1), self.look(node.orelse, depth + 1)])
            case ast.BinOp():
                return self._binary(node, depth)
            case _:
                return {}

    def _named(self, node: ast.Name, depth: int) -> dict[str, object]:
        found = []
        for value, where in self._reader.values(node.id, self._scope):
            if isinstance(value, ast.Name) and value.id == node.id and where == self._scope:
                continue
            found.append(_Known(self._reader, where).look(value, depth + 1))
        return self._required(node.id) | _common(found)

    def _required(self, name: str) -> dict[str, object]:
        """What the functions around demand of a tensor: ``assert x.dtype == torch.int32 and x.ndim == 2``."""
        found: dict[str, object] = {}
        for test in self._reader.demands(self._scope):
            match test:
                case ast.Compare(ast.Attribute(ast.Name(id=owner), "dtype"), [ast.Eq() | ast.In()], [wanted]):
                    known = self._dtype(_first(wanted)) if owner == name else {}
                case ast.Compare(
                    ast.Attribute(ast.Name(id=owner), "ndim") | ast.Call(ast.Attribute(ast.Name(id=owner), "dim")),
                    [ast.Eq()],
                    [ast.Constant(int() as rank)],
                ):
                    known = {"rank": rank} if owner == name else {}
                case _:
                    continue
            found |= {"kind": "tensor", **known} if known else {}
        return found

    def _binary(self, node: ast.BinOp, depth: int) -> dict[str, object]:
        left, right = self.look(node.left, depth + 1), self.look(node.right, depth + 1)
        kinds = {left.get("kind"), right.get("kind")}
        if isinstance(node.op, ast.Div) or "float" in kinds:
            return {} if "tensor" in kinds else {"kind": "float"}
        return {"kind": "int"} if "int" in kinds and "tensor" not in kinds else {}

    def _call(self, node: ast.Call, depth: int) -> dict[str, object]:
        name = (dotted_parts(node.func) or (getattr(node.func, "attr", ""),))[-1]
        if "power_of_2" in name or "power_of_two" in name or "pow2" in name:
            return {"kind": "int", "power_of_two": True}
        if name in ("int", "len", "cdiv", "ceil", "stride", "size", "numel", "element_size", "dim"):
            return {"kind": "int"}
        if name in ("float", "sqrt"):
            return {"kind": "float"}
        if name in ("min", "max") and node.args:
            found = [self.look(item, depth + 1) for item in node.args]
            return {
                "kind": _common(found).get("kind", "unknown"),
                "power_of_two": all(_is_power(item) for item in found),
            }
        if self._reader.external(node.func, self._scope).startswith("torch.") and name in _CREATORS:
            return self._created(node, name)
        if name in _SAME or name in _RESHAPERS or name == "to":
            return self._derived(node, name, depth)
        return {}

    def _created(self, node: ast.Call, name: str) -> dict[str, object]:
        found: dict[str, object] = {"kind": "tensor"}
        dtype = next((k.value for k in node.keywords if k.arg == "dtype"), None)
        if dtype is not None:
            found |= self._dtype(dtype)
        if name in ("empty", "zeros", "ones", "rand", "randn", "full") and node.args:
            shape = node.args[0]
            if isinstance(shape, ast.Tuple | ast.List):
                found["rank"] = len(shape.elts)
            elif name != "full" and len(node.args) > 1:
                found["rank"] = len(node.args)
        return found

    def _derived(self, node: ast.Call, name: str, depth: int) -> dict[str, object]:
        """A tensor made from another: the same dtype, and the same rank unless it is reshaped."""
        is_function = isinstance(node.func, ast.Attribute) and self._reader.external(node.func, self._scope).startswith(
            "torch."
        )
        owner = node.args[0] if is_function and node.args else getattr(node.func, "value", None)
        rest = node.args[1:] if is_function else node.args
        if owner is None:
            return {}
        found = {"kind": "tensor", "like": ast.unparse(owner), **self.look(owner, depth + 1)}
        found["kind"] = "tensor"
        if name in _RESHAPERS:
            found.pop("rank", None)
            if rest and not any(isinstance(item, ast.Starred | ast.Name | ast.Attribute) for item in rest[:1]):
                shape = rest[0].elts if isinstance(rest[0], ast.Tuple | ast.List) else rest
                found["rank"] = len(shape)
        dtypes = [k.value for k in node.keywords if k.arg == "dtype"] + (list(rest[:1]) if name == "to" else [])
        for dtype in dtypes:
            found |= self._dtype(dtype)
        return found

    def _dtype(self, node: ast.expr) -> dict[str, object]:
        name = self._reader.external(node, self._scope)
        if name.startswith(("torch.", "cuda.tile.", "numpy.")):
            return {"dtype": _TORCH_DTYPES.get(name.rpartition(".")[2], name.rpartition(".")[2]), "like": ""}
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            return {"like": ast.unparse(node.value)}
        return {}


_TORCH_DTYPES = {"half": "float16", "float": "float32", "double": "float64", "long": "int64", "int": "int32",
                 "short": "int16", "bool": "bool_"}  # fmt: skip


def _asserted(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """The parts of the conditions that a function asserts, or whose opposite makes it raise."""
    for node in ast.walk(function):
        match node:
            case ast.Assert(test=ast.BoolOp(op=ast.And(), values=tests)):
                yield from tests
            case ast.Assert(test=test):
                yield test
            case ast.If(test=ast.Compare(left, [ast.NotEq() | ast.NotIn() as op], right), body=[ast.Raise(), *_]):
                yield ast.Compare(left, [ast.Eq() if isinstance(op, ast.NotEq) else ast.In()], right)
            case _:
                pass


def _first(node: ast.expr) -> ast.expr:
    return node.elts[0] if isinstance(node, ast.Tuple | ast.List | ast.Set) and node.elts else node


def _is_power(found: dict[str, object]) -> bool:
    value = found.get("value")
    return bool(found.get("power_of_two")) or (type(value) is int and value > 0 and value & (value - 1) == 0)


def _common(found: list[dict[str, object]]) -> dict[str, object]:
    """What several possible values have in common."""
    if not found:
        return {}
    first = dict(found[0])
    for other in found[1:]:
        first = {key: value for key, value in first.items() if key in other and other[key] == value}
    if all(_is_power(item) for item in found):
        first["power_of_two"] = True
    if "value" not in first and (choices := _choices(found)):
        first["choices"] = choices
    return first


def _choices(found: list[dict[str, object]]) -> tuple[object, ...]:
    """The literals among several possible values."""
    choices: list[object] = []
    for item in found:
        inner = item.get("choices", ())
        choices += [item["value"]] if "value" in item else inner if isinstance(inner, tuple) else []
    return tuple(dict.fromkeys(choices))


def _kind_of(value: Constant) -> ArgKind:
    kinds: dict[type, ArgKind] = {bool: "bool", int: "int", float: "float", str: "str"}
    return kinds[type(value)]


def _literal(node: ast.expr) -> Constant | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def _calls(body: Sequence[ast.AST], chain: _Chain) -> Iterator[tuple[ast.Call, _Scope]]:
    """Every call in a body with the functions around it, in source order."""
    for node in body:
        if isinstance(node, ast.Call):
            yield node, _Scope(chain)
        inner = (*chain, node) if isinstance(node, ast.FunctionDef) else chain
        yield from _calls(list(ast.iter_child_nodes(node)), inner)


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[position] if 0 <= position < len(call.args) else None


def _parameters(function: ast.FunctionDef) -> list[str]:
    args = function.args
    return [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


def _default(function: ast.FunctionDef, name: str) -> ast.expr | None:
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    pairs = list(zip(reversed(plain), reversed(args.defaults), strict=False))
    pairs += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]
    return next((default for arg, default in pairs if arg.arg == name), None)


def _assignments(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Names and the values that a function assigns to them, tuples item by item; not those of inner functions."""
    todo: list[ast.AST] = list(reversed(function.body))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            yield _RETURN, node.value
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from _unpacked(target, node.value)
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            todo.extend(reversed(list(ast.iter_child_nodes(node))))


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple):
        for position, item in enumerate(target.elts):
            if isinstance(value, ast.Tuple) and position < len(value.elts):
                yield from _unpacked(item, value.elts[position])
            else:
                part = ast.Subscript(value, ast.Constant(position), ast.Load())
                yield from _unpacked(item, ast.copy_location(part, value))
