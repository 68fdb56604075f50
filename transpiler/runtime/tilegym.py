"""TileGym's backend ``cutile-rs`` on the kernels of a folder.

:func:`install` imports the host module of every operator in the folder. Those register their functions with
TileGym under ``cutile-rs``, NVIDIA's own ports of the same name included; an operator that isn't there is left to
TileGym's rule for operators without an implementation.
"""

from __future__ import annotations

import importlib
import sys
import types
import warnings
from pathlib import Path
from typing import Any

BACKEND = "cutile-rs"
_REGISTERS = "register_impl("
_NOTE = "# Generated from "
_installed: dict[str, types.ModuleType] = {}


def install() -> tuple[str, ...]:
    """Register all operators of this folder; returns their names. What can't be imported is left out with a warning."""
    selector: Any = importlib.import_module("tilegym.backend.selector")
    importlib.import_module("tilegym")
    package = __name__.rpartition("._runtime")[0]
    originals: dict[str, types.ModuleType] = {}
    for name, origin in _operators():
        if name in _installed:
            continue
        left_out = getattr(importlib.import_module(f"{package}.{name}._bindings"), "LEFT_OUT", "")
        if left_out:
            warnings.warn(f"operator {name} isn't available with {BACKEND}: {left_out}", stacklevel=2)
            continue
        try:
            _installed[name] = originals[origin] = importlib.import_module(f"{package}.{name}.host")
        except (ImportError, RuntimeError) as exc:
            warnings.warn(f"operator {name} isn't available with {BACKEND}: {exc}", stacklevel=2)
    for module in originals.values():
        _relink(module, originals)
    _publish()
    _adapt_interfaces()
    if _installed:
        selector._AVAILABLE_BACKENDS.add(BACKEND)
    return tuple(sorted(_installed))


def installed() -> tuple[str, ...]:
    """Return the names of the registered operators."""
    return tuple(sorted(_installed))


def _operators() -> list[tuple[str, str]]:
    """The folder's operators that register something with TileGym, each with the module that it came from."""
    root = Path(__file__).resolve().parents[2]
    found = []
    for host in sorted(root.glob("*/host.py")):
        text = host.read_text(encoding="utf-8")
        if _REGISTERS in text:
            found.append((host.parent.name, _origin(text)))
    return found


def _origin(text: str) -> str:
    """The dotted name of the module that a host module was made from, by its first line."""
    first = text.partition("\n")[0]
    path = first.removeprefix(_NOTE).partition(" by ")[0] if first.startswith(_NOTE) else ""
    return path.removesuffix(".py").replace("/", ".")


def _publish() -> None:
    """Let ``tilegym.ops.cutile_rs.<operator>`` be the host modules, as for the ports that TileGym has itself."""
    ops: Any = importlib.import_module("tilegym.ops")
    package = getattr(ops, "cutile_rs", None)
    if package is None:
        package = ops.cutile_rs = types.ModuleType("tilegym.ops.cutile_rs")
        sys.modules[package.__name__] = package
    for name, module in _installed.items():
        setattr(package, name, module)
        sys.modules[f"{package.__name__}.{name}"] = module


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


def _relink(module: types.ModuleType, originals: dict[str, types.ModuleType]) -> None:
    """Let a host module call the other operators of the folder where the author's imported them from TileGym."""
    for name, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType | type):
            ours = originals.get(value.__module__)
            mine = getattr(ours, value.__name__, None) if ours is not None else None
            if mine is not None and getattr(sys.modules.get(value.__module__), value.__name__, None) is value:
                setattr(module, name, mine)
