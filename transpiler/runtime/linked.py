"""Host modules that import from each other where the authors' modules do.

A host module says ``from tilegym.ops.cutile.matmul import matmul``, at its top or in a function. Where the folder has
that module's operator, it gets the operator's host module instead: its imports go through :meth:`Linked.importing`.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
import types
from typing import Any


class Linked:
    """Host modules by the dotted name of the module that they were made from; loaded when first asked for."""

    def __init__(self) -> None:
        self.origins: dict[str, str] = {}
        self.modules: dict[str, types.ModuleType] = {}
        self._loading: set[str] = set()
        self._builtins = {**vars(builtins), "__import__": self.importing}

    def load(self, origin: str) -> types.ModuleType:
        """Return the host module for a module; raises what importing it raises."""
        known = self.modules.get(origin)
        if known is not None:
            return known
        name = self.origins[origin]
        module = sys.modules.get(name)
        if module is None:
            self._loading.add(origin)
            try:
                module = self._execute(name)
            finally:
                self._loading.discard(origin)
        self.modules[origin] = module
        return module

    def _execute(self, name: str) -> types.ModuleType:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(f"there is no module {name}", name=name)
        module = importlib.util.module_from_spec(spec)
        vars(module)["__builtins__"] = self._builtins
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        parent, _, last = name.rpartition(".")
        setattr(sys.modules[parent], last, module)
        return module

    def importing(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> types.ModuleType:
        """Stand in for ``__import__`` in host modules."""
        if level == 0 and fromlist and name in self.origins and name not in self._loading:
            try:
                ours = self.load(name)
            except (ImportError, RuntimeError):
                ours = None  # the author's own is there
            if ours is not None and all(hasattr(ours, item) for item in fromlist):
                return ours
        module: types.ModuleType = builtins.__import__(name, globals, locals, fromlist, level)
        return module

    def relink(self) -> None:
        """Replace what host modules got from the authors' modules by other ways: re-exports, circles of imports."""
        for module in self.modules.values():
            for name, value in list(vars(module).items()):
                mine = self._counterpart(value)
                if mine is not None and mine is not module:
                    setattr(module, name, mine)

    def _counterpart(self, value: Any) -> Any:
        """What there is of ours in the place of an author's module, or of a function, class or kernel of it."""
        if isinstance(value, types.ModuleType):
            return self.modules.get(value.__name__)
        owner = value._pyfunc if type(value).__module__.startswith("cuda.tile") and hasattr(value, "_pyfunc") else value
        if not isinstance(owner, types.FunctionType | type):
            return None
        ours, theirs = self.modules.get(owner.__module__), sys.modules.get(owner.__module__)
        if ours is None or getattr(theirs, owner.__name__, None) is not value:
            return None
        return getattr(ours, owner.__name__, None)
