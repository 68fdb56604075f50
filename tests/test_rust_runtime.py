"""The compiler extension: results, facts, errors with their place, panics, threads and forks."""

from __future__ import annotations

import multiprocessing
import pickle
import re
import threading
from typing import Any

import pytest

from transpiler import _rust, toolkit

KERNEL = """\
// A comment before the module, and an attribute on it.
#![allow(dead_code)]

#[cutile::module]
pub mod doubling {
    use cutile::core::*;

    fn twice<E: ElementType, const N: i32>(x: Tile<E, { [N] }>) -> Tile<E, { [N] }> {
        x + x
    }

    #[cutile::entry(unchecked_accesses = true)]
    pub unsafe fn double<E: ElementType, const N: i32>(
        output: &Tensor<E, { [-1] }>,
        input: &Tensor<E, { [-1] }>,
        n: i32,
    ) {
        let source: Partition<E, { [N] }> =
            unsafe { make_partition_view(input, shape![N], padding::Zero, dim_map::Identity, input.token()) };
        let mut target: PartitionMut<E, { [N] }> = unsafe { output.partition_full_mut(shape![N]) };
        for i in get_tile_block_id().0..n {
            let tile: Tile<E, { [N] }> = source.load([i]);
            let total: Tile<E, { [] }> = reduce_sum(tile, 0i32);
            target.store(twice(tile + total.reshape(shape![1]).broadcast(shape![N])), [i]);
        }
    }
}
"""

RANK_3 = """
pub mod facts {
    use cutile::core::*;
    #[cutile::entry(unchecked_accesses = true)]
    pub unsafe fn touch<const N: i32>(x: &Tensor<f32, { [-1, 4, -1] }>) {
        let view: Partition<f32, { [1, 1, N] }> =
            unsafe { make_partition_view(x, shape![1, 1, N], padding::Zero, dim_map::Identity, x.token()) };
        let tile: Tile<f32, { [1, 1, N] }> = view.load([0i32, 0i32, 0i32]);
        cuda_tile_print!("{}", tile);
    }
}
"""

ARGUMENTS: dict[str, Any] = {
    "generics": ["f32", "64"],
    "strides": [("output", [1]), ("input", [1])],
    "specs": [("output", [16], [1], 16), ("input", [1], [1], 1)],
    "scalar_hints": [],
    "target": "sm_90",
}


def compile_double(source: str = KERNEL, **changes: Any) -> bytes:
    return _rust.Module(source, "doubling").compile("double", **(ARGUMENTS | changes))


def line_of(part: str, source: str = KERNEL) -> int:
    return source[: source.index(part)].count("\n") + 1


def replaced(old: str, new: str) -> str:
    assert old in KERNEL
    return KERNEL.replace(old, new)


def failure(source: str = KERNEL, **changes: Any) -> _rust.CompileError:
    with pytest.raises(_rust.CompileError) as caught:
        compile_double(source, **changes)
    return caught.value


def test_the_same_request_gives_the_same_bytes() -> None:
    module = _rust.Module(KERNEL, "doubling")
    first = module.compile("double", **ARGUMENTS)
    assert first[1:].startswith(b"TileIR")
    assert module.compile("double", **ARGUMENTS) == first == compile_double()


def test_one_module_serves_every_specialization() -> None:
    module = _rust.Module(KERNEL, "doubling")
    for dtype, size in (("f16", 16), ("bf16", 128), ("f64", 32)):
        text = toolkit.disassemble(module.compile("double", **(ARGUMENTS | {"generics": [dtype, str(size)]})))
        assert f"tile<{size}x{dtype}>" in text


def test_facts_and_hints_are_stated_as_given() -> None:
    hints: dict[str, Any] = {"occupancy": 3, "num_ctas": 2, "num_worker_warps": 4}
    text = toolkit.disassemble(compile_double(scalar_hints=[("n", 8)], **hints))
    assert re.findall(r"div_by<(\d+)>", text) == ["16", "16", "8"]  # extent and address of output, n
    assert "occupancy = 3" in text
    assert "num_cta_in_cga = 2" in text
    assert re.search(r"num_worker_warps\w* = 4", text)
    assert "occupancy" not in toolkit.disassemble(compile_double())


def test_a_divisor_may_exceed_16() -> None:
    text = toolkit.disassemble(compile_double(specs=[("output", [64], [1], 128)]))
    assert re.findall(r"div_by<(\d+)>", text) == ["64", "128"]


def test_facts_are_per_axis_though_the_compiler_counts_dynamic_axes() -> None:
    module = _rust.Module(RANK_3, "facts")
    code = module.compile(
        "touch",
        generics=["8"],
        strides=[("x", [-1, 1, -1])],
        specs=[("x", [2, 4, 8], [16, 1, 32], 1)],
        scalar_hints=[],
        target="sm_90",
    )
    assert re.findall(r"div_by<(\d+)>", toolkit.disassemble(code)) == ["2", "8", "16", "32"]


def test_locations_name_the_file_that_was_given() -> None:
    code = _rust.Module(KERNEL, "doubling", file="k.rs").compile("double", **ARGUMENTS)
    assert f'"k.rs":{line_of("reduce_sum")}:' in toolkit.disassemble(code, debug=True)


def test_ir_text_shows_the_entry() -> None:
    assert "entry @double_entry" in _rust.Module(KERNEL, "doubling").ir_text("double", **ARGUMENTS)


def test_a_syntax_error_has_its_place() -> None:
    with pytest.raises(_rust.CompileError, match="expected") as caught:
        _rust.Module(replaced("let total:", "let total"), "doubling")
    assert caught.value.line == line_of("let total:")
    assert caught.value.column > 1


def test_a_missing_module_is_named() -> None:
    with pytest.raises(_rust.CompileError, match="no module `nope`"):
        _rust.Module(KERNEL, "nope")


def test_a_missing_entry_is_named() -> None:
    with pytest.raises(_rust.CompileError, match="nope"):
        _rust.Module(KERNEL, "doubling").compile("nope", **ARGUMENTS)


def test_a_compiler_error_has_its_place() -> None:
    error = failure(replaced("x + x", "x + missing"))
    assert "missing" in error.message
    assert error.line == line_of("x + x")
    assert error.column == KERNEL.splitlines()[error.line - 1].index("x + x") + len("x + ") + 1


def test_wrong_generics_are_an_error_not_a_crash() -> None:
    assert failure(generics=[]).line == line_of("pub unsafe fn double")


def test_a_panic_becomes_an_error_with_the_line_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    error = failure(replaced("reduce_sum(tile, 0i32)", "reduce_sum(tile, 7i32)"))
    assert error.message.startswith("the cuTile Rust compiler panicked: ")
    assert "(at cutile-compiler-" in error.message, "the compiler's own place, without this machine's directories"
    assert error.line == line_of("let total:")
    assert capfd.readouterr() == ("", "")


def test_a_module_works_after_a_panic() -> None:
    module = _rust.Module(replaced("twice(tile +", "twice(reduce_sum(tile, N) +"), "doubling")
    for _ in range(2):
        with pytest.raises(_rust.CompileError):
            module.compile("double", **ARGUMENTS)


def test_errors_survive_pickling_as_between_processes() -> None:
    error = pickle.loads(pickle.dumps(_rust.CompileError("what", 3, 4)))
    assert (str(error), error.message, error.line, error.column) == ("what", "what", 3, 4)


def test_other_threads_run_while_one_compiles() -> None:
    module = _rust.Module(KERNEL, "doubling")
    worker = threading.Thread(target=module.compile, args=("double",), kwargs=ARGUMENTS)
    worker.start()
    turns = 0
    while worker.is_alive():
        turns += 1
    assert turns > 1000, "the GIL was held"


def test_threads_compile_side_by_side() -> None:
    expected = compile_double()
    results: list[bytes] = []
    threads = [threading.Thread(target=lambda: results.append(compile_double())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


def _compile_in_child(module: _rust.Module, queue: multiprocessing.SimpleQueue[bytes]) -> None:
    queue.put(module.compile("double", **ARGUMENTS))


def test_a_forked_child_can_use_the_module_of_its_parent() -> None:
    context = multiprocessing.get_context("fork")
    module, queue = _rust.Module(KERNEL, "doubling"), context.SimpleQueue()
    child = context.Process(target=_compile_in_child, args=(module, queue))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert queue.get() == module.compile("double", **ARGUMENTS)


def test_versions_name_what_is_built_in() -> None:
    versions = _rust.versions()
    assert versions["cutile"] == versions["cutile-compiler"] == versions["cutile-ir"] == "0.5.0"
    assert versions["rustc"].startswith("1.")
    assert re.fullmatch(r"\d+\.\d+\.\d+", _rust.version)
