"""Executing both sides: inputs from specializations, agreement, counterexamples, verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from transpiler.execute.agree import Agreement, execute_check
from transpiler.execute.inputs import make
from transpiler.execute.plan import Plan, dimensions, sizes
from transpiler.execute.search import Search
from transpiler.spec import ArraySpec, ListSpec, ScalarSpec, Specialization
from transpiler.tileir import parse_entry
from transpiler.tileir.interpret import Program

SPEC = Specialization.model_validate({"name": "s", "params": {
    "x": {"dtype": "float32", "ndim": 1}, "y": {"dtype": "float32", "ndim": 1}, "n": "int32"}})  # fmt: skip
VIEW = "tensor_view<?xf32, strides=[1]>"
TILES = f"partition_view<tile=(16), padding_value = zero, {VIEW}>"


def entry(body: str, *, index: str = "%i", token: str = "%t") -> str:
    """A kernel that maps a tile of ``x`` to a tile of ``y``: ``body`` makes ``%r`` of ``%a``."""
    return f"""entry @k(%x: tile<ptr<f32>>, %x0: tile<i32>, %xs: tile<i32>, %y: tile<ptr<f32>>, %y0: tile<i32>, \
%ys: tile<i32>, %n: tile<i32>) optimization_hints=<default = {{}}> {{
  %vx = make_tensor_view %x, shape = [%x0], strides = [1] : tile<i32> -> {VIEW} loc("k.py":1:1)
  %vy = make_tensor_view %y, shape = [%y0], strides = [1] : tile<i32> -> {VIEW} loc("k.py":2:1)
  %px = make_partition_view %vx : {TILES} loc("k.py":3:1)
  %py = make_partition_view %vy : {TILES} loc("k.py":4:1)
  %i, %j, %k = get_tile_block_id : tile<i32> loc("k.py":5:1)
  %a, %t = load_view_tko weak %px[{index}] : {TILES}, tile<i32> -> tile<16xf32>, token loc("k.py":6:1)
{body}
  %s = store_view_tko weak %r, %py[%i] token = {token} : tile<16xf32>, {TILES}, tile<i32> -> token loc("k.py":8:1)
  return loc("k.py":9:1)
}}
"""


def agreement(ours: str, reference: str, spec: Specialization = SPEC) -> Agreement:
    return execute_check(parse_entry(ours), parse_entry(reference), spec, seed="test")


TWICE = entry("  %r = addf %a, %a : tile<16xf32>")


def test_the_same_program_agrees_in_every_bit() -> None:
    """Normal sizes, ragged ones, one element, special values; an empty array has no first tile."""
    result = agreement(TWICE, TWICE)
    assert result.agrees and (result.valid, result.exact, result.tried) == (5, 5, 6)
    assert result.findings == ()


def test_equal_results_in_another_way() -> None:
    """Doubling is adding to itself, for special values too."""
    times = entry("  %c = constant <f32: 2.0> : tile<16xf32>\n  %r = mulf %a, %c : tile<16xf32>")
    assert agreement(times, TWICE).agrees


def test_what_tolerances_allow_is_agreement_but_not_exact() -> None:
    """Multiplying by the reciprocal is as good a quotient as `rounding<approx>` promises, and no better one."""
    third = "  %c = constant <f32: 3.0> : tile<16xf32>\n  %r = divf %a, %c ROUNDING : tile<16xf32>"
    times = entry("  %c = constant <f32: 0x3EAAAAAB> : tile<16xf32>\n  %r = mulf %a, %c : tile<16xf32>")
    result = agreement(times, entry(third.replace("ROUNDING", "rounding<approx>")))
    assert result.agrees and result.exact < result.valid
    exact = agreement(entry(third.replace("ROUNDING ", "")), entry(third.replace("ROUNDING ", "")))
    assert exact.agrees and exact.exact == exact.valid


def test_more_than_tolerances_allow_is_a_difference() -> None:
    """Off by some units in the last place more."""
    third = entry("  %c = constant <f32: 3.0> : tile<16xf32>\n  %r = divf %a, %c rounding<approx> : tile<16xf32>")
    times = entry("  %c = constant <f32: 0x3EAAAAC0> : tile<16xf32>\n  %r = mulf %a, %c : tile<16xf32>")
    result = agreement(times, third)
    assert result.counterexample is not None and result.counterexample.difference.array == "y"


def test_sums_in_another_order_agree() -> None:
    """A reduction's row promises no order: adding both halves first is as good; dropping a term isn't."""
    add = "(%u: tile<f32>, %v: tile<f32>) {\n  %w = addf %u, %v : tile<f32>\n  yield %w : tile<f32>\n}\n"
    spread = "  %m = reshape %q : tile<f32> -> tile<1xf32>\n  %r = broadcast %m : tile<1xf32> -> tile<16xf32>"
    whole = f"  %q = reduce %a dim=0 identities=[0.0 : f32] : tile<16xf32> -> tile<f32>\n{add}{spread}"
    halves = (
        "  %h = reshape %a : tile<16xf32> -> tile<2x8xf32>\n"
        "  %g = reduce %h dim=0 identities=[0.0 : f32] : tile<2x8xf32> -> tile<8xf32>\n" + add +
        "  %q = reduce %g dim=0 identities=[0.0 : f32] : tile<8xf32> -> tile<f32>\n" +
        add.replace("%u", "%u1").replace("%v", "%v1").replace("%w", "%w1") + spread
    )  # fmt: skip
    result = execute_check(parse_entry(entry(halves)), parse_entry(entry(whole)), SPEC, seed="test",
                           profiles=[("normal", "plain"), ("ragged", "plain")])  # fmt: skip
    assert result.agrees and result.exact < result.valid == 2
    lost = halves.replace("%q = reduce %g", "%z = constant <i32: 0> : tile<i32>\n  %k = extract %g[%z] : "
                          "tile<8xf32> -> tile<4xf32>\n  %q = reduce %k").replace(
                          "identities=[0.0 : f32] : tile<8xf32> -> tile<f32>",
                          "identities=[0.0 : f32] : tile<4xf32> -> tile<f32>")  # fmt: skip
    assert not agreement(entry(lost), entry(whole)).agrees


def test_a_counterexample_is_small_and_names_both_lines() -> None:
    """One tile block, few elements, both values and the operations that wrote them."""
    wrong = entry('  %r = absf %a : tile<16xf32> loc("k.rs":7:1)')
    right = entry('  %r = negf %a : tile<16xf32> loc("k.py":7:1)')
    result = agreement(wrong, right)
    assert not result.agrees and result.counterexample is not None
    found = result.counterexample
    assert found.difference.array == "y" and found.inputs.grid == (1, 1, 1) and found.runs > 0
    assert found.inputs.layouts["x"][0][0] <= 2
    assert found.difference.ours_op is not None and found.difference.ours_op.name == "store_view_tko"
    theirs, mine = (float(text.split(" ")[0]) for text in (found.difference.reference, found.difference.ours))
    assert (mine == abs(theirs) and mine != theirs) or (mine, theirs) == (0.0, 0.0)


def test_a_difference_in_special_values_only() -> None:
    """NaN is lost where a number wins: no plain input shows it."""
    zero = "  %z = constant <f32: 0.0> : tile<16xf32>\n"
    result = agreement(entry(zero + "  %b = maxf %a, %z : tile<16xf32>\n  %r = mulf %b, %b : tile<16xf32>"),
                       entry(zero + "  %b = maxf %a, %z propagate_nan : tile<16xf32>\n"
                             "  %r = mulf %b, %b : tile<16xf32>"))  # fmt: skip
    assert result.counterexample is not None and result.counterexample.inputs.values == "edge"
    assert "nan" in result.counterexample.difference.reference


def test_leaving_an_array_on_one_side_only_is_a_difference() -> None:
    """Ours reads one tile further, the reference doesn't."""
    ahead = entry(TWICE_BODY, index="%f").replace(
        "  %a, %t =", "  %one = constant <i32: 1> : tile<i32>\n  %f = addi %i, %one : tile<i32>\n  %a, %t ="
    )
    result = agreement(ahead, TWICE)
    assert result.counterexample is not None and "tile index" in result.counterexample.difference.message


TWICE_BODY = "  %r = addf %a, %a : tile<16xf32>"


SUM = """  %q = reduce %a dim=0 identities=[0.0 : f32] : tile<16xf32> -> tile<f32>
  (%l: tile<f32>, %m: tile<f32>) {
    %z = addf %l, %m : tile<f32>
    yield %z : tile<f32>
  }
  %o = reshape %q : tile<f32> -> tile<1xf32>
  %r = broadcast %o : tile<1xf32> -> tile<16xf32>"""


def test_a_padding_that_is_lost_is_a_difference_where_results_depend_on_it() -> None:
    """What a load gives without one isn't 0 by chance."""
    without = entry(SUM).replace("padding_value = zero, ", "")
    result = agreement(without, entry(SUM))
    assert not result.agrees and result.counterexample is not None
    assert "what masked loads leave open is 1.5" in result.counterexample.inputs.describe()
    assert result.counterexample.difference.array == "y"
    assert agreement(without, without).agrees  # the reference's own business
    assert agreement(TWICE.replace("padding_value = zero, ", ""), TWICE).agrees  # nothing depends on it


def test_no_valid_input_is_not_agreement() -> None:
    """A program that always divides by zero has no meaning on any input; that is said, and nothing is tested."""
    never = entry("  %z = constant <i32: 0> : tile<i32>\n  %q = divi %n, %z signed : tile<i32>\n" + TWICE_BODY)
    result = agreement(never, never)
    assert not result.agrees and result.counterexample is None and result.valid == 0
    assert "divides by zero" in result.reason


def test_hazards_of_both_sides_are_kept() -> None:
    """All tile blocks write the first tile: a race on both sides, with its line."""
    same = TWICE.replace("%py[%i]", "%py[%z]").replace("  %a, %t", "  %z = constant <i32: 0> : tile<i32>\n  %a, %t")
    result = agreement(same, same)
    assert result.agrees
    assert {(f.side, f.finding.kind, f.finding.op) for f in result.findings} == {
        ("ours", "race", "store_view_tko"), ("reference", "race", "store_view_tko")}  # fmt: skip


def test_reading_an_output_before_it_is_written_is_found_on_our_side() -> None:
    """The reference only writes ``y``; ours adds what was there times zero, which no plain input shows."""
    reads = entry(
        f"  %o, %u = load_view_tko weak %py[%i] : {TILES}, tile<i32> -> tile<16xf32>, token\n"
        f"  %b = addf %a, %a : tile<16xf32>\n  %c = cmpf equal ordered %o, %o : tile<16xf32> -> tile<16xi1>\n"
        "  %r = select %c, %b, %b : tile<16xi1>, tile<16xf32>", token="%u")  # fmt: skip
    result = agreement(reads, TWICE)
    assert ("ours", "uninitialized") in {(f.side, f.finding.kind) for f in result.findings}


def test_inputs_follow_from_the_seed() -> None:
    plan = Plan("normal", {("x", 0): 100, ("y", 0): 100}, {"n": 3})
    one, two, other = make(SPEC, plan, "edge", "a"), make(SPEC, plan, "edge", "a"), make(SPEC, plan, "edge", "b")
    assert np.array_equal(one.memory["x"], two.memory["x"], equal_nan=True)
    assert not np.array_equal(one.memory["x"], other.memory["x"], equal_nan=True)
    assert np.isnan(one.memory["x"]).any() and np.isinf(one.memory["x"]).any()


def test_shapes_and_strides_keep_what_the_specialization_says() -> None:
    """Constants, divisors, strides: rows are padded to the stride's divisor, the transposed array is transposed."""
    spec = Specialization(name="s", params={
        "a": ArraySpec.model_validate({"dtype": "float16", "ndim": 2, "shape_divisible_by": [1, 4],
                                       "stride_divisible_by": [16, 1]}),
        "b": ArraySpec.model_validate({"dtype": "int8", "ndim": 2, "stride_constant": [1, "?"],
                                       "shape_constant": [5, "?"], "stride_divisible_by": [1, 8]}),
        "c": ListSpec(element=ArraySpec.model_validate({"dtype": "float32", "ndim": 1})),
        "f": ScalarSpec(dtype="bfloat16"),
    })  # fmt: skip
    plan = Plan("normal", {("a", 0): 3, ("a", 1): 12, ("b", 0): 5, ("b", 1): 7, ("c", 0): 4}, {"f": 0.5})
    inputs = make(spec, plan, "plain", 0)
    assert inputs.layouts["a"] == ((3, 12), (16, 1)) and inputs.layouts["b"] == ((5, 7), (1, 8))
    assert inputs.memory["a"].size == 2 * 16 + 12 and inputs.memory["b"].size == 6 * 8 + 5
    assert inputs.reference[1:5] == (3, 12, 16, 1)
    table = inputs.memory["c"]
    assert table.shape == (2, 3) and table[1].tolist()[1:] == [4, 1]
    assert [int(v) for v in inputs.reference[10:12]] == [int(inputs.reference[10]), 2]
    assert [int(v) for v in inputs.ours[11:15]] == [2, 3, 3, 1] and len(inputs.ours) == len(inputs.reference) + 3


def test_sizes_follow_the_tiles() -> None:
    """Dimensions along which equal tiles walk are equal; the search widens the grid as far as inputs are valid."""
    reference = parse_entry(TWICE)
    dims = dimensions(SPEC, reference)
    assert dict(dims.free) == {("x", 0): (16, 1), ("y", 0): (16, 1)} and list(dims.axes) == [0]
    assert sizes(SPEC, dims, "normal") == {("x", 0): 32, ("y", 0): 32}
    assert sizes(SPEC, dims, "ragged") == {("x", 0): 19, ("y", 0): 19}
    plan = Search(SPEC, Program(reference), 0).plan("normal")
    assert plan is not None and plan.grid == (2, 1, 1)


@pytest.mark.parametrize("needed", [100, 300])
def test_arrays_are_enlarged_until_a_program_stays_inside(needed: int) -> None:
    """A constant index says how large an array has to be."""
    fixed = entry(TWICE_BODY, index="%c").replace(
        "  %a, %t =", f"  %c = constant <i32: {needed // 16}> : tile<i32>\n  %a, %t ="
    )
    plan = Search(SPEC, Program(parse_entry(fixed)), 0).plan("normal")
    assert plan is not None and plan.sizes["x", 0] >= needed // 16 * 16 + 1 and plan.sizes["y", 0] == 32
