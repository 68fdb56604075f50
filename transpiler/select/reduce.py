"""Reductions and scans; their bodies are fixed in cutile, so every other variant has no form."""

from __future__ import annotations

from transpiler.select.forms import form

NATIVE = ("int32", "int64", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "generic")
SMALL = ("int8", "int16", "uint8", "uint16")  # cutile 0.5 has no identities of these for reductions

ROWS = [
    *(
        form(
            "reduce",
            f"reduce_{name}($0, $axis)",
            nest=False,
            fn=fn,
            element=NATIVE,
            ftz=False,
            nan=False,
            rounding="nearest_even",
        )
        for fn, name in (("add", "sum"), ("mul", "prod"), ("min", "min"), ("max", "max"))
    ),
    # cutile scans dimension 0 whatever it is told: another axis is permuted to the front by the emitter
    form(
        "scan",
        "scan_sum($0, 0, $direction, $identity)",
        nest=False,
        fn="add",
        axis=0,
        element=(*NATIVE, *SMALL),
        ftz=False,
        nan=False,
        rounding="nearest_even",
    ),
    # with a function of their own, both work along dimension 0 from 0 whatever they are told, and a reduction's type
    # is that of what is reduced (a rank of 1 is all that it can have then)
    form("reduce", "reduce($0, 0, $identity, $combine)", nest=False, fn=("or", "xor"), axis=0, rank=1),
    form("scan", "scan($0, 0, $direction, $identity, $combine)", nest=False, fn=("or", "xor"), axis=0),
]
