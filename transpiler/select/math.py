"""Elementary functions."""

from __future__ import annotations

from transpiler.select.forms import form, forms

ROWS = [
    *forms("floor ceil sin cos tan sinh cosh log log2", "$op($0)"),
    *forms("exp tanh", "$op($0)", rounding=None),
    *forms("exp tanh", "unsafe { $op_with_rounding($0, $rounding) }", nest=False, rounding=("approx", "full")),
    *forms("exp2 rsqrt", "$op($0, $ftz)"),
    form("sqrt", "sqrt($0, $rounding, $ftz)"),
    form("pow", "pow($0, $1)"),
    form("fpowi", "unsafe { fpowi($0, $1) }", nest=False),
    form("atan2", "atan2($0, $1)"),
]
