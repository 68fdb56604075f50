"""What the interpreter reports: bounds, memory never written, races between tile blocks and by token order."""

from __future__ import annotations

from typing import Any

import numpy as np

from transpiler.tileir import parse_entry
from transpiler.tileir.interpret import Outcome, interpret
from transpiler.tileir.memory import Memory

HEAD = "entry @e(%p: tile<ptr<f32>>, %q: tile<ptr<i32>>) optimization_hints=<default = {}> {\n"
BLOCK = "%x, %y, %z = get_tile_block_id : tile<i32>"


def execute(body: str, *, grid: tuple[int, ...] = (1, 1, 1), written: bool = True) -> Outcome:
    """Run a body that gets two arrays of 8 elements."""
    text = HEAD + "".join(f"  {line.strip()}\n" for line in body.strip().splitlines()) + "  return\n}\n"
    memory = Memory()
    arguments: list[Any] = [memory.allocate("p", np.arange(8, dtype=np.float32), initialized=written),
                            memory.allocate("q", np.zeros(8, np.int32))]  # fmt: skip
    return interpret(parse_entry(text), arguments, grid, memory)


def findings(outcome: Outcome) -> list[tuple[str, str, int]]:
    """Kind, operation and line of each finding."""
    return [(f.kind, f.op, f.line) for f in outcome.findings]


def test_two_tile_blocks_write_one_element() -> None:
    """The same element in both blocks is a race; an element of its own for each block isn't."""
    store = "%s = store_ptr_tko weak {}, %c : tile<ptr<f32>>, tile<f32> -> token"
    same = execute(f"{BLOCK}\n%c = constant <f32: 1.0> : tile<f32>\n{store.format('%p')}", grid=(2, 1, 1))
    assert findings(same) == [("race", "store_ptr_tko", 4)]
    assert same.findings[0].block == (1, 0, 0) and same.findings[0].count == 1
    assert "element 0 of `p`" in same.findings[0].message and "tile block 0" in same.findings[0].message
    own = f"{BLOCK}\n%c = constant <f32: 1.0> : tile<f32>\n"
    own += "%o = offset %p, %x : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>\n"
    assert execute(own + store.format("%o"), grid=(8, 1, 1)).findings == ()


def test_a_tile_block_reads_what_another_writes() -> None:
    """Either order of the blocks is a race."""
    body = f"""
        {BLOCK}
        %zero = constant <i32: 0> : tile<i32>
        %first = cmpi equal %x, %zero, signed : tile<i32> -> tile<i1>
        if %first {{
          %v, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
        }} else {{
          %c = constant <f32: 1.0> : tile<f32>
          %s = store_ptr_tko weak %p, %c : tile<ptr<f32>>, tile<f32> -> token
        }}
    """
    assert findings(execute(body, grid=(2, 1, 1))) == [("race", "store_ptr_tko", 9)]
    other = body.replace("equal %x", "not_equal %x")
    assert findings(execute(other, grid=(2, 1, 1))) == [("race", "load_ptr_tko", 6)]


def test_token_order_within_a_tile_block() -> None:
    """A load after a store of the same element needs its token; program order and data flow don't do."""
    body = """
        %c = constant <f32: 1.0> : tile<f32>
        %s = store_ptr_tko weak %p, %c : tile<ptr<f32>>, tile<f32> -> token
        %v, %t = load_ptr_tko weak %p TOKEN : tile<ptr<f32>> -> tile<f32>, token
    """
    loose = execute(body.replace("TOKEN ", ""))
    assert findings(loose) == [("race", "load_ptr_tko", 4)]
    assert "line 3" in loose.findings[0].message
    assert execute(body.replace("TOKEN", "token=%s")).findings == ()


def test_a_store_of_what_was_loaded_needs_the_loads_token() -> None:
    body = """
        %v, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
        %w = addf %v, %v : tile<f32>
        %s = store_ptr_tko weak %p, %w TOKEN : tile<ptr<f32>>, tile<f32> -> token
    """
    assert findings(execute(body.replace("TOKEN ", ""))) == [("race", "store_ptr_tko", 4)]
    assert execute(body.replace("TOKEN", "token=%t")).findings == ()


def test_joined_tokens_order_after_both() -> None:
    """A join is after all its tokens, through loops too; loads don't race with loads."""
    body = """
        %z = constant <i32: 0> : tile<i32>
        %one = constant <i32: 1> : tile<i32>
        %n = constant <i32: 4> : tile<i32>
        %root = make_token : token
        %v, %a = load_ptr_tko weak %p token=%root : tile<ptr<f32>> -> tile<f32>, token
        %w, %b = load_ptr_tko weak %p token=%root : tile<ptr<f32>> -> tile<f32>, token
        %j = join_tokens %a, JOINED : token
        %r = for %i in (%z to %n, step %one) : tile<i32> iter_values(%k = %j) -> (token) {
          %s = store_ptr_tko weak %p, %v token=%k : tile<ptr<f32>>, tile<f32> -> token
          continue CARRIED : token
        }
    """
    good = body.replace("JOINED", "%b").replace("CARRIED", "%s")
    assert execute(good).findings == ()
    assert findings(execute(good.replace("join_tokens %a, %b", "join_tokens %a, %root"))) == [
        ("race", "store_ptr_tko", 10)]  # fmt: skip
    assert findings(execute(body.replace("JOINED", "%b").replace("CARRIED", "%k"))) == [("race", "store_ptr_tko", 10)]


def test_stores_to_different_elements_need_no_token() -> None:
    body = """
        %one = constant <i32: 1> : tile<i32>
        %c = constant <f32: 1.0> : tile<f32>
        %o = offset %p, %one : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
        %s = store_ptr_tko weak %p, %c : tile<ptr<f32>>, tile<f32> -> token
        %t = store_ptr_tko weak %o, %c : tile<ptr<f32>>, tile<f32> -> token
    """
    assert execute(body).findings == ()


def test_atomics_dont_race_with_each_other_but_with_plain_accesses() -> None:
    body = f"""
        {BLOCK}
        %n = constant <i32: 1> : tile<i32>
        %r, %t = atomic_rmw_tko relaxed device %q, add, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    """
    outcome = execute(body, grid=(4, 1, 1))
    assert outcome.findings == () and outcome.memory["q"][0] == 4
    body += "%v, %u = load_ptr_tko weak %q token=%t : tile<ptr<i32>> -> tile<i32>, token\n"
    assert sorted(findings(execute(body, grid=(2, 1, 1)))) == [
        ("race", "atomic_rmw_tko", 4), ("race", "load_ptr_tko", 5)]  # fmt: skip


def test_acquire_and_release_order_tile_blocks() -> None:
    """A lock: the next holder comes after what the one before did; with relaxed atomics it doesn't."""
    body = f"""
        {BLOCK}
        %n = constant <i32: 1> : tile<i32>
        %r, %t = atomic_rmw_tko acquire device %q, add, %n : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
        %v, %u = load_ptr_tko weak %p token=%t : tile<ptr<f32>> -> tile<f32>, token
        %w = addf %v, %v : tile<f32>
        %s = store_ptr_tko weak %p, %w token=%u : tile<ptr<f32>>, tile<f32> -> token
        %a, %b = atomic_rmw_tko release device %q, add, %n token=%s : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    """
    assert execute(body, grid=(3, 1, 1)).findings == ()
    loose = body.replace("acquire", "relaxed").replace("release", "relaxed")
    assert {kind for kind, _, _ in findings(execute(loose, grid=(3, 1, 1)))} == {"race"}


def test_memory_never_written() -> None:
    """Reading before writing is reported, reading after isn't."""
    read = "%v, %t = load_ptr_tko weak %p{} : tile<ptr<f32>> -> tile<f32>, token"
    assert findings(execute(read.format(""), written=False)) == [("uninitialized", "load_ptr_tko", 2)]
    assert execute(read.format("")).findings == ()
    body = "%c = constant <f32: 1.0> : tile<f32>\n"
    body += "%s = store_ptr_tko weak %p, %c : tile<ptr<f32>>, tile<f32> -> token\n"
    assert execute(body + read.format(" token=%s"), written=False).findings == ()


def test_an_address_that_belongs_to_nothing() -> None:
    body = """
        %n = constant <i64: 64> : tile<i64>
        %o = int_to_ptr %n : tile<i64> -> tile<ptr<f32>>
        %v, %t = load_ptr_tko weak %o : tile<ptr<f32>> -> tile<f32>, token
    """
    assert findings(execute(body)) == [("bounds", "load_ptr_tko", 4)]


def test_a_misaligned_address() -> None:
    body = """
        %i = ptr_to_int %p : tile<ptr<f32>> -> tile<i64>
        %n = constant <i64: 2> : tile<i64>
        %j = addi %i, %n : tile<i64>
        %o = int_to_ptr %j : tile<i64> -> tile<ptr<f32>>
        %v, %t = load_ptr_tko weak %o : tile<ptr<f32>> -> tile<f32>, token
    """
    outcome = execute(body)
    assert findings(outcome) == [("bounds", "load_ptr_tko", 6)] and "multiple of 4" in outcome.findings[0].message


def test_equal_findings_are_counted_and_keep_their_source_line() -> None:
    """One finding for an operation, with the place that the debug information gives it."""
    text = HEAD + (
        '  %o = constant <i32: 8> : tile<i32> loc("k.py":3:1)\n'
        '  %a = offset %p, %o : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>> loc("k.py":4:1)\n'
        '  %v, %t = load_ptr_tko weak %a : tile<ptr<f32>> -> tile<f32>, token loc("k.py":5:7)\n'
        '  return loc("k.py":6:1)\n}\n'
    )
    memory = Memory()
    arguments = [memory.allocate("p", np.zeros(8, np.float32)), memory.allocate("q", np.zeros(8, np.int32))]
    (found,) = interpret(parse_entry(text), arguments, (3, 1, 1), memory).findings
    assert found.count == 3 and found.loc is not None and (found.loc.file, found.loc.line) == ("k.py", 5)
    assert found.needs == ("p", -1, 9)


def test_one_store_that_writes_an_element_twice() -> None:
    """Which of two different values stays is open; the same value twice is no matter."""
    body = """
        %one = reshape %p : tile<ptr<f32>> -> tile<1xptr<f32>>
        %all = broadcast %one : tile<1xptr<f32>> -> tile<4xptr<f32>>
        %i = constant <i32: [0, 1, 1, 3]> : tile<4xi32>
        %v = constant <f32: [0.0, 1.0, 2.0, 3.0]> : tile<4xf32>
        %a = offset %all, %i : tile<4xptr<f32>>, tile<4xi32> -> tile<4xptr<f32>>
        %s = store_ptr_tko weak %a, %v : tile<4xptr<f32>>, tile<4xf32> -> token
    """
    assert findings(execute(body)) == [("race", "store_ptr_tko", 7)]
    assert execute(body.replace("1.0, 2.0", "2.0, 2.0")).findings == ()
    assert execute(body.replace("0, 1, 1, 3", "3, 1, 0, 2")).findings == ()
