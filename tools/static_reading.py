"""How much of a package's host code is understood without a manifest? A row a module, then the totals.

    python tools/static_reading.py [PACKAGE...] [--check] [-j N] [--json OUT]

For every launch: is the kernel known, can its arguments be read? For every kernel: how many specializations are
chosen, and does what they say of each parameter agree with what was recorded on a GPU (corpus/tilegym)?  With
``--check`` the specializations are translated and checked as ``transpile FILE`` would: how many does the reference
compiler accept, how many are proved?
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from transpiler.batch import Options, run_jobs
from transpiler.cache.checks import CheckMemo
from transpiler.cache.folder import CacheFolder, default_path
from transpiler.corpora import find_module, load_corpus
from transpiler.diagnostics import TranspileError
from transpiler.frontend.callsites import CallSites, read_call_sites
from transpiler.frontend.program import load_program
from transpiler.jobs import KernelJob, OperatorJob, file_job
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ParamSpec, ScalarSpec, Specialization

Recordings = dict[str, dict[str, Sequence[Specialization]]]
PACKAGES = ("tilegym.ops.cutile", "tilegym.suites", "tilegym.transformers")
_UNREAD = ("W0271", "W0272")


@dataclass
class Row:
    """What is known of a module, or of several together."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


COLUMNS = (
    "launches", "searches", "unread", "kernels", "unlaunched", "assumed", "specializations", "checks", "accepted",
    "proved", "compared", "disagree",
)  # fmt: skip


def modules_of(package: str) -> Iterator[tuple[Path, str]]:
    """Yield the source files of a package that say anything of kernels, with their display paths."""
    init = find_module(package)
    folder = init.path.parent
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "cuda.tile" in text and ("kernel" in text or "launch" in text):
            yield path, (Path(init.display).parent / path.relative_to(folder)).as_posix()


def read_host(path: Path, *, display: str | None = None) -> CallSites:
    """Read the launches of a file, whether it has kernels or not."""
    try:
        program = load_program(path, display=display)
        functions = program.modules[program.main].functions
        arity = {name: len(functions[name].params) for name in program.kernels}
    except TranspileError as exc:
        if exc.diagnostic.code != "E0103":
            raise
        arity = {}
    return read_call_sites(path, arity, display=display)


def read_module(path: Path, display: str, recorded: Recordings) -> tuple[Row, OperatorJob | None]:
    """Read the launches of a module and choose specializations of its kernels."""
    row = Row(display)
    sites = read_host(path, display=display)
    calls = _launch_calls(path)
    unread = {d.span.line for d in sites.diagnostics if d.code in _UNREAD}
    row.counts.update(launches=calls["launch"], searches=calls["exhaustive_search"], unread=len(unread))
    row.notes += [f"{d.code} line {d.span.line}: {d.message}" for d in sites.diagnostics if d.code in _UNREAD]
    try:
        load_program(path, display=display)
    except TranspileError as exc:
        if exc.diagnostic.code != "E0103":
            raise
        return row, None
    job = file_job(path)
    job = OperatorJob(job.name, path, display, job.kernels)
    row.counts["kernels"] = len(job.kernels)
    for kernel in job.kernels:
        codes = {d.code for d in kernel.diagnostics}
        row.counts.update(unlaunched="W0270" in codes, assumed="W0273" in codes)
        row.notes += [f"{d.code} {d.message}" for d in kernel.diagnostics if d.code not in _UNREAD]
        row.counts["specializations"] += len(kernel.specializations)
        _compare(row, kernel, recorded.get(display, {}).get(kernel.name, ()))
    return row, job


def _launch_calls(path: Path) -> Counter[str]:
    """Count the launches by the name that is called."""
    found: Counter[str] = Counter()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("ct.launch", "cuda.tile.launch") or name.rpartition(".")[2] == "exhaustive_search":
                found[name.rpartition(".")[2]] += 1
    return found


# Against recordings


def recordings() -> Recordings:
    """Return what was recorded, by display path and kernel; what the project stated itself is left out."""
    found: Recordings = {}
    for path in sorted(Path("corpus/tilegym").glob("*.toml")):
        for operator in load_corpus(str(path)).operators:
            found[operator.source.display] = {k.name: k.specializations for k in operator.kernels}
    return found


def _compare(row: Row, kernel: KernelJob, recorded: Sequence[Specialization]) -> None:
    """Compare what each parameter is: an array of which rank, a list, a scalar of which dtype, a constant."""
    for name in recorded[0].params if recorded and kernel.specializations else ():
        real = {_role(one.params[name]) for one in recorded}
        ours = {_role(one.params[name]) for one in kernel.specializations}
        row.counts["compared"] += 1
        if not real <= ours and not ours <= real:
            row.counts["disagree"] += 1
            row.notes.append(f"`{kernel.name}`: `{name}` is {_names(ours)}, recorded was {_names(real)}")


def _role(param: ParamSpec) -> str:
    match param:
        case ArraySpec():
            return f"an array of rank {param.ndim}"
        case ListSpec():
            return f"a list of arrays of rank {param.element.ndim}"
        case ScalarSpec():
            return f"a {param.dtype} scalar"
        case ConstantSpec():
            return "a constant"


def _names(roles: set[str]) -> str:
    return " or ".join(sorted(roles))


# Checks


def check(row: Row, job: OperatorJob, workers: int, memo: CheckMemo) -> None:
    """Translate and check the chosen specializations."""
    results = run_jobs([job], Options(workers=workers, memo=memo))
    kernels = {kernel.name: set[str]() for kernel in job.kernels}
    for key, result in results.checks.items():
        kernel = results.translations[key.operator].plan.kernels[key.kernel]
        kernels[kernel.name].add(result.verdict)
        row.counts["checks"] += 1
        row.counts["accepted"] += result.verdict != "rejected"
        row.counts["proved"] += result.verdict == "proved"
        if result.verdict != "proved":
            one = kernel.entries[key.entry].checks[key.check].specialization.name
            said = result.diagnostics[0].message.partition("\n")[0] if result.diagnostics else ""
            row.notes.append(f"`{kernel.name}` [{one}] {result.verdict}: {said}")
    row.notes += [f"`{name}` has no proved check" for name, seen in kernels.items() if "proved" not in seen]
    row.counts["kernels_proved"] += sum("proved" in seen for seen in kernels.values())


def print_row(row: Row) -> None:
    """Print one row, and what is to be said of it."""
    print(f"{row.name:60}" + "".join(f"{row.counts[name]:>9}" for name in COLUMNS), flush=True)
    for note in row.notes:
        print(f"    {note}")


def total(name: str, rows: Sequence[Row]) -> Row:
    """Add rows up."""
    return Row(name, sum((row.counts for row in rows), Counter[str]()))


def measure(
    packages: Sequence[str], *, checks: bool = False, workers: int = 1, quiet: bool = False, most: int | None = None
) -> dict[str, list[Row]]:
    """Read every module of the packages, and print a row for each."""
    recorded = recordings()
    memo = CheckMemo(CacheFolder(default_path()), ())
    found: dict[str, list[Row]] = {}
    for package in packages:
        found[package] = []
        for path, display in modules_of(package):
            row, job = read_module(path, display, recorded)
            if job is not None and checks:
                few = tuple(replace(k, specializations=k.specializations[:most]) for k in job.kernels)
                check(row, replace(job, kernels=few), workers, memo)
            if row.counts.total():
                found[package].append(row)
                if not quiet:
                    print_row(row)
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--most", type=int, metavar="N", help="check at most N specializations of a kernel")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"{'module':60}" + "".join(f"{name[:8]:>9}" for name in COLUMNS))
    found = measure(options.packages, checks=options.check, workers=options.jobs, most=options.most)
    totals = [total(package, rows) for package, rows in found.items()]
    print()
    for row in totals:
        print_row(row)
        if options.check:
            print(f"    {row.counts['kernels_proved']} of {row.counts['kernels']} kernels have a proved check")
    if options.json is not None:
        options.json.write_text(json.dumps({row.name: dict(row.counts) for row in totals}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
