"""TileGym's backend ``cutile-rs``: importing this module makes it there.

    import transpiler.backends.tilegym
    tilegym.set_backend("cutile-rs")

The operators are those of the folder that ``CUTILE_RS_DIR`` names, ``./cutile_rs`` if it isn't set; their library is
built with the first launch if it isn't there.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from transpiler.diagnostics import error

FOLDER = "CUTILE_RS_DIR"


def install(folder: Path | str | None = None) -> tuple[str, ...]:
    """Register the operators of a folder that transpile wrote with TileGym; returns their names.

    Raises TranspileError (E0841) when it is no such folder.
    """
    root = Path(folder or os.environ.get(FOLDER, "cutile_rs")).resolve()
    if not (root / "cutile_kernels" / "_runtime").is_dir():
        raise error("E0841", f"{root.as_posix()} holds no translated operators",
                    help=f"run `transpile batch tilegym-24 -o DIR` and name DIR in {FOLDER}")  # fmt: skip
    known = sys.modules.get("cutile_kernels")
    if known is None:
        sys.path.insert(0, str(root))
    elif Path(str(known.__file__)).resolve().parent.parent != root:
        raise error("E0841", "operators of another folder are loaded already", help="start a new process")
    runtime: Any = importlib.import_module("cutile_kernels._runtime.tilegym")
    names: tuple[str, ...] = runtime.install()
    return names


OPERATORS = install()
"""The operators that ``cutile-rs`` has."""
