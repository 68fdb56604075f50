"""Stand-ins for torch, triton and transformers, which aren't installed here: enough to import TileGym.

Every attribute is a class that can be derived from and called; called with a function alone it is a decorator.
"""

from __future__ import annotations

import importlib.abc
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any

_PACKAGES = ("torch", "triton", "transformers", "huggingface_hub")


class _Meta(type):
    def __getattr__(cls, name: str) -> Any:
        return _attribute(cls, name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], types.FunctionType) and not kwargs:
            return args[0]
        return type.__call__(cls)

    def __or__(cls, other: Any) -> Any:
        return cls

    def __ror__(cls, other: Any) -> Any:
        return cls

    def __getitem__(cls, key: Any) -> Any:
        return cls


class StandIn(metaclass=_Meta):
    """What there is of everything."""

    def __getattr__(self, name: str) -> Any:
        return _attribute(type(self), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if args else self


class _Module(types.ModuleType):
    __version__ = "5.3.0"

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, name)


def _attribute(owner: Any, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    made = _Meta(name, (StandIn,), {})
    setattr(owner, name, made)
    return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        known = fullname.partition(".")[0] in _PACKAGES
        return ModuleSpec(fullname, self, is_package=True) if known else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        module = _Module(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def install() -> None:
    """Let the packages be imported from here on."""
    sys.meta_path.insert(0, _Finder())
