"""Every Tile IR operation that the judge knows: what it may print, and what kind of operation it is.

The parser accepts nothing that is not declared here, so that a construct that the comparison doesn't
understand is an error and never silently ignored.  Kinds:

- ``pure``: the result depends on operands and attributes alone (the specification says so of each);
- ``token``: pure operations on tokens;
- ``memory``: loads, stores and atomics, ordered by tokens; a ``weak`` load is a value, all else an effect;
- ``effect``: other observable operations (print, assert, grid dependency control);
- ``control``: structured control flow and terminators; ``assume``: transparent, carries a fact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["pure", "token", "memory", "effect", "control", "assume"]

_COMPARISONS = ("equal", "not_equal", "less_than", "less_than_or_equal", "greater_than", "greater_than_or_equal")
_ORDERINGS = ("weak", "relaxed", "acquire", "release", "acq_rel")
_ATOMICS = ("and", "or", "xor", "add", "addf", "max", "min", "umax", "umin", "xchg")

WORDS: dict[str, str] = {
    **dict.fromkeys(("signed", "unsigned"), "signedness"),
    **dict.fromkeys(_COMPARISONS, "predicate"),
    **dict.fromkeys(("ordered", "unordered"), "nan_order"),
    **dict.fromkeys(_ORDERINGS, "ordering"),
    **dict.fromkeys(("tl_blk", "device", "sys"), "scope"),
    **dict.fromkeys(_ATOMICS, "mode"),
    "flush_to_zero": "flush_to_zero",
    "propagate_nan": "propagate_nan",
    "fast_acc": "fast_acc",
}
"""A bare word in an operation's text -> the attribute that it sets."""


@dataclass(frozen=True)
class Schema:
    """What an operation prints: number of operands, attributes, and which printed type its result has."""

    operands: tuple[int, int]
    attributes: frozenset[str] = frozenset()
    kind: Kind = "pure"
    results: tuple[int, int] = (1, 1)
    result_type: int = -1
    """Index of the result's type among the printed types when there is no arrow."""
    regions: int = 0


_MANY = 1 << 20
_ARITH = "rounding flush_to_zero"
_MEMORY = "ordering scope hints"


def _rows(names: str, operands: int | tuple[int, int], attributes: str = "", **rest: object) -> dict[str, Schema]:
    count = operands if isinstance(operands, tuple) else (operands, operands)
    schema = Schema(count, frozenset(attributes.split()), **rest)  # type: ignore[arg-type]
    return dict.fromkeys(names.split(), schema)


SCHEMAS: dict[str, Schema] = {
    **_rows("addf subf mulf divf", 2, _ARITH),
    **_rows("fma", 3, _ARITH),
    **_rows("remf atan2 powf fpowf fpowi pow", 2, _ARITH),
    **_rows("maxf minf", 2, "flush_to_zero propagate_nan"),
    **_rows("absf negf floor ceil sin cos tan sinh cosh tanh exp exp2 log log2 sqrt rsqrt", 1, _ARITH),
    **_rows("addi subi muli shli", 2, "overflow"),
    **_rows("andi ori xori", 2),
    **_rows("absi negi", 1, "overflow"),
    **_rows("divi", 2, "signedness rounding"),
    **_rows("remi shri mini maxi mulhii mulhi", 2, "signedness"),
    **_rows("cmpi", 2, "predicate signedness"),
    **_rows("cmpf", 2, "predicate nan_order"),
    **_rows("select", 3),
    **_rows("exti", 1, "signedness"),
    **_rows("trunci", 1, "overflow"),
    **_rows("ftof", 1, "rounding flush_to_zero"),
    **_rows("ftoi itof", 1, "signedness rounding"),
    **_rows("bitcast int_to_ptr ptr_to_int ptr_to_ptr pack unpack reshape broadcast", 1),
    **_rows("permute", 1, "permutation"),
    **_rows("cat", 2, "dim"),
    **_rows("extract", (1, _MANY)),
    **_rows("insert", (2, _MANY)),
    **_rows("iota", 0),
    **_rows("constant", 0, "value"),
    **_rows("mmaf", 3, "fast_acc"),
    **_rows("mmai", 3, "signedness"),
    **_rows("mmaf_scaled", 5, "", result_type=2),
    **_rows("offset", 2),
    **_rows("get_tile_block_id get_num_tile_blocks", 0, results=(3, 3)),
    **_rows("get_index_space_shape get_tensor_shape", 1, results=(1, _MANY)),
    **_rows("make_tensor_view", (1, _MANY), "shape strides"),
    **_rows("make_partition_view make_strided_view make_gather_scatter_view", 1),
    **_rows("reduce", (1, _MANY), "dim identities", regions=1, results=(1, _MANY)),
    **_rows("scan", (1, _MANY), "dim identities reverse", regions=1, results=(1, _MANY)),
    **_rows("assume", 1, "assumption", kind="assume"),
    **_rows("make_token", 0, kind="token"),
    **_rows("join_tokens", (1, _MANY), kind="token"),
    **_rows("load_ptr_tko", (1, 4), _MEMORY, kind="memory", results=(2, 2)),
    **_rows("load_view_tko", (1, _MANY), _MEMORY + " inbounds", kind="memory", results=(2, 2)),
    **_rows("store_ptr_tko", (2, 4), _MEMORY, kind="memory"),
    **_rows("store_view_tko", (2, _MANY), _MEMORY + " inbounds", kind="memory"),
    **_rows("atomic_rmw_tko", (2, 4), _MEMORY + " mode", kind="memory", results=(2, 2)),
    **_rows("atomic_cas_tko", (3, 5), _MEMORY, kind="memory", results=(2, 2)),
    **_rows("atomic_red_view_tko", (2, _MANY), _MEMORY + " mode inbounds", kind="memory"),
    **_rows("print_tko", (0, _MANY), "text", kind="effect", results=(0, 1)),
    **_rows("assert", 1, "text", kind="effect", results=(0, 0)),
    **_rows("gdc_wait_tko gdc_launch_dependents_tko", (0, 1), kind="effect", results=(1, 1)),
    **_rows("for", (3, _MANY), "unsigned", kind="control", results=(0, _MANY), regions=1),
    **_rows("loop", (0, _MANY), kind="control", results=(0, _MANY), regions=1),
    **_rows("if", 1, kind="control", results=(0, _MANY), regions=2),
    **_rows("yield continue break return", (0, _MANY), kind="control", results=(0, 0)),
}
"""Operation name -> schema."""

TERMINATORS = frozenset({"yield", "continue", "break", "return"})
REGION_LAMBDAS = frozenset({"reduce", "scan"})
