"""``transpile changeset``: operators as TileGym's own Rust ports, written into a checkout, and as a patch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transpiler import toolkit
from transpiler.batch import Options, Results, run_jobs
from transpiler.changeset import layout, summary
from transpiler.changeset.checkout import Changed, Checkout, Edit
from transpiler.changeset.test_backends import add_backend
from transpiler.corpora import load_corpus
from transpiler.diagnostics import TranspileError, error
from transpiler.jobs import OperatorJob, job_in_sources
from transpiler.report import assemble
from transpiler.report.model import exit_status
from transpiler.report.output import ALWAYS_SAID, complain, source_cache, write_whole
from transpiler.report.terminal import progress
from transpiler.sources import SourcesFolder, sources_folder
from transpiler.translation import check_keys, place_of

CORPUS = "tilegym-tests"


def changeset(
    operators: Sequence[str],
    into: Path,
    patch: Path | None,
    evidence: Path | None,
    figures: Path | None = None,
    *,
    workers: int,
    verify: bool,
) -> int:
    """Write operators of a checkout into it, prove them, write the patch and the evidence; returns the exit status.

    Kernels, constants, helpers and host code are the checkout's own, whatever is installed.
    """
    checkout = _checkout(into)
    jobs = _jobs(operators, sources_folder(into))
    with progress(sum(job.check_count for job in jobs), "checks") as advance:
        results = run_jobs(jobs, Options(workers=workers, verify=verify), advance)
    for failed in results.failures.values():
        raise TranspileError(failed.diagnostic)
    _refuse_others(results)
    changed, ours = write(results, checkout)
    if patch is not None:
        write_whole(patch, checkout.patch(ours))
    if evidence is not None:
        write_evidence(results, evidence, _figures(figures))
    report = assemble.report(results, seconds=0.0)
    places = source_cache({job.name: job.path for job in jobs}, report)
    found = assemble.diagnostics(results)
    complain((d for d in found if d.code in ALWAYS_SAID), places)
    complain((d for d in found if d.severity == "error"), places)
    said = [*summary.operators(report, operators), *summary.files(into, changed)]
    print("\n".join([*said, *([f"wrote {patch.as_posix()}"] if patch is not None else [])]))
    return exit_status(report)


def _checkout(root: Path) -> Checkout:
    for part in (layout.CRATE, layout.ROOT):
        if not (root / part).is_dir():
            raise error("E0842", f"{root.as_posix()} has no {part}: it is no checkout of TileGym",
                        help="clone https://github.com/NVIDIA/TileGym and name the folder with --into")  # fmt: skip
    return Checkout(root)


def _jobs(operators: Sequence[str], sources: SourcesFolder) -> list[OperatorJob]:
    """The jobs of operators, and of the ports that they replace, as the checkout has them (its first problem)."""
    wanted = {*operators, *layout.REPLACED}
    corpus = load_corpus(CORPUS, sources=sources)
    known = {operator.name: operator for operator in corpus.operators}
    unknown = [name for name in operators if name not in known]
    if unknown:
        raise error("E0843", f"there is no operator `{unknown[0]}`", help=f"there are {', '.join(sorted(known))}")
    jobs = [job_in_sources(known[name], corpus.target, None) for name in sorted(wanted)]
    for job in jobs:
        if job.problem is not None:
            raise TranspileError(job.problem)
    return jobs


def _refuse_others(results: Results) -> None:
    """Raise E0849, before anything is written, where a kernel was found to be another one than the checkout's."""
    for _, translation in sorted(results.translations.items()):
        plan = translation.plan
        for key in check_keys(plan):
            if key in results.checks and results.checks[key].verdict == "differs":
                kernel = plan.kernels[key.kernel]
                one = kernel.entries[key.entry].checks[key.check].specialization
                raise error("E0849", f"`{kernel.name}` of `{plan.name}` [{one.name}] was translated to another "
                            "program: nothing was written", place_of(plan, kernel),
                            help="leave the operator out, and please report it")  # fmt: skip


def write(results: Results, checkout: Checkout) -> tuple[Changed, list[str]]:
    """Write everything; returns what changed, and the paths of all that is ours (E0846: work would be lost)."""
    names = sorted(results.translations)
    files: dict[str, str | None] = dict(layout.shared_files())
    for name in names:
        files |= layout.operator_files(name, results.translations[name].files, _present(checkout, names))
    files |= dict.fromkeys(layout.REMOVED)
    edits: dict[str, Edit] = {
        f"{layout.CRATE}/Cargo.toml": layout.cargo_toml,
        f"{layout.CRATE}/src/lib.rs": lambda text: layout.lib_rs(text, names),
        f"{layout.ROOT}/__init__.py": lambda text: layout.package_init(text, names),
    }
    listed = checkout.tracked("tests/ops")
    edits |= {path: add_backend for name in names for path in layout.test_files(name, listed)}
    edits |= {path: add_backend for path in layout.INTERFACES if (checkout.root / path).is_file()}
    return checkout.change(files, edits)


def _present(checkout: Checkout, names: Sequence[str]) -> set[str]:
    """Operators with a module in the checkout, or about to have one."""
    there = {path.stem for path in (checkout.root / layout.ROOT).glob("*.py") if path.stem != "__init__"}
    return {*there, *names}


def _figures(path: Path | None) -> dict[str, Any]:
    """Read the table that benchmarks/gpu/device_time.py wrote."""
    if path is None:
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found["configs"], list) else {}
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise error("E0844", f"{path.as_posix()} is no table of device times: {exc}",
                    help="name the device_time.json that benchmarks/gpu/device_time.py wrote") from None  # fmt: skip


def write_evidence(results: Results, folder: Path, figures: Mapping[str, Any] | None = None) -> None:
    """Write a folder for each operator: both sides' Tile IR of each check, what the comparison said, measured times."""
    from transpiler.verify import Judge, rust_text, tasks_of

    report = {o.name: o for o in assemble.report(results, seconds=0.0).operators}
    with Judge() as judge:
        for name, translation in sorted(results.translations.items()):
            rust = rust_text(translation)
            for _, task, _ in tasks_of(translation.plan, check_keys(translation.plan)):
                place = folder / name / task.kernel / task.specialization.name
                place.mkdir(parents=True, exist_ok=True)
                exported = judge.exporter.export(translation.closures[task.kernel], task.specialization, task.target)
                sides = {"reference": exported.bytecode}
                if task.inputs is not None:
                    sides["ours"] = judge.compile(rust, task.inputs, task.target)
                for side, bytecode in sides.items():
                    (place / f"{side}.mlir").write_text(toolkit.disassemble(bytecode) + "\n", encoding="utf-8")
            summary = {"tool": toolkit.versions(), "operator": report[name].model_dump(mode="json")}
            write_whole(folder / name / "comparison.json", json.dumps(summary, indent=1) + "\n")
            if figures:
                own = [row for row in figures["configs"] if row.get("operator") == name]
                measured = {key: figures.get(key) for key in ("gpu", "driver", "versions", "command")} | {
                    "configs": own
                }
                write_whole(folder / name / "figures.json", json.dumps(measured, indent=1) + "\n")
