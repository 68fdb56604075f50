"""Packs kernels, with inputs, for a GPU machine that has only Python, NumPy and the driver.

    python benchmarks/gpu/interpreter_pack.py -o JOB [-j 2] [CORPUS..]

JOB holds the reference's kernels as machine code, the arrays and arguments that they are launched with, and
what the cases are (interpreter_keep.py reads that).  Of each kernel the specialization with the smallest inputs is
taken, and a second one with other dtypes where that costs little.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from interpreter_cases import Exported, export, key_of

from transpiler import cubin, toolkit
from transpiler.diagnostics import TranspileError
from transpiler.execute import recorded
from transpiler.execute.agree import invalid
from transpiler.execute.inputs import Inputs
from transpiler.execute.plan import Shape
from transpiler.execute.search import Search
from transpiler.jobs import OperatorJob, corpus_jobs
from transpiler.reference.export import ReferenceExporter
from transpiler.spec import ArraySpec, ListSpec, ScalarSpec, Specialization
from transpiler.tileir import parse_entry
from transpiler.tileir.interpret import Program
from transpiler.tileir.memory import Memory
from transpiler.tileir.model import tile_type

CORPORA = ("tilegym-24", "examples")
PROFILES: tuple[tuple[Shape, Any], ...] = (("normal", "plain"), ("ragged", "edge"))
MOST_BYTES = 400_000
"""Of the content of a case's arrays."""
CHEAP_BYTES = 120_000
"""Of all cases of a specialization that is taken beside another one."""
MOST_STEPS = 2500
"""Iterations of loops in a case."""
CANDIDATES = 4
"""Specializations with the same dtypes that are tried."""
PERIOD = 32749
"""The content of longer arrays repeats (see transpiler.execute.inputs)."""


@dataclass(frozen=True)
class Case:
    """A kernel with its inputs."""

    row: dict[str, Any]
    spec: Specialization
    program: Exported
    inputs: Inputs
    parameters: tuple[str, ...]
    """The element types of the entry's parameters."""

    @property
    def size(self) -> int:
        """Bytes of content of the arrays."""
        return sum(min(a.data.size, PERIOD * a.itemsize) for a in self.inputs.memory.allocations)


def main() -> None:
    """Choose, assemble, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=CORPORA, metavar="CORPUS")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("-j", "--jobs", type=int, default=2)
    options = parser.parse_args()
    with ReferenceExporter() as exporter:
        cases = [case for corpus in options.corpora for case in corpus_cases(exporter, corpus)]
    codes = assembled(cases, options.jobs)
    cases = [case for case in cases if case.program.bytecode in codes]
    write(options.out, cases, codes)
    size = sum(path.stat().st_size for path in options.out.iterdir())
    kernels = {(case.row["operator"], case.row["kernel"]) for case in cases}
    print(f"{options.out}: {len(kernels)} kernels, {len(cases)} cases, {size / 2**20:.1f} MiB")


def corpus_cases(exporter: ReferenceExporter, corpus: str) -> Iterator[Case]:
    """The cases of a corpus."""
    for job in corpus_jobs(corpus):
        for kernel in job.kernels:
            found = kernel_cases(exporter, corpus, job, kernel.name, kernel.specializations)
            if not found:
                print(f"{job.name} {kernel.name}: no inputs", file=sys.stderr)
            yield from found


def kernel_cases(
    exporter: ReferenceExporter, corpus: str, job: OperatorJob, kernel: str, specs: tuple[Specialization, ...]
) -> list[Case]:
    """The smallest cases, with one or two combinations of dtypes."""
    groups: dict[tuple[str, ...], list[Specialization]] = {}
    for spec in sorted(specs, key=lambda s: s.hints.num_ctas not in (None, 1)):
        groups.setdefault(_dtypes(spec), []).append(spec)
    best: list[list[Case]] = []
    for group in groups.values():
        found = [spec_cases(exporter, corpus, job, kernel, spec) for spec in group[:CANDIDATES]]
        best += [min(found, key=lambda cases: (-len(cases), _size(cases)))]
        if len(best) == 2:
            break
    first, *rest = sorted(best, key=lambda cases: (-len(cases), _size(cases)))
    return first + [case for cases in rest for case in cases if _size(cases) <= CHEAP_BYTES]


def _size(cases: list[Case]) -> int:
    return sum(case.size for case in cases)


def _dtypes(spec: Specialization) -> tuple[str, ...]:
    params = (p.element if isinstance(p, ListSpec) else p for p in spec.params.values())
    return tuple(p.dtype for p in params if isinstance(p, ArraySpec | ScalarSpec))


def spec_cases(
    exporter: ReferenceExporter, corpus: str, job: OperatorJob, kernel: str, spec: Specialization
) -> list[Case]:
    """The cases of a specialization: one for each profile that has inputs on which the kernel is defined."""
    try:
        program = export(exporter, job, kernel, spec)
        entry = parse_entry(program.text)
    except TranspileError:
        return []
    compiled = Program(entry)
    search = Search(spec, compiled, f"{kernel} {spec.name}")
    elements = tuple(tile_type(entry.values[p].type).element for p in entry.params)
    cases = []
    for shape, values in PROFILES:
        plan = search.plan(shape)
        if plan is None:
            continue
        inputs = recorded.inputs_of(spec, plan, values)
        outcome = compiled.run(inputs.reference, inputs.grid, inputs.memory, races=True)
        hazards = {f.kind for f in outcome.findings} & {"race", "uninitialized"}
        if invalid(outcome) or hazards or not outcome.stored or outcome.steps > MOST_STEPS:
            continue
        row = {
            "corpus": corpus, "operator": job.name, "kernel": kernel, "specialization": spec.name, "values": values,
            "plan": recorded.plan_row(plan), "tile_ir": program.digest, "inputs": recorded.inputs_digest(inputs),
        }  # fmt: skip
        case = Case(row, spec, program, inputs, elements)
        if case.size <= MOST_BYTES:
            cases.append(case)
    return cases


def assembled(cases: list[Case], jobs: int) -> dict[bytes, bytes]:
    """Machine code of each program; what the assembler refuses is said and left out."""
    names = {case.program.bytecode: f"{case.row['operator']} {case.row['kernel']}" for case in cases}

    def one(bytecode: bytes) -> bytes | None:
        try:
            return cubin.assemble(bytecode, arch="sm_90")
        except TranspileError as exc:
            print(f"{names[bytecode]}: {exc.diagnostic.message}", file=sys.stderr)
            return None

    with ThreadPoolExecutor(jobs) as pool:
        return {b: code for b, code in zip(names, pool.map(one, names), strict=True) if code is not None}


def write(out: Path, cases: list[Case], codes: dict[bytes, bytes]) -> None:
    """Write JOB: cases.json, launches.json, code.npz, arrays.npz."""
    out.mkdir(parents=True, exist_ok=True)
    numbers = {bytecode: number for number, bytecode in enumerate(codes)}
    arrays: dict[str, Any] = {}
    launches = []
    for number, case in enumerate(cases):
        symbol = cubin.read_cubin(codes[case.program.bytecode]).symbol
        launches.append(launch(case, symbol, numbers[case.program.bytecode]))
        for at, allocation in enumerate(case.inputs.memory.allocations):
            arrays[f"{number}/{at}"] = _once(allocation.data, allocation.itemsize)
    np.savez_compressed(out / "arrays.npz", **arrays)
    files: dict[str, Any] = {str(n): np.frombuffer(codes[b], np.uint8) for b, n in numbers.items()}
    np.savez_compressed(out / "code.npz", **files)
    (out / "launches.json").write_text(json.dumps(launches), encoding="utf-8")
    specs = {key_of(c.row): json.loads(c.spec.model_dump_json(exclude_defaults=True)) for c in cases}
    head = {"versions": toolkit.versions(), "specializations": specs, "cases": [case.row for case in cases]}
    (out / "cases.json").write_text(json.dumps(head, indent=1), encoding="utf-8")


def _once(data: Any, itemsize: int) -> Any:
    """The part of an array's bytes that repeats."""
    period = PERIOD * itemsize
    repeats = data.size > period and (np.resize(data[:period], data.size) == data).all()
    return data[:period] if repeats else data


def launch(case: Case, symbol: str, code: int) -> dict[str, Any]:
    """What the launcher needs to know: arrays by their sizes, arguments as bytes or as places in arrays."""
    memory = case.inputs.memory
    arguments = [
        _argument(memory, element, value)
        for element, value in zip(case.parameters, case.inputs.reference, strict=True)
    ]  # fmt: skip
    arrays = [
        {"name": a.name, "bytes": a.data.size, "addresses": _addresses(memory, number)}
        for number, a in enumerate(memory.allocations)
    ]
    name = " ".join(case.row[key] for key in ("operator", "kernel", "specialization", "values"))
    return {"name": name, "symbol": symbol, "code": code, "grid": list(case.inputs.grid), "arguments": arguments,
            "arrays": arrays}  # fmt: skip


def _argument(memory: Memory, element: str, value: Any) -> dict[str, Any]:
    """A pointer is the number of an array and an offset in bytes; everything else is its bytes, little-endian."""
    if element.startswith("ptr"):
        array, offset = _place(memory, int(value))
        return {"array": array, "offset": offset}
    if element in ("i1", "i8", "i16", "i32", "i64"):
        size = {"i1": 1}.get(element) or int(element[1:]) // 8
        return {"bytes": (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little").hex()}
    code = {"f32": "<f", "f64": "<d", "f16": "<e"}[element]
    return {"bytes": struct.pack(code, float(value)).hex()}


def _addresses(memory: Memory, number: int) -> list[list[int]]:
    """The words of a table of arrays that are addresses: byte position, array, offset."""
    allocation = memory.allocations[number]
    if allocation.dtype != np.dtype("int64") or len(allocation.shape) != 2:
        return []
    words = allocation.array()
    return [[8 * row * words.shape[1], *_place(memory, int(words[row, 0]))] for row in range(words.shape[0])]


def _place(memory: Memory, address: int) -> tuple[int, int]:
    found = memory.find(address)
    assert found is not None, "the address belongs to no array"
    return memory.allocations.index(found), address - found.base


if __name__ == "__main__":
    main()
