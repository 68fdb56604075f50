"""Functions that are called by importing them, and so can't be chosen in a registry: they choose by the backend.

The kernels of ``tilegym.transformers`` are such. When their modules are loaded (Hugging Face's transformers with them,
so not before somebody asks), their functions become ones that call the translated function while our backend is the
current one.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from typing import Any

from .linked import Linked

_LAUNCHES = {"launch", "exhaustive_search"}


class Chooser(importlib.abc.MetaPathFinder):
    """Watches for modules to be loaded, on ``sys.meta_path``; ``ours`` says whether our backend is the current one."""

    def __init__(self, ours: Callable[[], bool], linked: Linked, origins: Iterable[str]) -> None:
        self._ours, self._linked = ours, linked
        self._waiting = set(origins)

    def start(self) -> None:
        """Adapt what is loaded already, and wait for the others."""
        for origin in sorted(self._waiting & sys.modules.keys()):
            self._waiting.discard(origin)
            self._adapt(sys.modules[origin])
        if self._waiting:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module as others do, and adapt it once it is loaded."""
        if fullname not in self._waiting:
            return None
        self._waiting.discard(fullname)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Adapting(spec.loader, self._adapt)
        return spec

    def _adapt(self, module: types.ModuleType) -> None:
        """Let the functions of a module that launch something choose, wherever they were imported already."""
        try:
            translated = self._linked.load(module.__name__)
        except (ImportError, RuntimeError) as exc:
            warnings.warn(f"{module.__name__} runs with cuda.tile only: {exc}", stacklevel=2)
            return
        chosen = {}
        for name in launching(vars(translated)):
            original, ours = getattr(module, name, None), getattr(translated, name)
            if isinstance(original, types.FunctionType) and isinstance(ours, types.FunctionType):
                chosen[original] = self._choosing(original, ours)
        package = module.__name__.partition(".")[0]
        for other in [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == package]:
            for name, value in list(vars(other).items()):
                if isinstance(value, types.FunctionType) and value in chosen:
                    setattr(other, name, chosen[value])

    def _choosing(self, original: Callable[..., Any], translated: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def choose(*args: Any, **kwargs: Any) -> Any:
            return (translated if self._ours() else original)(*args, **kwargs)

        return choose


def launching(names: Mapping[str, Any]) -> set[str]:
    """The functions and classes of a module that launch a kernel, themselves or through others of the module."""
    uses = {name: set(_names(value)) for name, value in names.items() if isinstance(value, types.FunctionType | type)}
    found: set[str] = set()
    while True:
        new = {name for name, used in uses.items() if used & (_LAUNCHES | found)} - found
        if not new:
            return found
        found |= new


def _names(value: Any) -> Iterator[str]:
    """The names that the code of a function, or of a class's methods, mentions."""
    if isinstance(value, type):
        for part in vars(value).values():
            yield from _names(getattr(part, "__func__", part))
    code = value if isinstance(value, types.CodeType) else getattr(value, "__code__", None)
    if isinstance(code, types.CodeType):
        yield from code.co_names
        for constant in code.co_consts:
            yield from _names(constant) if isinstance(constant, types.CodeType) else ()


class _Adapting(importlib.abc.Loader):
    """Loads a module as another loader does, and hands it on."""

    def __init__(self, loader: Any, then: Callable[[types.ModuleType], None]) -> None:
        self._loader, self._then = loader, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        """Leave it to the loader."""
        made: types.ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        """Execute the module, and hand it on."""
        self._loader.exec_module(module)
        self._then(module)
