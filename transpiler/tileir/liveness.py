"""Which values count: those that an effect needs, and those that may fault."""

from __future__ import annotations

from collections.abc import Iterator

from transpiler.tileir.graph import BODY, BRANCH, WHILE, Program
from transpiler.tileir.numbering import Numbering
from transpiler.tileir.rewrites import integer_value


def loop_needs(numbering: Numbering) -> dict[int, set[int]]:
    """Return for each carried value and while-loop the numbers that it depends on, next values included."""
    number, graph = numbering.number, numbering.graph
    needs: dict[int, set[int]] = {}
    for mu, (loop, start, after) in graph.mus.items():
        needs.setdefault(number[mu], set()).update((number[loop], number[start], number[after]))
    for loop, condition in graph.whiles.items():
        needs.setdefault(number[loop], set()).add(number[condition])
    return needs


def live_numbers(numbering: Numbering, program: Program, needs: dict[int, set[int]]) -> set[int]:
    """Return the numbers that the program's effects depend on, control included; ``needs``: :func:`loop_needs`."""
    live: set[int] = set()
    work = [numbering.number[n] for n in program.effects]
    definitions = numbering.definitions
    while work:
        at = work.pop()
        if at < 0 or at in live:
            continue
        live.add(at)
        work.extend(definitions[at][1])
        if at in needs:
            work.extend(needs[at])
    return live


def speculated(numbering: Numbering, reference: Program, ours: Program, live: set[int]) -> list[int]:
    """Return our values that may fault and are computed in a context in which the reference doesn't compute them.

    Moving such a value before a condition or out of a loop needs the reference's example; computing it in
    fewer contexts than the reference is harmless.
    """
    number = numbering.number
    allowed: dict[int, set[int]] = {}
    for node, context in reference.guarded:
        allowed.setdefault(number[node], set()).add(number[context])
    found: list[int] = []
    for node, context in ours.guarded:
        at = number[node]
        if at not in live or at not in allowed or _cannot_fault(numbering, at):
            continue
        if not inside(numbering, number[context], allowed[at]):
            found.append(node)
    return found


def repeated_loads(numbering: Numbering, reference: Program, ours: Program, live: set[int]) -> list[int]:
    """Return our executions of a load that the reference doesn't have, where something waits for the load.

    What waits for the reference's load (a store to its address, say) doesn't wait for such a one: they may
    race.  Where nothing waits for any execution of it, nothing can conflict with it.
    """
    number = numbering.number
    executed = {number[node] for node in reference.load_tokens}
    awaited = {numbering.args(number[n])[0] for n in (*reference.load_tokens, *ours.load_tokens) if number[n] in live}
    found: list[int] = []
    for node in ours.load_tokens:
        at = number[node]
        if at not in executed and numbering.args(at)[0] in awaited:
            found.append(node)
    return found


def _cannot_fault(numbering: Numbering, number: int) -> bool:
    """Say whether the number stands for a division by a constant other than zero (or is folded away)."""
    form, args = numbering.form(number), numbering.args(number)
    if form.name not in ("divi", "remi"):
        return form.name not in ("load_ptr_tko", "load_view_tko")  # numbered as another form: rewritten
    divisor = integer_value(numbering, args[1])
    return divisor is not None and divisor[1] not in (0, -1)


def endless(numbering: Numbering, reference: Program, ours: Program) -> list[int]:
    """Return our loops without a provable end that the reference doesn't have, whether or not an effect needs them.

    Loops are taken to end, and such a one may not.  Counted loops end; so do loops that the reference has.
    """
    number = numbering.number
    known = {number[loop] for loop in reference.loops}
    return [loop for loop in ours.loops if number[loop] not in known]


def inside(numbering: Numbering, context: int, allowed: set[int]) -> bool:
    """Say whether a control context is one of ``allowed`` or below one of them."""
    return any(c in allowed for c in around(numbering, context))


def around(numbering: Numbering, context: int) -> Iterator[int]:
    """Yield a control context and those around it, from the inside out."""
    while True:
        yield context
        key, args = numbering.definitions[context]
        if key in BRANCH.values():
            context = args[0]
        elif key == BODY:
            loop_key, loop_args = numbering.definitions[args[0]]
            context = loop_args[1] if loop_key == WHILE else loop_args[0]
        else:
            return
