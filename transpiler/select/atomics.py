"""Atomic operations."""

from __future__ import annotations

from transpiler.select.forms import form

ROWS = [
    form(
        "atomic_rmw",
        "unsafe { atomic_rmw_tko($0, $value, $mode, $ordering, $scope, $mask, Some($token)) }",
        nest=False,
    ),
    form(
        "atomic_cas",
        "unsafe { atomic_cas_tko($0, $1, $2, $ordering, $scope, $mask, Some($token)) }",
        nest=False,
    ),
    form(
        "atomic_red_view",
        "unsafe { atomic_red_view_raw(&$0, $value, $index, $mode, $ordering, $scope, Some($token)) }",
        nest=False,
    ),
]
