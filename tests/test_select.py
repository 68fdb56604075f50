"""The table of forms: templates, conditions, and that every operation of TIR has a way to Rust."""

from __future__ import annotations

import re

import pytest

from transpiler.emit import control, lower
from transpiler.ir import rust, tir
from transpiler.select import TABLE
from transpiler.select.declarations import DECLARATIONS
from transpiler.select.forms import Table, form, forms, instantiate, other_than, overlap, parse


def test_templates_print_as_they_are_written() -> None:
    for rows in TABLE.rows.values():
        for row in rows:
            assert rust.Printer().expr(row.expr) == row.template


@pytest.mark.parametrize("template", ["$0 +", "f($0", "$0 ]", "f($0,, $1)", "`x`"])
def test_a_bad_template_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="bad template"):
        parse(template)


def test_parentheses_follow_precedence() -> None:
    printer = rust.Printer()
    params: dict[str, rust.Expr | str] = {"0": parse("$a + $b"), "1": rust.Text("c")}
    assert printer.expr(instantiate(parse("$0 * $1"), params)) == "($a + $b) * c"
    assert printer.expr(instantiate(parse("$1 - $0"), params)) == "c - ($a + $b)"
    assert printer.expr(instantiate(parse("$0.reshape($1)"), params)) == "($a + $b).reshape(c)"


def test_two_rows_for_one_operation_are_an_error() -> None:
    rows = [form("op", "f($0)", ftz=False), form("op", "g($0)", rounding="zero")]
    assert overlap(*rows)
    with pytest.raises(ValueError, match="two forms match op"):
        Table(rows)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (form("op", "$0", k=1), form("op", "$0", k=2)),
        (form("op", "$0", k=(1, 2)), form("op", "$0", k=other_than(1, 2, 3))),
        (form("op", "$0", k=other_than(1)), form("op", "$0", k=1)),
        (form("op", "$0"), form("other", "$0")),
    ],
)
def test_disjoint_rows(a: object, b: object) -> None:
    assert not overlap(a, b)  # type: ignore[arg-type]


def test_conditions() -> None:
    row = form("op", "$0", k=other_than(None), j=(1, 2))
    assert row.matches({"k": 5, "j": 2})
    assert not row.matches({"j": 2})
    assert not row.matches({"k": 5, "j": 3})
    assert [r.template for r in forms("a b", "$op($0)")] == ["a($0)", "b($0)"]


def test_every_operation_of_tir_has_a_form() -> None:
    known = set(TABLE.rows) | set(lower.SPECIAL) | set(control.HANDLERS)
    expected = {
        "addi", "subi", "muli", "divi", "remi", "mini", "maxi", "shri", "shli", "andi", "ori", "xori", "negi", "absi",
        "addf", "subf", "mulf", "divf", "fma", "minf", "maxf", "remf", "pow", "atan2", "fpowi", "negf", "absf", "floor",
        "ceil", "sin", "cos", "tan", "sinh", "cosh", "log", "log2", "exp", "tanh", "exp2", "rsqrt", "sqrt", "cmpi",
        "cmpf", "select", "convert", "bitcast", "iota", "reshape", "broadcast", "permute", "cat", "extract", "insert",
        "offset", "view", "num_tiles", "load_view", "store_view", "load_ptr", "store_ptr", "atomic_rmw", "atomic_cas",
        "atomic_red_view", "make_token", "join_tokens", "mma", "mma_scaled", "reduce", "scan", "for", "loop", "if",
        "continue", "break", "return", "assume", "print", "assert", "hole", "constant", "tensor", "scalar", "block_id",
        "num_blocks", "dim", "stride", "base", "make_tensor", "int_to_ptr",
    }  # fmt: skip
    assert expected - known == set()
    assert tir.__doc__ is not None
    assert all(re.search(rf"\b{name}\b", tir.__doc__) for name in expected - {"yield"})


def test_functions_of_templates_are_declared_or_cutile_s() -> None:
    ours = {name for rows in TABLE.rows.values() for row in rows for name in _called(row.expr)} & set(DECLARATIONS)
    assert {"tile_block_id", "strides", "load_ptr_padded", "trunci_wrap", "cmpi_unsigned"} <= ours


def _called(e: rust.Expr) -> set[str]:
    return {x.func.split("::")[0] for x in rust.subexpressions(e) if isinstance(x, rust.Call)}
