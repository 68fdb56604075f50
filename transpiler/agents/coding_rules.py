"""What the author of a fragment must know about cutile 0.5, each with the Holes that it matters for.

A rule goes into a task only where its predicate holds, so that a task stays small. Each was found by trying: what the
compiler takes and compiles to something else than it says comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from transpiler.ir.construct import Construct


@dataclass(frozen=True)
class Situation:
    """What predicates look at: the construct, the reference's operations (names) and the types as text."""

    construct: Construct
    operations: frozenset[str]
    types: str

    def does(self, *prefixes: str) -> bool:
        """Whether an operation of the reference, or the construct's own name, starts with one of these."""
        names = {*self.operations, self.construct.name.rpartition(".")[2]}
        return any(name.startswith(prefixes) for name in names)


@dataclass(frozen=True)
class CodingRule:
    """A sentence, and when it matters."""

    text: str
    applies: Callable[[Situation], bool]


def _always(_: Situation) -> bool:
    return True


def _floats(s: Situation) -> bool:
    return any(word in s.types for word in ("f16", "f32", "f64", "float", "generic"))


def _integers(s: Situation) -> bool:
    return any(word in s.types for word in ("i8", "i16", "i32", "i64", "int", "bool"))


RULES: tuple[CodingRule, ...] = (
    CodingRule("Give every `let` a type; names are new and bound once.", _always),
    CodingRule("Call functions, never methods; no closures, `match`, `+=` or minus before a value.", _always),
    CodingRule("Modes are passed as paths: `ftz::Disabled`, `rounding::NearestEven`, `nan::Disabled`.", _floats),
    CodingRule("Flush-to-zero and rounding are part of the result: take them from the reference operation.", _floats),
    CodingRule("A product that is used once, in a sum, is one `fma` in the reference.", lambda s: s.does("fma", "mul")),
    CodingRule("Numbers become tiles with `const_f(1.5, $shape)` or `const_i(2, $shape)`, scalars with `const_f32` and "
               "`const_i32`; `constant` gets bools, large unsigned values and fp8 wrong.",
               lambda s: s.does("constant", "full", "zeros", "ones", "iota", "arange")),
    CodingRule("Comparisons give a bool tile: bind it before it is used in another expression.",
               lambda s: s.does("cmp", "select", "where", "eq", "ne", "lt", "le", "gt", "ge", "is")),
    CodingRule("Python's `!=` on floats, and isnan, is `cmpf(a, b, predicate::NotEqual, cmp_ordering::Unordered)`; "
               "`ne_tile` is ordered.", lambda s: s.does("cmpf", "not_equal", "isnan")),
    CodingRule("Unsigned comparisons are `cmpi_unsigned(a, b, predicate::LessThan)`.", lambda s: s.does("cmpi")),
    CodingRule("`reduce` and `scan` ignore their dimension and identity: use reduce_sum, reduce_max, reduce_min or "
               "reduce_prod along an axis, then `reshape` where the axis is kept.",
               lambda s: s.does("reduce", "sum", "prod", "max", "min", "argm")),
    CodingRule("`scan_sum` always runs along axis 0: `permute` the axis to the front and back.",
               lambda s: s.does("scan", "cum")),
    CodingRule("Integer division: `/` truncates; Python's `//` is `divi(a, b, rounding::NegativeInf)`.",
               lambda s: s.does("div", "rem", "mod", "floordiv", "cdiv") and _integers(s)),
    CodingRule("`true_div` is approximate; divide by `a / b` or `divf(a, b, rounding::NearestEven, ftz::Disabled)`.",
               lambda s: s.does("divf", "truediv")),
    CodingRule("Conversions: `ftof`, `ftoi(.., rounding::NearestIntToZero)`, `itof`, `exti` to widen, `trunci_wrap` to "
               "narrow, `bitcast` between signs; `convert_tile` only between floats.",
               lambda s: s.does("ftof", "ftoi", "itof", "exti", "trunci", "bitcast", "convert", "astype")),
    CodingRule("Reshapes and broadcasts: `reshape(x, shape![..])`, `broadcast(x, shape![..])`; a scalar is reshaped "
               "to ones before it is broadcast.", lambda s: s.does("reshape", "broadcast", "expand", "squeeze")),
    CodingRule("`permute(x, const_array![1, 0])`; `cat(a, b, 0)` takes two tiles; `insert(value, into, [i, j])` has "
               "the value first.", lambda s: s.does("permute", "transpose", "cat", "extract", "insert")),
    CodingRule("`mma(x, y, acc)`; scaled: `mmaf_scaled(x, y, acc, x_scale, y_scale)`.",
               lambda s: s.does("mma", "matmul")),
    CodingRule("Memory takes tokens: pass `Some($token)`-like operands on as they are given, never make new tokens.",
               lambda s: s.does("load", "store", "atomic", "print") or "token" in s.types),
)  # fmt: skip


def relevant(situation: Situation) -> tuple[str, ...]:
    """Return the rules for a Hole, in the table's order."""
    return tuple(rule.text for rule in RULES if rule.applies(situation))


def situation(construct: Construct, operations: Iterable[str], types: Iterable[str]) -> Situation:
    """Put together what predicates look at."""
    return Situation(construct, frozenset(operations), " ".join((*types, *construct.operands)))
