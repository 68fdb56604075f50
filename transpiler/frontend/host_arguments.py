"""What is known of one argument of a launch: a literal, a size, a tensor and its dtype or rank."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from transpiler.frontend.host_scopes import Element, Function, Scope
from transpiler.frontend.host_values import Resolver
from transpiler.frontend.resolve import dotted_parts

ArgKind = Literal["tensor", "int", "float", "bool", "str", "unknown"]
Constant = bool | int | float | str
Facts = dict[str, object]

_CREATORS = frozenset({"empty", "zeros", "ones", "full", "rand", "randn", "tensor", "arange"})
_SAME = frozenset({"contiguous", "clone", "detach", "empty_like", "zeros_like", "ones_like", "requires_grad_"})
_RESHAPERS = frozenset({"view", "reshape"})
_MAX_DEPTH = 8
_TORCH_DTYPES = {"half": "float16", "float": "float32", "double": "float64", "long": "int64", "int": "int32",
                 "short": "int16", "bool": "bool_"}  # fmt: skip
_CASTS = {name: _TORCH_DTYPES.get(name, name) for name in (*_TORCH_DTYPES, "bfloat16")} | {"byte": "uint8",
                                                                                           "char": "int8"}  # fmt: skip
"""Methods of tensors that convert them."""


@dataclass(frozen=True)
class Argument:
    """What a call site says of one argument of a kernel.

    ``value`` is a literal that the host code passes, ``choices`` are the literals where a variable may have several
    (``complete``: and nothing else); ``like`` is another argument with the same dtype.
    """

    text: str
    line: int
    kind: ArgKind = "unknown"
    value: Constant | None = None
    choices: tuple[Constant, ...] = ()
    complete: bool = False
    power_of_two: bool = False
    dtype: str | None = None
    rank: int | None = None
    like: str = ""


def describe(resolver: Resolver, node: ast.expr, scope: Scope) -> Argument:
    """Say what is known of an argument."""
    found = _Known(resolver, scope).look(node, 0)
    return Argument(ast.unparse(node), node.lineno, **found)  # type: ignore[arg-type]


class _Known:
    """Looks at an expression in its scope."""

    def __init__(self, resolver: Resolver, scope: Scope) -> None:
        self._resolver = resolver
        self._scope = scope

    def look(self, node: ast.expr, depth: int) -> Facts:
        """Return the fields of :class:`Argument` that are known."""
        value = _literal(node)
        if value is not None:
            return {"kind": _kind_of(value), "value": value}
        if depth > _MAX_DEPTH:
            return {}
        match node:
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return {"kind": "bool"}
            case ast.BoolOp(values=values):
                kinds = {self.look(item, depth + 1).get("kind") for item in values}
                return {"kind": kinds.pop()} if len(kinds) == 1 and None not in kinds else {}
            case ast.IfExp():
                given = [item for item in (node.body, node.orelse) if not _is_none(item)]
                return _common([self.look(item, depth + 1) for item in given])
            case ast.BinOp():
                return self._binary(node, depth)
            case ast.Call():
                return self._call(node, depth) or self._followed(node, depth)
            case ast.Subscript() if _is_size(node):
                return {"kind": "int"}
            case ast.Name() | ast.Subscript() | ast.Attribute() | Element() | ast.NamedExpr():
                return self._followed(node, depth)
            case _:
                return {}

    def _followed(self, node: ast.expr, depth: int) -> Facts:
        """What the expressions that it may get its value from have in common."""
        places = [(v, w) for v, w in self._resolver.step(node, self._scope) if not _is_none(v)]
        found = _common([_Known(self._resolver, where).look(value, depth + 1) for value, where in places])
        if isinstance(node, ast.Name) and found.get("kind", "unknown") == "unknown":
            found |= self._annotated(node.id)
        if self._resolver.is_open(node, self._scope):
            found.pop("complete", None)
        return self._required(node.id) | found if isinstance(node, ast.Name) else found

    def _annotated(self, name: str) -> Facts:
        """What the annotation of a function's parameter says."""
        kinds: dict[str, Facts] = {"builtins.int": {"kind": "int"}, "builtins.float": {"kind": "float"},
                                   "builtins.bool": {"kind": "bool"}, "torch.Tensor": {"kind": "tensor"}}  # fmt: skip
        for function in reversed(self._scope.chain):
            for annotation in parameter_annotations(function, name):
                return kinds.get(self._resolver.external(annotation, self._scope), {})
        return {}

    def _required(self, name: str) -> Facts:
        """What the functions around demand of a tensor: ``assert x.dtype == torch.int32 and x.ndim == 2``."""
        found: Facts = {}
        for test in (test for function in self._scope.chain for test in asserted(function)):
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

    def _binary(self, node: ast.BinOp, depth: int) -> Facts:
        left, right = self.look(node.left, depth + 1), self.look(node.right, depth + 1)
        kinds = {left.get("kind"), right.get("kind")}
        if isinstance(node.op, ast.Div) or "float" in kinds:
            return {} if "tensor" in kinds else {"kind": "float"}
        return {"kind": "int"} if "int" in kinds and "tensor" not in kinds else {}

    def _call(self, node: ast.Call, depth: int) -> Facts:
        name = (dotted_parts(node.func) or (getattr(node.func, "attr", ""),))[-1]
        if "power_of_2" in name or "power_of_two" in name or "pow2" in name:
            return {"kind": "int", "power_of_two": True}
        if name in ("int", "float", "bool") and len(node.args) == 1:
            return self._converted(name, node.args[0], depth)
        if name in ("len", "cdiv", "ceil", "stride", "size", "numel", "element_size", "dim"):
            return {"kind": "int"}
        if name in _CASTS and isinstance(node.func, ast.Attribute) and not node.args:
            return {**self.look(node.func.value, depth + 1), "kind": "tensor", "dtype": _CASTS[name], "like": ""}
        if name == "sqrt":
            return {"kind": "float"}
        if name in ("min", "max") and node.args:
            found = [self.look(item, depth + 1) for item in node.args]
            return {
                "kind": _common(found).get("kind", "unknown"),
                "power_of_two": all(_is_power(item) for item in found),
            }
        if self._resolver.external(node.func, self._scope).startswith("torch.") and name in _CREATORS:
            return self._created(node, name)
        if name in _SAME or name in _RESHAPERS or name == "to":
            return self._derived(node, name, depth)
        return {}

    def _converted(self, name: str, node: ast.expr, depth: int) -> Facts:
        """``int(x)``: the values of x, of that type."""
        kind = {"int": int, "float": float, "bool": bool}[name]
        found = self.look(node, depth + 1)
        kept: Facts = {"kind": name}
        given = [found["value"]] if "value" in found else found.get("choices", ())
        assert isinstance(given, list | tuple)
        values = tuple(dict.fromkeys(kind(v) for v in given if isinstance(v, int | float) and math.isfinite(v)))
        if "value" in found and values:
            kept["value"] = values[0]
        elif values:
            kept |= {"choices": values, "complete": found.get("complete", False)}
        if found.get("power_of_two") and name == "int":
            kept["power_of_two"] = True
        return kept

    def _created(self, node: ast.Call, name: str) -> Facts:
        found: Facts = {"kind": "tensor"}
        dtype = next((k.value for k in node.keywords if k.arg == "dtype"), None)
        if dtype is not None:
            found |= self._dtype(dtype)
        if name in ("empty", "zeros", "ones", "rand", "randn", "full") and node.args:
            shape = node.args[0]
            if isinstance(shape, ast.Tuple | ast.List):
                found["rank"] = len(shape.elts)
            elif name != "full":
                found |= self._shape_rank(node.args)
        return found

    def _shape_rank(self, sizes: list[ast.expr]) -> Facts:
        """The rank that sizes given one by one say; one that may be a tuple itself says nothing."""
        if len(sizes) > 1:
            return {"rank": len(sizes)}
        return {"rank": 1} if self.look(sizes[0], 1).get("kind") == "int" else {}

    def _derived(self, node: ast.Call, name: str, depth: int) -> Facts:
        """A tensor made from another: the same dtype, and the same rank unless it is reshaped."""
        is_function = isinstance(node.func, ast.Attribute) and self._resolver.external(
            node.func, self._scope
        ).startswith("torch.")
        owner = node.args[0] if is_function and node.args else getattr(node.func, "value", None)
        rest = node.args[1:] if is_function else node.args
        if owner is None:
            return {}
        found: Facts = {"kind": "tensor", "like": ast.unparse(owner), **self.look(owner, depth + 1)}
        found["kind"] = "tensor"
        if name in _RESHAPERS:
            found.pop("rank", None)
            if rest and not any(isinstance(item, ast.Starred | ast.Name | ast.Attribute) for item in rest[:1]):
                shape = rest[0].elts if isinstance(rest[0], ast.Tuple | ast.List) else rest
                if not any(isinstance(item, ast.Starred) for item in shape):
                    found["rank"] = len(shape)
        dtypes = [k.value for k in node.keywords if k.arg == "dtype"] + (list(rest[:1]) if name == "to" else [])
        for dtype in dtypes:
            found |= self._dtype(dtype)
        return found

    def _dtype(self, node: ast.expr) -> Facts:
        name = self._resolver.external(node, self._scope)
        if name.startswith(("torch.", "cuda.tile.", "numpy.")):
            return {"dtype": _TORCH_DTYPES.get(name.rpartition(".")[2], name.rpartition(".")[2]), "like": ""}
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            return {"like": ast.unparse(node.value)}
        return {}


def parameter_annotations(function: Function, name: str) -> list[ast.expr]:
    """The annotation of a parameter, without ``| None`` and ``Optional``."""
    args = function.args
    for parameter in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        if parameter.arg == name:
            return [] if parameter.annotation is None else [_without_none(parameter.annotation)]
    return []


def _without_none(annotation: ast.expr) -> ast.expr:
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr()):
            return _without_none(left)
        case ast.Subscript(value=value, slice=inner) if (dotted_parts(value) or ("",))[-1] == "Optional":
            return _without_none(inner)
        case _:
            return annotation


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def asserted(function: Function) -> list[ast.expr]:
    """The parts of the conditions that a function asserts, or whose opposite makes it raise; looked for once."""
    cached: list[ast.expr] | None = getattr(function, "_asserted", None)
    if cached is None:
        cached = list(_asserted(function))
        function._asserted = cached  # type: ignore[union-attr]
    return cached


def _asserted(function: Function) -> Iterator[ast.expr]:
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


def _is_size(node: ast.Subscript) -> bool:
    """Whether an item of ``x.shape``, ``x.shape[1:]`` or ``x.size()`` is meant."""
    base = node.value
    while isinstance(base, ast.Subscript):
        base = base.value
    if isinstance(base, ast.Call):
        return isinstance(base.func, ast.Attribute) and base.func.attr in ("size", "stride") and not base.args
    return isinstance(base, ast.Attribute) and base.attr == "shape"


def _is_power(found: Facts) -> bool:
    value = found.get("value")
    return bool(found.get("power_of_two")) or (type(value) is int and value > 0 and value & (value - 1) == 0)


def _common(found: list[Facts]) -> Facts:
    """What several possible values have in common."""
    if not found:
        return {}
    first = dict(found[0])
    for other in found[1:]:
        first = {key: value for key, value in first.items() if key in other and other[key] == value}
    if all(_is_power(item) for item in found):
        first["power_of_two"] = True
    first.pop("choices", None)
    first.pop("complete", None)
    choices = _choices(found)
    if "value" not in first and choices:
        first |= {"choices": choices, "complete": all("value" in item or item.get("complete") for item in found)}
    return first


def _choices(found: list[Facts]) -> tuple[object, ...]:
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
