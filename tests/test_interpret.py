"""The interpreter: single operations against values computed by hand, whole entries, what it reports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from interpret_cases import Case, cases, run

from transpiler.execute.agree import differing
from transpiler.tileir import parse_entry
from transpiler.tileir.interpret import interpret
from transpiler.tileir.memory import Memory
from transpiler.tileir.ops.schema import FAMILIES, ROWS

MLIR = Path(__file__).parent / "tileir_cases"
CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operation(case: Case) -> None:
    """Results and findings are those that the case states, to the last bit (any NaN is any other)."""
    outcome = run(case)
    for name, type_text, expected in case.outputs:
        got = outcome.memory[name]
        assert got.dtype == expected.dtype and not differing(got, expected).any(), f"%{name} : {type_text} is {got}"
    assert [f"{f.kind} {f.message}" for f in outcome.findings] == case.findings


def test_every_operation_has_a_case() -> None:
    """Each row of the tables is executed by a case or by one of the tests below."""
    used = {word for case in CASES for line in case.body for word in line.replace("=", " ").split()}
    elsewhere = {"return", "print_tko", "gdc_launch_dependents_tko"}
    assert sorted(set(ROWS) - used - elsewhere) == []
    assert sum(len(family) for family in FAMILIES.values()) == len(ROWS)


def test_control_flow_of_the_reference() -> None:
    """Nested loops with ``continue``, a loop that ends by ``break``, early return and stores through pointers."""
    entry = parse_entry((MLIR / "control.mlir").read_text(encoding="utf-8"))

    def run(n: int, m: int) -> list[int]:
        memory = Memory()
        out = memory.allocate("out", np.full(16, -1, np.int32))
        outcome = interpret(entry, [out, 16, 1, n, m], (1, 1, 1), memory)
        assert not outcome.findings and not outcome.stopped
        return [int(v) for v in outcome.memory["out"][:2]]

    def expected(n: int, m: int) -> list[int]:
        if n > m:
            return [-1, -1]
        total = 0
        for i in range(2, n, 2):
            if i != 4:
                total += sum(j * i for j in range(n)) + i
        while total > m:
            total //= 2
        return [total, -1] if total > 0 else [-1, n]

    for n, m in ((3, 2), (9, 20), (1, 5), (7, 7), (0, 0)):
        assert run(n, m) == expected(n, m)


def test_judging_imports_no_numpy() -> None:
    """The tables hold semantics in NumPy, but only executing imports it."""
    code = "import sys, transpiler.tileir; sys.exit('numpy' in sys.modules or 'ml_dtypes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_printing() -> None:
    """Operands are formatted in place; the text keeps its percent signs."""
    entry = parse_entry(
        "entry @e(%n: tile<i32>) optimization_hints=<default = {}> {\n"
        '  %t = print_tko "n=%d, 100%%\\0A", %n : tile<i32> -> token\n  return\n}\n'
    )
    outcome = interpret(entry, [7], (2, 1, 1), Memory())
    assert outcome.prints == ("n=7, 100%\n",) * 2


def test_a_loop_without_end_is_given_up() -> None:
    entry = parse_entry(
        "entry @e(%n: tile<i32>) optimization_hints=<default = {}> {\n  loop {\n    continue\n  }\n  return\n}\n"
    )
    assert interpret(entry, [1], (1, 1, 1), Memory(), limit=50).stopped == "more than 50 loop iterations"


def test_memory_is_not_shared_between_runs() -> None:
    """A run changes its own copy; addresses stay."""
    memory = Memory()
    address = memory.allocate("x", np.zeros(4, np.int32))
    copy = memory.copy()
    copy.allocations[0].array()[0] = 1
    assert memory["x"][0] == 0 and copy.find(address) is copy.allocations[0] and memory.find(0) is None


def test_every_operation_of_the_corpora_can_be_executed() -> None:
    """The operations in the Tile IR of both sides of tilegym, tilegym-24 and tilegym-suites: each has a row."""
    occurring = (
        "absf addf addi andi assume atomic_red_view_tko atomic_rmw_tko bitcast break broadcast cat ceil cmpf "
        "cmpi constant continue divf divi exp exp2 exti extract fma for ftof ftoi get_index_space_shape "
        "get_num_tile_blocks get_tile_block_id if int_to_ptr iota itof join_tokens load_ptr_tko load_view_tko "
        "log log2 loop make_gather_scatter_view make_partition_view make_tensor_view make_token maxf maxi "
        "minf mini mmaf mulf muli negf offset ori pack permute reduce remi reshape return rsqrt scan select "
        "shli shri store_ptr_tko store_view_tko subf subi tanh trunci xori yield "
    )
    assert set(occurring.split()) <= set(ROWS)
