"""Emission: everything that is emitted compiles, reads like the author's code, and is deterministic."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import case_format as cf
import emit_kernels
import pytest

from transpiler import _rust
from transpiler.diagnostics import Span, TranspileError
from transpiler.emit import EmittedModule, compile_inputs, emit_entry, emit_operator
from transpiler.emit.format import formatted, rustfmt
from transpiler.emit.inputs import divisor
from transpiler.emit.naming import function_name, snake, unique, upper
from transpiler.ir.rust import Line
from transpiler.select import SURFACE
from transpiler.spec import Hints, Specialization
from transpiler.toolkit import disassemble

CHECK_CRATE = os.environ.get("EMIT_CHECK_CRATE")  # a crate that depends on cutile, to run `cargo check` in


def case(python: str, params: str, name: str = "kernel") -> cf.Case:
    return cf.Case(Path(name), {"python": emit_kernels.HEAD + python.lstrip("\n"), "params": params})


def emit(*cases: cf.Case) -> EmittedModule:
    kernels = [cf.lower(c) for c in cases]
    return emit_operator("op", [(k, emit_entry(k)) for k in kernels], "op.py")


def compile_entry(module: EmittedModule, spec: Specialization, index: int = 0, target: str = "sm_90") -> str:
    """Compile the entry that serves a specialization; returns the disassembly."""
    abis = {e.name: e for k in module.kernel_abis for e in k.entries}
    inputs = compile_inputs(abis[module.entries[index]], spec, "sm_90")
    bytecode = _rust.Module(module.text, module.module).compile(
        inputs.entry,
        generics=list(inputs.generics),
        strides=[(n, list(s)) for n, s in inputs.strides],
        specs=[(n, list(a), list(b), d) for n, a, b, d in inputs.specs],
        scalar_hints=[],
        target=target,
    )
    return disassemble(bytecode)


def body_of(module: EmittedModule) -> str:
    """The entry's statements, without indentation and blank lines."""
    lines = module.text[module.text.index("pub unsafe fn") :].splitlines()
    return "\n".join(line.strip() for line in lines if line.strip())


# -- everything compiles ------------------------------------------------------------------------------


def _without_holes() -> list[Path]:
    paths = []
    for path in cf.all_cases():
        try:
            if not cf.lower(cf.read(path)).holes:
                paths.append(path)
        except TranspileError:
            continue
    return paths


def _needs_sm_100(module: EmittedModule) -> bool:
    return "mmaf_scaled" in module.text or "gather_scatter" in module.text


@pytest.mark.parametrize("path", _without_holes(), ids=lambda p: p.stem)
def test_cases_compile(path: Path) -> None:
    one = cf.read(path)
    module = emit(one)
    assert module.diagnostics == ()
    assert "compile_error!" not in module.text
    target = one.specialization.target or ("sm_100" if _needs_sm_100(module) else "sm_90")
    assert compile_entry(module, one.specialization, target=target)


@pytest.mark.parametrize("name", list(emit_kernels.KERNELS))
def test_kernels_compile(name: str) -> None:
    one = case(*emit_kernels.KERNELS[name], name)
    module = emit(one)
    assert module.diagnostics == ()
    assert compile_entry(module, one.specialization)


@pytest.mark.skipif(CHECK_CRATE is None, reason="set EMIT_CHECK_CRATE to the folder of a crate that depends on cutile")
def test_rustc_has_nothing_to_say(tmp_path: Path) -> None:
    assert CHECK_CRATE is not None
    modules = {p.stem: emit(cf.read(p)) for p in _without_holes()}
    modules |= {f"k_{n}": emit(case(*k, n)) for n, k in emit_kernels.KERNELS.items()}
    lines = []
    for name, module in modules.items():
        (tmp_path / f"{name}.rs").write_text(module.text)
        lines.append(f'#[path = "{tmp_path}/{name}.rs"]\npub mod {name};\n')
    (Path(CHECK_CRATE) / "src" / "lib.rs").write_text("".join(lines))
    done = subprocess.run(["cargo", "check"], cwd=CHECK_CRATE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr


# -- what it looks like -------------------------------------------------------------------------------


def test_loops_assign_the_author_s_variables() -> None:
    body = body_of(emit(case(*emit_kernels.KERNELS["nested"])))
    assert "let mut acc: Tile<f32, { [N, N] }> = splat_f32(0.0, shape![N, N]);" in body
    assert "for j in (to_i32(i)..to_i32(n)).step_by(3) {" in body
    assert "row = row + tile;" in body
    assert "acc = fma(" in body
    assert "acc = maxf(acc, row, nan::Disabled, ftz::Disabled);" in body


def test_a_parallel_assignment_keeps_old_values() -> None:
    swap = body_of(emit(case(*emit_kernels.KERNELS["swap"])))
    assert "let b_1: Tile<i32, { [] }> = a + b;\na = b;\nb = b_1;" in swap
    tiles = body_of(emit(case(*emit_kernels.KERNELS["swap_tiles"])))
    assert "let old_a: Tile<E, { [4, 4] }> = a;\na = b;\nb = old_a;" in tiles


def test_swaps_mean_what_python_means() -> None:
    one = case(*emit_kernels.KERNELS["swap"])
    text = compile_entry(emit(one), one.specialization)
    assert "iter_values(%iterArg0 = %blockId_x, %iterArg1 = %gridSize_x)" in text
    assert "addi %iterArg0, %iterArg1" in text


def test_branches() -> None:
    body = body_of(emit(case(*emit_kernels.KERNELS["if_results"])))
    assert "a = b * const_i32(3);\na - i\n} else {\na = i * i;\na + const_i32(7)\n};" in body
    assert "if to_bool(gt_tile(c, n)) {\nc = c - n;\n}" in body
    loop = body_of(emit(case(*emit_kernels.KERNELS["if_in_loop"])))
    assert "last = i;" in loop
    assert "acc = acc + " in loop and "acc = acc - " in loop


def test_while() -> None:
    assert "while to_bool(lt_tile(i, n)) {" in body_of(emit(case(*emit_kernels.KERNELS["while"])))
    assert "loop {\nif to_bool(ge_tile(i, n)) {\nbreak;\n}" in body_of(emit(case(*emit_kernels.KERNELS["while_break"])))


def test_comments_of_helpers_stay_in_their_functions() -> None:
    text = emit(case(*emit_kernels.KERNELS["helper_comments"])).text
    lines = [line.strip() for line in text.splitlines()]
    scale = lines.index("// Above the helper.")
    assert lines[scale + 1] == "/// Never negative."
    assert lines[scale + 2].startswith("fn scale<")
    assert lines[scale + 3] == "// multiply"
    assert [line for line in lines[scale:] if "//" in line][3:] == [
        "// clamp",
        next(line for line in lines if line.endswith("// at zero")),
        "// once",
        "// and again",
        *(line for line in lines[scale:] if line.startswith("/// ") and "Never" not in line),
        "// in a loop",
        "// the call",
        next(line for line in lines if line.endswith("// here")),
    ]
    assert "twice(" in next(line for line in lines if line.endswith("// here"))


def test_helpers_are_functions() -> None:
    text = emit(case(*emit_kernels.KERNELS["helpers"])).text
    assert text.count("fn relu<") == 1
    assert text.count("fn twice<") == 1
    assert "fn stats<" in text
    body = text[text.index("pub unsafe fn") :]
    assert "let (s, m): (Tile<E, { [M, 1] }>, Tile<E, { [M, 1] }>) = stats(a);" in body
    assert "// load both" in body


def test_gathers_are_functions() -> None:
    text = emit(case(*emit_kernels.KERNELS["gathers"])).text
    body = text[text.index("pub unsafe fn") :]
    assert "gather_2d(x, i, cols, x_stored)" in body or "gather_2d(" in body
    assert "offset_tile" not in body


def test_a_result_is_not_called_like_a_variant_of_the_function() -> None:
    python = """
def gate(x, index, N):
    return ct.exp(x * index) + ct.arange(N, dtype=ct.int32)


@ct.kernel
def kernel(x, N: ct.Constant[int]):
    a = ct.load(x, (0,), (N,))
    ct.store(x, (0,), ct.tanh(gate(a, 3, N)) + ct.tanh(gate(a, N, N)))
"""
    text = emit(case(python, 'x = {dtype = "float32", ndim = 1}\nN = 16\n')).text
    assert not [line for line in text.splitlines() if "let gate_" in line and "let gate_value" not in line]


def test_names_of_keywords_functions_and_upper_case() -> None:
    body = body_of(emit(case(*emit_kernels.KERNELS["names"])))
    assert "a: &Tensor<E, { [-1, -1] }>, max: i32" in body
    assert "let type_: Tile" in body
    assert "let tile_block_id_value: Tile<i32, { [] }> = tile_block_id().0;" in body
    assert "// `exp`, written out:" in body
    assert snake("yPtr") == "y_ptr"
    assert snake("N_ROWS") == "n_rows"
    assert snake("match") == "match_"
    assert upper("blockSize") == "BLOCK_SIZE"
    assert unique("a", {"a", "a_1"}) == "a_2"


def test_text_is_rustfmt_s() -> None:
    if shutil.which("rustfmt") is None:
        pytest.skip("rustfmt isn't installed")
    for name, kernel in emit_kernels.KERNELS.items():
        text = emit(case(*kernel, name)).text
        assert rustfmt(text) == text


# -- entries ------------------------------------------------------------------------------------------

_TILED = """
@ct.kernel
def kernel(x, N: ct.Constant[int], MODE: ct.Constant[int]):
    t = ct.load(x, (0, 0), (N, N))
    if MODE == 1:
        t = t * 2.0
    ct.store(x, (0, 0), t)
"""


def _x(dtype: str, extra: str = "") -> str:
    return f'x = {{dtype = "{dtype}", ndim = 2{extra}}}\n'


def test_sizes_and_dtypes_share_an_entry() -> None:
    cases = [case(_TILED, _x(d) + f"N = {n}\nMODE = 0\n") for d, n in (("float16", 16), ("float32", 64))]
    module = emit(*cases)
    assert module.entries == ("kernel", "kernel")
    (entry,) = module.kernel_abis[0].entries
    assert [(g.name, g.kind, str(g.value)) for g in entry.generics] == [("E", "type", "x.dtype"), ("N", "i32", "N")]
    inputs = [compile_inputs(entry, c.specialization, "sm_90").generics for c in cases]
    assert inputs == [("f16", "16"), ("f32", "64")]


def test_branches_make_entries_of_their_own() -> None:
    cases = [case(_TILED, _x("float16") + f"N = 16\nMODE = {m}\n") for m in (0, 1, 2)]
    module = emit(*cases)
    assert module.entries == ("kernel", "kernel_1", "kernel")
    first, second = module.kernel_abis[0].entries
    assert [(str(c.sym), c.outcome) for c in second.conditions] == [("MODE == 1", True)]
    assert [(str(c.sym), c.outcome) for c in first.conditions] == [("MODE == 1", False)]
    assert "/// [`kernel`] when `MODE == 1`." in module.text


def test_static_dimensions_are_generics_where_only_types_need_them() -> None:
    python = """
@ct.kernel
def kernel(x, N: ct.Constant[int]):
    ct.store(x, (0, 0, 0), ct.load(x, (1, 0, 0), (1, N, N)))
"""
    x = 'x = {{dtype = "float16", ndim = 3, shape_constant = [{}]}}\nN = 16\n'
    cases = [case(python, x.format(dims)) for dims in ('1, "?", "?"', '"?", 1, "?"')]
    module = emit(*cases)
    assert module.entries == ("kernel", "kernel")
    (entry,) = module.kernel_abis[0].entries
    assert compile_inputs(entry, cases[0].specialization, "sm_90").generics == ("f16", "1", "-1", "-1", "16")
    assert compile_inputs(entry, cases[1].specialization, "sm_90").generics == ("f16", "-1", "1", "-1", "16")
    assert "tensor_view<1x?x?xf16" in compile_entry(module, cases[0].specialization)
    assert "tensor_view<?x1x?xf16" in compile_entry(module, cases[1].specialization, 1)


def test_an_array_may_have_another_rank_in_another_entry() -> None:
    python = """
@ct.kernel
def kernel(x, FLAT: ct.Constant[bool]):
    if FLAT:
        ct.scatter(x, 3, 1.0)
    else:
        ct.scatter(x, (ct.bid(0), 3), 1.0)
"""
    x = 'x = {{dtype = "float32", ndim = {}}}\nFLAT = {}\n'
    cases = [case(python, x.format(2, "false")), case(python, x.format(1, "true"))]
    module = emit(*cases)
    assert module.entries == ("kernel", "kernel_1")
    first, second = module.kernel_abis[0].entries
    assert [str(c.sym) for c in second.conditions] == ["x.ndim", "bool(FLAT)", "x.strides[0]"]
    assert [str(c.sym) for c in first.conditions] == ["x.ndim", "bool(FLAT)", "x.strides[1]", "x.strides[0]"]


def test_hints_resolve_for_the_target() -> None:
    hints = Hints(occupancy="ByTarget(sm_80=2, default=4)", num_ctas=2)
    assert [hints.resolved("occupancy", t) for t in ("sm_80", "sm_90")] == [2, 4]
    assert (hints.resolved("num_ctas", "sm_90"), hints.resolved("num_worker_warps", "sm_90")) == (2, None)
    assert Hints(occupancy="ByTarget(sm_100=8)").resolved("occupancy", "sm_90") is None


def test_facts_of_a_specialization() -> None:
    extra = ", shape_divisible_by = [24, 2048], stride_divisible_by = [8, 1], base_addr_divisible_by = 16"
    one = case(_TILED, _x("float16", extra) + "N = 16\nMODE = 0\n")
    (entry,) = emit(one).kernel_abis[0].entries
    inputs = compile_inputs(entry, one.specialization, "sm_90")
    assert inputs.strides == (("x", (-1, 1)),)
    assert inputs.specs == (("x", (8, 1024), (8, 1), 16),)
    assert [divisor(d) for d in (0, 1, 6, 4096)] == [1024, 1, 2, 1024]


# -- lines and holes ----------------------------------------------------------------------------------


def test_lines_lead_back_to_python() -> None:
    module = emit(case(*emit_kernels.KERNELS["nested"]))
    lines = module.text.splitlines()
    source = (emit_kernels.HEAD + emit_kernels.KERNELS["nested"][0].lstrip("\n")).splitlines()
    number = next(i for i, line in enumerate(lines, 1) if line.strip() == "row = row + tile;")
    assert source[module.line_map[number].line - 1].strip() == "row = row + tile"
    number = next(i for i, line in enumerate(lines, 1) if "load_2d_with_token(x, [i, j]" in line)
    assert "ct.load" in source[module.line_map[number].line - 1]


def test_lines_survive_rustfmt() -> None:
    span = Span("f.py", 7, 1)
    lines = [Line("fn f( ) {"), Line(f"    let x: u32 = g({', '.join(['argument'] * 20)});", span), Line("}")]
    after = formatted(lines)
    assert [line.span.line for line in after if "let x" in line.text] == [7]


def test_a_hole_is_a_compile_error() -> None:
    python = """
@ct.kernel
def kernel(x):
    t = ct.load(x, (0, 0), (4, 4))
    ct.store(x, (0, 0), ct.cumprod(t, 0))
"""
    module = emit(case(python, _x("float32")))
    assert "compile_error!(" in module.text
    assert module.diagnostics and module.diagnostics[0].severity == "error"


def test_an_unmapped_attribute_is_a_diagnostic() -> None:
    python = """
@ct.kernel
def kernel(x):
    t = ct.load(x, (0, 0), (4, 4))
    ct.store(x, (0, 0), ct.max(t, 0, keepdims=True, propagate_nan=True) + t)
"""
    module = emit(case(python, _x("float32")))
    assert [d.code for d in module.diagnostics] == ["E0601"]
    assert "E0601" in module.text


def test_emission_is_a_function_of_its_input() -> None:
    kernels = [case(*k, n) for n, k in emit_kernels.KERNELS.items()]
    assert [emit(k).text for k in kernels] == [emit(k).text for k in kernels]


@pytest.mark.parametrize(
    ("python", "rust_name"),
    [("loop", "loop_"), ("_move", "move_"), ("_my_kernel", "my_kernel"), ("MyKernel", "my_kernel")],
)
def test_names_of_functions(python: str, rust_name: str) -> None:
    """Keywords are escaped; a leading underscore would say that a function is unused."""
    assert function_name(python) == rust_name


def test_no_function_of_ours_hides_one_of_the_kernel_language() -> None:
    assert {"reduce_max", "select", "exp", "convert_tile", "make_partition_view"} <= SURFACE


@pytest.mark.parametrize(("value", "shape", "codes"), [
    ("0.0", "()", []), ("0.0", "(8,)", ["E0602"]), ("1.0", "(8,)", ["E0602"]), ("-0.0", "(1,)", ["E0602"]),
])  # fmt: skip
def test_of_tf32_only_a_zero_of_one_element_is_written(value: str, shape: str, codes: list[str]) -> None:
    """Bytecode of cutile 0.5 with another one is corrupt: that is a Hole, not a program that doesn't compile."""
    module = emit(case(f"""
@ct.kernel
def kernel(x):
    ct.store(x, (0,), ct.full({shape}, {value}, dtype=ct.tfloat32).astype(ct.float32))
""", 'x = {dtype = "float32", ndim = 1}'))  # fmt: skip
    assert [d.code for d in module.diagnostics] == codes
