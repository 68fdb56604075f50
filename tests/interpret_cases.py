"""Cases for single operations: tiles in, Tile IR, tiles out, in ``tests/interpret_cases/*.case``.

    == title
    a: tile<4xi32> = 1 2 3 4
    %r = addi %a, %a : tile<4xi32>
    r: tile<4xi32> = 2 4 6 8
    finding: undefined divides by zero

Inputs are loaded from memory, results stored to it.  Numbers are Python's, ``inf``, ``nan``, hexadecimal floats
(``0x1p-3``) or bits (``#7fc00000``); one number stands for all elements.  Expected values are computed by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from transpiler.tileir import parse_entry
from transpiler.tileir.elements import dtype_of, is_float
from transpiler.tileir.interpret import Outcome, interpret
from transpiler.tileir.memory import Memory
from transpiler.tileir.model import tile_type

FOLDER = Path(__file__).parent / "interpret_cases"


@dataclass
class Case:
    """One case; tiles are (name, type, array)."""

    name: str
    inputs: list[tuple[str, str, Any]] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    outputs: list[tuple[str, str, Any]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    grid: tuple[int, ...] = (1, 1, 1)


def cases() -> Iterator[Case]:
    """All cases, by file."""
    for path in sorted(FOLDER.glob("*.case")):
        case: Case | None = None
        for line in path.read_text(encoding="utf-8").splitlines():
            text = line.strip()
            if text.startswith("== "):
                if case is not None:
                    yield case
                case = Case(f"{path.stem}: {text[3:]}")
            elif text and not text.startswith("#") and case is not None:
                _line(case, text)
        if case is not None:
            yield case


def _line(case: Case, text: str) -> None:
    name, colon, rest = text.partition(": ")
    if text.startswith("finding: "):
        case.findings.append(rest)
    elif text.startswith("grid: "):
        case.grid = tuple(int(n) for n in rest.split())
    elif colon and name.isidentifier() and rest.startswith("tile<"):
        type_text, _, numbers = rest.partition(" = ")
        row = name, type_text, _tile(type_text, numbers.split())
        (case.outputs if case.body else case.inputs).append(row)
    else:
        case.body.append(text)


def _tile(type_text: str, numbers: list[str]) -> Any:
    tile = tile_type(type_text)
    values = [_number(n, tile.element) for n in numbers]
    flat = np.concatenate([np.asarray(v).reshape(1) for v in values])
    return np.resize(flat, tile.shape)


def _number(text: str, element: str) -> Any:
    dtype = dtype_of(element)
    if text.startswith("#"):
        return np.array(int(text[1:], 16), f"u{dtype.itemsize}").view(dtype)[()]
    if is_float(element):
        number = float.fromhex(text) if "0x" in text else float(text)
        return np.float64(number).astype(dtype)
    return np.array(int(text, 0) if text not in ("true", "false") else text == "true").astype(dtype)[()]


def program(case: Case) -> str:
    """The case as an entry."""
    names = [(n, t) for n, t, _ in (*case.inputs, *case.outputs)]
    params = ", ".join(f"%{n}_ptr: tile<ptr<{tile_type(t).element}>>" for n, t in names)
    lines = [f"entry @case({params}) optimization_hints=<default = {{}}> {{"]
    for number, (name, type_text, _) in enumerate(case.inputs):
        lines += _pointers(name, type_text)
        flat, pointers = _flat(type_text)
        loaded = f"%{name}" if flat == type_text else f"%{name}_flat"
        lines.append(f"  {loaded}, %t{number} = load_ptr_tko weak %{name}_at : {pointers} -> {flat}, token")
        if flat != type_text:
            lines.append(f"  %{name} = reshape {loaded} : {flat} -> {type_text}")
    lines += [f"  {line}" for line in case.body]
    for name, type_text, _ in case.outputs:
        lines += _pointers(name, type_text)
        flat, pointers = _flat(type_text)
        stored = f"%{name}"
        if flat != type_text:
            lines.append(f"  %{name}_flat = reshape %{name} : {type_text} -> {flat}")
            stored = f"%{name}_flat"
        lines.append(f"  %{name}_done = store_ptr_tko weak %{name}_at, {stored} : {pointers}, {flat} -> token")
    return "\n".join([*lines, "  return", "}"]) + "\n"


def _flat(type_text: str) -> tuple[str, str]:
    tile = tile_type(type_text)
    return f"tile<{tile.size}x{tile.element}>", f"tile<{tile.size}xptr<{tile.element}>>"


def _pointers(name: str, type_text: str) -> list[str]:
    """Lines that make ``%NAME_at``, a pointer to each element of an array."""
    tile, (_, pointers) = tile_type(type_text), _flat(type_text)
    return [
        f"  %{name}_one = reshape %{name}_ptr : tile<ptr<{tile.element}>> -> tile<1xptr<{tile.element}>>",
        f"  %{name}_all = broadcast %{name}_one : tile<1xptr<{tile.element}>> -> {pointers}",
        f"  %{name}_numbers = iota : tile<{tile.size}xi32>",
        f"  %{name}_at = offset %{name}_all, %{name}_numbers : {pointers}, tile<{tile.size}xi32> -> {pointers}",
    ]


def run(case: Case) -> Outcome:
    """Execute a case."""
    memory = Memory()
    arguments = [memory.allocate(name, array) for name, _, array in case.inputs]
    arguments += [memory.allocate(name, np.zeros_like(array)) for name, _, array in case.outputs]
    return interpret(parse_entry(program(case)), arguments, case.grid, memory, races=False)
