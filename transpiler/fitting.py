"""Manifests meet another version of their sources: which specializations still fit, and what takes the others' place.

A specialization fits when it says of every parameter of the kernel something of the right kind; what it says of
parameters that the kernel lacks is dropped. Where some don't fit, and for kernels that no manifest knows, the source's
own launches are read and explored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transpiler.diagnostics import Diagnostic, TranspileError
from transpiler.frontend.defaults import default_specializations
from transpiler.frontend.params import kernel_params
from transpiler.frontend.program import load_program, program_lookups
from transpiler.inputs import Lookups
from transpiler.ir import hir
from transpiler.jobs import KernelJob
from transpiler.selection import Selection
from transpiler.spec import ArraySpec, ListSpec, Specialization
from transpiler.spec_check import misfit
from transpiler.specialize.kernel import specialize
from transpiler.specialize.variants import explore

_MAX_RUNS = 24
"""How many times a kernel is specialized to explore it: its launches are few, and each of its paths is proved."""
_NAMED = 3


def fitted_kernels(
    path: Path, display: str, stated: Sequence[KernelJob], lookups: Lookups | None = None
) -> tuple[KernelJob, ...]:
    """Return all kernels of a source file with the specializations to check; diagnostics say what was left out.

    Raises TranspileError where the source can't be read (E0101, E0102) or has no kernels (E0103).
    """
    program = load_program(path, display=display)
    lookups = lookups or Lookups()
    lookups.add(program_lookups(path, display=display))
    known = {kernel.name: kernel for kernel in stated}
    gone = [_gone(program, kernel) for kernel in stated if kernel.name not in program.kernels]
    found = [_Fitting(program, path, display, lookups).kernel(name, known.get(name)) for name in program.kernels]
    first, *rest = found
    return (KernelJob(first.name, first.specializations, (*gone, *first.diagnostics)), *rest)


class _Fitting:
    def __init__(self, program: hir.Program, path: Path, display: str, lookups: Lookups) -> None:
        self._program, self._path, self._display, self._lookups = program, path, display, lookups

    def kernel(self, name: str, stated: KernelJob | None) -> KernelJob:
        """A kernel's specializations: those stated when all of them fit, else what is left and the launches'."""
        kept: list[Specialization] = []
        dropped: list[tuple[Specialization, str]] = []
        reduced: dict[str, None] = {}
        function = self._function(name)
        own = {param.name for param in function.params}
        for given in stated.specializations if stated is not None else ():
            one = given.model_copy(update={"params": {p: v for p, v in given.params.items() if p in own}})
            why = self._misfit(name, one)
            if why:
                dropped.append((one, why))
                continue
            reduced |= dict.fromkeys(param for param in given.params if param not in own)
            if not reduced or all(one != other.model_copy(update={"name": one.name}) for other in kept):
                kept.append(one)
        said = [_reduced(function, list(reduced))] if reduced else []
        if kept and not dropped:
            return KernelJob(name, tuple(kept), tuple(said))
        launches = default_specializations(self._path, name, display=self._display)
        self._lookups.add(launches.lookups)
        seeds = _joined(kept, launches.specializations)
        if stated is not None and dropped:
            said.append(_dropped(function, stated, dropped))
        return KernelJob(name, self._explored(name, seeds), (*said, *launches.diagnostics))

    def _explored(self, name: str, seeds: Sequence[Specialization]) -> tuple[Specialization, ...]:
        try:
            runs = _MAX_RUNS + len(seeds)
            return explore(self._program, name, seeds, Selection().rules, max_runs=runs).specializations
        except Exception:  # a mistake of ours, which translating the kernel will meet and report as such
            return tuple(seeds)

    def _function(self, name: str) -> hir.Function:
        return self._program.modules[self._program.main].functions[name]

    def _misfit(self, name: str, one: Specialization) -> str:
        """Why a specialization doesn't fit; "" when it does."""
        found = misfit(self._function(name), one)
        if found is not None:
            return found.message
        return self._refused(name, one) if self._doubtful(name, one) else ""

    def _doubtful(self, name: str, one: Specialization) -> bool:
        """Whether an array is none, or of another rank than the body uses; what isn't reached may use it otherwise."""
        uses = {use.name: use for use in kernel_params(self._program, name)}
        for param, given in one.params.items():
            use = uses[param]
            if use.role in ("array", "list") and use.role != given.kind:
                return True
            if not isinstance(given, ArraySpec | ListSpec):
                continue
            array = given.element if isinstance(given, ListSpec) else given
            if array.ndim < use.min_rank or (use.ranks and array.ndim not in use.ranks):
                return True
        return False

    def _refused(self, name: str, one: Specialization) -> str:
        """Why the kernel can't be called with such arguments; "" when it can."""
        try:
            specialize(self._program, name, one, Selection().rules, {})
        except TranspileError as refusal:
            return refusal.diagnostic.message if refusal.diagnostic.code.startswith("E04") else ""
        return ""


def _joined(kept: Sequence[Specialization], launches: Sequence[Specialization]) -> list[Specialization]:
    """Add launches that aren't stated, each under a name of its own."""
    found = list(kept)
    names = {one.name for one in kept}
    for one in launches:
        if any(one.params == other.params for other in kept):
            continue
        name, number = one.name, 2
        while name in names:
            name, number = f"{one.name}_{number}", number + 1
        names.add(name)
        found.append(one.model_copy(update={"name": name}))
    return found


def _dropped(function: hir.Function, stated: KernelJob, dropped: Sequence[tuple[Specialization, str]]) -> Diagnostic:
    names = [f"`{one.name}`" for one, _ in dropped]
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    total = len(stated.specializations)
    message = (f"{len(dropped)} of {total} specializations that the manifest states for `{function.name}` don't fit it "
               f"here and were left out: {shown} ({dropped[0][1]})")  # fmt: skip
    return Diagnostic("W0275", message, "the launches in the source take their place; `transpile explain W0275`",
                      "warning", function.span)  # fmt: skip


def _reduced(function: hir.Function, gone: Sequence[str]) -> Diagnostic:
    names = ", ".join(f"`{name}`" for name in gone)
    message = f"the manifest's specializations of `{function.name}` name what it has no parameter for here: {names}"
    return Diagnostic("W0277", message, "they are checked without that; `transpile explain W0277`", "warning",
                      function.span)  # fmt: skip


def _gone(program: hir.Program, kernel: KernelJob) -> Diagnostic:
    module = program.modules[program.main]
    count = len(kernel.specializations)
    message = (f"the manifest's kernel `{kernel.name}` isn't in {module.path} here: it and its {count} "
               f"specialization{'' if count == 1 else 's'} were left out")  # fmt: skip
    span = module.functions[program.kernels[0]].span
    return Diagnostic("W0276", message, f"the kernels are: {', '.join(program.kernels)}", "warning", span)
