"""A launch runs the program that was proved: its Tile IR bytecode is caught on the way to the assembler.

The real library with the real launcher, on a driver that does nothing: what is launched for the arguments of a
check is the program that the proof of this check compiled, operation by operation, hints and facts included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import pytest
import stub_driver
from ffi_build import cargo_build, write_folder

from transpiler import toolkit
from transpiler.jobs import corpus_jobs
from transpiler.pipeline import translate
from transpiler.spec import ArraySpec, Specialization
from transpiler.tileir import parse_entry
from transpiler.tileir.hints import resolve
from transpiler.translation import Translation, check_keys
from transpiler.verify import Judge, rust_text, tasks_of

CORPUS = "tilegym-24"
OPERATORS = ("dropout", "group_gemm", "matmul", "relu", "rope", "softmax", "splitk_reduce")


@dataclass(frozen=True)
class Caught:
    """For each launch, in order: operator, kernel and specialization, and the programs that it compiled; then what
    became of launches, by kernel, with strides and sizes of 1, and while the stream was captured; and what a launch
    said whose assembler took longer than it may."""

    programs: list[tuple[tuple[str, str, str], list[bytes]]]
    ones: list[tuple[str, str]]
    captured: list[tuple[str, str]]
    slow: str


_ASSEMBLER = """\
#!/bin/sh
# tileiras ... -o CUBIN BYTECODE: keeps the program; assembles the first one, which stands for all afterwards.
for bytecode; do :; done
test -z "$SLOW" || sleep 60
test -f "$bytecode" || exec '{tileiras}' "$@"
cp "$bytecode" "$(mktemp "$CAUGHT/XXXXXX")"
for argument; do test "$previous" = -o && cubin=$argument; previous=$argument; done
test -e "$CAUGHT.cubin" || '{tileiras}' "$@" && test -e "$CAUGHT.cubin" || cp "$cubin" "$CAUGHT.cubin"
cp "$CAUGHT.cubin" "$cubin"
"""
_PROBE = "@__cutile_probe_entry"  # cutile tries the assembler out
_LAUNCHES = """
import importlib, json, os, sys
from dataclasses import replace
from pathlib import Path
from ffi_build import FakeTensor, arguments, load_package
from transpiler.jobs import corpus_jobs

folder, corpus, operators = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
caught, rows = Path(os.environ["CAUGHT"]), []
load_package(folder, "launched")
from launched._runtime import CompileError, CutileError, LaunchError, compiler_timeout
launches = []
for job in corpus_jobs(corpus):
    if job.name in operators:
        bindings = importlib.import_module(f"launched.{job.name}._bindings")
        for wanted in job.kernels:
            for spec in wanted.specializations:
                before = set(os.listdir(caught))
                hints = {name: hint for name, hint in spec.hints.model_dump().items() if isinstance(hint, int)}
                kernel, given = getattr(bindings, wanted.name).replace_hints(**hints), tuple(arguments(spec))
                kernel.launch(0, (1,), given)
                launches.append((kernel, given))
                rows.append(((job.name, wanted.name, spec.name), sorted(set(os.listdir(caught)) - before)))
def with_ones(argument, field, axes):
    if not isinstance(argument, FakeTensor):
        return argument
    return replace(argument, **{field: tuple(
        1 if axis in axes else size for axis, size in enumerate(getattr(argument, field))
    )})
ones = []
for kernel, given in launches:
    for field, axes in (("strides", (0,)), ("strides", range(9)), ("shape", (0,)), ("shape", range(9))):
        try:
            kernel.launch(0, (1,), tuple(with_ones(argument, field, axes) for argument in given))
            ones.append((kernel.name, "launched"))
        except CutileError as exc:
            ones.append((kernel.name, type(exc).__name__))
os.environ["SLOW"], slow = "1", ""
try:
    with compiler_timeout(0.5):
        kernel.replace_hints(occupancy=18).launch(0, (1,), given)
except CompileError as exc:
    slow = str(exc)
del os.environ["SLOW"]
os.environ["STUB_CAPTURING"], captured = "1", []
for kernel, given in launches:
    for hinted in (kernel, kernel.replace_hints(occupancy=17)):  # compiled already, and not
        try:
            hinted.launch(0, (1,), given)
            captured.append((kernel.name, "captured"))
        except LaunchError as exc:
            captured.append((kernel.name, str(exc)))
del os.environ["STUB_CAPTURING"]  # at its end the process asks streams whether they are idle
print(json.dumps({"rows": rows, "ones": ones, "slow": slow, "captured": captured}))
"""


@pytest.fixture(scope="module")
def translations() -> list[Translation]:
    return [translate(job) for job in corpus_jobs(CORPUS) if job.name in OPERATORS]


@pytest.fixture(scope="module")
def caught(translations: list[Translation], tmp_path_factory: pytest.TempPathFactory) -> Caught:
    """Launch every check's kernel with arguments that fit the check."""
    folder = tmp_path_factory.mktemp("launched")
    write_folder(folder, {one.plan.name: one.files for one in translations})
    cargo_build(folder)
    kept, driver, assembler = folder / "caught", folder / "driver", folder / "tileiras"
    kept.mkdir()
    driver.mkdir()
    assembler.write_text(_ASSEMBLER.format(tileiras=toolkit.locate(toolkit.TILEIRAS)))
    assembler.chmod(0o755)
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(stub_driver.build(driver)), "CUTILE_TILEIRAS_PATH": str(assembler),
        "CAUGHT": str(kept), "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", _LAUNCHES, str(folder), CORPUS, *OPERATORS],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])
    rows = [(tuple(check), [(kept / name).read_bytes() for name in names]) for check, names in said["rows"]]
    ones, captured = ([tuple(row) for row in said[name]] for name in ("ones", "captured"))
    return Caught(rows, ones, captured, said["slow"])


@dataclass(frozen=True)
class Program:
    """A program as printed, and its entry's hints as the target resolves them."""

    text: str
    hints: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, bytecode: bytes) -> Program:
        printed = toolkit.disassemble(bytecode)
        head, newline, body = printed.partition("\n")
        return cls(
            head.partition(" optimization_hints=")[0] + newline + body, resolve(parse_entry(printed).hints, "sm_90")
        )


def _proved(translations: list[Translation]) -> Iterator[tuple[tuple[str, str, str], Program]]:
    """The program of each proved check."""
    with Judge() as judge:
        for one in translations:
            rust = rust_text(one)
            for key, task, _ in tasks_of(one.plan, check_keys(one.plan)):
                assert judge.check(rust, one.closures[task.kernel], task).verdict == "proved"
                assert task.inputs is not None
                program = Program.of(judge.compile(rust, task.inputs, task.target))
                if _launchable(task.specialization):
                    yield (key.operator, task.kernel, task.specialization.name), program


def _difference(proved: Program, launched: Program) -> str:
    rows = unified_diff(proved.text.splitlines(), launched.text.splitlines(), "proved", "launched", lineterm="", n=0)
    return "\n".join([f"hints {proved.hints}, {launched.hints}", *rows])


def _launchable(one: Specialization) -> bool:
    """Whether a launch makes the specialization: of addresses it knows that 16 divides them, or nothing."""
    arrays = [param for param in one.params.values() if isinstance(param, ArraySpec)]
    return all(array.base_addr_divisible_by in (1, 16) for array in arrays)


def test_what_is_launched_is_what_was_proved(translations: list[Translation], caught: Caught) -> None:
    proved = dict(_proved(translations))
    launched: set[Program] = set()
    differ = []
    for check, bytecodes in caught.programs:
        programs = [one for one in map(Program.of, bytecodes) if _PROBE not in one.text]
        launched.update(programs)
        assert len(programs) <= 1  # none where an earlier launch had compiled the same program
        if check in proved and proved[check] not in (programs or launched):
            differ.append((check, [_difference(proved[check], one) for one in programs]))
    assert not differ
    assert len(proved) > 80
    assert launched >= set(proved.values())


def test_strides_and_sizes_of_1_are_launched_or_refused_by_name(caught: Caught) -> None:
    """The reference compiles them in; no entry is taken whose text can't have them as constants."""
    assert {said for _, said in caught.ones} == {"launched", "NoEntryError"}
    assert len(caught.ones) == 4 * len(caught.programs)


def test_launches_are_captured_and_lists_refused(caught: Caught) -> None:
    """Nothing that a launch asks the driver ends the capture: the stub would have ended the process."""
    refused = {(kernel, said) for kernel, said in caught.captured if said != "captured"}
    assert {kernel for kernel, _ in refused} == {"_group_gemm_kernel"}
    assert all("can't be captured in a CUDA graph" in said for _, said in refused)
    assert len(caught.captured) == 2 * len(caught.programs)


def test_an_assembler_that_takes_too_long_is_a_launch_that_failed(caught: Caught) -> None:
    assert "_splitk_reduce_kernel" in caught.slow
