"""What the comparison must keep apart, what it must not, and how it shows a difference."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from transpiler.diagnostics import TranspileError
from transpiler.tileir import Comparison, compare, parse
from transpiler.tileir.show import show

CASES = Path(__file__).parent / "tileir_cases"

PARAMETERS = (
    "%p: tile<ptr<f32>>, %q: tile<ptr<i32>>, %n: tile<i32>, %m: tile<i32>, %c: tile<i1>, %d: tile<i1>, "
    "%v: tile<8xf32>, %s: tile<f32>"
)
LOOP = """
  %z = constant <i32: 0> : tile<i32>
  %e = constant <i32: 1> : tile<i32>
"""


def program(body: str, parameters: str = PARAMETERS) -> str:
    return f"entry @k({parameters}) optimization_hints=<default = {{}}> {{\n{body}\n  return\n}}\n"


def judge(reference: str, ours: str) -> Comparison:
    return compare(parse(program(reference)), parse(program(ours)), target="sm_90")


def test_a_nested_loop_with_its_parents_bounds_is_another_loop() -> None:
    nested = (
        LOOP
        + """
  for %i in (%z to %n, step %e) : tile<i32> {
    for %j in (%z to %n, step %e) : tile<i32> {
      %o = print_tko "x", %INDEX : tile<i32> -> token
    }
  }"""
    )
    inner, outer = nested.replace("%INDEX", "%j"), nested.replace("%INDEX", "%i")
    assert judge(inner, inner).equal
    assert not judge(inner, outer).equal


def test_an_effect_of_the_inner_loop_is_not_one_of_the_outer() -> None:
    inner = (
        LOOP
        + """
  for %i in (%z to %n, step %e) : tile<i32> {
    for %j in (%z to %n, step %e) : tile<i32> {
      %o = print_tko "x", %m : tile<i32> -> token
    }
  }"""
    )
    outer = (
        LOOP
        + """
  for %i in (%z to %n, step %e) : tile<i32> {
    %o = print_tko "x", %m : tile<i32> -> token
  }"""
    )
    assert not judge(inner, outer).equal


def test_loops_with_the_same_iterations_correspond() -> None:
    """Two loops with a store each are one loop with both: nothing but tokens orders the stores."""
    apart = (
        LOOP
        + """
  for %i in (%z to %n, step %e) : tile<i32> {
    %o = store_ptr_tko weak %q, %i : tile<ptr<i32>>, tile<i32> -> token
  }
  for %i in (%z to %n, step %e) : tile<i32> {
    %o = store_ptr_tko weak %q, %m : tile<ptr<i32>>, tile<i32> -> token
  }"""
    )
    together = (
        LOOP
        + """
  for %i in (%z to %n, step %e) : tile<i32> {
    %o = store_ptr_tko weak %q, %m : tile<ptr<i32>>, tile<i32> -> token
    %u = store_ptr_tko weak %q, %i : tile<ptr<i32>>, tile<i32> -> token
  }"""
    )
    assert judge(apart, together).equal


def test_tokens_between_loops_are_kept() -> None:
    ordered = (
        LOOP
        + """
  %t = make_token : token
  %w = for %i in (%z to %n, step %e) : tile<i32> iter_values(%a = %t) -> (token) {
    %o = store_ptr_tko weak %q, %i token=%a : tile<ptr<i32>>, tile<i32> -> token
    continue %o : token
  }
  %r = store_ptr_tko weak %q, %m token=%AFTER : tile<ptr<i32>>, tile<i32> -> token"""
    )
    assert judge(ordered.replace("%AFTER", "%w"), ordered.replace("%AFTER", "%w")).equal
    assert not judge(ordered.replace("%AFTER", "%w"), ordered.replace("%AFTER", "%t")).equal


def test_carried_values_may_be_permuted_but_not_mixed_up() -> None:
    two = (
        LOOP
        + """
  %w:2 = for %i in (%z to %n, step %e) : tile<i32> iter_values(%a = %n, %b = %m) -> (tile<i32>, tile<i32>) {
    %x = addi %a, %i : tile<i32>
    %y = muli %b, %i : tile<i32>
    continue %x, %y : tile<i32>, tile<i32>
  }
  %o = print_tko "r", %w#0 : tile<i32> -> token"""
    )
    permuted = (
        LOOP
        + """
  %w:3 = for %i in (%z to %n, step %e) : tile<i32> iter_values(%b = %m, %k = %d, %a = %n) -> (TYPES) {
    %y = muli %b, %i : tile<i32>
    %x = addi %a, %i : tile<i32>
    continue %y, %k, %x : TYPES
  }
  %o = print_tko "r", %w#2 : tile<i32> -> token"""
    )
    permuted = permuted.replace("TYPES", "tile<i32>, tile<i1>, tile<i32>")
    assert judge(two, permuted).equal
    assert not judge(two, permuted.replace("%w#2", "%w#0")).equal
    assert not judge(two, two.replace("continue %x, %y", "continue %y, %x")).equal


CARRIED = """
  %a = assume div_by<8>, %n : tile<i32>
  %u = print_tko "u", %a : tile<i32> -> token
  LOOP {
    %x = addi %s, %m : tile<i32>
    %y = muli %t, %m : tile<i32>
    %o = print_tko "r", %s : tile<i32> -> token
    %v = print_tko "r", %t : tile<i32> -> token
    END
  }"""
FOR = "for %i in (%z to %n, step %e) : tile<i32> iter_values(INIT) -> (tile<i32>, tile<i32>)"
WHILE = "loop iter_values(INIT) : tile<i32>, tile<i32> -> tile<i32>, tile<i32>"


def _carried(kind: str, initial: str, following: str) -> str:
    head = (FOR if kind == "for" else WHILE).replace("INIT", initial)
    end = f"continue {following} : tile<i32>, tile<i32>"
    stop = "if %c {\n break %s, %t : tile<i32>, tile<i32>\n } else {\n }\n"
    body = CARRIED.replace("LOOP", f"%w:2 = {head}").replace("END", end if kind == "for" else stop + end)
    return LOOP + (body if following.startswith("%x") else body.replace("break %s, %t", "break %t, %s"))


@pytest.mark.parametrize("kind", ["for", "while"])
def test_a_fact_of_an_initial_value_belongs_to_the_carried_value(kind: str) -> None:
    """Which place the value has among the carried ones differs; that it is carried with the fact may not."""
    reference = _carried(kind, "%s = %a, %t = %m", "%x, %y")
    result = judge(reference, _carried(kind, "%t = %m, %s = %a", "%y, %x"))
    assert result.equal, result.differences
    result = judge(reference, _carried(kind, "%t = %m, %s = %n", "%y, %x"))
    assert [d.kind for d in result.differences] == ["fact"]
    assert "the initial value of a carried value carries div_by<8>" in result.differences[0].message


def test_the_fact_of_one_carried_value_is_no_fact_of_another() -> None:
    """Both start with one number: stated for one of them, the fact is lost where the other carries it."""
    first = _carried("for", "%s = %a, %t = %n", "%x, %y")
    other = _carried("for", "%s = %n, %t = %a", "%x, %y")
    assert judge(first, first).equal
    assert [d.kind for d in judge(first, other).differences] == ["fact"]


def test_a_fact_of_a_value_that_is_carried_for_nothing_may_be_lost() -> None:
    """Nothing looks at what the loop carries: neither the value nor what is known of it counts."""
    body = (
        LOOP
        + """
  %a = assume div_by<8>, %n : tile<i32>
  %u = print_tko "u", %a : tile<i32> -> token
  %w = for %i in (%z to %m, step %e) : tile<i32> iter_values(%s = INIT) -> (tile<i32>) {
    %x = addi %s, %i : tile<i32>
    %o = print_tko "r", %i : tile<i32> -> token
    continue %x : tile<i32>
  }"""
    )
    assert judge(body.replace("INIT", "%a"), body.replace("INIT", "%n")).equal


def test_what_is_stated_of_a_constant_counts_where_it_flows() -> None:
    """An axis of one element has any stride: the reference states so of its 1, which is also just a number."""
    body = (
        LOOP
        + """
  %a = assume div_by<16>, %e : tile<i32>
  %x = addi %n, OPERAND : tile<i32>
  %y = muli %x, %e : tile<i32>
  %o = print_tko "r", %y : tile<i32> -> token"""
    )
    dead, live = body.replace("OPERAND", "%e"), body.replace("OPERAND", "%a")
    without = dead.replace("  %a = assume div_by<16>, %e : tile<i32>\n", "")
    assert judge(dead, without).equal
    assert [d.kind for d in judge(live, without).differences] == ["fact"]
    assert [d.kind for d in judge(without, live).differences] == ["fact"]


def test_a_folded_computation_uses_no_facts() -> None:
    body = (
        LOOP
        + """
  %a = assume div_by<16>, %e : tile<i32>
  %x = subi OPERAND, OTHER : tile<i32>
  %y = addi %x, %m : tile<i32>
  %o = print_tko "r", %y : tile<i32> -> token"""
    )
    stated, plain = body.replace("OPERAND", "%a"), body.replace("OPERAND", "%e")
    folded, computed = [[text.replace("OTHER", other) for text in (stated, plain)] for other in ("%z", "%n")]
    assert judge(*folded).equal
    assert [d.kind for d in judge(*computed).differences] == ["fact"]


def test_equal_atomics_are_two_events() -> None:
    once = """
  %r, %t = atomic_rmw_tko relaxed device %q, add, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %x = subi %r, %r : tile<i32>
  %o = print_tko "r", %x : tile<i32> -> token"""
    twice = """
  %r, %t = atomic_rmw_tko relaxed device %q, add, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %r2, %t2 = atomic_rmw_tko relaxed device %q, add, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %x = subi %r, %r2 : tile<i32>
  %o = print_tko "r", %x : tile<i32> -> token"""
    assert not judge(once, twice).equal
    assert not judge(twice, twice.replace("subi %r, %r2", "subi %r, %r")).equal
    assert judge(twice, twice).equal


def test_equal_stores_count() -> None:
    store = "  %o{0} = store_ptr_tko weak %q, %n : tile<ptr<i32>>, tile<i32> -> token\n"
    result = judge(store.format(1) + store.format(2), store.format(1))
    assert [d.kind for d in result.differences] == ["effect"]


def test_a_dead_load_and_a_dead_loop_vanish() -> None:
    dead = (
        LOOP
        + """
  %a, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
  %w = for %i in (%z to %n, step %e) : tile<i32> iter_values(%a1 = %n) -> (tile<i32>) {
    %x = addi %a1, %i : tile<i32>
    continue %x : tile<i32>
  }
  %o = print_tko "r", %n : tile<i32> -> token"""
    )
    assert judge('  %o = print_tko "r", %n : tile<i32> -> token', dead).equal


def test_a_load_is_ordered_by_its_token_alone() -> None:
    before = """
  %t = make_token : token
  %a, %ta = load_ptr_tko weak %p token=%t : tile<ptr<f32>> -> tile<f32>, token
  %o = store_ptr_tko weak %p, %s token=%ta : tile<ptr<f32>>, tile<f32> -> token
  %u = print_tko "r", %a : tile<f32> -> token"""
    after = """
  %t = make_token : token
  %a, %ta = load_ptr_tko weak %p token=%t : tile<ptr<f32>> -> tile<f32>, token
  %o = store_ptr_tko weak %p, %s token=%ta : tile<ptr<f32>>, tile<f32> -> token
  %b, %tb = load_ptr_tko weak %p token=%o : tile<ptr<f32>> -> tile<f32>, token
  %u = print_tko "r", %b : tile<f32> -> token"""
    assert not judge(before, after).equal


TWO_LOADS = """
  %t = make_token : token
  %a, %ta = load_ptr_tko weak %p token=%t : tile<ptr<f32>> -> tile<f32>, token
  %b, %tb = load_ptr_tko weak %p token=%t : tile<ptr<f32>> -> tile<f32>, token
  %x = addf %a, %b  : tile<f32>
  %j = join_tokens %ta, %tb : token
  %o = store_ptr_tko weak %p, %x token=%j : tile<ptr<f32>>, tile<f32> -> token"""


def test_the_tokens_of_equal_loads_are_two() -> None:
    """The store must wait for both loads, although they read the same value."""
    assert judge(TWO_LOADS, TWO_LOADS).equal
    assert not judge(TWO_LOADS, TWO_LOADS.replace("join_tokens %ta, %tb", "join_tokens %ta, %ta")).equal
    once = TWO_LOADS.replace("addf %a, %b", "addf %a, %a").replace("join_tokens %ta, %tb", "join_tokens %ta")
    assert judge(TWO_LOADS.replace("token=%j", "token=%t"), once.replace("token=%j", "token=%t")).equal


def test_a_load_that_a_store_waits_for_may_not_move_into_a_loop() -> None:
    def text(before: str, inside: str, token: str) -> str:
        load = "%a, %ta = load_ptr_tko weak %p token=%t : tile<ptr<f32>> -> tile<f32>, token"
        return (
            LOOP
            + f"""
  %t = make_token : token
  {before and load}
  %w = for %i in (%z to %n, step %e) : tile<i32> iter_values(%k = {token}) -> (token) {{
    {inside and load}
    %x = addf %a, %s  : tile<f32>
    %o = store_ptr_tko weak %p, %x token=%k : tile<ptr<f32>>, tile<f32> -> token
    continue {"%o" if token == "%ta" else "%k"} : token
  }}"""
        )

    assert judge(text("x", "", "%ta"), text("x", "", "%ta")).equal
    assert judge(text("x", "", "%t"), text("", "x", "%t")).equal, "no store waits for it: none can conflict"
    assert not judge(text("", "x", "%t"), text("x", "", "%t")).equal, "the loop may run no iteration"
    both = text("x", "x", "%ta").replace("%a, %ta = load", "%a0, %ta = load", 1).replace("    %a, %ta", "    %a, %tb")
    assert judge(both, both).equal
    result = judge(text("x", "", "%ta"), both)
    assert [d.kind for d in result.differences] == ["effect"]
    assert "runs more often" in result.differences[0].message


GUARDED = """
  if %c {
    %a, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
    %o = print_tko "r", %a : tile<f32> -> token
  } else {
  }"""
HOISTED = """
  %a, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
  if %c {
    %o = print_tko "r", %a : tile<f32> -> token
  } else {
  }"""


def test_a_load_that_may_fault_must_not_be_moved_before_its_condition() -> None:
    result = judge(GUARDED, HOISTED)
    assert [d.kind for d in result.differences] == ["effect"]
    assert "may fault or race" in result.differences[0].message
    assert judge(HOISTED, GUARDED).equal, "running it less often is harmless"


def test_a_load_through_a_view_must_not_be_moved_before_its_condition() -> None:
    """It is bounds-checked, but it may race with what the other branch stores."""
    view = """
  %w = make_tensor_view %p, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>
  %u = make_partition_view %w : partition_view<tile=(8), tensor_view<?xf32, strides=[1]>>"""
    types = "partition_view<tile=(8), tensor_view<?xf32, strides=[1]>>, tile<i32> -> tile<8xf32>, token"
    load = f"load_view_tko weak %u[%m] : {types}"
    pointer = "load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token"
    guarded, hoisted = (
        view + t.replace(pointer, load).replace(": tile<f32> ->", ": tile<8xf32> ->") for t in (GUARDED, HOISTED)
    )
    assert not judge(guarded, hoisted).equal
    assert judge(hoisted, guarded).equal


def test_a_division_that_may_fault_must_not_be_moved_before_its_condition() -> None:
    guarded = """
  if %c {
    %a = divi %n, %m signed : tile<i32>
    %o = print_tko "r", %a : tile<i32> -> token
  } else {
  }"""
    hoisted = """
  %a = divi %n, %m signed : tile<i32>
  if %c {
    %o = print_tko "r", %a : tile<i32> -> token
  } else {
  }"""
    by_constant = [
        "  %k = constant <i32: 3> : tile<i32>" + text.replace("divi %n, %m", "divi %n, %k")
        for text in (guarded, hoisted)
    ]
    assert not judge(guarded, hoisted).equal
    assert judge(hoisted, guarded).equal
    assert judge(by_constant[0], by_constant[1]).equal


def test_a_fact_of_a_branch_must_not_be_stated_outside() -> None:
    inside = """
  if %c {
    %a = assume div_by<8>, %n : tile<i32>
    %o = print_tko "r", %a : tile<i32> -> token
  } else {
    %u = print_tko "u", %n : tile<i32> -> token
  }"""
    outside = """
  %a = assume div_by<8>, %n : tile<i32>
  if %c {
    %o = print_tko "r", %a : tile<i32> -> token
  } else {
    %u = print_tko "u", %a : tile<i32> -> token
  }"""
    assert judge(inside, inside).equal
    result = judge(inside, outside)
    assert [d.kind for d in result.differences] == ["fact"]
    assert "unjustified-fact" in result.differences[0].message


BLOCK = "%a, %b, %e = get_tile_block_id : tile<i32>"
BLOCKS = "%a, %b, %e = get_num_tile_blocks : tile<i32>"
K48 = "%b = constant <i32: 48> : tile<i32>"


@pytest.mark.parametrize(
    ("body", "predicate", "implied"),
    [
        (BLOCK, "bounded<0, ?>", True),
        (BLOCK, "bounded<1, ?>", False),
        (BLOCKS, "bounded<1, ?>", True),
        (BLOCKS, "bounded<2, ?>", False),
        (K48, "div_by<16>", True),
        (K48, "div_by<32>", False),
        (K48, "bounded<48, 48>", True),
        ("%k = constant <i32: 64> : tile<i32>\n%b = muli %n, %k : tile<i32>", "div_by<64>", True),
        ("%k = constant <i32: 24> : tile<i32>\n%b = muli %n, %k : tile<i32>", "div_by<8>", True),
        ("%k = constant <i32: 24> : tile<i32>\n%b = muli %n, %k : tile<i32>", "div_by<3>", False),
        ("%k = constant <i32: 8> : tile<i32>\n%b = remi %n, %k signed : tile<i32>", "bounded<-7, 7>", True),
        ("%k = constant <i32: 8> : tile<i32>\n%b = remi %n, %k signed : tile<i32>", "bounded<0, 7>", False),
        ("%k = constant <i32: 8> : tile<i32>\n%b = maxi %n, %k signed : tile<i32>", "bounded<0, ?>", True),
        ("%k = constant <i32: 8> : tile<i32>\n%b = mini %n, %k signed : tile<i32>", "bounded<0, ?>", False),
        ("%x, %y, %z = get_tile_block_id : tile<i32>\n%b = addi %x, %y : tile<i32>", "bounded<0, ?>", False),
        ("%b = reshape %n : tile<i32> -> tile<i32>", "same_elements<[1]>", False),
    ],
)
def test_facts_that_only_ours_states_must_follow(body: str, predicate: str, implied: bool) -> None:
    reference = body + '\n%o = print_tko "r", %b : tile<i32> -> token'
    ours = body + f'\n%r = assume {predicate}, %b : tile<i32>\n%o = print_tko "r", %r : tile<i32> -> token'
    result = judge(reference, ours)
    assert result.equal == implied, result.differences
    assert (result.equivalences.get("fact-implied", 0) > 0) == implied
    back = judge(ours, reference)
    assert [d.kind for d in back.differences] == ["fact"], "a fact of the reference may not be dropped"


def test_the_index_of_a_loop_lies_between_its_bounds() -> None:
    body = (
        LOOP
        + """
  %k = constant <i32: 100> : tile<i32>
  for %i in (%LOW to %k, step %STEP) : tile<i32> {
    %r = FACT
    %o = print_tko "r", %r : tile<i32> -> token
  }"""
    )
    plain = body.replace("FACT", "reshape %i : tile<i32> -> tile<i32>")
    rows = (
        ("z", "e", "bounded<0, 99>", True),
        ("z", "e", "bounded<0, 98>", False),
        ("n", "e", "bounded<0, ?>", False),
        ("z", "m", "bounded<0, ?>", False),
    )
    for low, step, fact, implied in rows:
        ours = body.replace("FACT", f"assume {fact}, %i : tile<i32>")
        texts = [t.replace("%LOW", f"%{low}").replace("%STEP", f"%{step}") for t in (plain, ours)]
        assert judge(*texts).equal == implied


def test_a_size_of_a_tensor_view_is_not_negative() -> None:
    view = "partition_view<tile=(8), tensor_view<?xf32, strides=[?]>>"

    def viewed(size: str, stride: str, fact: str) -> str:
        return f"""
  {fact}
  %w = make_tensor_view %p, shape = [{size}], strides = [{stride}] : tile<i32> -> tensor_view<?xf32, strides=[?]>
  %t = make_token : token
  %v = make_partition_view %w : {view}
  %l, %k = load_view_tko weak %v[%m] token = %t : {view}, tile<i32> -> tile<8xf32>, token
  %o = print_tko "r", %l : tile<8xf32> -> token"""

    plain = viewed("%n", "%m", "")
    assert judge(plain, viewed("%a", "%m", "%a = assume bounded<0, ?>, %n : tile<i32>")).equal
    assert not judge(plain, viewed("%a", "%m", "%a = assume bounded<1, ?>, %n : tile<i32>")).equal
    assert not judge(plain, viewed("%n", "%a", "%a = assume bounded<0, ?>, %m : tile<i32>")).equal


def test_parameters_are_matched_by_the_map() -> None:
    reference = parse(
        program('  %o = print_tko "r", %n, %m : tile<i32>, tile<i32> -> token', "%n: tile<i32>, %m: tile<i32>")
    )
    swapped = parse(
        program('  %o = print_tko "r", %n, %m : tile<i32>, tile<i32> -> token', "%m: tile<i32>, %n: tile<i32>")
    )
    extra = parse(
        program(
            '  %o = print_tko "r", %n, %m : tile<i32>, tile<i32> -> token',
            "%u: tile<f32>, %m: tile<i32>, %n: tile<i32>",
        )
    )
    assert not compare(reference, swapped, target="sm_90").equal
    assert compare(reference, swapped, target="sm_90", parameter_map=[1, 0]).equal
    assert compare(reference, extra, target="sm_90", parameter_map=[-1, 1, 0]).equal
    result = compare(reference, extra, target="sm_90")
    assert "signature" in {d.kind for d in result.differences}


def test_a_difference_shows_the_smallest_part_and_both_lines() -> None:
    def text(file: str, line: int, operation: str) -> str:
        return f"""entry @k(%v: tile<8xf32>) {{
  %a = exp %v  : tile<8xf32> loc(#loc1)
  %b = {operation} %a, %v  : tile<8xf32> loc(#loc2)
  %r = negf %b : tile<8xf32> loc(#loc1)
  %o = print_tko "r", %r : tile<8xf32> -> token loc(#loc1)
  return loc(#loc1)
}} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("{file}":1:1)
#loc2 = loc("{file}":{line}:7)
"""

    result = compare(parse(text("k.py", 12, "mulf")), parse(text("kernel.rs", 34, "addf")), target="sm_90")
    (difference,) = result.differences
    assert difference.kind == "structure"
    assert difference.message == "ours has `addf` where the reference has `mulf`"
    assert difference.ours == "addf(exp(parameter 0), parameter 0)"
    assert difference.reference == "mulf(exp(parameter 0), parameter 0)"
    assert difference.ours_loc == ("kernel.rs", 34, 7)
    assert difference.reference_loc == ("k.py", 12, 7)


def test_many_differences_are_cut() -> None:
    lines = [f'  %o{i} = print_tko "{{}}{i}", %n : tile<i32> -> token' for i in range(40)]
    body = "\n".join(lines)
    result = judge(body.format(*["a"] * 40), body.format(*["b"] * 40))
    assert len(result.differences) == 13
    assert result.differences[-1].message == "and 28 more differences"


def test_control_flow_without_a_meaning_is_an_error() -> None:
    body = (
        LOOP
        + """
  for %i in (%z to %n, step %e) : tile<i32> {
    return
  }"""
    )
    with pytest.raises(TranspileError) as caught:
        judge(body, body)
    assert caught.value.diagnostic.code == "E0687"


def test_while_loops_with_other_conditions_are_kept_apart() -> None:
    loop = """
  %r = loop iter_values(%a = %n) : tile<i32> -> tile<i32> {
    %k = cmpi less_than %a, %BOUND, signed : tile<i32> -> tile<i1>
    if %k {
    } else {
      break %a : tile<i32>
    }
    %b = addi %a, %n : tile<i32>
    continue %b : tile<i32>
  }
  %o = print_tko "r", %r : tile<i32> -> token"""
    by_m, by_n = loop.replace("%BOUND", "%m"), loop.replace("%BOUND", "%n")
    assert judge(by_m, by_m).equal
    assert not judge(by_m, by_n).equal
    negated = by_m.replace(
        "    if %k {\n    } else {\n      break %a : tile<i32>\n    }",
        "    %t = constant <i1: true> : tile<i1>\n    %g = xori %k, %t : tile<i1>\n"
        "    if %g {\n      break %a : tile<i32>\n    } else {\n    }",
    )
    assert judge(by_m, negated).equal


@pytest.mark.parametrize("name", ["rows", "control"])
def test_rust_written_by_hand_equals_the_reference(name: str) -> None:
    """Both are real: exports of one kernel's Python and of its translation by hand (`&Tensor` and pointer form)."""
    reference, ours = (parse((CASES / f"{prefix}{name}.mlir").read_text()) for prefix in ("", "rust_"))
    result = compare(reference, ours, target="sm_90")
    assert result.equal, result.differences
    assert result.equivalences["hint-key-resolved"] > 0
    assert compare(reference, ours, target="sm_100").equal == (name == "control"), "hints for sm_90 are none for sm_100"


def test_damaged_text_is_an_error_or_differs_but_never_a_crash() -> None:
    rng = random.Random(7)
    for name in ("rows", "gemm", "gather", "control", "ordered", "mixed"):
        text = (CASES / f"{name}.mlir").read_text()
        original = parse(text)
        lines = text.splitlines()
        for _ in range(60):
            damaged = list(lines)
            at = rng.randrange(len(damaged))
            words = damaged[at].split(" ")
            rng.shuffle(words)
            damaged[at : at + rng.randint(0, 1)] = [" ".join(words)] * rng.randint(0, 2)
            try:
                compare(original, parse("\n".join(damaged)), target="sm_90")
            except TranspileError as exc:
                assert exc.diagnostic.code.startswith("E068")


def test_many_exits_in_a_row_take_no_exponential_time() -> None:
    step = """
    if %c {
      if %d {
        continue %a : tile<i32>
      } else {
      }
    } else {
    }"""
    body = (
        LOOP
        + f"""
  %w = for %i in (%z to %n, step %e) : tile<i32> iter_values(%a = %n) -> (tile<i32>) {{{step * 60}
    %b = addi %a, %i : tile<i32>
    continue %b : tile<i32>
  }}
  %o = print_tko "r", %w : tile<i32> -> token"""
    )
    assert judge(body, body).equal


def test_the_graph_can_be_printed() -> None:
    text = show(parse((CASES / "control.mlir").read_text()).entry())
    assert "loop.while(" in text and "start=" in text and "branch taken=false(" in text
    assert text.count("effect v") == 2
    assert "fact v" in text


def test_the_judge_imports_nothing_of_the_translator() -> None:
    code = "import sys, transpiler.tileir; print(sorted(m for m in sys.modules if m.startswith('transpiler.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = [m for m in eval(done.stdout) if not m.startswith("transpiler.tileir")]
    assert modules == ["transpiler.diagnostics"]
