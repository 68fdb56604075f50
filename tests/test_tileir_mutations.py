"""The judge must find every kind of change of a program, and nothing in an unchanged one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from transpiler.tileir import compare, parse, selfcheck
from transpiler.tileir.model import Entry
from transpiler.tileir.printer import print_entry
from transpiler.tileir.selfcheck import shuffled

CASES = Path(__file__).parent / "tileir_cases"
PROGRAMS = ("rows", "gemm", "gather", "control", "ordered", "mixed", "early", "rust_softmax")


@cache
def text(name: str) -> str:
    return (CASES / f"{name}.mlir").read_text()


def entry(name: str) -> Entry:
    return parse(text(name), name).entry()


@dataclass(frozen=True)
class Mutation:
    """A change of a program's text: the first match of ``find`` becomes ``put``."""

    name: str
    program: str
    find: str
    put: str
    kind: str = "structure"


MUTATIONS = (
    Mutation("operands of subf swapped", "rows", r"subf (%\w+), (%\w+)", r"subf \2, \1"),
    Mutation("operands of divi swapped", "gemm", r"divi (%\w+), (%\w+)", r"divi \2, \1"),
    Mutation("operands of remi swapped", "gemm", r"remi (%\w+), (%\w+)", r"remi \2, \1"),
    Mutation("operands of addf swapped (float order is exact)", "gather", r"addf (%18), (%bcast_27)", r"addf \2, \1"),
    Mutation("operation replaced", "rows", r"subf", "addf"),
    Mutation("another unary operation", "mixed", r"floor (%2)", r"ceil \1"),
    Mutation("fma split into mulf and addf", "gather", r"%18 = fma (%\w+), (%\w+), (%\w+)  : (\S+)",
             r"%18m = mulf \1, \2  : \4\n  %18 = addf %18m, \3  : \4"),
    Mutation("predicate of cmpi", "gather", r"cmpi less_than (%3)", r"cmpi less_than_or_equal \1"),
    Mutation("signedness of cmpi", "gather", r"(cmpi less_than %9, %bcast_19), unsigned", r"\1, signed"),
    Mutation("predicate of cmpf", "mixed", r"cmpf not_equal", "cmpf equal"),
    Mutation("NaN order of cmpf", "mixed", r"not_equal unordered", "not_equal ordered"),
    Mutation("rounding of divi", "gemm", r"rounding<negative_inf>", "rounding<positive_inf>"),
    Mutation("rounding of addf dropped", "mixed", r" rounding<positive_inf> : tile<4x16xf32>", " : tile<4x16xf32>"),
    Mutation("rounding of divf", "rows", r"divf (.*) rounding<approx>", r"divf \1 rounding<full>"),
    Mutation("flush to zero dropped", "rows", r"exp2 (%3) flush_to_zero", r"exp2 \1"),
    Mutation("flush to zero added", "rows", r"(mulf %2, %bcast) ", r"\1 flush_to_zero "),
    Mutation("padding of the view", "rows", r"neg_inf", "zero"),
    Mutation("padding of the view dropped", "gemm", r"padding_value = zero, ", ""),
    Mutation("padding value of a gather", "gather", r"f32: 0.000000e\+00", "f32: 1.000000e+00"),
    Mutation("padding of a gather dropped", "gather", r", (%bcast_23) (token=%0 .*), tile<32xf32> ->", r" \2 ->"),
    Mutation("dimension map", "gemm", r"dim_map=\[1, 0\]", "dim_map=[0, 1]"),
    Mutation("mask dropped", "gather", r"store_ptr_tko weak %28, %22, %29 (.*), tile<32xi1> ->",
             r"store_ptr_tko weak %28, %22 \1 ->"),
    Mutation("half of the mask dropped", "gather", r"%22, %29 token", "%22, %26 token"),
    Mutation("token operand dropped", "ordered", r"(load_view_tko weak %pview_8\[%cst_1_i32_7\]) token = %4", r"\1"),
    Mutation("token from before the store", "ordered", r"(pview_8\[%cst_1_i32_7\] token =) %4", r"\1 %2"),
    Mutation("token of a store in a loop", "ordered", r"token = %26", "token = %iterArg0"),
    Mutation("carried token not updated", "ordered", r"continue %27, %27 : token, token",
             "continue %iterArg0, %27 : token, token"),
    Mutation("join loses an operand", "ordered", r"join_tokens %for#1, %result_token_13, %18",
             "join_tokens %for#1, %result_token_13"),
    Mutation("store doesn't wait for what decides a return", "early", r"token = %1#2", "token = %0"),
    Mutation("store doesn't wait for the other call", "early", r"token = %5#2", "token = %0"),
    Mutation("token of the load that decides is lost", "early", r"continue %true_29, %true, %9",
             "continue %true_29, %true, %iterArg2"),
    Mutation("token at the early return", "early", r"break %8, %8, %for#2", "break %8, %8, %arg12"),
    Mutation("token at the other return", "early", r"(break %tile, %cst_1_i32_20), %8", r"\1, %arg12"),
    Mutation("loop goes on after a return", "early", r"continue %true_29, %true", "continue %true_29, %false"),
    Mutation("condition of a return in a loop", "early", r"greater_than %reshape_28", "less_than %reshape_28"),
    Mutation("value of an early return", "early", r"(%cst_1_i32_26 = constant <i32:) 1>", r"\1 2>"),
    Mutation("memory ordering", "ordered", r"load_view_tko acquire device", "load_view_tko relaxed device"),
    Mutation("memory ordering of an atomic", "ordered", r"acq_rel device", "release device"),
    Mutation("memory scope", "ordered", r"acquire device", "acquire sys"),
    Mutation("mode of an atomic", "ordered", r"(%\w+), max, ", r"\1, umax, "),
    Mutation("print dropped", "ordered", r"%18 = print_tko .*", "%18 = join_tokens %17 : token", "effect"),
    Mutation("print's text", "ordered", r'"%d"', '"%u"'),
    Mutation("assert dropped", "mixed", r"  assert .*\n", "", "effect"),
    Mutation("latency changed", "rows", r"latency = 3", "latency = 4", "hint"),
    Mutation("latency dropped", "gather", r" optimization_hints = <default = \{latency = 4\}>", "", "hint"),
    Mutation("allow_tma dropped", "rows", r"allow_tma = false", "", "hint"),
    Mutation("hint of another target", "rows", r"default = \{latency = 3\}", "sm_100 = {latency = 3}", "hint"),
    Mutation("occupancy changed", "rows", r"occupancy = 2", "occupancy = 4", "hint"),
    Mutation("number of CTAs dropped", "gemm", r"num_cta_in_cga = 2", "", "hint"),
    Mutation("div_by weakened", "gather", r"div_by<16>, %arg1", "div_by<8>, %arg1", "fact"),
    Mutation("div_by strengthened", "gather", r"div_by<16>, %arg0", "div_by<32>, %arg0", "fact"),
    Mutation("div_by dropped where it is used", "gather", r"reshape %assume :", "reshape %arg0 :", "fact"),
    Mutation("bounded weakened", "rows", r"(assume_assume_16 = assume) bounded<0, \?>", r"\1 bounded<-1, ?>", "fact"),
    Mutation("bounded strengthened", "rows", r"(assume_assume_12 = assume) bounded<0, \?>", r"\1 bounded<1, ?>",
             "fact"),
    Mutation("bound stated of a parameter", "rows", r"  for %loopIdx in \(%blockId_x to %arg10",
             "  %b = assume bounded<0, ?>, %arg10 : tile<i32>\n  for %loopIdx in (%blockId_x to %b", "fact"),
    Mutation("loop bound off by one", "gemm", r"(%cst_4_i32_35 = constant <i32:) 4>", r"\1 3>"),
    Mutation("loop start", "control", r"for %loopIdx_7 in \(%cst_0_i32_3", "for %loopIdx_7 in (%cst_1_i32"),
    Mutation("loop step", "control", r"(%cst_2_i32_2 = constant <i32:) 2>", r"\1 3>"),
    Mutation("loop bound from another parameter", "control", r"to %arg3, step %cst_1_i32\)",
             "to %arg4, step %cst_1_i32)"),
    Mutation("carried value's start", "control", r"iter_values\(%iterArg0_8 = %iterArg0\)",
             "iter_values(%iterArg0_8 = %cst_0_i32)"),
    Mutation("accumulator's start", "gemm", r"(%cst_0_f32 = constant <f32:) 0.0", r"\1 1.0"),
    Mutation("accumulator not carried", "gemm", r"continue %11", "continue %iterArg0"),
    Mutation("inner and outer index exchanged", "control", r"addi %iterArg0_8, %6", "addi %iterArg0_8, %loopIdx"),
    Mutation("continue dropped", "control", r"      continue %iterArg0 : tile<i32>\n", ""),
    Mutation("continue in the other branch", "control", r"    if %4 \{\n(      continue .*\n)    \} else \{\n    \}",
             r"    if %4 {\n    } else {\n\1    }"),
    Mutation("early return dropped", "control", r"  if %1 \{\n    return\n", "  if %1 {\n"),
    Mutation("condition of the return", "control", r"greater_than %arg3, %arg4", "greater_than_or_equal %arg3, %arg4"),
    Mutation("while's exit condition", "control", r"greater_than %arg5, %arg4", "greater_than %arg5, %arg3"),
    Mutation("value at the exit of while", "control", r"break %arg5", "break %arg3"),
    Mutation("branches exchanged", "control", r"store_ptr_tko weak %assume_6, %2",
             "store_ptr_tko weak %assume_6, %arg3"),
    Mutation("store moved out of its branch", "control", r"(?s)  if %3 \{\n(.*?)  \} else \{\n.*?\n  \}\n", r"\1"),
    Mutation("reduction's dimension", "rows", r"(%reduce_23 = reduce %4) dim=1", r"\1 dim=0"),
    Mutation("reduction's identity", "rows", r"0xFF800000", "0xFF7FFFFF"),
    Mutation("reduction's body", "rows", r"maxf %reduce_lhs", "minf %reduce_lhs"),
    Mutation("scan's dimension", "mixed", r"scan (%tile) dim=1", r"scan \1 dim=0"),
    Mutation("scan's direction", "mixed", r"reverse=false", "reverse=true"),
    Mutation("store index", "ordered", r"pview_24\[%cst_2_i32\]", "pview_24[%cst_1_i32_21]"),
    Mutation("store indices exchanged", "gemm", r"pview_39\[%1, %8\]", "pview_39[%8, %1]"),
    Mutation("load index", "rows", r"(load_view_tko weak %pview\[%loopIdx), %cst_0_i32\]", r"\1, %loopIdx]"),
    Mutation("permutation dropped", "mixed", r"permute %20 \[1, 0\] : tile<4x16xf32>", "reshape %20 : tile<4x16xf32>"),
    Mutation("extracted part", "mixed", r"extract %21\[%cst_1_i32_38", "extract %21[%cst_0_i32_39"),
    Mutation("concatenated dimension", "mixed", r"cat (%22, %22) dim = 0", r"cat \1 dim = 1"),
    Mutation("constant", "mixed", r"<f32: 5.000000e-01>", "<f32: 5.000001e-01>"),
    Mutation("shift", "mixed", r"<i32: 2> : tile<4x16xi32>", "<i32: 3> : tile<4x16xi32>"),
    Mutation("sides of select", "gather", r"select %20, %19, %21", "select %20, %21, %19"),
    Mutation("tile shape", "gemm", r"tile=\(64x32\)", "tile=(32x64)"),
    Mutation("element type of the accumulator", "gemm", r"64x64xf32", "64x64xf16"),
    Mutation("stride of the view", "rows", r"(strides = \[%assume_assume_assume_11), 1\]", r"\1, 2]"),
    Mutation("shape of the view", "rows", r"shape = \[%assume_assume_assume, (%\w+)\]", r"shape = [\1, \1]"),
    Mutation("block id's axis", "gather", r"exti %blockId_y_10", "exti %blockId_z_11"),
    Mutation("grid-stride step", "rows", r"step %gridSize_x", "step %gridSize_y"),
    Mutation("another array", "rows", r"make_partition_view %tview :", "make_partition_view %tview_18 :"),
    Mutation("sign of a cast", "gather", r"exti %3 signed", "exti %3 unsigned"),
    Mutation("sign of a conversion", "mixed", r"itof %9 signed", "itof %9 unsigned"),
    Mutation("overflow stated", "gather", r"addi %bcast, %2 :", "addi %bcast, %2 overflow<no_signed_wrap> :"),
    Mutation("parameter's type", "gather", r"%arg9: tile<f32>", "%arg9: tile<f16>", "signature"),
    Mutation("operands of mma exchanged", "gemm", r"mmaf %tile, %tile_40", "mmaf %tile_40, %tile"),
)  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_a_mutation_is_found(mutation: Mutation) -> None:
    everywhere = mutation.name in ("element type of the accumulator", "tile shape", "dimension map")
    changed, count = re.subn(mutation.find, mutation.put, text(mutation.program), count=0 if everywhere else 1)
    assert count, "the mutation must apply"
    ours = parse(changed, mutation.program).entry()
    result = compare(entry(mutation.program), ours, target="sm_90")
    assert not result.equal
    assert mutation.kind in {d.kind for d in result.differences}, result.differences
    shown = [d for d in result.differences if d.kind == mutation.kind]
    assert all(d.message and (d.ours or d.reference or d.kind == "signature") for d in shown)
    if mutation.name != "div_by dropped where it is used":  # stating it there as well would be allowed
        assert not compare(ours, entry(mutation.program), target="sm_90").equal
    assert selfcheck(ours, target="sm_90")


@pytest.mark.parametrize("program", PROGRAMS)
def test_renaming_and_reordering_are_not_found(program: str) -> None:
    original = entry(program)
    for seed in range(10):
        moved = shuffled(original, seed)
        assert compare(original, moved, target="sm_90").equal
        printed = parse(print_entry(moved, lambda value: f"%name{value}"), program)
        result = compare(original, printed, target="sm_90")
        assert result.equal, result.differences


def test_shuffling_really_reorders() -> None:
    original = entry("mixed")
    orders = {tuple(op.line for op in shuffled(original, seed).body.ops) for seed in range(5)}
    assert len(orders) == 5
