"""The interpreter: whole entries of Tile IR, arrays in, arrays out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from transpiler.tileir import parse_entry
from transpiler.tileir.interpret import interpret
from transpiler.tileir.memory import Memory

CASES = Path(__file__).parent / "tileir_cases"


def test_control_flow_of_the_reference() -> None:
    """Nested loops with ``continue``, a loop that ends by ``break``, early return and stores through pointers."""
    entry = parse_entry((CASES / "control.mlir").read_text(encoding="utf-8"))

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
