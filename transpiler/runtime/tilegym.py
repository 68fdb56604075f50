"""TileGym's backend ``cutile-rs`` on the kernels of a folder.

:func:`install` imports the host module of every operator in the folder. Those register their functions with
TileGym under ``cutile-rs``, NVIDIA's own ports of the same name included; an operator that isn't there is left to
TileGym's rule for operators without an implementation. What registers nothing (the kernels of
``tilegym.transformers``) is called by importing it: its functions choose by the backend then, see
``chosen.py``.
"""

from __future__ import annotations

import importlib
import sys
import types
import warnings
from pathlib import Path
from typing import Any

from .chosen import Chooser
from .linked import Linked

BACKEND = "cutile-rs"
_REFERENCE = "cutile"
_REGISTERS = "register_impl("
_NOTE = "# Generated from "
_installed: dict[str, types.ModuleType] = {}
_linked = Linked()
_chooser: Chooser | None = None


def install() -> tuple[str, ...]:
    """Register all operators of this folder; returns their names. What can't be imported is left out with a warning."""
    global _chooser
    selector: Any = importlib.import_module("tilegym.backend.selector")
    importlib.import_module("tilegym")
    package = __name__.rpartition("._runtime")[0]
    able = [row for row in _all_operators() if not _left_out(package, row[0])]
    _linked.origins |= {origin: f"{package}.{name}.host" for name, origin, _ in able}
    for name, origin, registers in able:
        if name in _installed or not registers:
            continue
        try:
            _installed[name] = _linked.load(origin)
        except (ImportError, RuntimeError) as exc:
            warnings.warn(f"operator {name} isn't available with {BACKEND}: {exc}", stacklevel=2)
    _linked.relink()
    _publish()
    _adapt_interfaces()
    if _installed:
        selector._AVAILABLE_BACKENDS.add(BACKEND)
        if _chooser is None:
            called = [origin for _, origin, registers in able if not registers]
            _chooser = Chooser(lambda: selector.get_current_backend() == BACKEND, _linked, called)
            _chooser.start()
    return tuple(sorted(_installed))


def installed() -> tuple[str, ...]:
    """Return the names of the registered operators."""
    return tuple(sorted(_installed))


def _operators() -> list[tuple[str, str]]:
    """The folder's operators that register something with TileGym, each with the module that it came from."""
    return [(name, origin) for name, origin, registers in _all_operators() if registers]


def _all_operators() -> list[tuple[str, str, bool]]:
    """The folder's operators: name, the module that it came from, whether it registers something with TileGym."""
    root = Path(__file__).resolve().parents[2]
    found = []
    for host in sorted(root.glob("*/host.py")):
        text = host.read_text(encoding="utf-8")
        found.append((host.parent.name, _origin(text), _REGISTERS in text))
    return found


def _left_out(package: str, name: str) -> bool:
    """Warn of an operator whose kernels the library doesn't have."""
    if name in _installed:
        return False
    left_out = getattr(importlib.import_module(f"{package}.{name}._bindings"), "LEFT_OUT", "")
    if left_out:
        warnings.warn(f"operator {name} isn't available with {BACKEND}: {left_out}", stacklevel=3)
    return bool(left_out)


def _origin(text: str) -> str:
    """The dotted name of the module that a host module was made from, by its first line."""
    first = text.partition("\n")[0]
    path = first.removeprefix(_NOTE).partition(" by ")[0] if first.startswith(_NOTE) else ""
    return path.removesuffix(".py").replace("/", ".")


def _publish() -> None:
    """Let ``tilegym.ops.cutile_rs.<operator>`` be the host modules, as for the ports that TileGym has itself.

    They can also be found where the author's module is, with ``cutile_rs`` in the place of ``cutile``.
    """
    for name, module in _installed.items():
        _as_module(f"tilegym.ops.cutile_rs.{name}", module)
    for origin, module in _linked.modules.items():
        parts = origin.split(".")
        if _REFERENCE in parts:
            parts[parts.index(_REFERENCE)] = "cutile_rs"
            _as_module(".".join(parts), module)


def _as_module(name: str, module: types.ModuleType) -> None:
    """Make a module known under another name too, and packages on the way there."""
    parent, _, last = name.rpartition(".")
    package = sys.modules.get(parent)
    if package is None and "cutile_rs" not in parent:  # TileGym's own ports would register after ours
        package = importlib.import_module(parent)
    if package is None:
        package = types.ModuleType(parent)
        package.__path__ = []
        _as_module(parent, package)
    sys.modules[name] = module
    setattr(package, last, module)


def _adapt_interfaces() -> None:
    """Let TileGym's interfaces that ask for the reference's backend by name treat ours alike: same configurations."""
    selector: Any = importlib.import_module("tilegym.backend.selector")

    def configured_backend() -> str:
        current: str = selector.get_current_backend()
        return "cutile" if current == BACKEND else current

    for name, module in list(sys.modules.items()):
        is_interface = name.startswith("tilegym.ops.") and name.count(".") == 2
        if is_interface and getattr(module, "get_current_backend", None) is selector.get_current_backend:
            vars(module)["get_current_backend"] = configured_backend
