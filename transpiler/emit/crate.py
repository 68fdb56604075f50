"""What all operators of a folder share: the crate around them, and the Python package that runs on its library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transpiler import resources, runtime
from transpiler.emit.render import render_template
from transpiler.identifiers import crate_module

CUTILE_VERSION = "0.5.0"
PACKAGE = "cutile_kernels"
"""Name of the crate, of its library and of the Python package."""
_TESTS = "\n#[cfg(test)]\n"
_RUST_NOTE = "// Copied from the transpiler's rust_runtime/support; changes here are overwritten.\n\n"
_PYTHON_NOTE = "# Copied from the transpiler's runtime package; changes here are overwritten.\n"


def render_crate_files(operators: Sequence[str]) -> dict[str, str]:
    """Render the files at the top of a folder, by path, from the names of the operators that its library has."""
    names = sorted(operators)
    rows = [{"name": name, "module": crate_module(name)} for name in names]
    files = {
        "Cargo.toml": render_template("Cargo.toml.j2", package=PACKAGE, cutile=CUTILE_VERSION),
        "src/lib.rs": render_template("lib.rs.j2", operators=rows),
        f"{PACKAGE}/__init__.py": render_template("package.py.j2"),
    }
    return files | _support() | _runtime()


def render_operator_modules(operator: str) -> dict[str, str]:
    """Render what joins an operator's files: mod.rs for Rust, ``__init__.py`` for Python."""
    return {
        "mod.rs": render_template("operator.rs.j2", operator=operator),
        "__init__.py": render_template("operator.py.j2", operator=operator),
    }


def _support() -> dict[str, str]:
    """The support crate's sources as a module of the generated crate, without their tests."""
    files = {}
    for path in _sources(resources.support_dir(), ".rs"):
        if path.name != "tests.rs":
            text = path.read_text(encoding="utf-8").partition(_TESTS)[0].rstrip() + "\n"
            name = "mod.rs" if path.name == "lib.rs" else path.name
            files[f"src/support/{name}"] = _RUST_NOTE + text
    return files


def _runtime() -> dict[str, str]:
    """The runtime package's sources."""
    folder = Path(runtime.__file__).parent
    return {
        f"{PACKAGE}/_runtime/{path.name}": _PYTHON_NOTE + path.read_text(encoding="utf-8")
        for path in _sources(folder, ".py")
    }


def _sources(folder: Path, suffix: str) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix == suffix)
