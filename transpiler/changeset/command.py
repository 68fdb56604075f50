"""``transpile changeset``: operators as TileGym's own Rust ports, written into a checkout, and as a patch."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from transpiler import toolkit
from transpiler.batch import Options, Results, run_jobs
from transpiler.changeset import layout
from transpiler.changeset.test_backends import add_backend
from transpiler.diagnostics import TranspileError, error
from transpiler.jobs import OperatorJob, corpus_jobs
from transpiler.report import assemble
from transpiler.report.output import write_whole
from transpiler.report.terminal import progress

CORPUS = "tilegym-tests"
_INTERFACES = ("src/tilegym/ops/moe_interface.py",)
"""Modules of TileGym that choose a configuration by the backend's name."""


def changeset(
    operators: Sequence[str],
    checkout: Path,
    patch: Path | None,
    evidence: Path | None,
    figures: Path | None = None,
    *,
    workers: int,
    verify: bool,
) -> int:
    """Write operators into a checkout, prove them, write the patch and the evidence; returns the exit status."""
    _refuse_other(checkout)
    jobs = _jobs(operators)
    with progress(sum(job.check_count for job in jobs), "checks") as advance:
        results = run_jobs(jobs, Options(workers=workers, verify=verify), advance)
    for failed in results.failures.values():
        raise TranspileError(failed.diagnostic)
    changed = write(results, checkout)
    if patch is not None:
        write_whole(patch, _difference(checkout, changed))
    if evidence is not None:
        write_evidence(results, evidence, _figures(figures))
    print(f"{len(changed)} files changed in {checkout.as_posix()}" if changed else "nothing to change")
    report = assemble.report(results, seconds=0.0)
    bad = [
        c for o in report.operators for k in o.kernels for e in k.entries for c in e.checks if c.verdict == "differs"
    ]
    return 1 if bad else 0


def _refuse_other(checkout: Path) -> None:
    for part in (layout.CRATE, layout.ROOT):
        if not (checkout / part).is_dir():
            raise error("E0842", f"{checkout.as_posix()} has no {part}: it is no checkout of TileGym",
                        help="clone https://github.com/NVIDIA/TileGym and name the folder with --into")  # fmt: skip


def _jobs(operators: Sequence[str]) -> list[OperatorJob]:
    """The jobs of operators, and of the ports that they replace."""
    known = {job.name: job for job in corpus_jobs(CORPUS)}
    unknown = [name for name in operators if name not in known]
    if unknown:
        raise error("E0843", f"there is no operator `{unknown[0]}`", help=f"there are {', '.join(sorted(known))}")
    return [replace(known[name]) for name in sorted({*operators, *layout.REPLACED})]


def write(results: Results, checkout: Path) -> list[str]:
    """Write everything; returns the paths of the files that changed."""
    names = sorted(results.translations)
    files = layout.shared_files()
    for name in names:
        files |= layout.operator_files(name, results.translations[name].files, _present(checkout, names))
    edits: dict[str, Callable[[str], str]] = {
        f"{layout.CRATE}/Cargo.toml": layout.cargo_toml,
        f"{layout.CRATE}/src/lib.rs": lambda text: layout.lib_rs(text, names),
        f"{layout.ROOT}/__init__.py": lambda text: layout.package_init(text, names),
    }
    listed = _git(checkout, "ls-files", "tests/ops").splitlines()
    edits |= {path: add_backend for name in names for path in layout.test_files(name, listed)}
    edits |= {path: add_backend for path in _INTERFACES if (checkout / path).is_file()}
    files |= {path: edit((checkout / path).read_text(encoding="utf-8")) for path, edit in edits.items()}
    return sorted([*_written(checkout, files), *_removed(checkout)])


def _present(checkout: Path, names: Sequence[str]) -> set[str]:
    """Operators with a module in the checkout, or about to have one."""
    there = {path.stem for path in (checkout / layout.ROOT).glob("*.py") if path.stem != "__init__"}
    return {*there, *names}


def _written(checkout: Path, files: dict[str, str]) -> list[str]:
    changed = []
    for name, text in files.items():
        path = checkout / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        changed.append(name)
    return changed


def _removed(checkout: Path) -> list[str]:
    gone = [name for name in layout.REMOVED if (checkout / name).is_file()]
    for name in gone:
        (checkout / name).unlink()
    return gone


def _difference(checkout: Path, changed: Sequence[str]) -> str:
    """The changes against the last commit as a patch, new files too."""
    _git(checkout, "add", "--intent-to-add", "--", layout.ROOT)
    return _git(checkout, "diff", "--no-color", "--no-ext-diff", "HEAD", "--", "src/tilegym/ops", "tests/ops")


def _git(checkout: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        said = getattr(exc, "stderr", "") or str(exc)
        raise error("E0842", f"git does not work in {checkout.as_posix()}: {said.strip()}",
                    help="the checkout has to be a git repository") from None  # fmt: skip
    return done.stdout


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
    from transpiler.translation import check_keys
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
