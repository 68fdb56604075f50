"""The interpreter against the real thing: what an H200 computed of the reference's kernels, committed, judged again.

See benchmarks/gpu/interpreter_*.py for how the results came about.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from interpreter_cases import NAME, RESULTS, StaleError, judges

from transpiler.execute import recorded
from transpiler.execute.agree import differing

RESULT: dict[str, Any] = json.loads((RESULTS / f"{NAME}.json").read_text(encoding="utf-8"))
SPECIALIZATIONS: dict[str, Any] = RESULT["specializations"]
CASES: list[dict[str, Any]] = RESULT["cases"]
CHANGED = ("rope", "rope_neox", "black_scholes", "embedding", "dropout", "mish", "group_norm")
"""Operators whose arrays are changed, on the first inputs of each kernel; all of them would take minutes."""
MATRIX = ("bmm", "streamk_gemm", "int4_gemm", "linear_act", "group_gemm")
"""Operators that are matrix products and little else."""
Case = tuple[dict[str, Any], recorded.Judge | StaleError, dict[str, Any]]


def cases(rows: list[dict[str, Any]]) -> Iterator[Case]:
    """Each case, executed, with what is kept of the device's arrays."""
    kept: dict[str, dict[str, Any]] = {}
    with np.load(RESULTS / f"{NAME}.npz") as arrays:
        for key, content in arrays.items():
            case, _, name = key.partition("/")
            kept.setdefault(case, {})[name] = content
    numbers = [CASES.index(row) for row in rows]
    for number, row, judge in zip(numbers, rows, judges(rows, SPECIALIZATIONS), strict=True):
        yield row, judge, kept.get(str(number), {})


def test_the_interpreter_computes_what_the_device_did() -> None:
    """Bits where all operations of a kernel promise them, elsewhere within the operations' tolerances."""
    problems: list[Any] = []
    stale: list[StaleError] = []
    kernels, same = set(), 0
    for row, judge, kept in cases(CASES):
        if isinstance(judge, StaleError):
            stale.append(judge)
            continue
        assert not judge.outcome.stopped and judge.exact == row["exact"]
        found = recorded.check(judge, row["arrays"], kept)
        assert found
        problems += [(row["operator"], row["kernel"], row["specialization"], one) for one in found if one.problem]
        kernels.add((row["operator"], row["kernel"]))
        same += all(one.compared == one.equal for one in found)
    count = len(CASES) - len(stale)
    print(f"{len(kernels)} kernels, {count} cases: {same} have the device's bits, {count - same} are within the "
          f"operations' tolerances, {len(problems)} arrays are not")  # fmt: skip
    assert not problems
    if stale:
        warnings.warn(f"{len(stale)} cases say nothing any more: {stale[0]}", stacklevel=1)
    assert len(kernels) >= 40
    assert "H200" in RESULT["gpu"] and RESULT["driver"] and RESULT["versions"] and RESULT["command"]
    assert all(one["case"] and one["reason"] for one in RESULT["left_out"])


def test_matrix_products_have_the_bits_of_a_tensor_core() -> None:
    """Summed as Hopper does, nothing is left of what the tolerance of matrix products allows, overflows included."""
    said = 0
    for row, judge, kept in cases([row for row in CASES if row["operator"] in MATRIX]):
        assert isinstance(judge, recorded.Judge)
        summed = judge.run(tensor_core=True).memory
        for name, content in kept.items():
            places = recorded.kept_places(summed[name].size)
            device = content.view(summed[name].dtype)
            assert not differing(summed[name].reshape(-1)[places], device).any(), (row["kernel"], name)
            said += int(differing(judge.outcome.memory[name].reshape(-1)[places], device).sum())
    assert said > 100  # elements in which it shows


def test_a_changed_element_is_found() -> None:
    """In each array that is kept: a value that is far off, and one bit of what has a digest."""
    changed = set()
    first = {row["kernel"]: row for row in reversed(CASES) if row["operator"] in CHANGED}
    for row, judge, kept in cases(list(first.values())):
        assert isinstance(judge, recorded.Judge)
        for name, array in row["arrays"].items():
            ours = judge.outcome.memory[name].reshape(-1)
            if "sha256" in array:
                content = ours.copy()
                recorded.bits(content)[-1] ^= 1
                other = {**row["arrays"], name: {"sha256": recorded.array_digest(content, judge.open(name))}}
                wrong = recorded.check(judge, other, kept)
            else:
                content = kept[name].view(ours.dtype).copy()
                at = max(np.flatnonzero(np.isfinite(content.astype(np.float64))), default=-1)
                content[at] = -2 * content[at] - 2 if at >= 0 else 1
                wrong = recorded.check(judge, row["arrays"], kept | {name: recorded.bits(content)})
            assert [one.array for one in wrong if one.problem] == [name], (row["kernel"], name)
            changed.add((row["kernel"], "sha256" in array))
    assert len({kernel for kernel, _ in changed}) >= 8 and {exact for _, exact in changed} == {True, False}


def test_what_the_device_did_not_run_is_noticed() -> None:
    """Another program, other inputs: the result says nothing of them."""
    first = next(row for row in CASES if row["operator"] == "softmax")
    plan = first["plan"] | {"padded": True}
    others = [first | {"tile_ir": "0"}, first | {"plan": plan}, first | {"kernel": "other"}, first]
    said = [str(one) if isinstance(one, StaleError) else "" for one in judges(others, SPECIALIZATIONS)]
    assert "to other Tile IR now" in said[0]
    assert "made in another way" in said[1]
    assert "no corpus has it" in said[2]
    assert said[3] == ""
