"""Integer and floating point arithmetic, comparisons and selection."""

from __future__ import annotations

from transpiler.select.forms import form, forms, other_than

ROWS = [
    # integers: an operator takes the signedness from the element type ("sign" is "same" when TIR agrees)
    form("addi", "$0 + $1"),
    form("subi", "$0 - $1"),
    form("muli", "$0 * $1"),
    form("divi", "$0 / $1", rounding="zero", sign="same"),
    form("divi", "divi($0, $1, $rounding)", rounding=("negative_inf", "positive_inf"), sign="same"),
    form("remi", "$0 % $1", sign="same"),
    *forms("mini maxi", "$op($0, $1)", sign="same"),
    form("shli", "$0 << $1"),
    form("shri", "$0 >> $1", sign="same"),
    form("andi", "$0 & $1"),
    form("ori", "$0 | $1"),
    form("xori", "$0 ^ $1"),
    form("negi", "negi($0, overflow::None)"),
    form("absi", "absi($0)"),
    # floats
    *(
        form(op, f"$0 {sign} $1", rounding="nearest_even", ftz=False)
        for op, sign in (("addf", "+"), ("subf", "-"), ("mulf", "*"), ("divf", "/"))
    ),
    *forms("addf subf mulf divf", "$op($0, $1, $rounding, $ftz)", rounding="nearest_even", ftz=True),
    *forms("addf subf mulf divf", "$op($0, $1, $rounding, $ftz)", rounding=other_than("nearest_even", "full")),
    form("divf", "divf_full($0, $1, $rounding, $ftz)", rounding="full"),
    form("fma", "fma($0, $1, $2, $rounding, $ftz)"),
    *forms("minf maxf", "$op($0, $1, $nan, $ftz)"),
    form("remf", "$0 % $1"),
    form("negf", "negf($0)"),
    form("absf", "absf($0)"),
    # comparisons; `ne_tile` on floats is ordered, Python's `!=` is not
    *(form("cmpi", f"{p}_tile($0, $1)", predicate=p, sign="same") for p in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(form("cmpf", f"{p}_tile($0, $1)", predicate=p, ordered=True) for p in ("eq", "ne", "lt", "le", "gt", "ge")),
    # inside another expression, cutile 0.5 takes the operands' type for the result's
    form("cmpi", "cmpi_unsigned($0, $1, $predicate)", nest=False, sign="unsigned"),
    form("cmpf", "cmpf($0, $1, $predicate, cmp_ordering::Unordered)", nest=False, ordered=False),
    form("select", "select($0, $1, $2)"),
]
