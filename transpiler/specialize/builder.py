"""The tile algebra that rules are written in: emit TIR operations, fold constants, promote, broadcast.

Promotion, implicit conversion and constant folding follow cuTile Python's documented semantics:
a Python number takes the dtype of the tile it meets unless its category (bool < int < float) is
stronger; dtypes promote within a category; shapes broadcast as in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from transpiler.diagnostics import NO_SPAN, Span, error
from transpiler.ir import symbolic as sy
from transpiler.ir.numbers import literal, rounded, same_in_generic_class, wrapped
from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import Block, CallSite, Comment, Condition, Op, Value
from transpiler.ir.types import BOOL, F32, GENERIC_CLASS, I32, Dim, DType, PtrTy, Shape, TileTy, Type, dim, sizes
from transpiler.specialize.values import Const, DTypeVal, HoleError, HoleVal, TupleVal, Undefined, Val, const, describe

Numeric = Value | Const
_CATEGORY = ("int", "float")
_RANK = {"bool": 0, "int": 1, "float": 2, "restricted_float": 2}


class Builder:
    """Emits operations into the current block and records the decisions taken."""

    def __init__(self) -> None:
        self.block = Block()
        self.span: Span = NO_SPAN
        self.site: CallSite | None = None
        self.statement = 0
        self.rule = ""
        self.pending_comments: list[Comment] = []
        self.pending_trailing: Comment | None = None
        self.conditions: dict[Sym, Condition] = {}
        self.parent: dict[str, str] = {}  # union-find over array names
        self.fixed: dict[str, str] = {}  # representative -> literal dtype name
        self.int_params: frozenset[str] = frozenset()  # constant parameters that are integers

    # -- emission ---------------------------------------------------------------------------------
    def emit(self, opcode: str, operands: Sequence[Value] = (), types: Sequence[Type] = (), **attrs: Any) -> Op:
        """Append an operation; returns it."""
        op = Op(opcode, tuple(operands), attrs, span=self.span, site=self.site, rule=self.rule,
                statement=self.statement)  # fmt: skip
        op.results = tuple(Value(t, op=op) for t in types)
        if self.pending_comments:
            op.comments, self.pending_comments = tuple(c for c in self.pending_comments if op.stands_in(c.site)), []
        if self.pending_trailing is not None:
            op.trailing = self.pending_trailing if op.stands_in(self.pending_trailing.site) else None
            self.pending_trailing = None
        self.block.ops.append(op)
        return op

    def value(self, opcode: str, operands: Sequence[Value], ty: Type, **attrs: Any) -> Value:
        """Append an operation with one result; returns the result."""
        return self.emit(opcode, operands, (ty,), **attrs).result

    def refuse(self, message: str, help: str = "") -> NoReturn:
        """The program is ill-typed: the reference compiler refuses it too."""
        raise error("E0401", message, self.span, help=help or "cuTile Python rejects this program; correct the kernel",
                    status=1)  # fmt: skip

    def hole(self, code: str, message: str, help: str = "") -> NoReturn:
        """The construct has no mapping."""
        raise HoleError(code, message, self.span, help)

    # -- decisions --------------------------------------------------------------------------------
    def decide(self, c: Const) -> Any:
        """Use the concrete value of ``c`` to choose what program to emit; recorded as a condition."""
        if sy.leaves_of(c.sym) and c.sym not in self.conditions:
            self.conditions[c.sym] = Condition(c.sym, c.value, self.span)
        return c.value

    def decide_type(self, c: Const) -> None:
        """Record that what is emitted depends on whether a constant is a bool or another number of the same value."""
        if isinstance(c.value, int) and sy.leaves_of(c.sym) and sy.is_bool(c.sym) is None:
            self.decide(Const(isinstance(c.value, bool), sy.apply("is_bool", c.sym)))

    def decide_truth(self, c: Const) -> bool:
        """Use whether ``c`` is true to choose what program to emit."""
        decided = c.sym in self.conditions or sy.is_bool(c.sym)
        if decided or any(leaf.op != "param" for leaf in sy.leaves_of(c.sym)):
            return bool(self.decide(c))
        return bool(self.decide(Const(bool(c.value), sy.truth(c.sym))))

    def decide_equal(self, a: Sym, b: Sym, equal: bool) -> None:
        """Record that two expressions are (or are not) equal here."""
        if a != b:
            self.decide(Const(equal, sy.apply("eq", a, b)))

    # -- dtypes -----------------------------------------------------------------------------------
    def find(self, array: str) -> str:
        """The representative of an array's dtype class."""
        root = array
        while (up := self.parent.get(root, root)) != root:
            root = up
        return root

    def resolve(self, d: DType) -> DType:
        """``d`` after unification: generic in a representative, or fixed."""
        if d.of is None:
            return d
        root = self.find(d.of)
        return DType(d.name) if root in self.fixed else DType(d.name, root)

    def same_dtype(self, a: DType, b: DType) -> bool:
        """Are they the same for every instance of the entry (without deciding anything)?"""
        return self.resolve(a) == self.resolve(b)

    def fix(self, d: DType) -> DType:
        """Decide that ``d`` is its concrete dtype."""
        r = self.resolve(d)
        if r.of is not None:
            self.fixed[r.of] = r.name
            self.decide_equal(Sym("dtype", (r.of,)), sy.lit(r.name), True)
        return DType(r.name)

    def unify(self, a: DType, b: DType) -> DType:
        """Decide that two concretely equal dtypes are one."""
        a, b = self.resolve(a), self.resolve(b)
        assert a.name == b.name, (a, b)
        if a == b:
            return a
        if a.of is None or b.of is None:
            return self.fix(a if b.of is None else b)
        self.decide_equal(Sym("dtype", (a.of,)), Sym("dtype", (b.of,)), True)
        self.parent[b.of] = a.of
        return a

    def promote_dtypes(self, a: DType, b: DType, force_float: bool = False) -> DType:
        """The common dtype of two tiles."""
        a, b = self.resolve(a), self.resolve(b)
        if a == b:
            r = a
        elif a.name == b.name:
            r = DType(a.name) if a.name == "float32" and (a.of is None or b.of is None) else self.unify(a, b)
        else:
            r = self._promote_different(a, b)
        return r if not force_float or r.is_float else F32

    def _promote_different(self, a: DType, b: DType) -> DType:
        if "restricted_float" in (a.category, b.category):
            self.refuse(f"no implicit promotion of {a} and {b}", "convert explicitly with ct.astype")
        if _RANK[a.category] != _RANK[b.category]:
            return a if _RANK[a.category] > _RANK[b.category] else b
        if a.is_float:
            if {a.name, b.name} == {"float16", "bfloat16"}:
                self.refuse("no implicit promotion of float16 and bfloat16", "convert explicitly with ct.astype")
            wide = a if a.bits > b.bits else b
            narrow = b if wide is a else a
            if wide.of is not None:
                self.fix(narrow)
                return self.fix(wide)
            return wide
        if a.signed != b.signed:
            self.refuse(f"no implicit promotion of {a} and {b}", "convert explicitly with ct.astype")
        return a if a.bits > b.bits else b

    def promote_constant(self, d: DType, c: Const, force_float: bool = False) -> DType:
        """The common dtype of a tile and a Python number."""
        value, d = c.value, self.resolve(d)
        loose = self.default_dtype(value)
        if d.category == "bool" and not force_float:
            self.decide_type(c)
        if _RANK[loose.category] == _RANK[d.category]:
            r = d
            if d.is_int and not force_float and not _fits(value, d):
                self.refuse(f"the integer {value} doesn't fit {d}")
        else:
            r = loose if _RANK[loose.category] > _RANK[d.category] else d
        return r if not force_float or r.is_float else F32

    def default_dtype(self, value: Any) -> DType:
        """The dtype of a Python number by itself."""
        if isinstance(value, bool):
            return BOOL
        if isinstance(value, int):
            return I32 if -(2**31) <= value < 2**31 else DType("int64")
        if isinstance(value, float):
            return F32
        self.refuse(f"{value!r} isn't a number")

    # -- constants --------------------------------------------------------------------------------
    def constant(self, value: Any, dtype: DType, shape: Shape = (), sym: Sym | None = None) -> Value:
        """A typed constant (a splat when ``shape`` isn't empty)."""
        d = self.resolve(dtype)
        v = bool(value) if d.category == "bool" else float(value) if d.is_float else int(value)
        s = sym if sym is not None and sy.leaves_of(sym) else sy.lit(v)
        if d.category == "bool" and sy.leaves_of(s):
            s = sy.truth(s)
        if d.is_int and (w := wrapped(int(v), d)) != v:
            self.decide(Const(v, s))
            v, s = w, sy.lit(w)
        if v != v:
            d = self.fix(d)  # it is written by its bits
        if sy.leaves_of(s) and not d.is_int:
            return self._float_of_symbolic(v, d, shape, s)
        if sy.leaves_of(s) and d.name == "int64" and -(2**31) <= int(v) < 2**31:
            self.decide(Const(True, sy.apply("lt", s, sy.lit(2**31))))  # const generics are no wider
            narrow = self.value("constant", (), TileTy(I32, shape), value=v, sym=s)
            return self.value("convert", (narrow,), TileTy(d, shape))
        return self.value("constant", (), TileTy(d, shape), value=v, sym=s)

    def undefined(self, ty: TileTy) -> Value:
        """A zero that stands for a value which is never looked at: nothing is known of it."""
        made = self.constant(0, ty.dtype, ty.shape)
        assert made.op is not None
        made.op.attrs["undefined"] = True
        return made

    def _float_of_symbolic(self, value: Any, d: DType, shape: Shape, sym: Sym) -> Value:
        """A non-integer constant that depends on parameters: an integer or a float32 converted, else a literal."""
        inner = sym
        while inner.op == "float" or (inner.op == "mul" and inner.args[1] == sy.lit(1.0)):
            inner = inner.args[0]
        exact = d.is_float and isinstance(value, float) and value.is_integer() and abs(value) < 2**24
        if exact and d.name == "float32" and d.of is None and _is_integer_expression(inner, self.int_params):
            whole = self.value("constant", (), TileTy(I32, shape), value=int(value), sym=inner)
            return self.value("convert", (whole,), TileTy(d, shape))
        if d.category == "float" and isinstance(value, float) and (value == value or d == F32):
            single = self.value("constant", (), TileTy(F32, shape), value=rounded(value, F32.name), sym=sym)
            return single if d == F32 else self.value("convert", (single,), TileTy(d, shape))
        self.decide(Const(value, sym))
        return self.value("constant", (), TileTy(d, shape), value=value, sym=sy.lit(value))

    def number(self, x: Const, dtype: DType, sym: Sym, shape: Shape = ()) -> Value:
        """A Python number as a typed constant."""
        d = self.resolve(dtype)
        value = literal(x.value, d) if isinstance(x.value, float) and d.is_float else x.value
        made = self.constant(value, d, shape, sym)
        if made.op is not None:
            made.op.result_of = x.result_of
        return made

    def known(self, x: Val) -> Const | None:
        """The Python value of a 0-d tile that is a constant to the kernel; of larger tiles nothing is known."""
        if isinstance(x, Value) and x.op is not None and x.op.opcode == "convert":
            return self._known_converted(x)
        if not isinstance(x, Value) or x.op is None or x.constant is None or x.op.attrs.get("baked"):
            return None
        if not self.type_of(x).shape:
            return Const(x.constant, x.op.attrs["sym"])
        return None

    def _known_converted(self, x: Value) -> Const | None:
        """What is known of a number that is made of a parameter, as a narrower one that a const generic can hold."""
        assert x.op is not None
        source, d = self.known(x.op.operands[0]), self.type_of(x).dtype
        if source is None or x.op.attrs.get("rounding") or not (d.is_float or d.name == "int64"):
            return None
        if d.name == "int64":
            return source if type(source.value) is int else None
        if type(source.value) is int:
            return Const(float(source.value), sy.apply("float", source.sym))
        return source if isinstance(source.value, float) and sy.leaves_of(source.sym) else None

    def known_exactly(self, x: Val) -> Const | None:
        """The same as :meth:`known`, rounded to the tile's dtype."""
        c = self.known(x)
        if c is None or not isinstance(c.value, float):
            return c
        assert isinstance(x, Value)
        d = self.type_of(x).dtype
        if d.of is not None and same_in_generic_class(c.value):
            return c
        name = self.fix(d).name
        value = rounded(c.value, name)
        if not sy.leaves_of(c.sym):
            return const(value)
        single = sy.apply("round_to", c.sym, sy.lit("float32"))  # see numbers.literal
        return Const(value, single if name == "float32" else sy.apply("round_to", single, sy.lit(name)))

    def tile(self, x: Val, what: str = "operand") -> Value:
        """``x`` as a tile; a Python number gets its default dtype."""
        match x:
            case Value():
                if isinstance(x.ty, (TileTy, PtrTy)):
                    return x
            case Const() if isinstance(x.value, (bool, int, float)):
                self.decide_type(x)
                return self.number(x, self.default_dtype(x.value), x.sym)
            case HoleVal():
                raise HoleError("", "", self.span, silent=True)
            case Undefined():
                self.refuse(f"{what} is undefined: {x.reason}")
            case _:
                pass
        self.refuse(f"{what} must be a tile or a number, not {describe(x)}")

    def type_of(self, x: Value) -> TileTy:
        """The tile type with its dtype resolved."""
        assert isinstance(x.ty, TileTy), x.ty
        return TileTy(self.resolve(x.ty.dtype), x.ty.shape)

    # -- shapes -----------------------------------------------------------------------------------
    def broadcast_shapes(self, a: Shape, b: Shape) -> Shape:
        """NumPy's rule, on symbolic dimensions."""
        n = max(len(a), len(b))
        pa, pb = (dim(1),) * (n - len(a)) + a, (dim(1),) * (n - len(b)) + b
        return tuple(self._broadcast_dim(x, y, a, b) for x, y in zip(pa, pb, strict=True))

    def _broadcast_dim(self, x: Dim, y: Dim, a: Shape, b: Shape) -> Dim:
        if x.sym == y.sym or y.sym == sy.lit(1):
            return x
        if x.sym == sy.lit(1):
            return y
        if x.value == y.value:
            self.decide_equal(x.sym, y.sym, True)
            return x
        for one, other in ((x, y), (y, x)):
            if one.value == 1:
                self.decide_equal(one.sym, sy.lit(1), True)
                return other
        self.refuse(f"shapes {sizes(a)} and {sizes(b)} don't broadcast")

    def reshape(self, x: Value, shape: Shape) -> Value:
        """Reshape; nothing when the shape is the same."""
        ty = x.ty
        assert isinstance(ty, (TileTy, PtrTy))
        if _product(sizes(ty.shape)) != _product(sizes(shape)):
            self.refuse(f"a tile of shape {sizes(ty.shape)} can't be reshaped to {sizes(shape)}")
        if ty.shape == shape:
            return x
        return self.value("reshape", (x,), type(ty)(ty.dtype, shape))

    def broadcast_to(self, x: Value, shape: Shape) -> Value:
        """Broadcast (after a reshape that adds leading ones); nothing when the shape is the same."""
        ty = x.ty
        assert isinstance(ty, (TileTy, PtrTy))
        if ty.shape == shape:
            return x
        if self.broadcast_shapes(ty.shape, shape) != shape and sizes(self.broadcast_shapes(ty.shape, shape)) != sizes(
            shape
        ):
            self.refuse(f"shape {sizes(ty.shape)} doesn't broadcast to {sizes(shape)}")
        if sizes(ty.shape) == sizes(shape) and sy.lit(1) not in {d.sym for d in ty.shape}:
            return x
        if isinstance(ty, TileTy) and x.constant is not None and self.resolve(ty.dtype).is_int:
            assert x.op is not None
            made = self.constant(x.constant, ty.dtype, shape, x.op.attrs["sym"])
            if made.op is not None:
                made.op.result_of = x.op.result_of
            return made
        if len(ty.shape) < len(shape):
            x = self.reshape(x, (dim(1),) * (len(shape) - len(ty.shape)) + ty.shape)
        if x.ty.shape == shape:  # type: ignore[union-attr]
            return x
        return self.value("broadcast", (x,), type(ty)(ty.dtype, shape))

    # -- conversions ------------------------------------------------------------------------------
    def astype(self, x: Value, dtype: DType, rounding: str | None = None) -> Value:
        """Convert; a constant is folded, nothing when the dtypes are the same."""
        ty = self.type_of(x)
        dtype = self.resolve(dtype)
        if ty.dtype == dtype:
            return x
        if rounding in (None, "nearest_even") and (c := self.known_exactly(x)) is not None:
            changes = sy.leaves_of(c.sym) and dtype.is_float != ty.dtype.is_float
            return self.constant(c.value, dtype, (), sy.apply(_CATEGORY[dtype.is_float], c.sym) if changes else c.sym)
        if x.op is not None and x.op.attrs.get("baked") and dtype.is_int:
            value = wrapped(x.constant, dtype)
            return self.value("constant", (), TileTy(dtype, ty.shape), value=value, sym=sy.lit(value), baked=True)
        return self.value("convert", (x,), TileTy(dtype, ty.shape), rounding=rounding)

    def implicit_cast(self, x: Val, dtype: DType, what: str) -> Value:
        """Convert where Python allows it without astype: no narrowing."""
        if isinstance(x, Const):
            self._check_implicit_constant(x, dtype, what)
            return self.number(x, dtype, _retyped(x, dtype))
        v = self.tile(x, what)
        src, dst = self.type_of(v).dtype, self.resolve(dtype)
        if src == dst:
            return v
        if src.name == dst.name:
            self.unify(src, dst)
            return v
        if self.promote_dtypes(src, dst).name != dst.name:
            self.refuse(f"{what}: no implicit conversion of {src} to {dst}", "convert explicitly with ct.astype")
        self.fix(src)
        return self.astype(v, self.fix(dst))

    def _check_implicit_constant(self, x: Const, dtype: DType, what: str) -> None:
        loose, d = self.default_dtype(x.value), self.resolve(dtype)
        if d.category == "bool" and loose.is_int and x.value in (0, 1):
            self.decide(x)
            return
        if _RANK[loose.category] > _RANK[d.category]:
            self.refuse(f"{what}: no implicit conversion of {x.value!r} to {d}")
        if d.is_int and not _fits(x.value, d):
            self.refuse(f"{what}: {x.value} doesn't fit {d}")

    def promote(self, a: Numeric, b: Numeric, force_float: bool = False) -> tuple[Value, Value]:
        """Bring two operands (not both Python numbers) to one dtype and shape."""
        if isinstance(a, Const):
            assert isinstance(b, Value)
            d = self.promote_constant(self.type_of(b).dtype, a, force_float)
        elif isinstance(b, Const):
            d = self.promote_constant(self.type_of(a).dtype, b, force_float)
        else:
            d = self.promote_dtypes(self.type_of(a).dtype, self.type_of(b).dtype, force_float)
        shape = self.broadcast_shapes(self.shape_of(a), self.shape_of(b))
        return self.convert_and_broadcast(a, d, shape), self.convert_and_broadcast(b, d, shape)

    def shape_of(self, x: Numeric) -> Shape:
        """The tile shape; () for a number."""
        return () if isinstance(x, Const) else self.type_of(x).shape

    def convert_and_broadcast(self, x: Numeric, dtype: DType, shape: Shape) -> Value:
        """``x`` as a tile of this dtype and shape."""
        if isinstance(x, Const):
            return self.broadcast_to(self.number(x, dtype, _retyped(x, dtype)), shape)
        return self.broadcast_to(self.astype(x, dtype), shape)

    # -- reading arguments ------------------------------------------------------------------------
    def const_int(self, x: Val, what: str) -> Const:
        """A compile-time integer, undecided."""
        if isinstance(x, HoleVal):
            raise HoleError("", "", self.span, silent=True)
        if isinstance(x, Const) and isinstance(x.value, int):
            return x
        if (c := self.known(x)) is not None and isinstance(c.value, int):
            return c
        self.refuse(f"{what} must be a constant integer, not {describe(x)}")

    def decided(self, x: Val, what: str) -> Any:
        """A compile-time value that chooses what is emitted."""
        if isinstance(x, HoleVal):
            raise HoleError("", "", self.span, silent=True)
        if isinstance(x, Const):
            return self.decide(x)
        if (c := self.known(x)) is not None:
            return self.decide(c)
        self.refuse(f"{what} must be a constant, not {describe(x)}")

    def const_shape(self, x: Val, what: str = "shape") -> Shape:
        """A tile shape; powers of two, a single int allowed."""
        items = x.items if isinstance(x, TupleVal) else (x,)
        return tuple(Dim(c.value, c.sym) for c in (self.const_int(i, what) for i in items))

    def dtype_arg(self, x: Val) -> DType:
        """A dtype argument."""
        if isinstance(x, DTypeVal):
            return self.resolve(x.dtype)
        if isinstance(x, HoleVal):
            raise HoleError("", "", self.span, silent=True)
        self.refuse(f"expected a dtype, not {describe(x)}")


def _fits(value: int, d: DType) -> bool:
    low, high = (-(1 << (d.bits - 1)), 1 << (d.bits - 1)) if d.signed else (0, 1 << d.bits)
    return low <= value < high


def _product(values: tuple[int, ...]) -> int:
    out = 1
    for v in values:
        out *= v
    return out


def _retyped(x: Const, dtype: DType) -> Sym:
    """The constant's expression, converted where its category changes."""
    if not sy.leaves_of(x.sym):
        return x.sym
    if dtype.is_float and not isinstance(x.value, float):
        return sy.apply("float", x.sym)
    return x.sym


def _is_integer_expression(sym: Sym, int_params: frozenset[str]) -> bool:
    """Is it an integer for every value of the parameters (by its operators)?"""
    if sym.op == "lit":
        return type(sym.args[0]) is int
    if sym.op in ("param", "dim", "stride", "rank"):
        return sym.op != "param" or sym.args[0] in int_params
    integral = ("add", "sub", "mul", "floordiv", "cdiv", "mod", "min", "max", "int", "lshift", "rshift", "abs",
                "next_power_of_2", "neg")  # fmt: skip
    return sym.op in integral and all(_is_integer_expression(a, int_params) for a in sym.args)


__all__ = ["GENERIC_CLASS", "Builder", "Numeric"]
