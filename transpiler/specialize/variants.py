"""Find a kernel's variants: flip the decisions of known runs until no new path appears.

Each specialization is run concretely while its decisions are recorded as conditions over constants and dtypes.
For every decision, other values of its leaves are tried that turn it over and leave the decisions before it as they
were; a run with such values either takes a path not seen before, or is refused as ill-typed and forgotten.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from transpiler.diagnostics import TranspileError
from transpiler.ir import hir
from transpiler.ir.construct import Fragments
from transpiler.ir.symbolic import Sym, evaluate, leaves_of
from transpiler.ir.tir import Condition, Kernel
from transpiler.ir.types import GENERIC_CLASS
from transpiler.rules.registry import Table
from transpiler.spec import ArraySpec, ConstantSpec, ParamSpec, ScalarSpec, Specialization
from transpiler.specialize.conditions import Leaves, leaf_values, literals
from transpiler.specialize.kernel import specialize

MAX_RUNS = 200
_MAX_TRIALS = 400  # assignments looked at for one decision
_POWERS = tuple(1 << i for i in range(11))
Path = tuple[tuple[Sym, Any], ...]


def find_variants(
    program: hir.Program,
    kernel: str,
    seeds: Iterable[Specialization],
    table: Table,
    fragments: Fragments | None = None,
    *,
    max_runs: int = MAX_RUNS,
) -> tuple[Specialization, ...]:
    """Return the seeds and, for each further path through the kernel's decisions, a specialization that takes it."""
    return _Explorer(program, kernel, table, fragments or {}, max_runs).explore(tuple(seeds))


class _Explorer:
    def __init__(self, program: hir.Program, kernel: str, table: Table, fragments: Fragments, max_runs: int) -> None:
        self._program, self._kernel, self._table, self._fragments = program, kernel, table, fragments
        self._runs_left = max_runs
        self._tried: set[str] = set()
        self._paths: set[Path] = set()

    def explore(self, seeds: tuple[Specialization, ...]) -> tuple[Specialization, ...]:
        found: list[Specialization] = []
        work: list[Specialization] = list(seeds)
        while work and self._runs_left:
            one = work.pop(0)
            residual = self._run(one)
            if one in seeds:
                found.append(one)
            if residual is None:
                continue
            path = _path(residual)
            if path in self._paths:
                continue
            self._paths.add(path)
            if one not in seeds:
                found.append(one)
            work.extend(self._flips(one, residual))
        found.extend(one for one in work if one in seeds)
        return tuple(found)

    def _run(self, one: Specialization) -> Kernel | None:
        """Specialize, unless the same values were tried before or the kernel refuses them."""
        key = one.model_copy(update={"name": ""}).model_dump_json()
        if key in self._tried:
            return None
        self._tried.add(key)
        self._runs_left -= 1
        try:
            return specialize(self._program, self._kernel, one, self._table, self._fragments)
        except TranspileError:
            return None

    def _flips(self, one: Specialization, residual: Kernel) -> Iterator[Specialization]:
        for index, condition in enumerate(residual.conditions):
            if isinstance(condition.outcome, bool):
                other = _flip(one, residual.conditions[:index], condition)
                if other is not None:
                    yield other


def _path(kernel: Kernel) -> Path:
    return tuple((c.sym, c.outcome) for c in kernel.conditions)


def _flip(one: Specialization, before: Sequence[Condition], condition: Condition) -> Specialization | None:
    """Return the specialization with other values under which the decision falls the other way, if one is found."""
    leaves = [leaf for leaf in leaves_of(condition.sym) if leaf.op in ("param", "dtype")]
    values = leaf_values(one)
    choices = [_candidates(leaf, values, condition.sym) for leaf in leaves]
    for assignment in itertools.islice(itertools.product(*choices), _MAX_TRIALS):
        trial: Leaves = values | {(leaf.op, *leaf.args): v for leaf, v in zip(leaves, assignment, strict=True)}
        if _outcome(condition, trial) == (not condition.outcome) and all(
            _outcome(c, trial) == c.outcome for c in before
        ):
            return _replaced(one, leaves, assignment)
    return None


def _outcome(condition: Condition, leaves: Leaves) -> Any:
    try:
        return evaluate(condition.sym, leaves)
    except (KeyError, ArithmeticError, TypeError, ValueError):
        return None


def _candidates(leaf: Sym, values: Leaves, sym: Sym) -> tuple[Any, ...]:
    """Values to try for a leaf: the present one first, then what the condition's literals suggest."""
    present = values.get((leaf.op, *leaf.args))
    known = literals(sym)
    if leaf.op == "dtype":
        return tuple(dict.fromkeys((present, *(v for v in known if v in GENERIC_CLASS), *GENERIC_CLASS)))
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
        else:
            assert isinstance(old, ArraySpec | ScalarSpec)
            new = old.model_copy(update={"dtype": value})
        if new != old:
            params[name] = new
            changed.append(f"{name}={value}")
    kept = [
        part for part in one.name.split()[1:] if part.partition("=")[0] not in {c.partition("=")[0] for c in changed}
    ]
    return one.model_copy(update={"name": " ".join([one.name.split()[0], *kept, *changed]), "params": params})
