"""The kinds of fault that the judge has to find: one row each."""

from __future__ import annotations

import re
from dataclasses import dataclass

import fault_edits as fe
import fault_undefined as fu
from fault_edits import Edit, TextEdit


@dataclass(frozen=True)
class Kind:
    """A kind of fault; its edit yields the changed programs, one for each place where the kind could apply."""

    name: str
    edit: Edit


def text(name: str, *edits: TextEdit) -> Kind:
    """Name a fault in the text of kernel.rs."""
    return Kind(name, fe.in_text(fe.first_of(*edits)))


def inputs(name: str, edit: fe.InputsEdit) -> Kind:
    """Name a fault in what the text is compiled with."""
    return Kind(name, fe.in_inputs(edit))


MEMORY = (
    text("padding of a view changed", fe.argument(
        ("make_partition_view",), "padding", fe.becomes({"padding::Zero": "padding::NegInf",
                                                         "padding::NegInf": "padding::Zero"}))),
    text("padding of a view dropped", fe.argument(
        ("make_partition_view",), "padding", fe.becomes({"padding::Zero": "padding::None",
                                                         "padding::NegInf": "padding::None"}))),
    text("padding of a gather changed", fe.gather_padding),
    text("mask of a gather lost", fe.no_mask(fe.GATHERS, "mask", "padding")),
    text("padding of a gather lost", fe.no_mask(fe.GATHERS, "padding")),
    text("mask of a scatter lost", fe.no_mask(fe.SCATTERS, "mask")),
    text("mask inverted", fe.mask_inverted),
    text("one side of an `and` lost", fe.operator("&", fe.left_only)),
    text("order of a view's dimensions", fe.dimensions_reversed),
    text("another array", fe.another_array),
    text("load index changed", fe.each_index(fe.VIEW_LOADS)),
    text("load indices exchanged", fe.indices_exchanged(fe.VIEW_LOADS)),
    text("store index changed", fe.each_index(fe.VIEW_STORES)),
    text("store indices exchanged", fe.indices_exchanged(fe.VIEW_STORES)),
    text("load said to be in bounds", fe.argument(fe.VIEW_LOADS, "inbounds", fe.first_true)),
    text("store said to be in bounds", fe.argument(fe.VIEW_STORES, "inbounds", fe.first_true)),
    text("stride of a gather changed", fe.gather_step),
    text("offset of a gather doubled", fe.offset_doubled),
    text("another value stored", fe.another_value_stored),
    text("a stored value doubled", fe.argument(fe.STORES, "value", fe.double)),
    text("store lost", fe.stores_lost),
    text("store repeated", fe.stores_repeated),
)  # fmt: skip

ORDER = (
    text("token of a load dropped", fe.argument(fe.LOADS, "token", fe.nothing)),
    text("token of a store dropped", fe.argument(fe.STORES, "token", fe.nothing)),
    text("token replaced by the first one", fe.root_instead),
    text("join of tokens lost", fe.join_dropped),
    text("token not carried on", fe.token_not_kept),
    text("memory ordering of a load", fe.argument(
        fe.LOADS, "ordering", fe.becomes({"ordering::Weak": "ordering::Relaxed"}), scope=fe.device)),
    text("memory ordering of a store", fe.argument(
        fe.STORES, "ordering", fe.becomes({"ordering::Weak": "ordering::Release"}), scope=fe.device)),
)  # fmt: skip

HINTS = (
    text("TMA of a load", fe.argument(fe.VIEW_LOADS, "tma", fe.becomes(fe.TMA))),
    text("TMA of a store", fe.argument(fe.VIEW_STORES, "tma", fe.becomes(fe.TMA))),
    text("latency of a view access changed", fe.argument(
        fe.VIEW_LOADS + fe.VIEW_STORES, "latency", lambda t: "Some(7)" if t.startswith("Some") else None)),
    text("latency of a view access dropped", fe.argument(
        fe.VIEW_LOADS + fe.VIEW_STORES, "latency", fe.nothing)),
    text("latency of a view access added", fe.argument(
        fe.VIEW_LOADS + fe.VIEW_STORES, "latency", fe.becomes({"None": "Some(7)"}))),
    text("latency of a gather or scatter", fe.argument(
        fe.GATHERS + fe.SCATTERS, "latency", fe.becomes({"Latency::<0>": "Latency::<7>"}))),
    Kind("occupancy changed", fe.hint("occupancy", lambda n: n + 1)),
    Kind("occupancy dropped", fe.hint("occupancy", lambda _: None)),
    inputs("occupancy added", fe.hint_stated("occupancy", 2)),
    Kind("number of CTAs changed", fe.hint("num_ctas", lambda n: n * 2)),
    Kind("number of CTAs dropped", fe.hint("num_ctas", lambda n: None if n > 1 else 2)),
    inputs("number of worker warps added", fe.hint_stated("num_worker_warps", 8)),
)  # fmt: skip

ARITHMETIC = (
    text("operands of a difference swapped", fe.operator("-", fe.swapped)),
    text("operands of a quotient swapped", fe.operator("/", fe.swapped), fe.exchanged(("divf", "divi"))),
    text("operands of a remainder or shift swapped", fe.operator("% << >>", fe.swapped)),
    text("operands of a comparison swapped", fe.exchanged(tuple(fe.COMPARISONS))),
    text("predicate of a comparison", fe.renamed(fe.COMPARISONS)),
    text("signedness of a comparison", fe.everywhere(r"\bu64\b", "i64"), fe.everywhere(r"\bu32\b", "i32")),
    text("sum and difference", fe.other_operator({"+": "-", "-": "+"})),
    text("product and sum", fe.other_operator({"*": "+"})),
    text("product and quotient", fe.other_operator({"/": "*"})),
    text("another bitwise operation", fe.other_operator({"^": "|", "&": "|", "|": "&"})),
    text("direction of a shift", fe.other_operator({"<<": ">>", ">>": "<<"})),
    text("an operation left out", fe.operator("+ - * / % ^ << >>", fe.left_only)),
    text("minimum and maximum", fe.renamed({"mini": "maxi", "maxi": "mini", "minf": "maxf", "maxf": "minf"})),
    text("kind of a reduction", fe.renamed({"reduce_max": "reduce_min", "reduce_min": "reduce_max",
                                            "reduce_sum": "reduce_max"})),
    text("axis of a reduction", fe.reduce_axis),
    text("fma split", fe.called(("fma",), lambda _, a: "{} * {} + {}".format(*map(fe.grouped, a[:3])))),
    text("fma of the other product", fe.called(("fma",), fe.other_product)),
    text("rounding of a float operation", fe.argument_value(
        ("fma", "addf", "subf", "mulf", "divf", "sqrt", "itof", "ftof", "exp_with_rounding", "tanh_with_rounding"),
        {"rounding::NearestEven": "rounding::Zero", "rounding::Approx": "rounding::Full"})),
    text("rounding of an integer division", fe.argument_value(
        ("divi",),
        {"rounding::NegativeInf": "rounding::PositiveInf", "rounding::PositiveInf": "rounding::NegativeInf"})),
    text("floor division made to truncate", fe.argument_value(("divi",), {"rounding::NegativeInf": "rounding::Zero"})),
    text("flush to zero", fe.ftz_toggled),
    text("exponential of another base", fe.called(
        ("exp_with_rounding", "exp"), lambda _, a: f"exp2({a[0]}, ftz::Disabled)"),
        fe.called(("exp2",), lambda _, a: f"exp({a[0]})")),
    text("another function", fe.called(("rsqrt",), lambda _, a: f"sqrt({a[0]}, rounding::NearestEven, {a[1]})"),
         fe.renamed({"negf": "absf", "floor": "ceil", "sin": "cos", "cos": "sin"})),
    text("negation lost", fe.called(("negf", "negi"), lambda _, a: a[0])),
    text("division made approximate", fe.operator("/", lambda a, _, b: f"true_div({a}, {b})")),
    text("division made exact", fe.called(("divf", "true_div"), lambda _, a: " / ".join(map(fe.grouped, a[:2])))),
    text("sides of a selection swapped", fe.called(("select",), lambda n, a: f"{n}({a[0]}, {a[2]}, {a[1]})")),
    text("selection lost", fe.called(("select",), lambda _, a: a[1]), fe.called(("select",), lambda _, a: a[2])),
    text("operands of mma swapped", fe.exchanged(("mma", "mmaf"))),
)  # fmt: skip

VALUES = (
    text("integer constant", fe.integer_constant),
    text("float constant", fe.float_constant),
    text("accumulator's element type", fe.bound(fe.is_accumulator, fe.half_accumulator)),
    text("accumulator's start", fe.bound(fe.is_accumulator, fe.another_start)),
    text("accumulation lost", fe.not_accumulated),
    text("a conversion rounds on the way", fe.bound(fe.converts_values, fe.detour)),
    text("permutation", fe.permutation),
    text("axis of a broadcast", fe.broadcast_axis),
    text("a lane's number doubled", fe.bound(
        fe.is_call("iota"), lambda t, let: fe.followed(t, let, f"{let.name} + {let.name}"))),
    text("axis of the block's id", fe.axis_of("tile_block_id", "get_tile_block_id")),
    text("axis of the grid's size", fe.axis_of("num_tile_blocks", "get_num_tile_blocks")),
)  # fmt: skip

CONTROL = (
    text("loop starts one later", fe.loop_start),
    text("loop ends one later", fe.loop_end(1)),
    text("loop ends one earlier", fe.loop_end(-1)),
    text("loop's step doubled", fe.loop_step),
)

FACTS = (
    inputs("div_by of an address dropped", fe.base(lambda _: 1)),
    inputs("div_by of an address halved", fe.base(lambda d: d // 2 or 1)),
    inputs("div_by of an address doubled", fe.base(lambda d: d * 2)),
    inputs("div_by of an extent dropped", fe.extents(lambda _: 1)),
    inputs("div_by of an extent halved", fe.extents(lambda d: d // 2 or 1)),
    inputs("div_by of an extent doubled", fe.extents(lambda d: d * 2)),
    inputs("div_by of a stride dropped", fe.strides(lambda _: 1)),
    inputs("div_by of a stride doubled", fe.strides(lambda d: d * 2)),
    Kind("known stride lost", fe.strides_of_views(lambda _: -1)),
    Kind("unknown stride stated", fe.strides_of_views(lambda _: 1)),
    Kind("div_by of a scalar stated", fe.scalar_divisor),
    inputs("constant doubled", fe.generic(lambda v: str(int(v) * 2) if re.fullmatch(r"\d+", v) else None)),
    inputs("constant off by one", fe.generic(lambda v: str(int(v) + 1) if re.fullmatch(r"\d+", v) else None)),
    inputs("element type of an array", fe.generic({"f16": "bf16", "bf16": "f16", "f32": "f16"}.get)),
)

UNDEFINED = (
    text("a bound stated of what nothing needs", fu.stated_of_nothing("assume_bounds_lower::<_, 1048576>")),
    text("a divisor stated of what nothing needs", fu.stated_of_nothing("assume_div_by::<_, 4096>")),
    text("a loop that may not end", fu.endless_loop),
    text("signed overflow excluded", fu.overflow_excluded("NoSignedWrap")),
    text("unsigned overflow excluded", fu.overflow_excluded("NoUnsignedWrap")),
)

KINDS = (*MEMORY, *ORDER, *HINTS, *ARITHMETIC, *VALUES, *CONTROL, *FACTS, *UNDEFINED)
