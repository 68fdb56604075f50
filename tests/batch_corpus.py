"""Small corpora for tests of batches, and what such tests look at."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

KERNEL = """\
import cuda.tile as ct


@ct.kernel
def {name}(a, b, TILE: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, index=(i,), shape=(TILE,))
    ct.store(b, index=(i,), tile={value})
"""
MANIFEST = """\
name = "mine"
[[operators]]
name = "{name}"
path = "{name}.py"
[[operators.kernels]]
name = "{name}"
"""
SPECIALIZATION = """\
[[operators.kernels.specializations]]
name = "{dtype}_{tile}"
params.a = {{dtype = "{dtype}", ndim = 1}}
params.b = {{dtype = "{dtype}", ndim = 1}}
params.TILE = {tile}
"""
BATCH = [sys.executable, "-m", "transpiler.cli", "batch", "corpus.toml", "-j", "2", "-o", "out", "--json", "o.json"]
"""The command that does the corpus in the current folder, as a process of its own."""


def corpus(folder: Path, **values: str) -> Path:
    """Write a corpus of one-kernel operators, each with four specializations."""
    text = ""
    for name, value in values.items():
        (folder / f"{name}.py").write_text(KERNEL.format(name=name, value=value))
        head = MANIFEST.format(name=name)
        text += head if not text else head.partition("\n")[2]
        for dtype in ("float16", "float32"):
            text += "".join(SPECIALIZATION.format(dtype=dtype, tile=tile) for tile in (16, 128))
    path = folder / "corpus.toml"
    path.write_text(text)
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def timeless(value: object) -> object:
    """A report without what may differ between runs: seconds, and how much an earlier run had done."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("seconds", "reference_seconds", "cached_checks")}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def group_members(group: int) -> list[int]:
    """Processes of a process group that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == group and fields[0] != "Z":
                    found.append(int(entry.name))
    return found
