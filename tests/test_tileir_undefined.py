"""What ours may not add although no result shows it: facts, loops without an end, hints in another place."""

from __future__ import annotations

import pytest

from transpiler.diagnostics import TranspileError
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ParamSpec, ScalarSpec, Specialization
from transpiler.tileir import Comparison, compare, parse
from transpiler.verify import promises

PARAMETERS = (
    "%p: tile<ptr<f32>>, %q: tile<ptr<i32>>, %n: tile<i32>, %m: tile<i32>, %c: tile<i1>, %d: tile<i1>, "
    "%v: tile<8xf32>, %l: tile<i64>"
)
PRINT = '%o = print_tko "r", %m : tile<i32> -> token\n'
VIEW = "partition_view<tile=(8), tensor_view<?xf32, strides=[1]>>"


def judge(reference: str, ours: str, promised: tuple[frozenset[str], ...] = ()) -> Comparison:
    def entry(body: str) -> str:
        return f"entry @k({PARAMETERS}) optimization_hints=<default = {{}}> {{\n{body}\n  return\n}}\n"

    return compare(parse(entry(reference)), parse(entry(ours)), target="sm_90", promises=promised)


def unjustified(result: Comparison) -> bool:
    return bool(result.differences) and all("unjustified-fact" in d.message for d in result.differences)


def load(size: str, of: str = "i32") -> str:
    """Load through a view of ``size`` elements, and print."""
    return f"""
  %w = make_tensor_view %p, shape = [{size}], strides = [1] : tile<{of}> -> tensor_view<?xf32, strides=[1]>
  %t = make_token : token
  %b = make_partition_view %w : {VIEW}
  %x, %k = load_view_tko weak %b[%m] token = %t : {VIEW}, tile<i32> -> tile<8xf32>, token
  %o = print_tko "x", %x : tile<8xf32> -> token"""


def branch(then: str, orelse: str) -> str:
    return f"if %c {{\n{then}\n}} else {{\n{orelse}\n}}"


# The size of a view counts where the view is made


def test_the_size_of_a_view_that_a_branch_makes_is_known_in_that_branch_alone() -> None:
    printed = '%u = print_tko "n", %n : tile<i32> -> token'
    assumed = "%a = assume bounded<0, ?>, %n : tile<i32>\n"
    reference = branch(load("%n"), printed)
    at_the_top = assumed + branch(load("%a"), printed.replace("%n", "%a"))
    assert unjustified(judge(reference, at_the_top))
    assert unjustified(judge(reference, assumed + reference)), "whether or not it is used"
    assert judge(reference, branch(assumed + load("%a"), printed)).equal
    elsewhere = branch(load("%n"), assumed + printed.replace("%n", "%a"))
    assert unjustified(judge(reference, elsewhere))
    made_before = load("%n") + "\n" + branch(PRINT.replace("%o", "%g"), printed)
    inner = load("%n") + "\n" + branch(PRINT.replace("%o", "%g"), assumed + printed.replace("%n", "%a"))
    assert judge(made_before, inner).equal


def test_the_sign_of_a_size_decides_whether_there_is_a_view() -> None:
    reference = f"""
  %z = constant <i32: 0> : tile<i32>
  %neg = cmpi less_than %n, %z, signed : tile<i32> -> tile<i1>
  if %neg {{
    %u = print_tko "negative" -> token
  }} else {{
    {load("%n")}
  }}"""
    assert judge(reference, reference).equal
    assert unjustified(judge(reference, "%a = assume bounded<0, ?>, %n : tile<i32>\n" + reference.replace("%n", "%a")))


def test_an_index_space_is_known_where_the_view_is_made() -> None:
    def counted(fact: str, inside: bool) -> str:
        space = f"""
  %w = make_tensor_view %p, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>
  %b = make_partition_view %w : {VIEW}
  %s = get_index_space_shape %b : {VIEW} -> tile<i32>"""
        used = '%o = print_tko "s", %s : tile<i32> -> token'
        if fact:
            used = f"%a = assume {fact}, %s : tile<i32>\n" + used.replace("%s", "%a")
        return branch(f"{space}\n{used}", PRINT) if inside else f"{space}\n{branch(used, PRINT)}"

    assert judge(counted("", True), counted("bounded<0, ?>", True)).equal
    assert unjustified(judge(counted("", True), counted("bounded<1, ?>", True)))
    top = (
        """
  %w = make_tensor_view %p, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>
  %b = make_partition_view %w : VIEW
  %s = get_index_space_shape %b : VIEW -> tile<i32>
  %a = assume bounded<0, ?>, %s : tile<i32>
""".replace("VIEW", VIEW)
        + branch('%o = print_tko "s", %a : tile<i32> -> token', PRINT)
    )
    assert unjustified(judge(counted("", True), top))


def test_sizes_of_64_bits_may_be_anything() -> None:
    of_size = "%a = assume bounded<0, ?>, %l : tile<i64>\n"
    assert unjustified(judge(load("%l", "i64"), of_size + load("%a", "i64")))

    def spaced(fact: str, size: str, of: str) -> str:
        return f"""
  %w = make_tensor_view %p, shape = [{size}], strides = [1] : tile<{of}> -> tensor_view<?xf32, strides=[1]>
  %b = make_partition_view %w : {VIEW}
  %s = get_index_space_shape %b : {VIEW} -> tile<i32>
  %a = {fact}
  %o = print_tko "s", %a : tile<i32> -> token"""

    plain, stated = "reshape %s : tile<i32> -> tile<i32>", "assume bounded<0, ?>, %s : tile<i32>"
    assert unjustified(judge(spaced(plain, "%l", "i64"), spaced(stated, "%l", "i64")))
    assert judge(spaced(plain, "%n", "i32"), spaced(stated, "%n", "i32")).equal


# Facts of what nothing needs


@pytest.mark.parametrize(
    "fact",
    [
        "%a = assume bounded<0, ?>, %n : tile<i32>",
        "%y = subi %n, %m : tile<i32>\n%a = assume bounded<0, ?>, %y : tile<i32>",
        "%a = assume div_by<16>, %n : tile<i32>",
        "%a = assume div_by<16>, %p : tile<ptr<f32>>",
        "%z = constant <i32: 3> : tile<i32>\n%a = assume div_by<2>, %z : tile<i32>",
    ],
)
def test_a_fact_that_nothing_needs_must_follow_too(fact: str) -> None:
    assert unjustified(judge(PRINT, fact + "\n" + PRINT))
    assert judge(fact + "\n" + PRINT, PRINT).equal, "a fact of the reference that nothing needs may be lost"
    assert judge(fact + "\n" + PRINT, fact + "\n" + PRINT).equal
    assert unjustified(judge(branch(fact, PRINT), fact + "\n" + branch("", PRINT)))


def test_a_fact_that_follows_may_be_stated_of_what_nothing_needs() -> None:
    twice = "%k = constant <i32: 6> : tile<i32>\n%y = muli %m, %k : tile<i32>\n%a = assume div_by<2>, %y : tile<i32>\n"
    assert judge(PRINT, twice + PRINT).equal
    stated = "%b = assume div_by<16>, %n : tile<i32>\n"
    assert judge(stated + PRINT, stated.replace("16", "8") + PRINT).equal


def test_what_is_promised_of_a_parameter_may_be_stated_where_nothing_needs_it() -> None:
    promised: tuple[frozenset[str], ...] = (
        frozenset(("div_by<16>",)),
        frozenset(),
        frozenset(("div_by<8>", "bounded<0,?>")),
    )
    assert judge(PRINT, "%a = assume div_by<8>, %n : tile<i32>\n" + PRINT, promised).equal
    assert judge(PRINT, "%a = assume bounded<0, ?>, %n : tile<i32>\n" + PRINT, promised).equal
    assert judge(PRINT, "%a = assume div_by<16>, %p : tile<ptr<f32>>\n" + PRINT, promised).equal
    assert unjustified(judge(PRINT, "%a = assume div_by<16>, %n : tile<i32>\n" + PRINT, promised))
    assert unjustified(judge(PRINT, "%a = assume div_by<32>, %p : tile<ptr<f32>>\n" + PRINT, promised))
    needed = PRINT.replace("%m", "%n")
    assumed = "%a = assume div_by<8>, %n : tile<i32>\n" + needed.replace("%n", "%a")
    assert unjustified(judge(needed, assumed, promised)), "what an effect needs is as the reference states it"


def test_promises_of_a_specialization() -> None:
    array = ArraySpec(dtype="float16", ndim=2, shape_divisible_by=(1, 16), stride_divisible_by=(8, 1),
                      shape_constant=(None, 64), base_addr_divisible_by=16)  # fmt: skip
    params: dict[str, ParamSpec] = {
        "a": array,
        "n": ConstantSpec(value=3),
        "s": ScalarSpec(dtype="int32"),
        "l": ListSpec(element=array),
    }
    assert promises(Specialization(name="x", params=params)) == (
        frozenset(("div_by<16>",)),
        frozenset(("div_by<1>", "bounded<0,?>")),
        frozenset(("div_by<64>", "bounded<64,64>")),
        frozenset(("div_by<8>", "bounded<0,?>")),
        frozenset(("div_by<1>", "bounded<1,1>")),
        frozenset(),
        frozenset(),
        frozenset(("div_by<1>", "bounded<0,?>")),
    )


# Loops that may not end


@pytest.mark.parametrize(
    "loop",
    [
        "loop {\n  continue\n}\n",
        "loop {\n  if %c {\n    break\n  } else {\n  }\n  continue\n}\n",
        "%y = loop iter_values(%g = %n) : tile<i32> -> tile<i32> {\n  %e = cmpi equal %g, %m, signed : tile<i32> -> "
        "tile<i1>\n  if %e {\n    break %g : tile<i32>\n  } else {\n  }\n  %h = addi %g, %m : tile<i32>\n"
        "  continue %h : tile<i32>\n}\n",
    ],
)
def test_a_loop_that_may_not_end_is_not_added(loop: str) -> None:
    result = judge(PRINT, loop + PRINT)
    assert [d.kind for d in result.differences] == ["effect"]
    assert "may never end" in result.differences[0].message
    assert judge(loop + PRINT, PRINT).equal, "ours may end more often"
    assert judge(loop + PRINT, loop + PRINT).equal
    assert not judge(branch(loop, "") + "\n" + PRINT, loop + PRINT).equal, "nor moved out of a branch"


def test_a_counted_loop_that_nothing_needs_may_be_added() -> None:
    counted = """
  %z = constant <i32: 0> : tile<i32>
  %e = constant <i32: 1> : tile<i32>
  %y = for %i in (%z to %n, step %e) : tile<i32> iter_values(%g = %n) -> (tile<i32>) {
    %h = addi %g, %i : tile<i32>
    continue %h : tile<i32>
  }
"""
    assert judge(PRINT, counted + PRINT).equal


# Hints


def loads(first: int, second: int) -> str:
    """Load from one address in two loops."""

    def one(latency: int, bound: str, name: str) -> str:
        hints = f"optimization_hints = <default = {{latency = {latency}}}>"
        return f"""
  for %i in (%z to {bound}, step %e) : tile<i32> {{
    %{name}, %k = load_ptr_tko weak %p token=%t {hints} : tile<ptr<f32>> -> tile<f32>, token
    %o = print_tko "x", %{name} : tile<f32> -> token
  }}"""

    start = "%z = constant <i32: 0> : tile<i32>\n%e = constant <i32: 1> : tile<i32>\n%t = make_token : token"
    return start + one(first, "%n", "x") + one(second, "%m", "y")


def test_the_hints_of_two_loads_of_an_address_are_not_exchanged() -> None:
    assert judge(loads(3, 9), loads(3, 9)).equal
    assert [d.kind for d in judge(loads(3, 9), loads(9, 3)).differences] == ["hint"]
    assert not judge(loads(3, 9), loads(3, 3)).equal
    assert not judge(loads(3, 3), loads(3, 9)).equal


# Bodies of reductions


@pytest.mark.parametrize(
    "operation",
    [
        "%t = divi %l, %h signed : tile<i32>",
        "%t = remi %l, %h signed : tile<i32>",
        "%t = assume bounded<0, ?>, %l : tile<i32>",
        "%k = make_token : token\n%t, %u = load_ptr_tko weak %q token=%k : tile<ptr<i32>> -> tile<i32>, token",
    ],
)
def test_nothing_in_the_body_of_a_reduction_may_be_undefined(operation: str) -> None:
    body = f"""
  %i = iota : tile<8xi32>
  %r = reduce %i dim=0 identities=[0 : i32] : tile<8xi32> -> tile<i32>
  (%l: tile<i32>, %h: tile<i32>) {{
    {operation}
    yield %t : tile<i32>
  }}
  %o = print_tko "r", %r : tile<i32> -> token"""
    sum_of = body.replace(operation, "%t = addi %l, %h : tile<i32>")
    assert judge(sum_of, sum_of).equal
    with pytest.raises(TranspileError, match="E0687"):
        judge(sum_of, body)
