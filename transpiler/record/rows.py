"""From what the processes of a command wrote down to operators."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from transpiler.corpora import find_module
from transpiler.diagnostics import Diagnostic, Span, TranspileError
from transpiler.jobs import operator_name
from transpiler.json_lines import objects
from transpiler.recordings import named, specialization
from transpiler.reference.source import SourceTree
from transpiler.spec import KernelManifest, OperatorManifest, Specialization

Row = dict[str, Any]


@dataclass
class Recorded:
    """What a command launched: operators, the architecture, how many launches were told apart, what was left out."""

    operators: tuple[OperatorManifest, ...]
    arch: str | None
    rows: int
    diagnostics: list[Diagnostic] = field(default_factory=list)


def read_rows(folder: Path) -> Iterator[Row]:
    """Yield what every process wrote; a line that a dying process left unfinished is skipped."""
    for path in sorted(folder.glob("launches-*.jsonl")):
        yield from objects(path.read_text(encoding="utf-8", errors="replace"))


def recorded(rows: Iterable[Row], spec_folder: Path) -> Recorded:
    """Make operators of recorded launches; paths are relative to the folder of the SPEC.toml."""
    result = Recorded((), None, 0)
    launches = [row for row in rows if not _is_problem(row, result)]
    sources: dict[str, dict[str, dict[str, Specialization]]] = {}
    for row in sorted(launches, key=lambda row: row["grid"] is None):  # those with a grid go first
        result.rows += 1
        one = _specialization(row, result)
        kernel = _kernel_name(row, result) if one is not None else None
        if one is not None and kernel is not None:
            kinds = sources.setdefault(row["file"], {}).setdefault(kernel, {})
            kinds.setdefault(one.model_dump_json(exclude={"grid"}), one)
    modules = {row["file"]: row["module"] for row in launches}
    found = [_operator(Path(file), modules[file], kernels, spec_folder) for file, kernels in sources.items()]
    result.operators = _distinct(found)
    result.diagnostics = list(dict.fromkeys(result.diagnostics))
    archs = Counter(row["arch"] for row in launches if row.get("arch"))
    result.arch = archs.most_common(1)[0][0] if archs else None
    return result


def _is_problem(row: Row, result: Recorded) -> bool:
    """Note what the hook could not do."""
    if "problem" not in row:
        return False
    result.diagnostics.append(_left_out(f"a launch could not be recorded: {row['problem']}", Span("", 0, 0)))
    return True


def _left_out(message: str, span: Span) -> Diagnostic:
    return Diagnostic("W0832", message, "state what is missing by hand", "warning", span)


def _place(row: Row) -> Span:
    return Span(Path(row["file"]).name, row["line"], 1)


def _specialization(row: Row, result: Recorded) -> Specialization | None:
    """Read one launch; what a SPEC.toml can't state is a warning."""
    for name, constraint in zip(row["params"], row["constraints"], strict=True):
        if "unsupported" in constraint:
            message = f"a launch of `{row['kernel']}` passes a {constraint['unsupported']} for `{name}`: left out"
            result.diagnostics.append(_left_out(message, _place(row)))
            return None
    try:
        return specialization(row)
    except ValidationError as exc:
        why = exc.errors(include_url=False)[0]["msg"]
        result.diagnostics.append(_left_out(f"a launch of `{row['kernel']}` can't be stated: {why}", _place(row)))
        return None


def _kernel_name(row: Row, result: Recorded) -> str | None:
    """Find the kernel's name in its module: a kernel made by a call is called after what it is assigned to."""
    try:
        kernels = SourceTree(Path(row["file"])).kernels_of(row["kernel"])
    except (TranspileError, OSError, IndexError):
        kernels = ()
    if not kernels:
        message = f"`{row['kernel']}` is launched, but isn't a kernel in a source file ({_place(row).file}): left out"
        result.diagnostics.append(_left_out(message, _place(row)))
        return None
    return kernels[0]


def _operator(
    file: Path, module: str, kernels: dict[str, dict[str, Specialization]], spec_folder: Path
) -> OperatorManifest:
    manifests = tuple(
        KernelManifest(name=name, specializations=named([items[key] for key in sorted(items)]))
        for name, items in sorted(kernels.items())
    )
    name = operator_name(file)
    if _is_installed(module, file):
        return OperatorManifest(name=name, module=module, kernels=manifests)
    path = Path(os.path.relpath(file.resolve(), spec_folder.resolve())).as_posix()
    return OperatorManifest(name=name, path=path, kernels=manifests)


def _is_installed(module: str, file: Path) -> bool:
    """Whether transpile finds the module by its name too."""
    if "." not in module:
        return False
    try:
        return find_module(module).path.resolve() == file.resolve()
    except TranspileError:
        return False


def _distinct(operators: Sequence[OperatorManifest]) -> tuple[OperatorManifest, ...]:
    """Number operators whose files have the same name."""
    counts: Counter[str] = Counter()
    found = []
    for operator in sorted(operators, key=lambda one: (one.name, one.module or "", one.path or "")):
        counts[operator.name] += 1
        number = counts[operator.name]
        found.append(operator if number == 1 else operator.model_copy(update={"name": f"{operator.name}_{number}"}))
    return tuple(found)
