"""Matrix multiply-accumulate."""

from __future__ import annotations

from transpiler.select.forms import form

FLOAT = ("float", "restricted_float", "generic")

ROWS = [
    form("mma", "mma($0, $1, $2)", source=FLOAT, fast=False, rank=2),
    form("mma", "mmaf($0, $1, $2)", source=FLOAT, fast=False, rank=3),
    form("mma", "unsafe { mmaf_with_fast_acc($0, $1, $2, fast_acc::Enabled) }", nest=False, source=FLOAT, fast=True),
    form("mma", "mmai($0, $1, $2, $sign0, $sign1)", source="int", fast=False),
    form("mma_scaled", "mmaf_scaled($0, $2, $4, $1, $3)"),
]
