"""What a kernel shows of itself, as a ``ct.kernel`` of cuda.tile does: its function, its signature, its hints."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import FunctionType
from typing import Any

from .errors import HintError, UnknownHintError

OWNER = "__cutile_kernel__"
"""The attribute of a kernel's Python function that leads back to the kernel."""


@dataclass(frozen=True)
class CompilerOptions:
    """The hints of a kernel: those of its decorator, and those that replaced them. None: the compiler chooses."""

    num_ctas: Any = None
    occupancy: Any = None
    opt_level: Any = 3
    num_worker_warps: Any = None


HINTS = tuple(field.name for field in fields(CompilerOptions))
_RANGES = {"num_ctas": (1, 16), "occupancy": (1, 32), "opt_level": (0, 3), "num_worker_warps": (1, 32)}
_POWERS = ("num_ctas", "num_worker_warps")


@dataclass(frozen=True)
class ByTarget:
    """A hint with a value for each target, read like cuda.tile's class of this name."""

    _by_target: Mapping[str, int]
    _default: int | None = None

    @classmethod
    def of(cls, value: Any) -> Any:
        """Return what a decorator's hint is: a number, or values by target."""
        if not isinstance(value, Mapping):
            return value
        return cls({name: one for name, one in value.items() if name != "default"}, value.get("default"))


@dataclass(frozen=True)
class Annotation:
    """What the annotation of a parameter says: whether it is a constant of the compilation."""

    constant: bool
    KIND = "leaf"


@dataclass(frozen=True)
class AnnotatedFunction:
    """A kernel's Python function with its signature and its parameters' annotations."""

    pyfunc: FunctionType
    pysig: inspect.Signature
    parameter_annotations: tuple[Annotation, ...]


def check_hints(hints: Mapping[str, Any]) -> None:
    """Raise HintError for a hint that there isn't (it is a TypeError, too), or a value out of range."""
    for name, value in hints.items():
        if name not in HINTS:
            raise UnknownHintError(f"there is no hint `{name}`; there are {', '.join(HINTS)}")
        for one in _values(value):
            _check_value(name, one)


def _values(value: Any) -> list[Any]:
    by_target = getattr(value, "_by_target", None)
    if not isinstance(by_target, Mapping):
        return [value]
    default = getattr(value, "_default", None)
    return [*by_target.values(), *([default] if isinstance(default, int) else [])]


def _check_value(name: str, value: Any) -> None:
    low, high = _RANGES[name]
    if value is None:
        return
    if not isinstance(value, int) or not low <= value <= high or (name in _POWERS and value.bit_count() != 1):
        power = ", a power of two" if name in _POWERS else ""
        raise HintError(f"{value!r} is no value for the hint `{name}`: it is {low} to {high}{power}")


def python_function(origin: str, names: Sequence[str], signature: str, doc: str | None) -> FunctionType:
    """Return the Python function of a kernel: the author's own where its module is loaded, else one that looks like it.

    ``origin`` is ``module:qualified.name``; ``signature`` the author's parameters where names alone don't say it.
    """
    module, _, path = origin.partition(":")
    found = _author_function(module, path)
    return found if found is not None else _look_alike(module, path, signature or ", ".join(names), doc)


def _author_function(module: str, path: str) -> FunctionType | None:
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    found = getattr(found, "_pyfunc", found)
    return found if isinstance(found, FunctionType) and found.__qualname__ == path else None


def _look_alike(module: str, path: str, signature: str, doc: str | None) -> FunctionType:
    name = path.rpartition(".")[2]
    scope: dict[str, Any] = {"__name__": module}
    try:
        exec(f"def {name}({signature}):\n    raise RuntimeError('{name} is a kernel: launch it')\n", scope)
    except SyntaxError:  # a kernel whose names were made up
        exec(f"def {name}(*args):\n    raise RuntimeError('{name} is a kernel: launch it')\n", scope)
    made = scope[name]
    assert isinstance(made, FunctionType)
    made.__qualname__, made.__module__, made.__doc__ = path, module, doc
    return made
