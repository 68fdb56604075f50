"""Symbolic compile-time values: what a constant of one specialization is a function of.

The specializer is concolic: it computes with the concrete constants of one specialization and
keeps beside each the expression over kernel parameters that it came from.  Shapes and const
generics are printed from the expressions, decisions are recorded as conditions over them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Scalar = int | float | bool | str | None


@dataclass(frozen=True)
class Sym:
    """An expression over kernel parameters.

    ``op`` is an operator of :data:`OPERATORS`, or a leaf: "lit" (args: the value), "param" (a
    constant parameter's name), "dtype" (an array's or scalar's name: its dtype's name), "dim" or
    "stride" (array, axis: the value baked in, None where dynamic), "rank" (array), "div" (array,
    "ptr" | "dim" | "stride", axis: a divisor known of it; of a list of arrays: of its elements),
    "itemsize" (array: bytes an element), "overlaps" (array: whether elements of it may share memory).
    """

    op: str
    args: tuple[Any, ...]

    def __str__(self) -> str:
        return to_python(self)


def lit(value: Scalar) -> Sym:
    """The expression that is always ``value``."""
    return Sym("lit", (value,))


def param(name: str) -> Sym:
    """The constant parameter ``name``."""
    return Sym("param", (name,))


def _next_power_of_2(n: Any) -> int:
    if not isinstance(n, int):
        raise TypeError(f"a power of two next to {n!r}")
    return 1 << max(0, (n - 1).bit_length())


_MAX_BITS = 4096  # of an integer on the way; no value that a kernel can hold has more than 64


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() * b > _MAX_BITS and abs(a) > 1:
        raise OverflowError(f"the result has more than {_MAX_BITS} bits")
    return a**b


def _shifted(a: Any, b: Any) -> Any:
    if isinstance(b, int) and b > _MAX_BITS and a != 0:
        raise OverflowError(f"the result has more than {_MAX_BITS} bits")
    return a << b


def _round_to(x: Any, dtype: str) -> float:
    from transpiler.ir.numbers import rounded  # it needs types, whose dimensions are symbolic

    return rounded(_a_float(x), dtype)


def _f32_bits(x: Any) -> int:
    """The bits of a float as a float32, as a signed integer."""
    from transpiler.ir.numbers import float32_bits

    return float32_bits(_a_float(x))


def _a_float(x: Any) -> float:
    if type(x) is not float:  # an integer or a bool is another program: cuda.tile types it differently
        raise TypeError(f"{x!r} isn't a float")
    return x


# operator -> (Python function, Python text, binding strength of the text; 0 for a call)
OPERATORS: dict[str, tuple[Any, str, int]] = {
    "or": (lambda a, b: a or b, "{} or {}", 1),
    "and": (lambda a, b: a and b, "{} and {}", 2),
    "not": (lambda a: not a, "not {}", 3),
    "eq": (lambda a, b: a == b, "{} == {}", 4),
    "ne": (lambda a, b: a != b, "{} != {}", 4),
    "lt": (lambda a, b: a < b, "{} < {}", 4),
    "le": (lambda a, b: a <= b, "{} <= {}", 4),
    "gt": (lambda a, b: a > b, "{} > {}", 4),
    "ge": (lambda a, b: a >= b, "{} >= {}", 4),
    "in": (lambda a, *b: a in b, "{} in ({})", 4),
    "or_": (lambda a, b: a | b, "{} | {}", 5),
    "xor": (lambda a, b: a ^ b, "{} ^ {}", 6),
    "and_": (lambda a, b: a & b, "{} & {}", 7),
    "lshift": (_shifted, "{} << {}", 8),
    "rshift": (lambda a, b: a >> b, "{} >> {}", 8),
    "add": (lambda a, b: a + b, "{} + {}", 9),
    "sub": (lambda a, b: a - b, "{} - {}", 9),
    "mul": (lambda a, b: a * b, "{} * {}", 10),
    "floordiv": (lambda a, b: a // b, "{} // {}", 10),
    "truediv": (lambda a, b: a / b, "{} / {}", 10),
    "mod": (lambda a, b: a % b, "{} % {}", 10),
    "neg": (lambda a: -a, "-{}", 11),
    "invert": (lambda a: ~a, "~{}", 11),
    "pow": (_power, "{} ** {}", 12),
    "cdiv": (lambda a, b: -(-a // b), "cdiv({}, {})", 0),
    "min": (min, "min({}, {})", 0),
    "max": (max, "max({}, {})", 0),
    "abs": (abs, "abs({})", 0),
    "int": (int, "int({})", 0),
    "float": (float, "float({})", 0),
    "bool": (bool, "bool({})", 0),
    "is_bool": (lambda a: isinstance(a, bool), "type({}) is bool", 4),
    "sqrt": (math.sqrt, "sqrt({})", 0),
    "exp": (math.exp, "exp({})", 0),
    "log": (math.log, "log({})", 0),
    "log2": (math.log2, "log2({})", 0),
    "atan2": (math.atan2, "atan2({}, {})", 0),
    "gcd": (math.gcd, "gcd({}, {})", 0),
    "pow2_divisor": (lambda n: min(n & -n, 1024), "pow2_divisor({})", 0),
    "next_power_of_2": (_next_power_of_2, "next_power_of_2({})", 0),
    "round_to": (_round_to, "round_to({}, {})", 0),
    "f32_bits": (_f32_bits, "f32_bits({})", 0),
    "where": (lambda c, a, b: a if c else b, "({1} if {0} else {2})", 0),
}
LEAVES = ("lit", "param", "dtype", "dim", "stride", "rank", "div", "itemsize", "overlaps")


_RIGHT_IDENTITIES = (("add", 0), ("sub", 0), ("mul", 1), ("floordiv", 1), ("cdiv", 1))


def _int(sym: Sym) -> int | None:
    return sym.args[0] if sym.op == "lit" and type(sym.args[0]) is int else None


def apply(op: str, *args: Sym) -> Sym:
    """Build ``op(*args)``, folding literals and the identities x+0, x*1, x//1, x-0."""
    if all(a.op == "lit" for a in args):
        return lit(OPERATORS[op][0](*(a.args[0] for a in args)))
    if len(args) == 2:
        a, b = args
        if (op, _int(b)) in _RIGHT_IDENTITIES:
            return a
        if (op, _int(a)) in (("add", 0), ("mul", 1)):
            return b
    return Sym(op, args)


def evaluate(sym: Sym, leaves: Mapping[tuple[Any, ...], Any]) -> Any:
    """Evaluate under ``leaves``, which maps (op, *args) of each leaf to its value.

    Raises KeyError for an unknown leaf, ArithmeticError as Python does.
    """
    if sym.op == "lit":
        return sym.args[0]
    if sym.op in LEAVES:
        return leaves[(sym.op, *sym.args)]
    return OPERATORS[sym.op][0](*(evaluate(a, leaves) for a in sym.args))


def identical(a: Any, b: Any) -> bool:
    """Whether two constants are one to the compiler: type and value, floats bit by bit, all NaNs alike."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
    return bool(a == b)


_BOOLS = ("not", "eq", "ne", "lt", "le", "gt", "ge", "in", "bool", "is_bool")
_EITHER = ("or", "and", "or_", "xor", "and_", "where", "min", "max")


def is_bool(sym: Sym) -> bool | None:
    """Whether an expression is a bool whatever its leaves are; None where that depends on them."""
    if sym.op in _BOOLS or sym.op == "overlaps":
        return True
    if sym.op == "param":
        return None
    if sym.op in _EITHER:
        said = {is_bool(arg) for arg in (sym.args[1:] if sym.op == "where" else sym.args)}
        return said.pop() if len(said) == 1 else None
    return sym.op == "lit" and isinstance(sym.args[0], bool)


def truth(sym: Sym) -> Sym:
    """The expression that is true where ``sym`` counts as true."""
    return sym if is_bool(sym) else apply("bool", sym)


def leaves_of(sym: Sym) -> tuple[Sym, ...]:
    """The non-literal leaves, in order of first use."""
    if sym.op in LEAVES:
        return () if sym.op == "lit" else (sym,)
    return tuple(dict.fromkeys(leaf for a in sym.args for leaf in leaves_of(a)))


def _leaf_text(sym: Sym) -> str:
    match sym.op:
        case "lit":
            return repr(sym.args[0])
        case "param":
            return str(sym.args[0])
        case "dtype":
            return f"{sym.args[0]}.dtype"
        case "rank":
            return f"{sym.args[0]}.ndim"
        case "dim":
            return f"{sym.args[0]}.shape[{sym.args[1]}]"
        case "itemsize":
            return f"itemsize({sym.args[0]})"
        case "overlaps":
            return f"overlaps({sym.args[0]})"
        case "div":
            return f"div({', '.join(map(str, sym.args))})"
        case _:
            return f"{sym.args[0]}.strides[{sym.args[1]}]"


def to_python(sym: Sym) -> str:
    """Python text with only the parentheses that are needed."""
    return _text(sym)[0]


def _text(sym: Sym) -> tuple[str, int]:
    if sym.op in LEAVES:
        return _leaf_text(sym), 99
    if sym.op == "in":
        return f"{_text(sym.args[0])[0]} in ({', '.join(_text(a)[0] for a in sym.args[1:])})", 4
    _, pattern, strength = OPERATORS[sym.op]
    parts = []
    for i, a in enumerate(sym.args):
        text, inner = _text(a)
        needs = strength and inner and (inner < strength or (inner == strength and (i > 0 or strength == 4)))
        parts.append(f"({text})" if needs else text)
    return pattern.format(*parts), strength or 99
