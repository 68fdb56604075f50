"""Draw calls, ask both sides what they make of each, and have the judge compare the programs."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import stub_driver
from ffi_build import FakeTensor, build_tables, load_package, write_folder

from dispatch.draw import Drawn, draw
from transpiler.batch import Options, run_jobs
from transpiler.diagnostics import Span, TranspileError
from transpiler.emit.abi import CompileInputs
from transpiler.emit.ffi import tensor_type
from transpiler.ir.types import DTYPE_TABLE
from transpiler.jobs import OperatorJob
from transpiler.spec import ArraySpec, ListSpec, Specialization
from transpiler.translation import Translation
from transpiler.verify import CheckTask, Judge, rust_text

TARGET = "sm_90"
_NEITHER = "neither compiles"


@dataclass
class Outcome:
    """What became of the calls: how many ended in what, and those that took a wrong program."""

    counts: Counter[str] = field(default_factory=Counter)
    reached: set[tuple[str, str]] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Library:
    """Operators as a launch sees them: their translations, and their bindings on a library without a device."""

    translations: dict[str, Translation]
    bindings: dict[str, Any]

    def plan(self, call: Drawn) -> dict[str, Any] | str:
        """What a launch would compile, or the name of the error that it raises."""
        hints = {name: hint for name, hint in call.like.hints.model_dump().items() if isinstance(hint, int)}
        kernel = getattr(self.bindings[call.operator], call.kernel).replace_hints(**hints)
        try:
            found: dict[str, Any] = kernel.plan((1,), call.arguments)
        except Exception as exc:
            if not any(base.__name__ == "CutileError" for base in type(exc).__mro__):
                raise
            return type(exc).__name__
        return found


@contextlib.contextmanager
def library(folder: Path, jobs: Sequence[OperatorJob], name: str) -> Iterator[Library]:
    """Translate and check operators, and build what chooses among their entries."""
    results = run_jobs(jobs, Options())
    made = {name: one for name, one in results.translations.items() if one.plan.in_library}
    write_folder(folder, {name: one.files for name, one in made.items()})
    build_tables(folder, {name: one.plan.module for name, one in made.items()})
    load_package(folder, name)
    yield Library(made, {one: importlib.import_module(f"{name}.{one}._bindings") for one in made})
    for module in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        del sys.modules[module]


def draw_calls(jobs: Sequence[OperatorJob], count: int, seed: int) -> list[Drawn]:
    """Draw calls of all kernels in turn."""
    kernels = [(job.name, kernel.name, kernel.specializations) for job in jobs for kernel in job.kernels]
    rng = random.Random(seed)
    return [draw(rng, *kernels[index % len(kernels)]) for index in range(count)]


def run(made: Library, calls: Sequence[Drawn], folder: Path) -> Outcome:
    """Compare what each call would launch with the reference's export for its signature."""
    outcome = Outcome()
    signatures = _signatures(calls, folder)
    known: dict[str, tuple[str, str]] = {}
    with Judge(execute=False) as judge, Judge(execute=True) as executing:
        for call, said in zip(calls, signatures, strict=True):
            plan = made.plan(call) if call.operator in made.translations else "left out"
            if isinstance(plan, str):
                outcome.counts[plan] += 1
                continue
            outcome.reached.add((call.operator, call.kernel))
            if isinstance(said, str):
                outcome.counts["refused by the launcher"] += 1
                outcome.wrong.append(f"{_shown(call)}: {said}, ours takes {plan['entry']}")
                continue
            one = made.translations[call.operator]
            key = json.dumps([call.operator, call.kernel, plan, said.model_dump_json()])
            if key not in known:
                inexact = _inexact(one, call, plan)
                known[key] = _check(executing if inexact else judge, one, call, said, plan)
            verdict, why = known[key]
            outcome.counts[verdict] += 1
            if verdict not in ("proved", "tested", _NEITHER):
                outcome.wrong.append(f"{_shown(call)}: {plan['entry']} is {verdict}: {why}")
    return outcome


def _check(judge: Judge, one: Translation, call: Drawn, said: Specialization, plan: dict[str, Any]) -> tuple[str, str]:
    """The verdict on what a call would launch; what the reference refuses and ours doesn't compile runs in neither."""
    given = dict(plan)
    for name in ("generics", "scalar_hints"):
        given[name] = tuple(given[name])
    given["strides"] = tuple((name, tuple(values)) for name, values in given["strides"])
    given["specs"] = tuple((name, tuple(dims), tuple(steps), base) for name, dims, steps, base in given["specs"])
    task = CheckTask(call.kernel, said, TARGET, CompileInputs(**given), Span(one.plan.source, 1, 1))
    result = judge.check(rust_text(one), one.closures[call.kernel], task)
    refused = result.verdict == "rejected" and not _compiles(judge, one, task)
    why = " | ".join(d.message.splitlines()[0] for d in result.diagnostics)
    return _NEITHER if refused else result.verdict, why


def _compiles(judge: Judge, one: Translation, task: CheckTask) -> bool:
    assert task.inputs is not None
    try:
        judge.compile(rust_text(one), task.inputs, task.target)
    except TranspileError:
        return False
    return True


def _inexact(one: Translation, call: Drawn, plan: dict[str, Any]) -> bool:
    """Whether a size or stride of 1, which the reference compiles in, is read at run time: the same results."""
    assert one.tables is not None
    entries = [entry for abi in one.tables.abis for entry in abi.entries]
    arguments = next(entry for entry in entries if entry.name == plan["entry"]).arguments
    given = dict(zip(call.like.params, call.arguments, strict=True))
    tensors = [(argument, given[argument.source]) for argument in arguments if argument.kind == "tensor"]
    return any(
        (extent == "-1" and size == 1) or (axis in argument.dynamic_strides and array.strides[axis] == 1)
        for argument, array in tensors
        for axis, (extent, size) in enumerate(zip(tensor_type(argument)[1], array.shape, strict=True))
    )


# -- cuda.tile's launcher -----------------------------------------------------------------------------


def _signatures(calls: Sequence[Drawn], folder: Path) -> list[Specialization | str]:
    driver = folder / "driver"
    driver.mkdir(exist_ok=True)
    question = [{"constants": call.constants, "arguments": list(map(_given, call.arguments))} for call in calls]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "ask.py")], input=json.dumps(question), capture_output=True,
        text=True, check=False, env=os.environ | {"LD_LIBRARY_PATH": str(stub_driver.build(driver))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return [_specialization(call, said) for call, said in zip(calls, json.loads(done.stdout), strict=True)]


def _given(argument: Any) -> Any:
    if isinstance(argument, list):
        return list(map(_given, argument))
    if isinstance(argument, FakeTensor):
        return {"shape": argument.shape, "strides": argument.strides, "size": max(1, _bits(argument) // 8),
                "address": argument.address}  # fmt: skip
    return {"float": repr(argument)} if isinstance(argument, float) else argument


def _dtype(array: FakeTensor) -> str:
    name = array.dtype.rpartition(".")[2]
    return "bool_" if name == "bool" else name


def _bits(array: FakeTensor) -> int:
    return DTYPE_TABLE[_dtype(array)][1]


def _specialization(call: Drawn, said: Any) -> Specialization | str:
    if isinstance(said, str):
        return said
    params = {}
    for (name, like), argument, constraint in zip(call.like.params.items(), call.arguments, said, strict=True):
        if constraint["kind"] == "array":
            constraint = {**constraint, "dtype": _dtype(argument)}
        elif constraint["kind"] == "list":
            constraint["element"]["dtype"] = _dtype(argument[0])
        elif constraint["kind"] == "constant" and isinstance(constraint["value"], dict):
            constraint["value"] = _float(constraint["value"]["float"])
        assert isinstance(like, ArraySpec | ListSpec) == (constraint["kind"] in ("array", "list"))
        params[name] = constraint
    return Specialization.model_validate({"name": "drawn", "params": params, "hints": call.like.hints})


def _float(text: str) -> float | str:
    return text if text in ("inf", "-inf", "nan") else float(text)


def _shown(call: Drawn) -> str:
    parts = []
    for name, argument in zip(call.like.params, call.arguments, strict=True):
        arrays = argument if isinstance(argument, list) else [argument]
        texts = [f"{_dtype(a)}{list(a.shape)}/{list(a.strides)}@{a.address % 16}" for a in arrays
                 if isinstance(a, FakeTensor)]  # fmt: skip
        parts.append(f"{name}={' '.join(texts) or repr(argument)}")
    return f"{call.operator}.{call.kernel}({', '.join(parts)})"


__all__ = ["Library", "Outcome", "draw_calls", "library", "run"]
