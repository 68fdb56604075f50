"""The passes, in order: a source file to the translation of an operator.

    load -> specialize -> passes -> emit entries -> emit the operator -> plan the checks

``verify`` does the rest: compile, export the reference, compare.  ``trace`` sees every intermediate form.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transpiler import passes
from transpiler.diagnostics import Diagnostic, Span, TranspileError
from transpiler.emit.abi import EntryAbi
from transpiler.emit.entry import EmittedEntry, emit_entry
from transpiler.emit.extras import ExtraFiles, extra_files
from transpiler.emit.inputs import compile_inputs
from transpiler.emit.render import EmittedModule, emit_operator
from transpiler.frontend import load_program
from transpiler.frontend.constructs import CONSTRUCTS
from transpiler.frontend.parse import read_source
from transpiler.frontend.program import program_lookups
from transpiler.identifiers import file_stems
from transpiler.inputs import Lookups
from transpiler.internal import internal_error
from transpiler.ir import hir, tir
from transpiler.ir.trace import RuleTrace, joined
from transpiler.jobs import KernelJob, OperatorJob, unknown_kernel
from transpiler.reference.closure import Closure, extract_closure
from transpiler.reference.source import SourceTree
from transpiler.selection import Selection
from transpiler.sharing import Sharing
from transpiler.spec import Specialization
from transpiler.specialize.conditions import alternatives_text, condition_text
from transpiler.specialize.kernel import specialize
from transpiler.translation import (
    KERNEL_FILE,
    CheckKey,
    CheckPlan,
    EntryPlan,
    FilledHole,
    KernelPlan,
    LaunchTables,
    OperatorPlan,
    SiteOf,
    Translation,
    UncoveredPlan,
    holed,
    left_out_text,
    write_lines,
)

Trace = Callable[[str, str, Any], None]
"""Called with a stage (hir, tir, rust), what it is of, and the form."""


@dataclass
class _Residual:
    """One specialization on its way: the program that is left of the kernel, or why there is none."""

    kernel: str
    specialization: Specialization
    program: tir.Kernel | None = None
    emitted: EmittedEntry | None = None
    problem: Diagnostic | None = None
    missing: tuple[Diagnostic, ...] = ()
    """What a raised program has no rules for."""
    refusal: Diagnostic | None = None
    """Why a program with Holes could not be raised."""


def translate(job: OperatorJob, trace: Trace = lambda _stage, _of, _form: None) -> Translation:
    """Translate one operator; raises TranspileError where nothing of it can be translated (E010x, E0201)."""
    if job.problem is not None:
        raise TranspileError(job.problem)
    program = load_program(job.path, display=job.display, host_only=job.host_only)
    _known_kernels(program, job)
    trace("hir", job.name, program)
    sharing = Sharing()
    asked = [(k.name, one) for k in job.kernels for one in k.specializations]
    residuals = [_specialized(program, kernel, one, trace, sharing, job.selection) for kernel, one in asked]
    _raise(program, residuals, job)
    programs = _programs(residuals)
    module = emit_operator(job.name, programs, program.modules[program.main].path)
    trace("rust", job.name, module.text)
    closures, refusals, lookups = _closures(job)
    kernels = [_kernel_plan(program, job, k, residuals, module, refusals.get(k.name)) for k in job.kernels]
    left_out = left_out_text(job.name, holes) if (holes := holed(kernels)) else ""
    extras = _extras(program, job, module, left_out)
    kernels = [_noted(kernel, extras.diagnostics, first=index == 0) for index, kernel in enumerate(kernels)]
    lookups.add(program_lookups(job.path, display=job.display))
    plan = _operator_plan(program, job, module, tuple(kernels))
    tables = LaunchTables(module.kernel_abis, _paths(job, kernels, residuals, module), left_out, extras.author)
    return Translation(
        plan, {KERNEL_FILE: module.text} | extras.files, closures, _traces(programs), lookups, _sites(residuals), tables
    )


def _specialized(
    program: hir.Program, kernel: str, one: Specialization, trace: Trace, sharing: Sharing, selection: Selection
) -> _Residual:
    """Specialize a kernel, run the passes over what is left, and emit it; or find who takes the same path."""
    residual = _Residual(kernel, one)
    twin = sharing.find(kernel, one)
    if twin is not None:
        residual.program, residual.emitted = twin
        return residual
    try:
        fragments = selection.fragments
        left = passes.run(specialize(program, kernel, one, selection.rules, fragments))
        trace("tir", f"{kernel} [{one.name}]", left)
        residual.program, residual.emitted = left, emit_entry(left, "", selection.forms, fragments)
        sharing.add(kernel, one, left, residual.emitted)
    except TranspileError as refusal:
        residual.problem = refusal.diagnostic
    except Exception as exc:
        residual.problem = internal_error(exc, program.modules[program.main].functions[kernel].span)
    return residual


def _raise(program: hir.Program, residuals: Sequence[_Residual], job: OperatorJob) -> None:
    """Put raised overrides in the place of programs with Holes, each for its own specialization."""
    if not job.selection.overrides:
        return
    from transpiler.raising.apply import filled_entry, raised_entry
    from transpiler.raising.raise_kernel import author_names

    names = None
    for residual in residuals:
        overrides = job.selection.raised(f"{job.name}.{residual.kernel}", residual.specialization)
        if not overrides or residual.program is None or residual.emitted is None or not _holes(residual):
            continue
        if names is None:
            names = author_names([(program.modules[program.main].path, 1, read_source(job.path, job.shown))])
        holed, one = (residual.program, residual.emitted), residual.specialization
        try:
            if overrides[0].hole is None:
                found = raised_entry(holed, overrides[0], one, job.target, names, job.selection.forms)
            else:
                found = filled_entry(program, residual.kernel, overrides, one, job.target, job.selection)
            residual.missing = _holes(residual)
            residual.program, residual.emitted = found
        except TranspileError as failure:
            residual.refusal = failure.diagnostic


def _programs(residuals: Iterable[_Residual]) -> list[tuple[tir.Kernel, EmittedEntry]]:
    """Every program that is left once, the ones with most conditions first: they are tried before more general ones."""
    found = {id(r.program): (r.program, r.emitted) for r in residuals if r.program and r.emitted}
    return sorted(found.values(), key=lambda pair: -len(pair[1].conditions))


def _traces(programs: Iterable[tuple[tir.Kernel, EmittedEntry]]) -> dict[str, RuleTrace]:
    """What each kernel's programs were made by."""
    traces: dict[str, list[RuleTrace]] = {}
    for program, emitted in programs:
        traces.setdefault(program.name, []).append(emitted.trace)
    return {kernel: joined(found) for kernel, found in traces.items()}


def _known_kernels(program: hir.Program, job: OperatorJob) -> None:
    for kernel in job.kernels:
        if kernel.name not in program.kernels:
            raise unknown_kernel(kernel.name, program.kernels, program.modules[program.main].path)


def _closures(job: OperatorJob) -> tuple[dict[str, Closure], dict[str, Diagnostic], Lookups]:
    """Extract what the reference needs of each kernel, or say why that can't be done."""
    closures: dict[str, Closure] = {}
    refusals: dict[str, Diagnostic] = {}
    try:
        tree = SourceTree(job.path, job.display)
    except TranspileError as refusal:
        return {}, {kernel.name: refusal.diagnostic for kernel in job.kernels}, Lookups()
    for kernel in job.kernels:
        try:
            closures[kernel.name] = extract_closure(tree, kernel.name)
        except TranspileError as refusal:
            refusals[kernel.name] = refusal.diagnostic
    return closures, refusals, tree.lookups


def _extras(program: hir.Program, job: OperatorJob, module: EmittedModule, left_out: str) -> ExtraFiles:
    """Render what stands beside kernel.rs: the C interface and the Python side."""
    package = program.main if job.path.name == "__init__.py" else program.main.rpartition(".")[0]
    shown = program.modules[program.main].path
    text = read_source(job.path, shown)
    try:
        extras = extra_files(job.name, module.kernel_abis, text, module=module.module, package=package, source=shown,
                             left_out=left_out, origin=program.main)  # fmt: skip
    except Exception as exc:
        return ExtraFiles({}, (internal_error(exc, Span(shown, 1, 1)),))
    return replace(extras, diagnostics=tuple(replace(d, severity="warning") for d in extras.diagnostics))


def _noted(kernel: KernelPlan, notes: Sequence[Diagnostic], *, first: bool) -> KernelPlan:
    """Add the notes on a kernel to it; those that name none go to the first one."""
    mine = [d for d in notes if f"`{kernel.name}`" in d.message or (first and "`" not in d.message)]
    return kernel.model_copy(update={"diagnostics": (*kernel.diagnostics, *mine)}) if mine else kernel


# Plans


def _operator_plan(
    program: hir.Program, job: OperatorJob, module: EmittedModule, kernels: tuple[KernelPlan, ...]
) -> OperatorPlan:
    digest = hashlib.sha256(job.path.read_bytes()).hexdigest()
    lines = write_lines(module.line_map, module.text.count("\n"))
    source = program.modules[program.main].path
    return OperatorPlan(name=job.name, source=source, sha256=digest, module=module.module, lines=lines,
                        without=job.selection.without, kernels=kernels)  # fmt: skip


def _kernel_plan(
    program: hir.Program, job: OperatorJob, kernel: KernelJob, residuals: Sequence[_Residual], module: EmittedModule,
    refusal: Diagnostic | None,
) -> KernelPlan:  # fmt: skip
    """Plan a kernel's checks under its entries; what has no entry goes under one of its own at the end."""
    mine = [r for r in residuals if r.kernel == kernel.name]
    entry_of = {id(p): name for (p, _), name in zip(_programs(residuals), module.entries, strict=True)}
    abis = [entry for abi in module.kernel_abis if abi.kernel == kernel.name for entry in abi.entries]
    entries = [_entry_plan(entry, mine, entry_of, job, refusal) for entry in abis]
    lost = tuple(_check_plan(r, None, job, refusal) for r in mine if id(r.program) not in entry_of)
    if lost:
        entries.append(EntryPlan(name="", condition="no entry could be made", checks=lost))
    diagnostics = [*kernel.diagnostics, *_raised_notes(mine)]
    if not kernel.specializations:
        diagnostics.append(_nothing_known(program, kernel))
    function = program.modules[program.main].functions[kernel.name]
    closure = "" if refusal else f"reference/{file_stems(k.name for k in job.kernels)[kernel.name]}.closure"
    return KernelPlan(
        name=kernel.name, line=function.span.line, closure=closure, diagnostics=tuple(diagnostics),
        entries=tuple(entries), uncovered=_uncovered(kernel, mine),
    )  # fmt: skip


def _uncovered(kernel: KernelJob, residuals: Sequence[_Residual]) -> tuple[UncoveredPlan, ...] | None:
    """What exploration left open, and the paths of which the program has a Hole."""
    if kernel.uncovered is None:
        return None
    found = [UncoveredPlan(condition=one.condition, reason=one.reason) for one in kernel.uncovered]
    for residual in residuals:
        if (holes := _holes(residual)) and residual.emitted is not None:
            condition = condition_text(residual.emitted.conditions)
            found.append(UncoveredPlan(condition=condition, reason=f"a Hole: {holes[0].message}"))
    return tuple(dict.fromkeys(found))


def _paths(
    job: OperatorJob, kernels: Sequence[KernelPlan], residuals: Sequence[_Residual], module: EmittedModule
) -> dict[CheckKey, int]:
    """Which of its entry's alternatives each check takes."""
    taken = zip(_programs(residuals), module.entries, module.paths, strict=True)
    place = {id(program): (name, path) for (program, _), name, path in taken}
    found: dict[CheckKey, int] = {}
    for k, kernel in enumerate(kernels):
        mine = [place[id(r.program)] for r in residuals if r.kernel == kernel.name and id(r.program) in place]
        for e, entry in enumerate(kernel.entries):
            paths = [path for name, path in mine if name == entry.name]
            found |= {CheckKey(job.name, k, e, c): path for c, path in enumerate(paths)}
    return found


def _raised_notes(residuals: Sequence[_Residual]) -> list[Diagnostic]:
    """Say of raised programs which rules they miss, each place once."""
    missing = dict.fromkeys(d for residual in residuals for d in residual.missing)
    return [
        Diagnostic("W0610", f"raised from the reference's Tile IR: {d.message}", "transpile explain W0610", "warning",
                   d.span)
        for d in missing
    ]  # fmt: skip


def _nothing_known(program: hir.Program, kernel: KernelJob) -> Diagnostic:
    span = program.modules[program.main].functions[kernel.name].span
    return Diagnostic("E0807", f"no specialization of `{kernel.name}` is known, so nothing of it was translated",
                      "give a SPEC.toml with `--spec`, or call ct.launch in the same file", "error", span)  # fmt: skip


def _entry_plan(
    entry: EntryAbi, mine: Sequence[_Residual], entry_of: dict[int, str], job: OperatorJob, refusal: Diagnostic | None
) -> EntryPlan:
    checks = tuple(_check_plan(r, entry, job, refusal) for r in mine if entry_of.get(id(r.program)) == entry.name)
    condition = alternatives_text(entry.conditions, entry.alternatives)
    generics = tuple(generic.name for generic in entry.generics)
    return EntryPlan(name=entry.name, condition=condition, generics=generics, checks=checks)


def _check_plan(residual: _Residual, entry: EntryAbi | None, job: OperatorJob, refusal: Diagnostic | None) -> CheckPlan:
    """Plan one check: what to compile, or the verdict where it is known already."""
    one = residual.specialization
    filled = _filled(residual)
    plan = CheckPlan(specialization=one, target=one.target or job.target, holes=_digests(residual), filled=filled,
                     execute=any(f.override in job.selection.tested for f in filled))  # fmt: skip
    holes = _holes(residual)
    if holes:
        told = holes if residual.refusal is None else (*holes, residual.refusal)
        return plan.model_copy(update={"outcome": "unmapped", "diagnostics": told})
    problems = (residual.problem,) if residual.problem is not None else ()
    if refusal is not None:
        return plan.model_copy(update={"outcome": "error", "diagnostics": (refusal, *problems)})
    if residual.problem is not None or entry is None:
        return plan.model_copy(update={"diagnostics": problems})
    try:
        return plan.model_copy(update={"inputs": compile_inputs(entry, one, plan.target)})
    except TranspileError as exc:
        return plan.model_copy(update={"diagnostics": (exc.diagnostic,)})


def _holes(residual: _Residual) -> tuple[Diagnostic, ...]:
    """What of the kernel has no mapping, each place once."""
    if residual.program is None:
        return ()
    emitted = residual.emitted.diagnostics if residual.emitted is not None else ()
    holes = dict.fromkeys((*residual.program.holes, *(d for d in emitted if d.severity == "error")))
    return tuple(map(_with_way_out, holes))


def _with_way_out(hole: Diagnostic) -> Diagnostic:
    """Say of a construct of Python what to write instead."""
    plain = hole.help == f"transpile explain {hole.code}" and hole.code in CONSTRUCTS
    return replace(hole, help=CONSTRUCTS[hole.code].help) if plain else hole


def _sites(residuals: Iterable[_Residual]) -> tuple[SiteOf, ...]:
    """Where each specialization meets what has no mapping."""
    return tuple(SiteOf(r.kernel, r.specialization, site) for r in residuals if r.emitted for site in r.emitted.sites)


def _digests(residual: _Residual) -> tuple[str, ...]:
    sites = residual.emitted.sites if residual.emitted is not None else ()
    return tuple(dict.fromkeys(site.construct.digest for site in sites))


def _filled(residual: _Residual) -> tuple[FilledHole, ...]:
    """What overrides fill, each place once."""
    found = residual.emitted.filled if residual.emitted is not None else ()
    rows = (FilledHole(hole=one.construct.digest, name=one.construct.name, override=one.key, kind=one.kind,
                       model=one.model, line=one.line) for one in found)  # fmt: skip
    return tuple(dict.fromkeys(rows))
