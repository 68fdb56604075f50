"""Integer and floating point arithmetic, comparisons and selection."""

from __future__ import annotations

from transpiler.select.forms import form, forms, other_than

SHORT = ("int16", "uint16")
WRAPPING = (("addi", "+"), ("subi", "-"), ("muli", "*"), ("shli", "<<"))
BITWISE = (("andi", "&"), ("ori", "|"), ("xori", "^"))
SIGNED = (("remi", "%"), ("shri", ">>"))
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")

ROWS = [
    # integers: an operator takes the signedness from the element type ("sign" is "same" when TIR agrees);
    # cutile 0.5 has no operators for 16 bits, only functions
    *(form(op, f"$0 {sign} $1", element=other_than(*SHORT)) for op, sign in WRAPPING),
    *(form(op, f"{op}_wrap($0, $1)", element=SHORT) for op, _ in WRAPPING),
    *(form(op, f"$0 {sign} $1", element=other_than(*SHORT)) for op, sign in BITWISE),
    *(form(op, f"{op}($0, $1)", element=SHORT) for op, _ in BITWISE),
    *(form(op, f"$0 {sign} $1", sign="same", element=other_than(*SHORT)) for op, sign in SIGNED),
    *(form(op, f"{op}($0, $1)", sign="same", element=SHORT) for op, _ in SIGNED),
    form("divi", "$0 / $1", rounding="zero", sign="same", element=other_than(*SHORT)),
    form("divi", "divi($0, $1, $rounding)", rounding="zero", sign="same", element=SHORT),
    form("divi", "divi($0, $1, $rounding)", rounding=("negative_inf", "positive_inf"), sign="same"),
    *forms("mini maxi", "$op($0, $1)", sign="same"),
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
    *(form("cmpi", f"{p}_tile($0, $1)", predicate=p, sign="same", element=other_than(*SHORT)) for p in PREDICATES),
    *(form("cmpf", f"{p}_tile($0, $1)", predicate=p, ordered=True) for p in PREDICATES),
    # inside another expression, cutile 0.5 takes the operands' type for the result's
    form("cmpi", "cmpi($0, $1, $predicate)", nest=False, sign="same", element=SHORT),
    form("cmpi", "cmpi_unsigned($0, $1, $predicate)", nest=False, sign="unsigned"),
    form("cmpf", "cmpf($0, $1, $predicate, cmp_ordering::Unordered)", nest=False, ordered=False),
    form("select", "select($0, $1, $2)"),
]
