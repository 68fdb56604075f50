"""Which values count: those that an effect needs, and where loads that may fault are executed."""

from __future__ import annotations

from transpiler.tileir.graph import BODY, BRANCH, WHILE, Program
from transpiler.tileir.numbering import Numbering


def live_numbers(numbering: Numbering, program: Program) -> set[int]:
    """Return the numbers that the program's effects depend on, control included."""
    number, graph = numbering.number, numbering.graph
    extra: dict[int, set[int]] = {}
    for mu, (loop, start, after) in graph.mus.items():
        extra.setdefault(number[mu], set()).update((number[loop], number[start], number[after]))
    for loop, condition in graph.whiles.items():
        extra.setdefault(number[loop], set()).add(number[condition])
    live: set[int] = set()
    work = [number[n] for n in program.effects]
    definitions = numbering.definitions
    while work:
        at = work.pop()
        if at < 0 or at in live:
            continue
        live.add(at)
        work.extend(definitions[at][1])
        work.extend(extra.get(at, ()))
    return live


def speculated_loads(numbering: Numbering, reference: Program, ours: Program, live: set[int]) -> list[int]:
    """Return our loads that may fault and run in a context in which the reference doesn't load.

    A load through a partition view is bounds-checked; a load through pointers, or one that is stated to
    be in bounds, may fault, so that moving it before a condition or out of a loop needs the reference's
    example.  Running it in fewer contexts than the reference is harmless.
    """
    number = numbering.number
    allowed: dict[int, set[int]] = {}
    for node, context in reference.loads:
        allowed.setdefault(number[node], set()).add(number[context])
    found: list[int] = []
    for node, context in ours.loads:
        at = number[node]
        form = numbering.form(at)
        checked = form.name == "load_view_tko" and form.get("inbounds") is None
        if checked or at not in live:
            continue
        if not _inside(numbering, number[context], allowed.get(at, set())):
            found.append(node)
    return found


def _inside(numbering: Numbering, context: int, allowed: set[int]) -> bool:
    """Say whether a context is one of ``allowed`` or below one of them."""
    while True:
        if context in allowed:
            return True
        key, args = numbering.definitions[context]
        if key in BRANCH.values():
            context = args[0]
        elif key == BODY:
            loop_key, loop_args = numbering.definitions[args[0]]
            context = loop_args[1] if loop_key == WHILE else loop_args[0]
        else:
            return False
