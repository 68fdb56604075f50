"""What ``transpile changeset`` says: the operators with their verdicts, who had to follow, and the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from transpiler.changeset import layout
from transpiler.changeset.checkout import Changed
from transpiler.emit.crate import CUTILE_VERSION
from transpiler.report.model import VERDICTS, Operator, Report
from transpiler.report.terminal import counted

_NAMED = 3


def operators(report: Report, asked: Sequence[str]) -> list[str]:
    """A line for each operator that was asked for; one for the old ports that follow, with the reason."""
    rows = [f"{one.name}: {_verdicts([one])}" for one in report.operators if one.name in asked]
    followers = [one for one in report.operators if one.name not in asked]
    if followers:
        names = ", ".join(one.name for one in followers)
        rows.append(f"{names}: {_verdicts(followers)}; TileGym's own ports, made anew: they are written for cutile "
                    f"0.2, and all operators are one crate, which moves to cutile {CUTILE_VERSION}")  # fmt: skip
    return rows


def files(root: Path, done: Changed) -> list[str]:
    """Which files were made, changed and deleted, by folder, and why some that are no operator's."""
    kinds = (("made", done.made), ("changed", done.changed), ("deleted", done.deleted))
    paths = [path for _, some in kinds for path in some]
    if not paths:
        return ["nothing to change"]
    rows = [f"{verb} {counted(len(some), 'file')} {_by_folder(some)}" for verb, some in kinds if some]
    why = [
        (any(path.startswith("tests/") for path in paths), "the operators' tests run with the backend cutile-rs too"),
        (any(path in layout.INTERFACES for path in paths), "moe_interface.py chooses configurations by backend"),
        (bool(done.deleted), "only the old ports used what is deleted"),
    ]
    rows.append("; ".join(reason for holds, reason in why if holds))
    rows.append(f"{counted(len(paths), 'file')} changed in {root.as_posix()}; nothing is staged")
    return [row for row in rows if row]


def _verdicts(found: Sequence[Operator]) -> str:
    """How many checks there are, and of which verdict."""
    checks = [check.verdict for one in found for kernel in one.kernels for check in kernel.checks()]
    counts = Counter(checks)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return f"{counted(len(checks), 'check')}: {said}" if checks else "not checked"


def _by_folder(paths: Sequence[str]) -> str:
    """What lies in the folder of the ports, and in others: the files' names where a folder has few of them."""
    places: dict[str, dict[str, list[str]]] = {}
    for path in map(PurePosixPath, paths):
        place = PurePosixPath(layout.ROOT) if path.is_relative_to(layout.ROOT) else path.parent
        folder = str(path.parent.relative_to(place))
        places.setdefault(str(place), {}).setdefault(folder, []).append(path.name)
    return "; ".join(
        f"in {place}: {', '.join(_names(folder, some) for folder, some in folders.items())}"
        for place, folders in places.items()
    )


def _names(folder: str, names: Sequence[str]) -> str:
    if len(names) > _NAMED:
        return f"{len(names)} files" if folder == "." else f"{folder} ({len(names)})"
    if folder == ".":
        return ", ".join(names)
    return f"{folder}/{names[0]}" if len(names) == 1 else f"{folder}/{{{','.join(names)}}}"
