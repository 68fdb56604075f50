"""``tile_kernel`` stands in host modules where the author's has ``ct.kernel``: to decorate again, to ask for types."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .kernel import Kernel, kernel_of


class _Decorator(type):
    """Lets ``tile_kernel`` be called, and asked about with isinstance, like the class ``ct.kernel``."""

    def __call__(cls, function: Any = None, /, **hints: Any) -> Any:
        if function is None:

            def decorate(function: Any) -> Any:
                return cls(function, **hints)

            return decorate
        kernel = kernel_of(function)
        return _theirs()(function, **hints) if kernel is None else kernel.decorated_again(hints)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (Kernel, getattr(sys.modules.get("cuda.tile"), "kernel", ())))


class tile_kernel(metaclass=_Decorator):  # noqa: N801  (it is called like a function)
    """``tile_kernel(k._pyfunc, occupancy=4)``: the translated kernel of that function, with other hints.

    A function that isn't a translated kernel's becomes a kernel of cuda.tile.
    """


def _theirs() -> Callable[..., Any]:
    import cuda.tile

    decorator: Callable[..., Any] = cuda.tile.kernel
    return decorator
