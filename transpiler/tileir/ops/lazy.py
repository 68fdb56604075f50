"""NumPy and ml_dtypes, imported when an operation is first executed: judging needs neither."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ml_dtypes
    import numpy as np
else:

    class _Lazy:
        """A module that is imported when one of its names is asked for; names are then plain attributes."""

        def __init__(self, name: str) -> None:
            self.__dict__["_name"] = name

        def __getattr__(self, key: str) -> Any:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # checks run in parallel, a core each
            value = getattr(importlib.import_module(self._name), key)
            self.__dict__[key] = value
            return value

    np = _Lazy("numpy")
    ml_dtypes = _Lazy("ml_dtypes")

__all__ = ["ml_dtypes", "np"]
