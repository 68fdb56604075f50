"""Expressions in ffi.rs: Rust computes what Python does, on expressions that hypothesis makes up."""

from __future__ import annotations

import math
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from transpiler.diagnostics import TranspileError
from transpiler.emit.rust_values import Scope, condition, conjunction, to_rust
from transpiler.ir.symbolic import OPERATORS, Sym, apply, lit, param
from transpiler.ir.tir import Condition
from transpiler.resources import support_dir
from transpiler.specialize.conditions import necessary

CASES = 600
_UNARY = ("not", "neg", "invert", "abs", "int", "float", "bool", "sqrt", "exp", "log", "log2", "next_power_of_2",
          "pow2_divisor", "f32_bits", "is_bool")  # fmt: skip
_BINARY = tuple(op for op in OPERATORS if op not in (*_UNARY, "where", "in", "min", "max", "round_to"))
_ROUNDED = ("float16", "bfloat16", "float32", "float64")
_LIMIT = 2**127
_INEXACT = frozenset({"exp", "log", "log2", "pow", "atan2"})


class TooLargeError(Exception):
    """A value that Python has and 128 bits have not."""


_numbers = st.one_of(
    st.integers(-20, 20),
    st.sampled_from(
        [0, 1, 2, 16, 64, 128, 1024, 4096, 2**31, 2**40, 2**53 + 1, 2**62, 2**64, 2**126, 2**127 - 1, -(2**127)]
    ),
    st.booleans(),
    st.sampled_from(
        [
            0.0,
            -0.0,
            0.5,
            1.5,
            -2.5,
            1e-6,
            1e300,
            math.inf,
            -math.inf,
            math.nan,
            16.0,
            float(2**53),
            0.1,
            -1e-5,
            65519.99,
            65520.0,
            2.98e-8,
            5.97e-8,
            3.3895e38,
            1e-45,
            1e-40,
            1.00048828125,
        ]
    ),
)
_literals = st.one_of(_numbers, st.sampled_from(["float16", "float32", "a", "", 'q"\\\n\u00e9']), st.none()).map(lit)


def _grow(inner: st.SearchStrategy[Sym]) -> st.SearchStrategy[Sym]:
    def build(op: str, *args: Sym) -> Sym:
        return Sym(op, args)

    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(build, st.sampled_from(_BINARY), inner, inner),
        st.builds(build, st.sampled_from(_BINARY), inner, inner),
        st.builds(build, st.sampled_from(_UNARY), inner),
        st.builds(build, st.just("where"), inner, inner, inner),
        st.builds(lambda a, dtype: Sym("round_to", (a, lit(dtype))), inner, st.sampled_from(_ROUNDED)),
        st.builds(lambda a, rest: Sym("in", (a, *rest)), inner, several),
        st.builds(lambda op, a, b: Sym(op, (a, b)), st.sampled_from(["min", "max"]), inner, inner),
    )


EXPRESSIONS = st.recursive(st.one_of(_numbers.map(lit), _numbers.map(lit), _literals), _grow, max_leaves=8)


def reference(sym: Sym) -> Any:
    """Evaluate as symbolic.evaluate does; TooLargeError where a step leaves 128 bits or loses digits in Rust."""
    if sym.op == "lit":
        return sym.args[0]
    args = [reference(a) for a in sym.args]
    _small_enough(sym.op, args)
    value = OPERATORS[sym.op][0](*args)
    if isinstance(value, complex):
        raise ValueError
    if isinstance(value, int) and not -_LIMIT <= value < _LIMIT:
        raise TooLargeError
    return value


def _small_enough(op: str, args: list[Any]) -> None:
    """Refuse what Rust leaves undefined on purpose: huge results, and texts as operands of arithmetic."""
    if op in ("add", "mul", "mod") and any(isinstance(a, str) for a in args):
        raise TypeError
    if op == "bool" and not isinstance(args[0], int | float):
        raise TypeError
    if op == "int" and isinstance(args[0], float) and abs(args[0]) >= 1.7e38:
        raise TooLargeError
    if not all(isinstance(a, int) for a in args):
        return
    huge_shift = op == "lshift" and args[0] != 0 and args[1] > 128
    huge_power = op == "pow" and abs(args[0]) > 1 and args[1] > 200
    inexact = op == "truediv" and any(abs(a) > 2**53 for a in args)
    if huge_shift or huge_power or inexact or (op == "cdiv" and -args[0] == _LIMIT):
        raise TooLargeError


def expected(sym: Sym) -> str:
    """The line that the Rust program prints."""
    try:
        value = reference(sym)
    except (ArithmeticError, ValueError, TypeError, TooLargeError):
        return "undefined"
    match value:
        case None:
            return "none"
        case bool():
            return f"bool {str(value).lower()}"
        case int():
            return f"int {value}"
        case float():
            return f"float {struct.unpack('<Q', struct.pack('<d', value))[0]}"
        case _:
            return f"text {value.encode().hex()}"


_MAIN = """
#![allow(unused_parens)]
#[path = "{py}"]
#[allow(dead_code)]
mod py;

fn show<'a>(value: impl Into<py::Value<'a>>) {{
    match value.into() {{
        py::Value::None => println!("none"),
        py::Value::Bool(value) => println!("bool {{value}}"),
        py::Value::Int(value) => println!("int {{value}}"),
        py::Value::Float(value) => println!("float {{}}", value.to_bits()),
        py::Value::Text(value) => {{
            println!("text {{}}", value.bytes().map(|b| format!("{{b:02x}}")).collect::<String>())
        }}
        py::Value::Undefined => println!("undefined"),
    }}
}}

fn main() {{
{body}}}
"""


def run_rust(folder: Path, statements: list[str]) -> list[str]:
    """Compile a program of statements beside the support crate's ``py`` module and return the lines it prints."""
    body = "".join(f"    {s};\n" for s in statements)
    source = folder / "values.rs"
    source.write_text(_MAIN.format(py=support_dir() / "py.rs", body=body), encoding="utf-8")
    done = subprocess.run(
        ["rustc", "--edition", "2024", "-C", "opt-level=0", "-o", str(folder / "values"), str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr[:4000]
    return subprocess.run([str(folder / "values")], capture_output=True, text=True, check=True).stdout.splitlines()


def _close(op: str, wanted: str, got: str) -> bool:
    """Functions of libm may differ in the last bits; NaNs are all one."""
    if wanted == got:
        return True
    kinds = wanted.split()[0], got.split()[0]
    if kinds != ("float", "float"):
        return False
    a, b = (struct.unpack("<d", struct.pack("<Q", int(text.split()[1])))[0] for text in (wanted, got))
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-13)


def test_rust_computes_as_python_does(tmp_path: Path) -> None:
    found: dict[str, Sym] = {}

    @settings(
        max_examples=CASES, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(EXPRESSIONS)
    def collect(sym: Sym) -> None:
        found.setdefault(to_rust(sym, str), sym)

    collect()
    cases = list(found.items())
    assert len(cases) > CASES // 2
    lines = run_rust(tmp_path, [f"show({text})" for text, _ in cases])
    wrong = [
        f"{sym}\n  rust:     {text}\n  expected: {wanted}\n  got:      {got}"
        for (text, sym), got in zip(cases, lines, strict=True)
        if not _close(sym.op, wanted := expected(sym), got)
    ]
    assert not wrong, "\n".join(wrong[:10])
    assert len({line.split()[0] for line in lines}) == 6, "every kind of value occurs"
    used = {op for _, sym in cases for op in _operators(sym)}
    assert used == set(OPERATORS)


def _operators(sym: Sym) -> Iterator[str]:
    if sym.op != "lit":
        yield sym.op
        for a in sym.args:
            yield from _operators(a)


def test_equality_of_constants(tmp_path: Path) -> None:
    same = [(1, True, True), (1, 1.0, False), (0.0, -0.0, False), (math.nan, math.nan, True), (None, None, True),
            ("a", "a", True), ("a", "b", False), (None, 0, False), (2, 2, True), (1e-6, 1e-6, True)]  # fmt: skip
    texts = [(to_rust(lit(a), str), to_rust(lit(b), str)) for a, b, _ in same]
    lines = run_rust(tmp_path, [f"show(py::same({a}, {b}))" for a, b in texts])
    assert lines == [f"bool {str(result).lower()}" for _, _, result in same]


# -- What is written ----------------------------------------------------------------------------------

SCOPE = Scope({"x": ("array", 1), "n": ("constant", 0), "BLOCK": ("constant", 2), "s": ("scalar", 0)})


def test_leaves_are_read_from_the_call() -> None:
    assert SCOPE.read(param("BLOCK")) == "call.constant(2)"
    assert SCOPE.read(Sym("dtype", ("x",))) == "call.dtype(1)"
    assert SCOPE.read(Sym("dtype", ("s",))) == "call.scalar_dtype(0)"
    assert SCOPE.read(Sym("dim", ("x", 1))) == "call.dim(1, 1)"
    assert SCOPE.read(Sym("stride", ("x", 0))) == "call.stride(1, 0)"
    assert SCOPE.read(Sym("rank", ("x",))) == "call.rank(1)"
    assert SCOPE.read(Sym("itemsize", ("x",))) == "call.itemsize(1)"
    assert SCOPE.read(Sym("div", ("x", "ptr", 0))) == "call.address_divisor(1)"
    assert SCOPE.read(Sym("div", ("x", "dim", 1))) == "call.dim_divisor(1, 1)"
    assert SCOPE.read(Sym("div", ("x", "stride", 1))) == "call.stride_divisor(1, 1)"


def test_a_leaf_that_a_launch_does_not_have() -> None:
    with pytest.raises(TranspileError, match="E0620"):
        SCOPE.read(Sym("div", ("unknown", "ptr", 0)))


def test_closures_name_what_they_read() -> None:
    half = apply("floordiv", param("BLOCK"), lit(2))
    assert SCOPE.closure([half], lambda leaf: to_rust(half, leaf)) == "|call| py::floordiv(call.constant(2), 2)"
    twice = apply("add", param("BLOCK"), apply("mul", param("n"), param("BLOCK")))
    assert SCOPE.closure([twice], lambda leaf: to_rust(twice, leaf)) == (
        "|call| { let block = call.constant(2); let n = call.constant(0); py::add(block, py::mul(n, block)) }"
    )
    assert SCOPE.closure([], lambda _leaf: "true") == "|_| true"


def test_conditions() -> None:
    def read(leaf: Sym) -> str:
        return str(leaf.args[0])

    small = Sym("lt", (param("n"), lit(4)))
    assert condition(Condition(small, True), read) == "py::holds(py::lt(n, 4))"
    assert condition(Condition(small, False), read) == "py::fails(py::lt(n, 4))"
    assert condition(Condition(param("n"), True), read) == "py::same(n, true)"
    assert condition(Condition(param("n"), 1e-06), read) == "py::same(n, 1e-06)"
    assert condition(Condition(param("n"), float("-inf")), read) == "py::same(n, f64::NEG_INFINITY)"
    assert condition(Condition(Sym("dim", ("x", 0)), None), read) == "py::same(x, py::Value::None)"
    choice = Sym("in", (param("n"), lit(1), lit("a")))
    assert (
        condition(Condition(choice, True), read)
        == 'py::holds(py::is_in(n, &[py::Value::Int(1), py::Value::Text("a")]))'
    )
    assert conjunction([], read) == "true"


def test_what_follows_from_a_known_value_is_left_out() -> None:
    pinned = Condition(param("n"), 1)
    follows = Condition(Sym("eq", (param("n"), lit(1))), True)
    other = Condition(Sym("lt", (param("n"), param("m"))), True)
    assert necessary([pinned, follows, other, pinned]) == (pinned, other)
