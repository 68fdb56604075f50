"""Matrix products as Hopper's tensor cores sum them: what is aligned to what, what is cut off, what overflows."""

from __future__ import annotations

import numpy as np
import pytest

from transpiler.tileir import parse_entry
from transpiler.tileir.interpret import Program
from transpiler.tileir.memory import Memory
from transpiler.tileir.tensor_core import ADDERS, product

LARGEST = float(np.finfo(np.float32).max)


def row(element: str, *factors: float, start: float = 0.0) -> float:
    """The sum of factors, each times one, and the accumulator."""
    x = np.zeros((1, 64))
    x[0, : len(factors)] = factors
    return float(product(x, np.ones((64, 1)), np.array([[start]]), ADDERS[element])[0, 0])


@pytest.mark.parametrize(("element", "bits"), [("f16", 25), ("bf16", 25), ("tf32", 25), ("f8E5M2", 13)])
def test_bits_below_the_largest_exponent_are_cut_off(element: str, bits: int) -> None:
    """Of each term by itself, towards zero; what cancels the largest term shows what was kept."""
    unit = 2.0**-bits
    assert row(element, 1.5, -1.5, unit) == unit
    assert row(element, 1.5, -1.5, unit * 0.75, unit * 0.75) == 0
    assert row(element, 1.5, -1.5, -unit * 1.75, start=0.0) == -unit
    assert row(element, -unit, start=1.0) == (1 - 2.0**-24 if bits == 25 else 1 - unit)  # f32 is cut off, too


def test_steps_are_summed_one_after_another() -> None:
    """A term of a later step isn't aligned to what cancelled before."""
    small = 2.0**-30
    assert row("f16", 1.5, -1.5, small) == 0
    assert row("f16", 1.5, -1.5, *[0.0] * 14, small) == small
    assert row("tf32", 1.5, -1.5, *[0.0] * 6, small) == small
    assert row("f8E5M2", 1.5, -1.5, *[0.0] * 14, small) == 0


def test_subnormal_factors_are_not_normalized() -> None:
    """The exponent of a product with a subnormal factor is that of the least normal one."""
    large, small = 2.0**15 * 2.0**-24, 2.0**-26
    x = np.array([[2.0**15, -(2.0**15), small]])
    y = np.array([[2.0**-24], [2.0**-24], [1.0]])
    assert large * 2.0**-25 < small  # it would be kept, were the factor normal
    assert product(x, y, np.zeros((1, 1)), ADDERS["f16"])[0, 0] == 0
    assert product(x, y, np.zeros((1, 1)), ADDERS["bf16"])[0, 0] == small


def test_sums_overflow_after_a_step() -> None:
    """Within a step nothing overflows; infinities of both signs make NaN."""
    assert row("bf16", LARGEST, LARGEST, -LARGEST) == LARGEST
    assert row("bf16", LARGEST, LARGEST, *[0.0] * 14, -LARGEST, -LARGEST) == np.inf
    assert row("bf16", LARGEST, LARGEST, start=-LARGEST) == LARGEST
    assert np.isnan(row("bf16", np.inf, *[0.0] * 15, -np.inf))


MMA = """entry @e(%p: tile<ptr<f32>>) optimization_hints=<default = {}> {
  %a = constant <f16: 1.0> : tile<16x16xf16>
  %b = constant <f16: 1.0> : tile<16x16xf16>
  %c = constant <f32: 16777216.0> : tile<16x16xf32>
  %r = mmaf %a, %b, %c : tile<16x16xf16>, tile<16x16xf16>, tile<16x16xf32>
  %v = make_tensor_view %p, shape = [16, 16], strides = [16, 1] : tensor_view<16x16xf32, strides=[16,1]>
  %w = make_partition_view %v : partition_view<tile=(16x16), tensor_view<16x16xf32, strides=[16,1]>>
  %t = make_token : token
  %zero = constant <i32: 0> : tile<i32>
  %s = store_view_tko weak %r, %w[%zero, %zero] token = %t : tile<16x16xf32>, partition_view<tile=(16x16), tensor_view<16x16xf32, strides=[16,1]>>, tile<i32> -> token
  return
}
"""  # noqa: E501


def test_programs_are_run_on_tensor_cores_when_asked() -> None:
    """Otherwise a product is its exact sum, rounded once."""
    memory = Memory()
    arguments = [memory.allocate("p", np.zeros((16, 16), np.float32))]
    program = Program(parse_entry(MMA.replace("f16: 1.0> : tile<16x16xf16>", "f16: 0.9375> : tile<16x16xf16>", 1)))
    assert program.run(arguments, (1, 1, 1), memory).memory["p"][0, 0] == 16777216 + 16  # 15 more, to nearest even
    cut = program.run(arguments, (1, 1, 1), memory, tensor_core=True).memory["p"]
    assert (cut == 16777216 + 16 * 0.5).all()  # 0.5 of each 0.9375 is within 25 bits of 2**24
