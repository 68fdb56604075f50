"""Print a program's value graph, to look at and for tests: what the judge compares, and nothing else."""

from __future__ import annotations

from transpiler.tileir.equivalences import REWRITES
from transpiler.tileir.graph import MU, WHILE, Graph, build
from transpiler.tileir.liveness import live_numbers, loop_needs
from transpiler.tileir.model import FORMS, Entry
from transpiler.tileir.numbering import Numbering


def show(entry: Entry) -> str:
    """Return the live part of an entry's graph, one value a line, then its effects and facts.

    Values are named v0, v1, .. in order of definition; equal values are one.
    """
    graph = Graph()
    program = build(graph, entry)
    numbering = Numbering(graph, (program,), REWRITES)
    live = live_numbers(numbering, program, loop_needs(numbering))
    names = {number: f"v{i}" for i, number in enumerate(sorted(live))}
    carried = {numbering.number[mu]: triple for mu, triple in graph.mus.items()}
    stays = {numbering.number[loop]: condition for loop, condition in graph.whiles.items()}
    lines: list[str] = []
    for number in sorted(live):
        key, args = numbering.definitions[number]
        operands = [names[a] for a in args if a >= 0]
        if key == MU:
            _, start, after = carried[number]
            operands += [f"start={names[numbering.number[start]]}", f"next={names[numbering.number[after]]}"]
        elif key == WHILE:
            operands.append(f"while={names[numbering.number[stays[number]]]}")
        lines.append(f"{names[number]} = {_form(key)}({', '.join(operands)})")
    lines += [f"effect {names[numbering.number[node]]}" for node in program.effects]
    facts = sorted({(numbering.number[node], text) for node, text, _ in program.facts})
    lines += [f"fact {names[number]}: {text}" for number, text in facts if number in names]
    return "\n".join(lines) + "\n"


def _form(key: int) -> str:
    form = FORMS[key]
    attributes = "".join(f" {k}={v}" for k, v in form.attributes)
    return f"{form.name}{attributes}"
