"""Arithmetic, comparison, bitwise and selection: operators and their named forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transpiler.ir import symbolic as sy
from transpiler.ir.tir import Value
from transpiler.ir.types import BOOL, I32, DType, TileTy
from transpiler.rules.common import enum_arg, flag
from transpiler.rules.registry import Rule
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import Const, DTypeVal, Ref, TupleVal, Val, const, describe

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


# -- constants ----------------------------------------------------------------------------------------


def fold(ev: Evaluator, op: str, *operands: Const) -> Const:
    """``op`` on Python constants, as Python computes it."""
    try:
        value = sy.OPERATORS[op][0](*(c.value for c in operands))
    except (ArithmeticError, ValueError, TypeError) as e:
        ev.refuse(f"{op} of {', '.join(repr(c.value) for c in operands)}: {e}")
    return Const(value, sy.apply(op, *(c.sym for c in operands)))


def _loose(v: Val) -> bool:
    return isinstance(v, Const) and isinstance(v.value, (bool, int, float))


def operand(ev: Evaluator, v: Val) -> Value | Const:
    """A numeric operand: a tile, or a Python number as it is."""
    return v if isinstance(v, Const) and _loose(v) else ev.tile(v)


def _folded(ev: Evaluator, op: str, a: Value, b: Value) -> Value | None:
    """Fold two typed scalar constants of one type, where the reference compiler does."""
    if op not in sy.OPERATORS or ev.known(a) is None or ev.known(b) is None:
        return None
    left, right = ev.known_exactly(a), ev.known_exactly(b)
    assert left is not None and right is not None
    c = fold(ev, op, left, right)
    return ev.constant(c.value, BOOL if op in COMPARISONS else ev.type_of(a).dtype, sym=c.sym)


# -- arithmetic ---------------------------------------------------------------------------------------


def arithmetic(
    ev: Evaluator, op: str, x: Val, y: Val, rounding: str | None = None, ftz: bool = False, nan: bool = False
) -> Val:
    """A binary arithmetic operation with promotion, broadcasting and constant folding."""
    a, b = operand(ev, x), operand(ev, y)
    if isinstance(a, Const) and isinstance(b, Const) and op in sy.OPERATORS:
        return fold(ev, op, a, b)
    va, vb = ev.promote(a, b, force_float=op == "truediv")
    if ev.type_of(va).dtype.category == "bool":
        ev.refuse(f"`{op}` isn't defined for bool", "convert to an integer first")
    if (folded := _folded(ev, op, va, vb)) is not None:
        return folded
    return raw_arithmetic(ev, op, va, vb, rounding, ftz, nan)


def raw_arithmetic(
    ev: Evaluator, op: str, a: Value, b: Value, rounding: str | None = None, ftz: bool = False, nan: bool = False
) -> Value:
    """The operation on two tiles of one type."""
    ty = ev.type_of(a)
    d = ty.dtype
    if d.category == "restricted_float":
        ev.refuse(f"`{op}` isn't defined for {d}", "convert with ct.astype first")
    if (rounding or ftz) and not (d.is_float and (not ftz or d.name == "float32")):
        ev.refuse(f"rounding modes and flush_to_zero need floats (flush_to_zero: float32), not {d}")
    if ftz or rounding in ("approx", "full"):
        d = ev.fix(d)
        ty = TileTy(d, ty.shape)
    opcode, attrs = _opcode(op, d, rounding, ftz, nan)
    result = ev.value(opcode, (a, b), ty, **attrs)
    if op == "floordiv" and d.is_float:
        return ev.value("floor", (result,), ty)
    return result


def _opcode(op: str, d: DType, rounding: str | None, ftz: bool, nan: bool) -> tuple[str, dict[str, Any]]:
    """The operation and its attributes; the reference refuses what isn't defined only if something needs it."""
    if d.is_float:
        name = {"truediv": "div", "floordiv": "div", "mod": "rem"}.get(op, op)
        if name in ("add", "sub", "mul", "div"):
            return f"{name}f", {"rounding": rounding or "nearest_even", "ftz": ftz}
        if name in ("min", "max"):
            return f"{name}f", {"nan": nan, "ftz": ftz}
        if name in ("rem", "pow", "atan2"):
            return {"rem": "remf"}.get(name, name), {}
    else:
        if op in ("add", "sub", "mul"):
            return f"{op}i", {}
        if op in ("floordiv", "cdiv"):
            return "divi", {"rounding": "negative_inf" if op == "floordiv" else "positive_inf", "signed": d.signed}
        if op in ("min", "max"):
            return f"{op}i", {"signed": d.signed}
        if op == "mod":
            return "remi", {"signed": d.signed}
    return "refused", {"message": f"`{op}` isn't defined for {d.name}"}


def modulo(ev: Evaluator, x: Val, y: Val) -> Val:
    """Python's ``%``: the remainder takes the divisor's sign."""
    a, b = operand(ev, x), operand(ev, y)
    if isinstance(a, Const) and isinstance(b, Const):
        return fold(ev, "mod", a, b)
    va, vb = ev.promote(a, b)
    return _folded(ev, "mod", va, vb) or raw_modulo(ev, va, vb)


def raw_modulo(ev: Evaluator, a: Value, b: Value) -> Value:
    """C's remainder, corrected where its sign differs from the divisor's."""
    ty = ev.type_of(a)
    rem = raw_arithmetic(ev, "mod", a, b)
    zero = ev.constant(0, ty.dtype, ty.shape)
    negative = raw_compare(ev, "lt", rem, zero)
    divisor_negative = _folded(ev, "lt", b, zero) or raw_compare(ev, "lt", b, zero)
    mismatch = ev.value("xori", (negative, divisor_negative), TileTy(BOOL, ty.shape))
    nonzero = raw_compare(ev, "ne", rem, zero)
    fix = ev.value("andi", (mismatch, nonzero), TileTy(BOOL, ty.shape))
    fixed = raw_arithmetic(ev, "add", rem, b)
    return ev.value("select", (fix, fixed, rem), ty)


def _divmod(ev: Evaluator, x: Val, y: Val) -> Val:
    return TupleVal((arithmetic(ev, "floordiv", x, y), modulo(ev, x, y)))


def _fpowi_exponent(d: DType) -> DType | None:
    """The smallest signed type of up to 32 bits that holds every exponent, or None."""
    wanted = d.bits if d.signed else 2 * d.bits
    return DType(f"int{wanted}") if d.is_int and wanted <= 32 else None


def power(ev: Evaluator, x: Val, y: Val) -> Val:
    """``**``: a float to an integer power is its own operation."""
    a, b = operand(ev, x), operand(ev, y)
    if isinstance(a, Const) and isinstance(b, Const):
        return fold(ev, "pow", a, b)
    for c in (a, b):
        if isinstance(c, Const):
            ev.decide_type(c)
    base_float = isinstance(a.value, float) if isinstance(a, Const) else ev.type_of(a).dtype.category == "float"
    exp_dtype = ev.default_dtype(b.value) if isinstance(b, Const) else ev.type_of(b).dtype
    exponent_dtype = _fpowi_exponent(exp_dtype)
    if base_float and exponent_dtype is not None:
        base = ev.tile(a)
        shape = ev.broadcast_shapes(ev.shape_of(base), ev.shape_of(b))
        ty = TileTy(ev.type_of(base).dtype, shape)
        exponent = ev.convert_and_broadcast(b, exponent_dtype, shape)
        return ev.value("fpowi", (ev.broadcast_to(base, shape), exponent), ty)
    return arithmetic(ev, "pow", a, b)


# -- comparison ---------------------------------------------------------------------------------------


def compare(ev: Evaluator, op: str, x: Val, y: Val) -> Val:
    """A comparison: of numbers and tiles, or of compile-time things (dtypes, enum members, None)."""
    if not (_is_number(x) and _is_number(y)):
        return _compare_static(ev, op, x, y)
    a, b = operand(ev, x), operand(ev, y)
    if isinstance(a, Const) and isinstance(b, Const):
        return fold(ev, op, a, b)
    va, vb = ev.promote(a, b)
    return _folded(ev, op, va, vb) or raw_compare(ev, op, va, vb)


def raw_compare(ev: Evaluator, op: str, a: Value, b: Value) -> Value:
    """A comparison of two tiles of one type."""
    ty = ev.type_of(a)
    result = TileTy(BOOL, ty.shape)
    if ty.dtype.is_float:
        return ev.value("cmpf", (a, b), result, predicate=op, ordered=op != "ne")
    return ev.value("cmpi", (a, b), result, predicate=op, signed=ty.dtype.signed)


def _is_number(v: Val) -> bool:
    return _loose(v) or (isinstance(v, Value) and isinstance(v.ty, TileTy))


def _compare_static(ev: Evaluator, op: str, x: Val, y: Val) -> Val:
    if op not in ("eq", "ne"):
        ev.refuse(f"can't order {describe(x)} and {describe(y)}")
    if isinstance(x, DTypeVal) and isinstance(y, DTypeVal):
        return _compare_dtypes(ev, op, x, y)
    if isinstance(x, Const) and isinstance(y, Const):
        return fold(ev, op, x, y)
    if isinstance(x, TupleVal) and isinstance(y, TupleVal):
        return _compare_tuples(ev, op, x, y)
    return const((_static_value(x) == _static_value(y)) == (op == "eq"))


def _static_value(v: Val) -> object:
    return v.name if isinstance(v, Ref) else v.value if isinstance(v, Const) else v


def _compare_dtypes(ev: Evaluator, op: str, x: DTypeVal, y: DTypeVal) -> Const:
    a, b = ev.resolve(x.dtype), ev.resolve(y.dtype)
    equal = (a.name == b.name) == (op == "eq")
    if a == b:
        return const(equal)

    def leaf(d: DType) -> sy.Sym:
        return sy.lit(d.name) if d.of is None else sy.Sym("dtype", (d.of,))

    return Const(equal, sy.apply(op, leaf(a), leaf(b)))


def _is(ev: Evaluator, x: Val, y: Val, negate: bool) -> Val:
    if isinstance(x, Const) and isinstance(y, Const):
        return fold(ev, "ne" if negate else "eq", x, y)
    return const((_static_value(x) == _static_value(y)) != negate)


def _compare_tuples(ev: Evaluator, op: str, x: TupleVal, y: TupleVal) -> Val:
    """Equal if all items are; what is known while translating stays known."""
    if len(x.items) != len(y.items):
        return const(op == "ne")
    result: Val = const(True)
    for a, b in zip(x.items, y.items, strict=True):
        if any(isinstance(v, Value) and ev.type_of(ev.tile(v)).rank for v in (a, b)):
            ev.refuse("tuples of tiles can't be compared")
        equal = compare(ev, "eq", a, b)
        if isinstance(result, Const) and isinstance(equal, Const):
            result = Const(result.value and equal.value, sy.apply("and", result.sym, equal.sym))
        else:
            result = bitwise(ev, "and_", result, equal)
    return result if op == "eq" else logical_not(ev, result)


def _contains(ev: Evaluator, container: Val, item: Val) -> Val:
    if not isinstance(container, TupleVal):
        ev.hole("E0301", "`in` needs a tuple")
    found = [compare(ev, "eq", item, c) for c in container.items]
    known = [f for f in found if isinstance(f, Const)]
    if len(known) == len(found):
        either = const(False)
        for k in known:
            either = Const(either.value or k.value, sy.apply("or", either.sym, k.sym))
        return either
    for k in known:
        if ev.decide(k):
            return k
    result, *others = found
    for f in others:
        result = bitwise(ev, "or_", result, f)
    if ev.type_of(ev.tile(result)).rank:
        ev.refuse("`in` needs scalars")
    return result


# -- bits ---------------------------------------------------------------------------------------------


def bitwise(ev: Evaluator, op: str, x: Val, y: Val) -> Val:
    """&, |, ^ on integers or bools of one dtype."""
    a, b = operand(ev, x), operand(ev, y)
    if isinstance(a, Const) and isinstance(b, Const):
        return fold(ev, op, a, b)
    va, vb = ev.promote(a, b)
    ty = ev.type_of(va)
    if ty.dtype.is_float:
        ev.refuse("bitwise operations need integers or bools", "use ct.bitcast first")
    return _folded(ev, op, va, vb) or ev.value({"and_": "andi", "or_": "ori", "xor": "xori"}[op], (va, vb), ty)


def shift(ev: Evaluator, op: str, x: Val, y: Val) -> Val:
    """<< and >> on integers."""
    a, b = operand(ev, x), operand(ev, y)
    if isinstance(a, Const) and isinstance(b, Const):
        return fold(ev, op, a, b)
    va, vb = ev.promote(a, b)
    ty = ev.type_of(va)
    if not ty.dtype.is_int:
        ev.refuse("shifts need integers")
    if (folded := _folded(ev, op, va, vb)) is not None:
        return folded
    attrs = {"signed": ty.dtype.signed} if op == "rshift" else {}
    return ev.value("shri" if op == "rshift" else "shli", (va, vb), ty, **attrs)


def invert(ev: Evaluator, x: Val) -> Val:
    """~x: xor with all ones."""
    if isinstance(x, Const):
        ev.decide_type(x)
        return fold(ev, "not" if isinstance(x.value, bool) else "invert", x)
    v = ev.tile(x)
    ty = ev.type_of(v)
    if ty.dtype.is_float:
        ev.refuse("`~` needs an integer or bool")
    if (known := ev.known(v)) is not None:
        c = fold(ev, "not" if ty.dtype.category == "bool" else "invert", known)
        return ev.constant(c.value, ty.dtype, sym=c.sym)
    ones = True if ty.dtype.category == "bool" else -1 if ty.dtype.signed else (1 << ty.dtype.bits) - 1
    return ev.value("xori", (v, ev.constant(ones, ty.dtype, ty.shape)), ty)


def logical_not(ev: Evaluator, x: Val) -> Val:
    """``not x``."""
    if not isinstance(x, Value):
        known = ev.known_truth(x, decide=False)
        return fold(ev, "not", x) if isinstance(x, Const) else const(not known)
    v = ev.astype(ev.tile(x), BOOL)
    if (c := ev.known(v)) is not None:
        return ev.constant(not c.value, BOOL)
    return ev.value("xori", (v, ev.constant(True, BOOL, ev.type_of(v).shape)), ev.type_of(v))


def where(ev: Evaluator, c: Val, x: Val, y: Val) -> Val:
    """select with promotion of the values and broadcasting of all three."""
    cond, a, b = operand(ev, c), operand(ev, x), operand(ev, y)
    if isinstance(a, Const) and isinstance(b, Const):
        a = ev.tile(a)
    va, vb = ev.promote(a, b)
    shape = ev.broadcast_shapes(ev.shape_of(cond), ev.type_of(va).shape)
    cv = ev.convert_and_broadcast(cond, BOOL, shape)
    va, vb = ev.broadcast_to(va, shape), ev.broadcast_to(vb, shape)
    return ev.value("select", (cv, va, vb), ev.type_of(va))


def negate(ev: Evaluator, x: Val) -> Val:
    """-x; a bool becomes an integer first."""
    if isinstance(x, Const):
        return fold(ev, "neg", x)
    v = ev.tile(x)
    if ev.type_of(v).dtype.category == "bool":
        v = ev.astype(v, I32)
    ty = ev.type_of(v)
    if (known := ev.known(v)) is not None:
        c = fold(ev, "neg", known)
        return ev.constant(c.value, ty.dtype, sym=c.sym)
    return ev.value("negf" if ty.dtype.is_float else "negi", (v,), ty)


# -- rows ---------------------------------------------------------------------------------------------


def _named(op: str) -> Callable[..., Val]:
    def lower(ev: Evaluator, x: Val, y: Val, rounding_mode: Val, flush_to_zero: Val) -> Val:
        return arithmetic(ev, op, x, y, enum_arg(ev, rounding_mode), flag(ev, flush_to_zero))

    return lower


def _minmax(op: str) -> Callable[..., Val]:
    def lower(ev: Evaluator, x: Val, y: Val, flush_to_zero: Val, propagate_nan: Val) -> Val:
        return arithmetic(ev, op, x, y, None, flag(ev, flush_to_zero), flag(ev, propagate_nan))

    return lower


def _binary(op: str, how: Callable[[Evaluator, str, Val, Val], Val]) -> Callable[..., Val]:
    return lambda ev, x, y: how(ev, op, x, y)


def _plus(ev: Evaluator, x: Val, y: Val) -> Val:
    if isinstance(x, TupleVal) and isinstance(y, TupleVal):
        return TupleVal(x.items + y.items)
    return arithmetic(ev, "add", x, y)


_ROUNDED = "x, y, /, *, rounding_mode=None, flush_to_zero=False"
_MINMAX = "x, y, /, *, flush_to_zero=False, propagate_nan=False"
_XY = "x, y, /"

ROWS: tuple[Rule, ...] = (
    Rule("operator.add", _XY, "add: promote, broadcast, one operation; tuples are joined", _plus),
    *(Rule(f"operator.{op}", _XY, f"{op}: promote, broadcast, one operation", _binary(op, arithmetic))
      for op in ("sub", "mul", "truediv", "floordiv")),
    *(Rule(f"cuda.tile.{op}", _ROUNDED, f"{op} with rounding mode and flush-to-zero", _named(op))
      for op in ("add", "sub", "mul", "truediv")),
    *(Rule(f"cuda.tile.{op}", _XY, f"{op} of integers", _binary(op, arithmetic)) for op in ("floordiv", "cdiv")),
    Rule("cuda.tile.minimum", _MINMAX, "element-wise minimum", _minmax("min")),
    Rule("cuda.tile.maximum", _MINMAX, "element-wise maximum", _minmax("max")),
    *(Rule(f"builtins.{op}", _XY, f"{op} of two scalars or tiles", _binary(op, arithmetic)) for op in ("min", "max")),
    *(Rule(n, _XY, "remainder with the divisor's sign", modulo) for n in ("operator.mod", "cuda.tile.mod")),
    *(Rule(n, _XY, "quotient and remainder", _divmod) for n in ("builtins.divmod", "cuda.tile.divmod")),
    *(Rule(n, _XY, "power", power) for n in ("operator.pow", "cuda.tile.pow")),
    Rule("cuda.tile.atan2", "x1, x2, /", "angle of a point", _binary("atan2", arithmetic)),
    *(Rule(f"operator.{op}", _XY, f"comparison {op}", _binary(op, compare)) for op in COMPARISONS),
    *(Rule(f"cuda.tile.{name}", _XY, f"comparison {op}", _binary(op, compare)) for name, op in (
        ("equal", "eq"), ("not_equal", "ne"), ("less", "lt"), ("less_equal", "le"), ("greater", "gt"),
        ("greater_equal", "ge"))),
    Rule("operator.is_", _XY, "identity of compile-time values", lambda ev, x, y: _is(ev, x, y, False)),
    Rule("operator.is_not", _XY, "identity of compile-time values", lambda ev, x, y: _is(ev, x, y, True)),
    Rule("operator.contains", "container, item, /", "membership in a tuple", _contains),
    *(Rule(n, _XY, f"bitwise {op}", _binary(op, bitwise)) for op, names in (
        ("and_", ("operator.and_", "cuda.tile.bitwise_and")), ("or_", ("operator.or_", "cuda.tile.bitwise_or")),
        ("xor", ("operator.xor", "cuda.tile.bitwise_xor"))) for n in names),
    *(Rule(n, _XY, f"{op}", _binary(op, shift)) for op, names in (
        ("lshift", ("operator.lshift", "cuda.tile.bitwise_lshift")),
        ("rshift", ("operator.rshift", "cuda.tile.bitwise_rshift"))) for n in names),
    *(Rule(n, "x, /", "all bits flipped", invert) for n in ("operator.invert", "cuda.tile.bitwise_not")),
    Rule("operator.not_", "x, /", "logical not", logical_not),
    *(Rule(n, "x, /", "negation", negate) for n in ("operator.neg", "cuda.tile.negative")),
    Rule("operator.pos", "x, /", "the operand itself", lambda ev, x: x),
    Rule("cuda.tile.where", "cond, x, y, /", "element-wise choice", where),
)  # fmt: skip
