"""Noise: how far results may be moved, what sums may overflow to, sums made by atomics, what is within a spread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from transpiler.execute.agree import within
from transpiler.tileir import parse_entry
from transpiler.tileir.interpret import Outcome, Program
from transpiler.tileir.memory import Memory
from transpiler.tileir.noise import Noise, Terms

EPS = float(np.finfo(np.float32).eps)
LARGE = float(np.finfo(np.float32).max) * 0.75


def summed(values: list[float], count: int = 4, factor: float = 1.0, turns: int = 64) -> Any:
    """What noise makes of the sum of f32 values, several times."""
    terms = np.array(values, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        total = terms.sum(keepdims=True)
    parts = Terms.of(terms, lambda t: t.sum(keepdims=True))
    noise = Noise.of(1)
    return np.array([noise.summed(total, parts, count, factor)[0] for _ in range(turns)])


def test_elementwise_noise_is_bounded_and_of_any_size() -> None:
    """Up to the given units in the last place, both ends are reached, and there is something between them."""
    values = np.full(1000, 1.5, np.float32)
    moved = np.round((Noise.of(0).elementwise(values, 2) - values) / EPS)
    assert set(moved) == {-3, -2, -1, 0, 1, 2, 3}  # 2 units of 1.5, relative to it
    assert Noise.of(0).elementwise(np.array([3, 4]), 2).tolist() == [3, 4]


def test_a_sum_moves_with_the_root_of_its_terms_number() -> None:
    """At most sqrt(n) * eps * sum(|t|), and that far."""
    for count, factor in ((4, 1.0), (64, 1.0), (4, 1024.0)):
        moved = np.abs(summed([1.0, -1.0, 2.0, -2.0], count, factor))
        bound = factor * np.sqrt(count) * EPS * 6
        assert bound * 0.99 < moved.max() <= bound * 1.01


@pytest.mark.parametrize(("terms", "outcomes"), [
    ([LARGE, LARGE, -LARGE], {"finite", "inf"}),
    ([LARGE, -LARGE], {"finite"}),
    ([LARGE, LARGE, -LARGE, -LARGE], {"finite", "inf", "-inf", "nan"}),
    ([np.inf, -LARGE, -LARGE], {"inf", "nan"}),
    ([np.inf, -LARGE], {"inf"}),
    ([np.nan, LARGE, LARGE], {"nan"}),
])  # fmt: skip
def test_a_sum_overflows_where_an_order_does(terms: list[float], outcomes: set[str]) -> None:
    """To the infinity of the terms that are too large together; to NaN where infinities of both signs may meet."""
    found = {"finite" if np.isfinite(v) else str(v) for v in summed(sorted(terms)[::2] + sorted(terms)[1::2])}
    assert found == outcomes


REDUCTION = """entry @e(%p: tile<ptr<f32>>) optimization_hints=<default = {}> {
  %u = make_tensor_view %p, shape = [4], strides = [1] : tensor_view<4xf32, strides=[1]>
  %w = make_partition_view %u : partition_view<tile=(4), tensor_view<4xf32, strides=[1]>>
  %zero = constant <i32: 0> : tile<i32>
  %t = make_token : token
  %x, %l = load_view_tko weak %w[%zero] token = %t : partition_view<tile=(4), tensor_view<4xf32, strides=[1]>>, tile<i32> -> tile<4xf32>, token
  %r = KIND tile<4xf32> -> RESULT
  (%a: tile<f32>, %b: tile<f32>) {
    %c = OP %a, %b : tile<f32>
    yield %c : tile<f32>
  }
  %s = reshape %r : RESULT -> tile<SIZE>
  %b1 = broadcast %s : tile<SIZE> -> tile<4xf32>
  %o = store_view_tko weak %b1, %w[%zero] token = %l : tile<4xf32>, partition_view<tile=(4), tensor_view<4xf32, strides=[1]>>, tile<i32> -> token
  return
}
"""  # noqa: E501


@pytest.mark.parametrize("kind", ["reduce", "scan"])
@pytest.mark.parametrize(("operation", "identity", "magnitude"), [
    ("addf", "0.0", 105.0), ("mulf", "1.0", 0.5), ("maxf", "0.0", 0.0),
])  # fmt: skip
def test_reductions_and_scans_move(kind: str, operation: str, identity: str, magnitude: float) -> None:
    """Sums by their terms, products by themselves, extrema not at all."""
    scan = kind == "scan"
    text = REDUCTION.replace(
        "KIND", f"{kind} %x dim=0{' reverse=false' if scan else ''} identities=[{identity} : f32] :"
    )
    text = text.replace("RESULT", "tile<4xf32>" if scan else "tile<f32>").replace("SIZE", "4xf32" if scan else "1xf32")
    memory = Memory()
    arguments = [memory.allocate("p", np.array([0.01, 100.0, 4.99, 0.0], np.float32))]
    if operation == "mulf":
        memory["p"][:] = [0.01, 100.0, 4.0, 0.125]
    program = Program(parse_entry(text.replace("OP", operation)))
    clean = program.run(arguments, (1, 1, 1), memory).memory["p"][-1]
    found = [program.run(arguments, (1, 1, 1), memory, noise=Noise.of(turn)).memory["p"][-1] for turn in range(32)]
    moved = np.abs(np.array(found, np.float64) - float(clean)).max()
    bound = 2 * EPS * magnitude
    assert bound * 0.9 <= moved <= bound * 1.1


ATOMICS = """entry @e(%p: tile<ptr<f32>>, %q: tile<ptr<f32>>) optimization_hints=<default = {}> {
  %x, %y, %z = get_tile_block_id : tile<i32>
  %t = make_token : token
  %o = offset %q, %x : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
  %v, %l = load_ptr_tko weak %o token=%t : tile<ptr<f32>> -> tile<f32>, token
  %a, %b = atomic_rmw_tko relaxed device %p, addf, %v token=%l : tile<ptr<f32>>, tile<f32> -> tile<f32>, token
  return
}
"""


def atomics(terms: Any, noise: Noise | None) -> Outcome:
    """Each tile block adds an element of its own to one element."""
    memory = Memory()
    arguments = [memory.allocate("p", np.array([0.5], np.float32)), memory.allocate("q", terms.astype(np.float32))]
    return Program(parse_entry(ATOMICS)).run(arguments, (terms.size, 1, 1), memory, noise=noise)


def test_atomics_make_sums() -> None:
    """An element that several tile blocks add to is a sum of all that was added and of what was there."""
    terms = np.random.default_rng(0).standard_normal(63)
    clean = float(atomics(terms, None).memory["p"][0])
    moved = np.array([float(atomics(terms, Noise.of(turn)).memory["p"][0]) - clean for turn in range(48)])
    bound = np.sqrt(64) * EPS * (np.abs(terms).sum() + 0.5)
    assert bound * 0.8 < np.abs(moved).max() <= bound * 1.01
    other_order = float(atomics(terms[::-1], None).memory["p"][0])
    assert other_order != clean and abs(other_order - clean) <= bound


def test_an_overflow_is_within_the_spread_only_where_noise_overflows() -> None:
    """Infinities and NaN need a run that gives them; numbers have to be near those of the runs."""
    exact = np.array([1.0, 1.0, np.inf, np.inf])
    runs = [np.array([1.25, np.inf, np.nan, np.inf]), np.array([1.0, 1.0, np.inf, 3.0])]

    def judged(*got: float) -> list[bool]:
        return within(lambda turn: runs[turn], exact, np.array(got), 2).tolist()  # type: ignore[no-any-return]

    assert judged(1.5, np.inf, np.nan, 3.0) == [True] * 4
    assert judged(1.6, np.nan, -np.inf, 4.0) == [False] * 4
    assert judged(np.inf, 5.0, 2.0, np.inf) == [False, False, False, True]


OPEN = """entry @e(%p: tile<ptr<f32>>, %q: tile<ptr<f32>>) optimization_hints=<default = {}> {
  %n = constant <i32: 3> : tile<i32>
  %zero = constant <i32: 0> : tile<i32>
  %v = make_tensor_view %p, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>
  %w = make_partition_view %v : partition_view<tile=(4)PADDING, tensor_view<?xf32, strides=[1]>>
  %t = make_token : token
  %x, %l = load_view_tko weak %w[%zero] token = %t : partition_view<tile=(4)PADDING, tensor_view<?xf32, strides=[1]>>, tile<i32> -> tile<4xf32>, token
  %u = make_tensor_view %q, shape = [4], strides = [1] : tensor_view<4xf32, strides=[1]>
  %o = make_partition_view %u : partition_view<tile=(4), tensor_view<4xf32, strides=[1]>>
  %s = store_view_tko weak %x, %o[%zero] token = %l : tile<4xf32>, partition_view<tile=(4), tensor_view<4xf32, strides=[1]>>, tile<i32> -> token
  return
}
"""  # noqa: E501


@pytest.mark.parametrize(("padding", "last", "loads"), [("", 1.5, 1), (", padding_value = zero", 0.0, 0)])
def test_what_a_load_without_padding_gives_is_open(padding: str, last: float, loads: int) -> None:
    """It can be chosen for a run, and the elements are counted; a padding value is always that."""
    memory = Memory()
    arguments = [memory.allocate("p", np.ones(3, np.float32)), memory.allocate("q", np.full(4, 9, np.float32))]
    program = Program(parse_entry(OPEN.replace("PADDING", padding)))
    outcome = program.run(arguments, (1, 1, 1), memory, open_value=1.5)
    assert outcome.memory["q"].tolist() == [1, 1, 1, last] and outcome.open_loads == loads
    assert program.run(arguments, (1, 1, 1), memory).memory["q"].tolist() == [1, 1, 1, 0]
