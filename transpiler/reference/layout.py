"""Modules as files: what a stored closure or a case holds, where the front end finds it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_INIT = "__init__.py"


def lay_out(folder: Path, modules: Mapping[str, str]) -> dict[str, Path]:
    """Write modules by their dotted names below a folder; what others are in is a package. Returns their paths."""
    packages = {name.rpartition(".")[0] for name in modules} - {""}
    packages |= {package[:at] for package in packages for at, c in enumerate(package) if c == "."}
    for package in packages:
        place = folder.joinpath(*package.split("."))
        place.mkdir(parents=True, exist_ok=True)
        (place / _INIT).touch()
    out: dict[str, Path] = {}
    for name, text in modules.items():
        place = folder.joinpath(*name.split("."))
        out[name] = place / _INIT if name in packages else place.with_name(f"{place.name}.py")
        out[name].write_text(text, encoding="utf-8")
    return out
