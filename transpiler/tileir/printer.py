"""Print an entry as Tile IR text again, under its own names or new ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from transpiler.tileir.model import Entry, Hints, Op, Region

_SLOT = re.compile(r'"(?:[^"\\]|\\.)*"|%')
Name = Callable[[int], str]


def print_entry(entry: Entry, name: Name | None = None) -> str:
    """Return text that parses to the same entry; ``name`` gives a value's SSA name (``%17`` by default)."""
    naming = name or (lambda value: f"%{value}")
    params = ", ".join(f"{naming(p)}: {entry.values[p].type}" for p in entry.params)
    hints = f" optimization_hints=<{_hints(entry.hints)}>"
    lines = [f"entry @{entry.name}({params}){hints} {{", *_region(entry, entry.body, naming, "  "), "}"]
    return "\n".join(lines) + "\n"


def print_operation(entry: Entry, op: Op, name: Name, *, whole: bool = False) -> Iterator[str]:
    """Yield the first line of an operation, or all of it."""
    lines = _operation(entry, op, name, "")
    yield from lines if whole else islice(lines, 1)


def _hints(hints: Hints) -> str:
    return ", ".join(f"{key} = {{{', '.join(f'{k} = {v}' for k, v in options)}}}" for key, options in hints)


def _region(entry: Entry, region: Region, name: Name, indent: str) -> Iterator[str]:
    for op in region.ops:
        yield from _operation(entry, op, name, indent)


def _operation(entry: Entry, op: Op, name: Name, indent: str) -> Iterator[str]:
    results = ", ".join(name(r) for r in op.results)
    start = indent + (f"{results} = " if results else "")
    if op.name in ("for", "loop", "if"):
        yield start + _head(entry, op, name)
    else:
        operands = iter(op.operands)
        text = _SLOT.sub(lambda m: name(next(operands)) if m.group() == "%" else m.group(), op.form.template)
        yield start + text
        if op.regions:
            args = ", ".join(f"{name(a)}: {entry.values[a].type}" for a in op.regions[0].args)
            yield f"{indent}({args}) {{"
    for index, region in enumerate(op.regions):
        if index:
            yield f"{indent}}} else {{"
        yield from _region(entry, region, name, indent + "  ")
    if op.regions:
        yield indent + "}"


def _head(entry: Entry, op: Op, name: Name) -> str:
    """Print the first line of a control operation."""
    types = ", ".join(op.form.result_types)
    if op.name == "if":
        return f"if {name(op.operands[0])}{f' -> ({types})' if types else ''} {{"
    args = op.regions[0].args
    carried = args[1:] if op.name == "for" else args
    inits = op.operands[3:] if op.name == "for" else op.operands
    values = ", ".join(f"{name(a)} = {name(i)}" for a, i in zip(carried, inits, strict=True))
    if op.name == "loop":
        operand_types = ", ".join(op.form.operand_types)
        iter_values = f" iter_values({values})" if values else ""
        left = f" : {operand_types}" if operand_types else ""
        return f"loop{iter_values}{left}{f' -> {types}' if types else ''} {{"
    low, high, step = (name(o) for o in op.operands[:3])
    unsigned = "unsigned " if op.form.attributes else ""
    head = f"for {unsigned}{name(args[0])} in ({low} to {high}, step {step}) : {op.form.operand_types[0]}"
    return f"{head}{f' iter_values({values}) -> ({types})' if values else ''} {{"
