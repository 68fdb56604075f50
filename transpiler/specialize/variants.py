"""Explore a kernel's paths: flip the decisions of known runs until no new path appears.

Each specialization is run concretely while its decisions are recorded as conditions over constants and dtypes.
For every decision, other values of its leaves are tried that turn it over and leave the decisions before it as they
were; a run with such values either takes a path not seen before, or is refused as ill-typed.  Where a path relies on
sizes of 1 or on strides that the launch bakes in, the same arguments without any of them are one more run.  (This is
the search of concolic testing: Godefroid, Klarlund and Sen, PLDI 2005.)

A decision that could not be turned over is reported with the reason: together the paths then don't take every call.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from transpiler.diagnostics import TranspileError
from transpiler.ir import hir
from transpiler.ir.construct import Fragments
from transpiler.ir.symbolic import Sym, evaluate, leaves_of
from transpiler.ir.tir import Condition, Kernel
from transpiler.ir.types import GENERIC_CLASS
from transpiler.rules.registry import Table
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ParamSpec, Specialization
from transpiler.specialize.conditions import Leaves, condition_text, leaf_values, literals
from transpiler.specialize.kernel import specialize

MAX_RUNS = 200
_TURNED = ("param", "dtype", "overlaps")  # leaves that are given other values
MAX_PATHS = 48  # of one kernel: each is a check, and often an entry
_MAX_TRIALS = 400  # assignments looked at for one decision
_MAX_CHOICES = 4  # tried of one flip, until the kernel doesn't refuse the values
_POWERS = tuple(1 << i for i in range(11))
Path = tuple[tuple[Sym, Any], ...]


@dataclass(frozen=True)
class Uncovered:
    """Calls that no path takes: the condition that they fulfil, in the author's words, and why it wasn't explored."""

    condition: str
    reason: str


@dataclass(frozen=True)
class Exploration:
    """The specializations that take every path found, those given first, and what they leave open."""

    specializations: tuple[Specialization, ...]
    uncovered: tuple[Uncovered, ...]


def explore(
    program: hir.Program,
    kernel: str,
    seeds: Iterable[Specialization],
    table: Table,
    fragments: Fragments | None = None,
    *,
    finish: Callable[[Kernel], Kernel] = lambda residual: residual,
    max_runs: int = MAX_RUNS,
) -> Exploration:
    """Return the seeds and, for each further path through the kernel's decisions, a specialization that takes it.

    ``finish`` is what is done with every program, and may decide more: the passes.
    """

    def run(one: Specialization) -> Kernel:
        return finish(specialize(program, kernel, one, table, fragments or {}))

    explorer = _Explorer(run, max_runs)
    found = explorer.explore(tuple(seeds))
    return Exploration(found, explorer.uncovered())


class _Explorer:
    def __init__(self, run: Callable[[Specialization], Kernel], max_runs: int) -> None:
        self._specialize = run
        self._runs_left = max_runs
        self._bound = max_runs
        self._tried: set[str] = set()
        self._paths: set[Path] = set()
        self._names: set[str] = set()
        self._open: dict[str, str] = {}

    def explore(self, seeds: tuple[Specialization, ...]) -> tuple[Specialization, ...]:
        found: list[Specialization] = []
        work: list[tuple[tuple[Specialization, ...], str]] = [((one,), "") for one in seeds]
        self._names = {one.name for one in seeds}
        while work and self._runs_left and len(self._paths) < MAX_PATHS + len(seeds):
            choices, wanted = work.pop(0)
            given = not wanted
            one, residual = self._first(choices, wanted)
            if given:
                found.append(one)
            if residual is None:
                continue
            path = _path(residual)
            if path in self._paths:
                continue
            self._paths.add(path)
            if not given:
                one = self._named(one)
                found.append(one)
            work.extend(self._flips(one, residual))
        found.extend(choices[0] for choices, wanted in work if not wanted)
        for wanted in dict.fromkeys(wanted for _, wanted in work if wanted):
            self._open.setdefault(wanted, f"exploration is bounded ({self._ended()})")
        return tuple(found)

    def _ended(self) -> str:
        return f"{self._bound} runs" if not self._runs_left else f"{len(self._paths)} paths"

    def uncovered(self) -> tuple[Uncovered, ...]:
        """What no path takes, in the order in which it was met."""
        return tuple(Uncovered(condition, reason) for condition, reason in self._open.items())

    def _named(self, one: Specialization) -> Specialization:
        """Give a found specialization a name of its own."""
        name, number = one.name, 2
        while name in self._names:
            name, number = f"{one.name} {number}", number + 1
        self._names.add(name)
        return one.model_copy(update={"name": name})

    def _first(self, choices: Sequence[Specialization], wanted: str) -> tuple[Specialization, Kernel | None]:
        """Run what takes a path, the first of several that the kernel doesn't refuse; None for one that is known."""
        for one in choices:
            key = one.model_copy(update={"name": ""}).model_dump_json()
            if key in self._tried:
                return one, None
            residual = self._run(one, key, wanted) if self._runs_left else None
            if residual is not None:
                return one, residual
        return choices[-1], None

    def _run(self, one: Specialization, key: str, wanted: str) -> Kernel | None:
        """Specialize, unless the kernel refuses the values."""
        self._tried.add(key)
        self._runs_left -= 1
        try:
            residual = self._specialize(one)
            if wanted and residual.holes:  # its text would keep the operator's other entries from compiling
                self._open.setdefault(wanted, f"a Hole: {residual.holes[0].message}")
                return None
            return residual
        except TranspileError as refusal:
            if wanted and not refusal.diagnostic.code.startswith("E04"):  # E04xx: the reference refuses it as well
                self._open.setdefault(wanted, refusal.diagnostic.message)
            return None

    def _flips(self, one: Specialization, residual: Kernel) -> list[tuple[tuple[Specialization, ...], str]]:
        """What takes another path, with other choices of it, each with the condition that it is for."""
        found: list[tuple[tuple[Specialization, ...], str]] = []
        for index, condition in enumerate(residual.conditions):
            before = residual.conditions[:index]
            if not isinstance(condition.outcome, bool):
                self._pinned(condition)
                continue
            others = _flip(one, before, condition)
            turned = Condition(condition.sym, not condition.outcome, condition.span)
            if others:
                found.append((others, condition_text((*before, turned))))
            elif not _impossible(one, before, condition):
                self._open.setdefault(condition_text((*before, turned)), "no values were found for which it holds")
        dynamic = _without_baked_in(one, residual.conditions)
        if dynamic is not None:
            found.append(((dynamic,), "sizes and strides that aren't baked in"))
        return found

    def _pinned(self, condition: Condition) -> None:
        """A decision that takes one value of a constant leaves all others open."""
        if condition.sym.op not in ("dim", "stride"):
            turned = Condition(Sym("ne", (condition.sym, Sym("lit", (condition.outcome,)))), True, condition.span)
            self._open.setdefault(condition_text([turned]), "the program depends on the value itself")


def _path(kernel: Kernel) -> Path:
    return tuple((c.sym, c.outcome) for c in kernel.conditions)


def _impossible(one: Specialization, before: Sequence[Condition], condition: Condition) -> bool:
    """Whether no call turns the decision over after those before it: constants keep the types that were given."""
    return (
        condition.sym.op == "is_bool"
        or _sizes_say(condition)
        or _repeated(before, condition)
        or _excluded(one, before, condition)
    )


def _sizes_say(condition: Condition) -> bool:
    """Whether only negative sizes would turn the decision over: ``n >= 0``."""
    sym = condition.sym
    return len(sym.args) == 2 and sym.args[1] == Sym("lit", (0,)) and (sym.op, condition.outcome) in (
        ("ge", True), ("lt", False))  # fmt: skip


def _repeated(before: Sequence[Condition], condition: Condition) -> bool:
    """Whether a decision before it is the same one, or its opposite."""
    opposite = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}.get(condition.sym.op)
    same = {condition.sym} | ({Sym(opposite, condition.sym.args)} if opposite else set())
    return any(c.sym in same for c in before)


def _excluded(one: Specialization, before: Sequence[Condition], condition: Condition) -> bool:
    """Whether trying every value shows it: all that the decision and those that share something with it see are flags
    and dtypes of a class, or have one value only."""
    values = leaf_values(one)
    related = _related(before, condition)
    leaves = list(dict.fromkeys(leaf for c in (*related, condition) for leaf in leaves_of(c.sym)))
    domains = [_domain(leaf, values, related) for leaf in leaves]
    if any(not domain for domain in domains) or math.prod(map(len, domains)) > _MAX_TRIALS:
        return False
    for assignment in itertools.product(*domains):
        trial: Leaves = values | {(leaf.op, *leaf.args): v for leaf, v in zip(leaves, assignment, strict=True)}
        if _outcome(condition, trial) == (not condition.outcome) and all(
            _outcome(c, trial) == c.outcome for c in related
        ):
            return False
    return True


def _domain(leaf: Sym, values: Leaves, related: Sequence[Condition]) -> tuple[Any, ...]:
    """Every value that a leaf can have; () where there is no end of them."""
    present = values.get((leaf.op, *leaf.args))
    if any(c.sym == leaf and c.outcome == present for c in related) or leaf.op not in _TURNED:
        return (present,)
    if leaf.op == "dtype":
        return GENERIC_CLASS if present in GENERIC_CLASS else (present,)
    return (True, False) if isinstance(present, bool) else ()


def _related(before: Sequence[Condition], condition: Condition) -> list[Condition]:
    """The decisions that share something with this one, or with one that does."""
    seen = set(leaves_of(condition.sym))
    found: list[Condition] = []
    while more := [c for c in before if c not in found and not seen.isdisjoint(leaves_of(c.sym))]:
        found += more
        seen.update(leaf for c in more for leaf in leaves_of(c.sym))
    return found


def _without_baked_in(one: Specialization, conditions: Sequence[Condition]) -> Specialization | None:
    """Return the specialization without the sizes and strides that the path relies on; None where it relies on none."""
    axes: dict[str, set[tuple[str, int]]] = {}
    for c in conditions:
        if c.sym.op in ("dim", "stride") and c.outcome is not None:
            axes.setdefault(c.sym.args[0], set()).add((c.sym.op, c.sym.args[1]))
    params: dict[str, ParamSpec] = dict(one.params)
    for name, used in axes.items():
        array = params[name]
        if isinstance(array, ArraySpec):
            params[name] = _dynamic(array, used)
    changed = params != one.params
    return one.model_copy(update={"name": f"{one.name} dynamic", "params": params}) if changed else None


def _overlapping(param: ParamSpec, overlaps: bool) -> ParamSpec:
    """The array, or the arrays of the list, with elements that may share memory or don't."""
    if isinstance(param, ListSpec):
        return param.model_copy(update={"element": _overlapping(param.element, overlaps)})
    return param.model_copy(update={"may_alias_internally": overlaps})


def _dynamic(array: ArraySpec, axes: set[tuple[str, int]]) -> ArraySpec:
    def freed(what: str, values: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return tuple(None if (what, axis) in axes else value for axis, value in enumerate(values))

    strides = freed("stride", array.stride_constant)
    bounds = tuple(0 if s is None and low is None else low
                   for s, low in zip(strides, array.stride_lower_bound_incl, strict=True))  # fmt: skip
    return array.model_copy(update={"shape_constant": freed("dim", array.shape_constant),
                                    "stride_constant": strides, "stride_lower_bound_incl": bounds})  # fmt: skip


def _flip(one: Specialization, before: Sequence[Condition], condition: Condition) -> tuple[Specialization, ...]:
    """Return the specialization with other values under which the decision falls the other way: some of those found."""
    values = leaf_values(one)
    leaves = _varied(before, condition)
    choices = [_candidates(leaf, values, condition.sym) for leaf in leaves]
    found: list[Specialization] = []
    for assignment in itertools.islice(itertools.product(*choices), _MAX_TRIALS):
        trial: Leaves = values | {(leaf.op, *leaf.args): v for leaf, v in zip(leaves, assignment, strict=True)}
        if _outcome(condition, trial) == (not condition.outcome) and all(
            _outcome(c, trial) == c.outcome for c in before
        ):
            found.append(_replaced(one, leaves, assignment))
            if len(found) == _MAX_CHOICES:
                break
    return tuple(found)


def _varied(before: Sequence[Condition], condition: Condition) -> list[Sym]:
    """The leaves to give other values: the decision's own first, then dtypes that have to stay equal to one of them."""
    own = [leaf for leaf in leaves_of(condition.sym) if leaf.op in _TURNED]
    linked = [c for c in before if c.sym.op == "eq" and c.outcome is True and leaves_of(c.sym)[:1] != ()]
    found = dict.fromkeys(own)
    for c in _related([c for c in linked if all(leaf.op == "dtype" for leaf in leaves_of(c.sym))], condition):
        found |= dict.fromkeys(leaves_of(c.sym))
    return list(found)


def _outcome(condition: Condition, leaves: Leaves) -> Any:
    try:
        return evaluate(condition.sym, leaves)
    except (KeyError, ArithmeticError, TypeError, ValueError):
        return None


def _candidates(leaf: Sym, values: Leaves, sym: Sym) -> tuple[Any, ...]:
    """Values to try for a leaf: the present one first, then what the condition's literals suggest."""
    present = values.get((leaf.op, *leaf.args))
    known = literals(sym)
    if leaf.op in ("dtype", "overlaps"):
        return _domain(leaf, values, ())
    if isinstance(present, bool):
        return present, not present
    if isinstance(present, int):
        ints = [v for v in known if type(v) is int]
        near = [v + d for v in ints for d in (0, 1, -1)]
        peers = [v for k, v in values.items() if k[0] == "param" and type(v) is int]
        powers = [p for p in (*near, *peers) if _is_power(p)] + list(_POWERS) + [present * 2, present // 2]
        found = dict.fromkeys((present, *powers, *near, *peers, 0, -1))
        return tuple(v for v in found if v >= 0 or v in ints or present < 0)  # sizes aren't negative
    if isinstance(present, float):
        return tuple(dict.fromkeys((present, *(v for v in known if isinstance(v, int | float)), 0.0, 1.0, -1.0, 0.5)))
    return tuple(dict.fromkeys((present, *known)))


def _is_power(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _replaced(one: Specialization, leaves: Sequence[Sym], assignment: Sequence[Any]) -> Specialization:
    """Return the specialization with new values, named after what changed."""
    params: dict[str, ParamSpec] = dict(one.params)
    changed: list[str] = []
    for leaf, value in zip(leaves, assignment, strict=True):
        name = leaf.args[0]
        old = params[name]
        new: ParamSpec
        if isinstance(old, ConstantSpec):
            new = ConstantSpec(value=value)
        elif leaf.op == "overlaps":
            new = _overlapping(old, value)
        elif isinstance(old, ListSpec):
            new = old.model_copy(update={"element": old.element.model_copy(update={"dtype": value})})
        else:
            new = old.model_copy(update={"dtype": value})
        if new != old:
            params[name] = new
            changed.append(f"{name}={value}")
    kept = [
        part for part in one.name.split()[1:] if part.partition("=")[0] not in {c.partition("=")[0] for c in changed}
    ]
    return one.model_copy(update={"name": " ".join([one.name.split()[0], *kept, *changed]), "params": params})
