"""Where templates, corpus manifests and Rust to copy lie: in a checkout at its top, when installed in the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

OVERRIDES = "_overrides"
"""The folder of an output folder that overrides lie in (their format: transpiler.overrides)."""


def templates_dir() -> Path:
    """Return the directory of the Jinja templates."""
    return _data("templates")


def corpus_dir() -> Path:
    """Return the directory of the corpus manifests."""
    return _data("corpus")


def support_dir() -> Path:
    """Return the directory of the support crate's sources, which are copied into generated crates."""
    return _data("rust_runtime/support/src")


def _data(name: str) -> Path:
    """The wheel carries copies in ``_data``; a checkout, which an editable install uses, has the originals."""
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    return _PACKAGE / "_data" / name
