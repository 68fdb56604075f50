"""What a kernel's parameters are: arrays of some rank, run-time scalars, or compile-time constants.

Read from the annotations and from how the kernel and the helpers it calls use each parameter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from transpiler.ir import hir

Role = Literal["array", "list", "scalar", "constant", "unknown"]
ValueKind = Literal["int", "float", "bool", "str", "unknown"]

_INDEXED = {
    "load": ("index", "shape"), "store": ("index", ""), "gather": ("indices", ""), "scatter": ("indices", ""),
    "num_tiles": ("", "shape"), "load_advanced_indexing": ("indices", ""), "store_advanced_indexing": ("indices", ""),
}  # fmt: skip
"""Operations on arrays: the names of the arguments whose length is the array's rank."""
_POSITIONS = {"index": 1, "indices": 1, "shape": 2}
_ARRAY_ATTRIBUTES = frozenset({"shape", "strides", "slice", "tiled_view", "ndim"})
_TILE_SIZES = frozenset({"arange", "full", "zeros", "ones", "reshape", "broadcast_to", "load", "num_tiles", "extract"})
_ARITHMETIC = frozenset({"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne"})
_SAME_TILE = frozenset({
    "reshape", "transpose", "permute", "expand_dims", "broadcast_to", "extract", "item", "sum", "max", "min", "exp",
    "exp2", "log", "log2", "rsqrt", "sqrt", "negative", "abs", "tanh", "cumsum", "slice", "ceil", "floor", "sin", "cos",
    "tan", "sinh", "cosh", "cumprod", "prod",
})  # fmt: skip
"""Operations whose result has the dtype of their first operand."""
_BITWISE = frozenset({"and_", "or_", "xor", "lshift", "rshift"})
_JOINED = frozenset({
    *_BITWISE, "where", "maximum", "minimum", "add", "sub", "mul", "truediv", "pow", "mod", "neg", "min", "max",
})  # fmt: skip
_MADE = {"astype": 1, "zeros": 1, "ones": 1, "full": 2, "arange": 99, "bitcast": 1}
"""Operations whose result has the dtype that they are told, and where that stands when it isn't a keyword."""
_KEEP_ORIGIN = _BITWISE | {
    "add", "sub", "mul", "floordiv", "mod", "minimum", "maximum", "min", "max", "cdiv", "where"
}  # fmt: skip
"""Operations after which an item of an array still counts as one of its items."""
_FLOATS = ("float32", "float64")
_DTYPES = frozenset({*_FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                     "bfloat16", "float8_e4m3fn", "float8_e5m2"})  # fmt: skip
_MAX_DEPTH, _MAX_RETURNS = 12, 3
"""How deep helpers are followed for what they do with parameters, and for what they return."""


@dataclass
class ParamUse:
    """What is known of one parameter.

    ``ranks`` counts the ranks with which an array is used, ``keywords`` are the keyword arguments that a constant is
    handed on as (``latency``), ``stored_as`` the fixed dtypes of tiles stored into an array, ``stored_from`` the arrays
    whose dtype they have otherwise, ``multiplied_as`` what an integer matrix product needs, and ``holds_indices`` says
    that its items select elements or bound loops, ``has_bits`` that they are shifted or combined bit by bit.
    """

    name: str
    line: int
    role: Role = "unknown"
    kind: ValueKind = "unknown"
    ranks: Counter[int] = field(default_factory=Counter)
    min_rank: int = 0
    sizes_tile: bool = False
    compared_with: set[int | str] = field(default_factory=set)
    keywords: set[str] = field(default_factory=set)
    stored_as: set[str] = field(default_factory=set)
    stored_from: list[str] = field(default_factory=list)
    multiplied_as: str = ""
    holds_indices: bool = False
    has_bits: bool = False
    used: bool = False

    @property
    def rank(self) -> int | None:
        """The rank that most uses have, or the least that the subscripts of ``.shape`` need."""
        if self.ranks:
            return max(self.ranks, key=lambda rank: (self.ranks[rank], rank))
        return self.min_rank or None


def kernel_params(program: hir.Program, kernel: str) -> tuple[ParamUse, ...]:
    """Describe the parameters of a kernel of the program's main module, in order."""
    function = program.modules[program.main].functions[kernel]
    uses = {p.name: _from_annotation(p) for p in function.params}
    _Reader(program, 0).function(function, {name: (use, False) for name, use in uses.items()})
    for use in uses.values():
        if use.role == "unknown" and use.used:
            use.role = "scalar"
    return tuple(uses.values())


def annotated_role(param: hir.Param) -> Role:
    """What a parameter's annotation alone says of it."""
    return _from_annotation(param).role


def _from_annotation(param: hir.Param) -> ParamUse:
    use = ParamUse(param.name, param.span.line)
    annotation = param.annotation
    if isinstance(annotation, hir.Call) and _name(annotation.func) == "operator.getitem":
        if _name(annotation.args[0]) == "cuda.tile.Constant":
            use.role, use.kind = "constant", _value_kind(annotation.args[1])
    elif _name(annotation) == "cuda.tile.Constant":
        use.role = "constant"
    elif _value_kind(annotation) != "unknown":
        use.role, use.kind = "scalar", _value_kind(annotation)
    elif _name(annotation).startswith(("cuda.tile.Scalar", "cuda.tile.int", "cuda.tile.uint")):
        use.role, use.kind = "scalar", "int"
    elif _name(annotation).rpartition(".")[2] in ("Tensor", "Array", "IndexedWithInt64"):
        use.role = "array"
    return use


def _name(node: hir.Expr | None) -> str:
    return node.name if isinstance(node, hir.External) else ""


def _value_kind(node: hir.Expr | None) -> ValueKind:
    kinds: dict[str, ValueKind] = {"builtins.int": "int", "builtins.float": "float", "builtins.bool": "bool",
                                   "builtins.str": "str"}  # fmt: skip
    return kinds.get(_name(node), "unknown")


_Scope = dict[str, tuple[ParamUse, bool]]
"""Local names that stand for a parameter, and whether for an element of it."""


class _Reader:
    """Walks a function with what its names stand for, and the helpers that it hands parameters to."""

    def __init__(self, program: hir.Program, depth: int) -> None:
        self._program = program
        self._depth = depth
        self._tuples: dict[str, int] = {}
        self._dtypes: dict[str, str] = {}
        self._origins: dict[str, ParamUse] = {}
        self._likes: dict[str, ParamUse] = {}
        self._literals: set[str] = set()
        self._loaded: dict[str, list[ParamUse]] = {}

    def function(self, function: hir.Function, scope: _Scope) -> None:
        self._scope = dict(scope)
        branches = [s for s in hir.walk(function.body) if isinstance(s, hir.If)]
        decided = {id(inner) for s in branches for inner in (*hir.walk(s.then), *hir.walk(s.orelse))}
        for statement in hir.walk(function.body):
            assigned = list(_assigned(statement.target, statement.value)) if isinstance(statement, hir.Assign) else []
            for name, value in assigned:
                self._alias(name, value)
            for expression in _expressions(statement):
                self._expression(expression)
            for name, value in assigned:
                if id(statement) in decided:
                    self._agree(name, value)
                self._track(name, value)

    def _agree(self, name: str, value: hir.Expr) -> None:
        """A float literal that a branch replaces by an item of an array: both have one dtype, float32."""
        item = self._like(value)
        if name in self._literals and item is not None:
            item.stored_as.add("float32")

    def _alias(self, name: str, value: hir.Expr) -> None:
        if isinstance(value, hir.Tuple_):
            self._tuples[name] = len(value.items)
        elif isinstance(value, hir.Local) and value.name in self._scope:
            self._scope[name] = self._scope[value.name]
        elif isinstance(value, hir.Call) and isinstance(value.func, hir.Attr) and value.func.name == "slice":
            found = self._param(value.func.value)
            if found is not None:
                self._scope[name] = found
        elif isinstance(value, hir.Call) and _name(value.func) == "operator.getitem":
            found = self._param(value.args[0])
            if found is not None and not found[1] and found[0].role in ("unknown", "list"):
                found[0].role = "list"
                self._scope[name] = (found[0], True)

    def _track(self, name: str, value: hir.Expr) -> None:
        """Remember a local's dtype where it is fixed, and the array that its items were read from."""
        dtype, origin, like = self._dtype(value), self._origin(value), self._like(value)
        for known in (self._dtypes, self._origins, self._likes):
            known.pop(name, None)
        self._literals.discard(name)
        if isinstance(value, hir.Const) and isinstance(value.value, float):
            self._literals.add(name)
        if dtype:
            self._dtypes[name] = dtype
        if origin is not None:
            self._origins[name] = origin
            self._loaded.setdefault(name, []).append(origin)
        if like is not None:
            self._likes[name] = like

    def _dtype(self, node: hir.Expr) -> str:
        """The dtype that a tile has whatever the arrays hold, or the empty string."""
        if isinstance(node, hir.Local):
            param = self._param(node)
            is_float = param is not None and param[0].kind == "float" and param[0].role in ("scalar", "unknown")
            return self._dtypes.get(node.name, "float32" if is_float else "")
        if not isinstance(node, hir.Call):
            return ""
        if isinstance(node.func, hir.Global):
            return self._returned(node.func, node)
        name, operands = _operation(node)
        arguments = dict(node.kwargs)
        if name in _MADE:
            given = arguments.get("dtype", operands[_MADE[name]] if len(operands) > _MADE[name] else None)
            found = _name(given).removeprefix("cuda.tile.").removeprefix("torch.")
            return found if found in _DTYPES else ""
        if name in ("argmax", "argmin"):
            return "int32"
        if name == "mma" and (acc := arguments.get("acc", operands[2] if len(operands) > 2 else None)) is not None:
            return self._dtype(acc)
        if name in _SAME_TILE and operands and not (name in _JOINED and len(operands) > 1 and not arguments):
            return self._dtype(operands[0])
        if name in _JOINED:
            return self._joined([*operands[1 if name == "where" else 0 :], *arguments.values()])
        return ""

    def _returned(self, ref: hir.Global, node: hir.Call) -> str:
        """The dtype of what a helper returns."""
        function = self._program.function(ref)
        if function is None or self._depth >= _MAX_RETURNS:
            return ""
        inner = _Reader(self._program, self._depth + 1)
        arguments = [*zip(function.params, node.args, strict=False), *_keywords(function, node)]
        inner._dtypes = {param.name: dtype for param, value in arguments if (dtype := self._dtype(value))}
        inner.function(function, {})
        found = {inner._dtype(s.value) for s in hir.walk(function.body) if isinstance(s, hir.Return) and s.value}
        return found.pop() if len(found) == 1 else ""

    def _joined(self, operands: list[hir.Expr]) -> str:
        """What dtypes promote to: a wide float whatever the others are, another only where all are known."""
        found = [self._dtype(item) for item in operands if not isinstance(item, hir.Const)]
        wide = [d for d in found if d in _FLOATS]
        return max(wide) if wide else found[0] if found and len(set(found)) == 1 else ""

    def _origin(self, node: hir.Expr) -> ParamUse | None:
        """The array whose items a value holds unchanged."""
        if isinstance(node, hir.Local):
            return self._origins.get(node.name)
        if not isinstance(node, hir.Call):
            return None
        name, operands = _operation(node)
        if name in ("load", "gather") and operands:
            found = self._param(operands[0])
            return found[0] if found is not None else None
        if name in ("reshape", "item", "extract"):
            return self._origin(operands[0]) if operands else None
        if name == "where":
            operands = operands[1:]
        if name in _KEEP_ORIGIN:
            return next((origin for item in operands if (origin := self._origin(item)) is not None), None)
        return None

    def _like(self, node: hir.Expr) -> ParamUse | None:
        """The array whose dtype a value has, as far as that is plain."""
        if isinstance(node, hir.Local):
            return self._likes.get(node.name)
        if not isinstance(node, hir.Call) or self._dtype(node):
            return None
        name, operands = _operation(node)
        if name in ("load", "gather") and operands:
            found = self._param(operands[0])
            return found[0] if found is not None else None
        if name in _SAME_TILE or name in _JOINED:
            return next((origin for item in operands if (origin := self._like(item)) is not None), None)
        return None

    def _index(self, node: hir.Expr) -> None:
        for item in node.items if isinstance(node, hir.Tuple_) else (node,):
            origin = self._origin(item)
            if origin is not None:
                origin.holds_indices = True

    def _param(self, node: hir.Expr) -> tuple[ParamUse, bool] | None:
        return self._scope.get(node.name) if isinstance(node, hir.Local) else None

    def _expression(self, node: hir.Expr) -> None:
        found = self._param(node)
        if found is not None:
            found[0].used = True
        if isinstance(node, hir.Call):
            self._call(node)
        elif isinstance(node, hir.Attr) and node.name in _ARRAY_ATTRIBUTES:
            self._array(node.value, None)
        for child in _children(node):
            self._expression(child)

    def _call(self, node: hir.Call) -> None:
        match node.func:
            case hir.Global():
                self._helper(node.func, node)
            case hir.External(name=name) if name.startswith("cuda.tile."):
                self._operation(name.removeprefix("cuda.tile."), node)
            case hir.External(name="operator.getitem"):
                self._getitem(node)
            case hir.External(name="builtins.len"):
                found = self._param(node.args[0]) if node.args else None
                if found is not None and found[0].role == "unknown":
                    found[0].role = "list"
            case hir.External(name="builtins.range"):
                self._index(hir.Tuple_(node.args))
            case hir.External(name=name) if name.startswith("operator."):
                self._operator(name.removeprefix("operator."), node.args)
            case hir.Attr(value=value, name="tiled_view"):
                shape = dict(node.kwargs).get("tile_shape", node.args[0] if node.args else None)
                self._array(value, self._items(shape))
            case hir.Attr(name="slice"):
                bounds = [value for keyword, value in node.kwargs if keyword in ("start", "stop")]
                self._index(hir.Tuple_((*node.args[1:], *bounds)))
            case _:
                pass

    def _helper(self, ref: hir.Global, node: hir.Call) -> None:
        function = self._program.function(ref)
        if function is None or self._depth >= _MAX_DEPTH:
            return
        scope: _Scope = {}
        inner = _Reader(self._program, self._depth + 1)
        for param, value in (*zip(function.params, node.args, strict=False), *_keywords(function, node)):
            found, origin = self._param(value), self._origin(value)
            if found is not None:
                scope[param.name] = found
            elif origin is not None:
                inner._origins[param.name] = origin
            if (like := self._like(value)) is not None:
                inner._likes[param.name] = like
        if scope or inner._origins or inner._likes:
            inner.function(function, scope)

    def _operation(self, name: str, node: hir.Call) -> None:
        arguments = dict(node.kwargs)
        if (name in _INDEXED or name.startswith("atomic_")) and (node.args or "array" in arguments):
            array = arguments.get("array") or node.args[0]
            names = _INDEXED.get(name, ("indices", ""))
            self._array(array, next((r for n in names if n and (r := self._length(n, node)) is not None), None))
            self._stored(name, node, array)
        for keyword, value in node.kwargs:
            found = self._param(value)
            if found is not None:
                found[0].keywords.add(keyword)
        if name == "mma":
            self._accumulated(node)
        if name == "mma" and self._dtype(node) == "int32":
            for factor in node.args[:2]:
                if (origin := self._like(factor)) is not None:
                    origin.multiplied_as = "int8"
        if name in _TILE_SIZES:
            for value in (*node.args[:3], *arguments.values()):
                self._tile_sizes(value, bare=name == "arange")

    def _accumulated(self, node: hir.Call) -> None:
        """What a matrix product adds to has its dtype, float32, and so has the array that it was loaded from."""
        acc = dict(node.kwargs).get("acc", node.args[2] if len(node.args) > 2 else None)
        if isinstance(acc, hir.Local) and self._dtype(acc) != "int32":
            for use in self._loaded.get(acc.name, []):
                use.stored_as.add("float32")

    def _padded(self, node: hir.Call, use: ParamUse) -> None:
        """A padding value of a stated dtype is one of the array's items."""
        padding = dict(node.kwargs).get("padding_value")
        if isinstance(padding, hir.Call):
            dtype = _name(padding.func).removeprefix("cuda.tile.")
            if dtype in _DTYPES:
                use.stored_as.add(dtype)

    def _stored(self, name: str, node: hir.Call, array: hir.Expr) -> None:
        arguments = dict(node.kwargs)
        index = arguments.get("index", arguments.get("indices", node.args[1] if len(node.args) > 1 else None))
        if index is not None and (name in ("load", "store", "gather", "scatter") or name.startswith("atomic_")):
            self._index(index)
        given = node.args[2] if len(node.args) > 2 else None
        tile = next((arguments[k] for k in ("tile", "value", "update") if k in arguments), given)
        found = self._param(array)
        if found is not None:
            self._padded(node, found[0])
        if not (name in ("store", "scatter") or name.startswith("atomic_")) or tile is None or found is None:
            return
        if dtype := self._dtype(tile):
            found[0].stored_as.add(dtype)
        elif (like := self._like(tile)) is not None and like is not found[0]:
            found[0].stored_from.append(like.name)

    def _length(self, argument: str, node: hir.Call) -> int | None:
        """Return the rank that an index or shape argument implies."""
        position = _POSITIONS[argument]
        value = dict(node.kwargs).get(argument)
        if value is None:
            value = node.args[position] if len(node.args) > position else None
        items = self._items(value)
        if items is not None:
            return items
        return 1 if value is not None and argument == "indices" else None

    def _items(self, value: hir.Expr | None) -> int | None:
        """The length of a tuple."""
        if isinstance(value, hir.Tuple_):
            return len(value.items)
        return self._tuples.get(value.name) if isinstance(value, hir.Local) else None

    def _array(self, node: hir.Expr, rank: int | None) -> None:
        found = self._param(node)
        if found is None:
            return
        use, element = found
        if use.role != "constant" and not element:
            use.role = "array"
        if rank is not None:
            use.ranks[rank] += 1

    def _tile_sizes(self, value: hir.Expr, *, bare: bool) -> None:
        items = value.items if isinstance(value, hir.Tuple_) else (value,) if bare else ()
        for item in items:
            found = self._param(item)
            if found is not None:
                found[0].sizes_tile = True

    def _getitem(self, node: hir.Call) -> None:
        """`x.shape[2]` shows a rank of 3 at least; `xs[i]` a list."""
        base, index = node.args[0], node.args[1]
        if isinstance(base, hir.Attr) and base.name in ("shape", "strides") and isinstance(index, hir.Const):
            found = self._param(base.value)
            if found is not None and isinstance(index.value, int) and index.value >= 0:
                found[0].min_rank = max(found[0].min_rank, index.value + 1)

    def _operator(self, name: str, args: tuple[hir.Expr, ...]) -> None:
        if name in _ARITHMETIC:
            self._arithmetic(name, args)
        elif name in _BITWISE or name == "invert":
            for operand in args:
                if (origin := self._origin(operand) or self._like(operand)) is not None:
                    origin.has_bits = True

    def _arithmetic(self, name: str, args: tuple[hir.Expr, ...]) -> None:
        for value, other in (args, args[::-1]) if len(args) == 2 else ():
            found = self._param(value)
            if found is None or not isinstance(other, hir.Const):
                continue
            if isinstance(other.value, float) and found[0].kind == "unknown" and found[0].role != "array":
                found[0].kind = "float"
            if name in ("eq", "ne") and isinstance(other.value, int | str) and not isinstance(other.value, bool):
                found[0].compared_with.add(other.value)


def _assigned(target: hir.Target, value: hir.Expr) -> Iterator[tuple[str, hir.Expr]]:
    """The names that an assignment binds and their values, where these stand beside each other."""
    if target.name is not None:
        yield target.name, value
    elif isinstance(value, hir.Tuple_) and len(value.items) == len(target.items):
        for one, item in zip(target.items, value.items, strict=True):
            yield from _assigned(one, item)


def _operation(node: hir.Call) -> tuple[str, tuple[hir.Expr, ...]]:
    """The short name of an operation, written as a function, method or operator, and its operands."""
    if isinstance(node.func, hir.Attr):
        return node.func.name, (node.func.value, *node.args)
    return _name(node.func).rpartition(".")[2], node.args


def _keywords(function: hir.Function, node: hir.Call) -> Iterator[tuple[hir.Param, hir.Expr]]:
    by_name = {param.name: param for param in function.params}
    return ((by_name[name], value) for name, value in node.kwargs if name in by_name)


def _expressions(statement: hir.Stmt) -> tuple[hir.Expr, ...]:
    match statement:
        case hir.Assign(value=value) | hir.ExprStmt(value=value):
            return (value,)
        case hir.If(cond=value) | hir.While(cond=value) | hir.For(iterable=value):
            return (value,)
        case hir.Return(value=value) if value is not None:
            return (value,)
        case _:
            return ()


def _children(node: hir.Expr) -> tuple[hir.Expr, ...]:
    match node:
        case hir.Tuple_(items=items):
            return items
        case hir.Attr(value=value) | hir.Star(value=value):
            return (value,)
        case hir.Call(func=func, args=args, kwargs=kwargs):
            return (func, *args, *(value for _, value in kwargs))
        case hir.IfExp(cond=cond, then=then, orelse=orelse):
            return (cond, then, orelse)
        case hir.BoolOp(left=left, right=right):
            return (left, right)
        case _:
            return ()
