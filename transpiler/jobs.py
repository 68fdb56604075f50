"""From command line arguments to jobs: which operators, which kernels of them, which specializations."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from transpiler import corpora
from transpiler.diagnostics import Diagnostic, Span, TranspileError, error
from transpiler.identifiers import identifier, operator_folder
from transpiler.inputs import Lookups
from transpiler.manifest_places import kernel_place, stated_specializations
from transpiler.selection import Selection
from transpiler.sources import SourcesFolder
from transpiler.spec import Specialization

if TYPE_CHECKING:
    from transpiler.ir import hir
    from transpiler.specialize.variants import Uncovered

DEFAULT_TARGET = "sm_90"
_SPEC_TAG = re.compile(r"\W+")


@dataclass(frozen=True)
class KernelJob:
    """A kernel and the specializations to check it for; ``diagnostics`` say how they were found.

    ``uncovered`` is what they leave open where the kernel's paths were explored (None: they weren't).
    """

    name: str
    specializations: tuple[Specialization, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    uncovered: tuple[Uncovered, ...] | None = None


@dataclass(frozen=True)
class OperatorJob:
    """A source module and the kernels of it that are wanted; none when only its host code is (``host_only``).

    ``problem`` is why there is nothing to translate.
    """

    name: str
    path: Path
    display: str | None
    kernels: tuple[KernelJob, ...]
    target: str = DEFAULT_TARGET
    selection: Selection = field(default_factory=Selection)
    host_only: bool = False
    problem: Diagnostic | None = None

    @property
    def check_count(self) -> int:
        """How many checks the job will have."""
        return sum(len(kernel.specializations) for kernel in self.kernels)

    @property
    def shown(self) -> str:
        """The source's path for people."""
        return self.display or self.path.name


def file_job(
    path: Path, *, kernel: str | None = None, spec: Path | None = None, target: str | None = None,
    lookups: Lookups | None = None,
) -> OperatorJob:  # fmt: skip
    """Make the job of one source file; specializations come from ``spec`` or else from the file's own call sites.

    Raises E010x when the file can't be read, E0201 for an unknown kernel, E0271 and E0805 for an unusable spec;
    ``lookups`` is told what was read.
    """
    from transpiler.frontend.program import load_program, program_lookups

    display = display_path(path)
    program = load_program(path, display=display)
    if lookups is not None:
        lookups.add(program_lookups(path, display=display))
    names = list(program.kernels)
    if kernel is not None:
        if kernel not in names:
            raise unknown_kernel(kernel, names, program.modules[program.main].path)
        names = [kernel]
    given, spec_target = _spec_file(spec, path, program) if spec is not None else ({}, DEFAULT_TARGET)
    kernels = []
    for name in names:
        if given.get(name):
            kernels.append(KernelJob(name, given[name]))
        else:
            kernels.append(_defaults(path, name, display, lookups or Lookups()))
    return OperatorJob(operator_name(path), path, display, tuple(kernels), target or spec_target)


def unknown_kernel(kernel: str, names: Sequence[str], shown: str) -> TranspileError:
    """Say which kernels there are."""
    return error("E0201", f"there is no kernel `{kernel}` in {shown}", help=f"the kernels are: {', '.join(names)}")


def _defaults(path: Path, kernel: str, display: str | None, lookups: Lookups) -> KernelJob:
    from transpiler.frontend.defaults import default_specializations

    found = default_specializations(path, kernel, display=display)
    lookups.add(found.lookups)
    return KernelJob(kernel, found.specializations, found.diagnostics)


def _spec_file(spec: Path, source: Path, program: hir.Program) -> tuple[dict[str, tuple[Specialization, ...]], str]:
    """Read what a SPEC.toml says of a source file."""
    shown = display_path(spec) or spec.name
    corpus = corpora.load_manifest(spec, shown)
    stated = corpora.specializations_for(corpus, spec.parent, source)
    if stated is None:
        named = ", ".join(operator.name for operator in corpus.operators) or "none"
        raise error(
            "E0805",
            f"{shown} says nothing of {source.name}",
            Span(shown, 1, 1),
            help=f"the operators in it are: {named}; an operator's name or path must be that of the source",
        )
    operator, found = stated
    _check_kernels(program, source, found, (spec, shown, operator))
    return found, corpus.target


def _check_kernels(
    program: hir.Program, source: Path, found: Mapping[str, Sequence[Specialization]], where: tuple[Path, str, str]
) -> None:
    """Raise E0201 or E0212 at the place in a manifest that doesn't fit the source: ``where`` is its path, what to call
    it, and the operator."""
    unknown = [name for name in found if name not in program.kernels]
    if unknown:
        raise error("E0201", f"{where[1]} names the kernel `{unknown[0]}`, which {source.name} doesn't have",
                    kernel_place(*where, unknown[0]),
                    help=f"the kernels are: {', '.join(program.kernels)}")  # fmt: skip
    for kernel, items in found.items():
        for one in items:
            _check_fit(program, kernel, one, where)


def _check_fit(program: hir.Program, kernel: str, one: Specialization, where: tuple[Path, str, str]) -> None:
    """Raise E0212 at the place in the SPEC.toml that doesn't fit the kernel."""
    from transpiler.spec_check import misfit

    found = misfit(program.modules[program.main].functions[kernel], one)
    if found is not None:
        span = stated_specializations(*where, kernel, one.name)[0].span(*found.keys)
        raise error("E0212", found.message, span, help=found.help)


def corpus_jobs(
    argument: str, lookups: Lookups | None = None, sources: SourcesFolder | None = None
) -> list[OperatorJob]:
    """Make the jobs of a corpus, by its name or its manifest's path; ``lookups`` is told what was read.

    An operator that lists no kernels has all of its file's, with the specializations that its launches show. With
    ``sources`` modules are read there, and the manifest is fitted to them; an operator's problem is kept in its job.
    """
    corpus = corpora.load_corpus(argument, lookups, sources)
    if sources is not None:
        return [job_in_sources(operator, corpus.target, lookups) for operator in corpus.operators]
    jobs = []
    for operator in corpus.operators:
        source = operator.source
        if operator.host_only:
            jobs.append(OperatorJob(operator.name, source.path, source.display, (), corpus.target, host_only=True))
        elif operator.kernels:
            kernels = tuple(KernelJob(k.name, k.specializations) for k in operator.kernels)
            if argument.endswith(".toml"):
                _check_operator(Path(argument), operator.name, source, kernels, lookups)
            jobs.append(OperatorJob(operator.name, source.path, source.display, kernels, corpus.target))
        else:
            job = file_job(source.path, target=corpus.target, lookups=lookups)
            jobs.append(replace(job, name=operator.name, display=source.display))
    return jobs


def job_in_sources(operator: corpora.Operator, target: str, lookups: Lookups | None) -> OperatorJob:
    """Make the job of an operator whose source may be another version than its manifest was made for."""
    from transpiler.fitting import fitted_kernels

    path, display = operator.source.path, operator.source.display
    stated = tuple(KernelJob(k.name, k.specializations) for k in operator.kernels)
    if operator.problem is not None:
        return OperatorJob(operator.name, path, display, stated, target, problem=operator.problem)
    if operator.host_only:
        return OperatorJob(operator.name, path, display, (), target, host_only=True)
    if lookups is not None:
        lookups.read(path)
    try:
        return OperatorJob(operator.name, path, display, fitted_kernels(path, display, stated, lookups), target)
    except TranspileError as exc:
        return OperatorJob(operator.name, path, display, stated, target, problem=exc.diagnostic)


def _check_operator(
    manifest: Path, name: str, source: corpora.SourceFile, kernels: Sequence[KernelJob], lookups: Lookups | None
) -> None:
    """Raise E0201 or E0212 where a manifest doesn't fit a source; one that can't be read is told of when it is done."""
    from transpiler.frontend.program import load_program, program_lookups

    try:
        program = load_program(source.path, display=source.display)
    except TranspileError:
        return
    if lookups is not None:
        lookups.add(program_lookups(source.path, display=source.display))
    stated = {kernel.name: kernel.specializations for kernel in kernels}
    _check_kernels(program, source.path, stated, (manifest, display_path(manifest) or manifest.name, name))


def argument_jobs(
    argument: str, target: str | None, lookups: Lookups | None = None, sources: SourcesFolder | None = None, *,
    explore: bool = False,
) -> list[OperatorJob]:  # fmt: skip
    """Make the jobs of a corpus or a source file, as a command line names it (E0270 for anything else).

    A file is read where it is, with what it imports: E0848 when ``sources`` are named beside one.
    ``explore``: with a specialization for every path of their kernels.
    """
    found = _named_jobs(argument, target, lookups, sources)
    if not explore:
        return found
    from transpiler.exploration import explored

    return [explored(job, lookups) for job in found]


def _named_jobs(
    argument: str, target: str | None, lookups: Lookups | None, sources: SourcesFolder | None
) -> list[OperatorJob]:
    if corpora.is_corpus(argument):
        return with_target(corpus_jobs(argument, lookups, sources), target)
    if argument.endswith(".py"):
        if sources is not None:
            raise error("E0848", f"`{argument}` is a file and no module of {sources.shown}",
                        help="--sources is for corpora: translate the file in a run of its own")  # fmt: skip
        return [file_job(Path(argument), target=target, lookups=lookups)]
    raise error("E0270", f"`{argument}` is neither a corpus nor a Python file",
                help=f"known corpora: {', '.join(corpora.corpus_names())}; or give a path")  # fmt: skip


def display_path(path: Path) -> str | None:
    """Return the path for diagnostics and output: as given when it is below here, else None (the front end chooses)."""
    text = os.path.normpath(path)
    return None if os.path.isabs(text) or text.startswith("..") else Path(text).as_posix()


def operator_name(path: Path) -> str:
    """Return the operator's name: the file's stem (the folder's for ``__init__.py``) as an identifier."""
    stem = path.resolve().parent.name if path.name == "__init__.py" else path.stem
    name = _SPEC_TAG.sub("_", identifier(stem))
    return f"_{name}" if name[:1].isdigit() or not name else operator_folder(name)


def selected(jobs: Sequence[OperatorJob], without: tuple[str, ...], out: Path | None) -> list[OperatorJob]:
    """Give every job the rules that are left and the overrides of the output folder (E0870, E0871)."""
    from transpiler.overrides import load_overrides, overrides_folder
    from transpiler.selection import check_without

    check_without(without)
    found = load_overrides(overrides_folder(out)) if out is not None else ()
    return [replace(job, selection=Selection(without, found)) for job in jobs]


def with_target(jobs: Sequence[OperatorJob], target: str | None) -> list[OperatorJob]:
    """Replace the target of every job, unless none is given."""
    return list(jobs) if target is None else [replace(job, target=target) for job in jobs]
