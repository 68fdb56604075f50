"""Assumptions, assertions and printing (control flow itself is built by the emitter)."""

from __future__ import annotations

from transpiler.select.forms import form, other_than

KNOWN = other_than(None)

ROWS = [
    form("assume", "unsafe { assume_div_by::<_, $divisor>($0) }", nest=False, divisor=KNOWN),
    form(
        "assume", "unsafe { assume_bounds_lower::<_, $lower>($0) }", nest=False, divisor=None, lower=KNOWN, upper=None
    ),
    form(
        "assume", "unsafe { assume_bounds_upper::<_, $upper>($0) }", nest=False, divisor=None, lower=None, upper=KNOWN
    ),
    form(
        "assume",
        "unsafe { assume_bounds::<_, $lower, $upper>($0) }",
        nest=False,
        divisor=None,
        lower=KNOWN,
        upper=KNOWN,
    ),
    form("print", "print_tko($format, $0, Some($token))", nest=False, count=1),
    form("gdc_wait", "unsafe { gdc_wait_tko(Some($token)) }", nest=False),
    form("gdc_launch", "unsafe { gdc_launch_dependents_tko(Some($token)) }", nest=False),
]
