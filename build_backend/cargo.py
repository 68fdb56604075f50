"""Run cargo as the build backend does: ``python build_backend/cargo.py clippy ..``, so that results are shared."""

from __future__ import annotations

import os
import sys

import backend


def main() -> None:
    """Replace this process by cargo, in the environment of the build."""
    os.environ.update(backend.cargo_environment())
    os.environ["PYO3_PYTHON"] = sys.executable
    os.execvp("cargo", ["cargo", *sys.argv[1:]])


if __name__ == "__main__":
    main()
