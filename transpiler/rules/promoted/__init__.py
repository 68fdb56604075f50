"""Rules that `transpile promote` made of overrides, one module a row, until a maintainer moves them to their family."""

from __future__ import annotations

import importlib
import pkgutil

from transpiler.rules.inline import Variant, rules_of
from transpiler.rules.registry import Rule


def _variants() -> tuple[Variant, ...]:
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return tuple(row for name in names for row in importlib.import_module(f"{__name__}.{name}").VARIANTS)


VARIANTS: tuple[Variant, ...] = _variants()
ROWS: tuple[Rule, ...] = rules_of(VARIANTS)
