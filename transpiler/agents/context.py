"""A folder that transpile wrote, opened for filling: its operators translated again, with their Holes."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transpiler.diagnostics import error
from transpiler.jobs import KernelJob, OperatorJob, unknown_kernel
from transpiler.overrides import Override, load_overrides, overrides_folder
from transpiler.resources import corpus_dir
from transpiler.selection import Selection
from transpiler.store import Manifest, OutputFolder
from transpiler.translation import OperatorPlan, SiteOf, Translation


@dataclass(frozen=True)
class Opened:
    """A folder: its manifest, the overrides in it, and a job for each operator (the same specializations again)."""

    folder: OutputFolder
    manifest: Manifest
    overrides: tuple[Override, ...]
    jobs: tuple[OperatorJob, ...]


def open_folder(path: Path, source: Path | None = None, kernel: str | None = None) -> Opened:
    """Open a folder (E0821, E0822); ``source``: where the source of its one operator is now.

    ``kernel`` selects one (E0201).

    Operators without Holes and without overrides are left out. Raises E0872 where a source isn't here or was changed.
    """
    folder = OutputFolder(path)
    manifest = folder.load()
    known = tuple(dict.fromkeys(k.name for stored in manifest.operators for k in stored.plan.kernels))
    if kernel is not None and kernel not in known:
        raise unknown_kernel(kernel, known, path.as_posix())
    overrides = load_overrides(overrides_folder(path))
    plans = [stored.plan for stored in manifest.operators if wants_filling(stored.plan, kernel)]
    jobs = tuple(_job(plan, find_source(plan, path, source), overrides) for plan in plans)
    return Opened(folder, manifest, overrides, jobs)


def wants_filling(plan: OperatorPlan, kernel: str | None = None) -> bool:
    """Whether a kernel of the operator (or the one named) has Holes, or such that overrides fill."""
    checks = (c for k in plan.kernels if kernel in (None, k.name) for e in k.entries for c in e.checks)
    return any(check.outcome == "unmapped" or check.filled for check in checks)


def sites_of(translation: Translation, kernel: str | None = None) -> tuple[SiteOf, ...]:
    """The Holes of an operator, or of one of its kernels."""
    return tuple(site for site in translation.sites if kernel in (None, site.kernel))


def _job(plan: OperatorPlan, path: Path, overrides: Sequence[Override]) -> OperatorJob:
    kernels = tuple(
        KernelJob(k.name, tuple(c.specialization for e in k.entries for c in e.checks)) for k in plan.kernels
    )
    target = next((c.target for k in plan.kernels for e in k.entries for c in e.checks), "")
    job = OperatorJob(plan.name, path, plan.source, kernels, selection=Selection(plan.without, tuple(overrides)))
    return job if not target else OperatorJob(job.name, path, plan.source, kernels, target, job.selection)


def find_source(plan: OperatorPlan, folder: Path, source: Path | None) -> Path:
    """Find the file that an operator was translated from; its digest decides."""
    roots = [Path(), folder.parent, corpus_dir(), *(Path(p) for p in sys.path if p)]
    candidates = [source] if source is not None else [root / plan.source for root in roots]
    changed = False
    for path in candidates:
        try:
            if hashlib.sha256(path.read_bytes()).hexdigest() == plan.sha256:
                return path
            changed = True
        except OSError:
            continue
    what = "was changed since" if changed else "isn't here"
    raise error("E0872", f"{plan.source}, the source of `{plan.name}`, {what}",
                help="run this where it was translated, name the file with --source, or translate again")  # fmt: skip
