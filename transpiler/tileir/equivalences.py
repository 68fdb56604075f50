"""The named equivalences: everything that the judge treats as equal beyond renaming and reordering.

Each row says why it is sound.  A row with rewritings applies to expressions with these operations
while they are numbered; the other rows are built into the graph, the numbering or the comparison of
facts and hints, and are counted there.
"""

from __future__ import annotations

from dataclasses import dataclass

from transpiler.tileir import rewrites as rw
from transpiler.tileir.numbering import Rewrite


@dataclass(frozen=True)
class Equivalence:
    """A named equivalence; ``operations`` lists the forms that ``rewrite`` is tried on."""

    name: str
    justification: str
    operations: tuple[str, ...] = ()
    rewrite: Rewrite | None = None


EQUIVALENCES: tuple[Equivalence, ...] = (
    Equivalence(
        "identity-shape",
        "A reshape, broadcast or permute whose result has the type of its source, and for a permute the order "
        "0, 1, .., moves no element. A reshape of rank 0 to rank 0 is the usual case.",
        ("reshape", "broadcast", "permute"),
        rw.identity_shape,
    ),
    Equivalence(
        "splat-of-constant",
        "A constant with one value for all elements has that value everywhere after a reshape, broadcast or permute. "
        "One that prints as a list, or as the bytes of its elements, isn't taken for such a constant.",
        ("reshape", "broadcast", "permute"),
        rw.splat_of_constant,
    ),
    Equivalence(
        "reshape-of-reshape",
        "Reshape keeps the row-major sequence of the elements, so only the last shape counts.",
        ("reshape",),
        rw.reshape_of_reshape,
    ),
    Equivalence(
        "splat-of-scalar",
        "A tile of one element that is reshaped, broadcast and permuted in any number of steps holds that element "
        "everywhere; only the last shape counts.",
        ("reshape", "broadcast", "permute"),
        rw.splat_of_scalar,
    ),
    Equivalence(
        "permute-of-permute",
        "Permutations compose: dimension i of permute(permute(x, p), q) is dimension p[q[i]] of x.",
        ("permute",),
        rw.permute_of_permute,
    ),
    Equivalence(
        "scan-axis-by-permute",
        "A scan works on each line along its dimension alone, so permuting its operand's dimensions and scanning along "
        "the dimension's new place gives the permuted scan. (In which order a line is combined is the implementation's "
        "choice either way; the machine code was found identical.)",
        ("scan",),
        rw.scan_of_permute,
    ),
    Equivalence(
        "scan-of-uniform",
        "In a tile of one value all lines along a dimension are equal, so a scan of it varies along that dimension "
        "alone: its result permuted is the scan of a tile of the permuted shape, with that value, along the "
        "dimension's new place. (It is scan-axis-by-permute where the permuted operand was seen to be that tile.)",
        ("permute",),
        rw.permute_of_uniform_scan,
    ),
    Equivalence(
        "identity-cast",
        "A bitcast to the type that its operand has changes no bit: Rust's i64 and u64 are one type in Tile IR, where "
        "operations carry the signedness. What is stated of the operand is stated of the result.",
        ("bitcast",),
        rw.identity_cast,
    ),
    Equivalence(
        "bitcast-of-constant",
        "A bitcast of a constant between types of one width is the constant with those bits. A float constant is known "
        "by its bits, however it is printed: 0.0 isn't -0.0, and a NaN is only the NaN with its payload.",
        ("bitcast",),
        rw.bitcast_of_constant,
    ),
    Equivalence(
        "fold-float-conversion",
        "ftof of a float constant that isn't NaN, rounding to nearest even and flushing nothing to zero, is the "
        "constant of the other type that IEEE 754 rounds it to: an infinity stays one, a number must not overflow.",
        ("ftof",),
        rw.fold_float_conversion,
    ),
    Equivalence(
        "fold-integer-cast",
        "exti and trunci of a constant are the constant of the other width (sign or zero extension, low bits).",
        ("exti", "trunci"),
        rw.fold_integer_cast,
    ),
    Equivalence(
        "fold-itof",
        "itof of an integer constant that the float type represents exactly is the float constant, however it rounds.",
        ("itof",),
        rw.fold_itof,
    ),
    Equivalence(
        "fold-integer-arithmetic",
        "addi, subi, muli, mini, maxi, and divi by a positive constant, on integer constants have one value when it "
        "fits the type and nothing is said of overflow (which would make it undefined for some that fit).",
        ("addi", "subi", "muli", "divi", "mini", "maxi"),
        rw.fold_integer_arithmetic,
    ),
    Equivalence(
        "fold-integer-comparison",
        "cmpi of integer constants, signed or unsigned as it says, has one value.",
        ("cmpi",),
        rw.fold_integer_comparison,
    ),
    Equivalence(
        "known-condition",
        "A choice on a constant condition is its only reachable side; a branch context on a constant that holds is the "
        "context around it.",
        ("gamma", "branch"),
        rw.known_condition,
    ),
    Equivalence(
        "same-in-both-branches",
        "A choice between equal values is that value: an if that yields values it didn't change, for instance.",
        ("gamma",),
        rw.same_in_both_branches,
    ),
    Equivalence(
        "condition-in-its-branch",
        "Inside `if c`, c itself is true in the first branch and false in the second.",
        ("gamma",),
        rw.condition_in_its_branch,
    ),
    Equivalence(
        "unvaried-by-the-loop",
        "A carried value that no iteration changes, or any value that doesn't depend on the loop, is after the loop "
        "what it was before.",
        ("loop.exit",),
        rw.unvaried_by_the_loop,
    ),
    Equivalence(
        "boolean-choice",
        "A choice between true and false is the condition.",
        ("gamma",),
        rw.boolean_choice,
    ),
    Equivalence(
        "negated-condition",
        "Deciding on `c xor true`, or on a choice between false and true, is deciding on c with the sides exchanged.",
        ("gamma", "branch"),
        rw.negated_condition,
    ),
    Equivalence(
        "conditions-in-turn",
        "What is executed where `a and b` holds is executed where b holds, inside of where a does; the same for the "
        "side on which `a or b` doesn't hold.",
        ("branch",),
        rw.conditions_in_turn,
    ),
    Equivalence(
        "join-normal-form",
        "join_tokens is the union of what its operands wait for: order, nesting and duplicates don't matter, a fresh "
        "token adds nothing, nor does a token that another operand already happens after (waits-for is transitive).",
        ("join_tokens",),
        rw.join_normal_form,
    ),
    Equivalence(
        "early-exit",
        "`if c {return} rest` is `if c {} else {rest}`, likewise for continue and break: the rest of the block runs in "
        "the context in which the exit was not taken.",
    ),
    Equivalence(
        "single-iteration",
        "A loop of which no path reaches a second iteration is its body, executed where the loop stands: the carried "
        "values are the initial ones, and its results are what it breaks with.",
    ),
    Equivalence(
        "hint-key-resolved",
        "A hint under the target's key wins over `default` (Tile IR gives hints per architecture), so hints are equal "
        "when they resolve to the same options for the check's target.",
    ),
    Equivalence(
        "fact-implied",
        "A predicate that only one side states follows from what is known without it where it is stated (see the rules "
        "of facts.py).",
    ),
    Equivalence(
        "default-hint",
        "allow_tma is a permission that is given unless it is false.",
    ),
)
"""All equivalences, in the order in which rewritings are tried."""

BY_NAME = {e.name: e for e in EQUIVALENCES}


def rewrites_by_operation() -> dict[str, tuple[Rewrite, ...]]:
    """Return for each operation its rewritings in the table's order."""
    found: dict[str, list[Rewrite]] = {"constant": [rw.float_by_bits]}  # a normal form, so that it isn't counted
    for equivalence in EQUIVALENCES:
        if equivalence.rewrite is not None:
            for operation in equivalence.operations:
                found.setdefault(operation, []).append(rw.counted(equivalence.name, equivalence.rewrite))
    return {name: tuple(items) for name, items in found.items()}


REWRITES = rewrites_by_operation()
