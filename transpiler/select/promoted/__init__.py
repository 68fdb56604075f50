"""Forms that `transpile promote` made of overrides, one module a row, until a maintainer moves them to their family."""

from __future__ import annotations

import importlib
import pkgutil

from transpiler.select.forms import Form


def _rows() -> list[Form]:
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return [row for name in names for row in importlib.import_module(f"{__name__}.{name}").ROWS]


ROWS: list[Form] = _rows()
