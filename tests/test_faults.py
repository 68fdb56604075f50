"""An injected fault is always found: kinds of fault put into generated kernels, compiled, and compared.

The matrix of kinds and kernels is printed to stderr at the end and written to a file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from pathlib import Path

import pytest
from fault_bench import Bench, Fault, Subject
from fault_edits import accesses
from fault_kinds import KINDS, Kind
from fault_text import RustText

from transpiler.reference.export import ReferenceExporter

SUBJECTS = (
    Subject("softmax", "_softmax_kernel_tma", "f16"),
    Subject("rms_norm", "_rms_norm_kernel_static_persistent", "f16", {"TILE_SIZE_M": 64, "TILE_SIZE_N": 64}),
    Subject("bmm", "_static_persistent_bmm_kernel", "f16_m128_n256_k511_tm64_tn64_occ1"),
    Subject("dropout", "_dropout_kernel", "f16"),
    Subject("rope", "_rope_kernel", "f16_cb1_tk8"),
)
TRIES = 5
"""In how many places of a kernel a kind is tried before it counts as not applicable there."""


@pytest.fixture(scope="module")
def benches() -> Iterator[list[Bench]]:
    with ReferenceExporter() as exporter:
        yield [Bench(subject, exporter) for subject in SUBJECTS]


def test_every_fault_is_found(benches: Sequence[Bench], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for subject, bench in zip(SUBJECTS, benches, strict=True):
        untouched = bench.untouched()
        assert untouched.equal, f"{subject.operator} untouched: {untouched.differences}"
    with ThreadPoolExecutor(2) as threads:  # compiling releases the GIL
        columns = threads.map(lambda bench: [next(bench.faults(kind.edit, TRIES), None) for kind in KINDS], benches)
        rows = list(zip(*columns, strict=True))
    matrix = _matrix(KINDS, rows)
    (tmp_path / "faults.txt").write_text(matrix)
    with capfd.disabled():
        print(f"\n{matrix}", file=sys.stderr)
    missed = [
        f"{kind.name} in {subject.operator}:\n{_shown(bench, fault)}"
        for kind, row in zip(KINDS, rows, strict=True)
        for subject, bench, fault in zip(SUBJECTS, benches, row, strict=True)
        if fault is not None and fault.comparison.equal
    ]
    assert not missed, "\n".join(missed)
    assert [kind.name for kind, row in zip(KINDS, rows, strict=True) if not any(row)] == []
    assert len(KINDS) >= 25


def _matrix(kinds: Sequence[Kind], rows: Sequence[Sequence[Fault | None]]) -> str:
    """Lay out what the judge found of each kind in each kernel: what sort of difference, or that it found none."""
    width = max(len(kind.name) for kind in kinds) + 2
    lines = [" " * width + "".join(f"{subject.operator:12}" for subject in SUBJECTS)]
    for kind, row in zip(kinds, rows, strict=True):
        lines.append(f"{kind.name:{width}}" + "".join(f"{_cell(fault):12}" for fault in row))
    found = [fault for row in rows for fault in row if fault is not None]
    missed = sum(fault.comparison.equal for fault in found)
    lines.append(f"{len(kinds)} kinds of fault, {len(found)} faults, {missed} missed; -: the kind doesn't apply")
    return "\n".join(line.rstrip() for line in lines)


def _cell(fault: Fault | None) -> str:
    if fault is None:
        return "-"
    return "MISSED" if fault.comparison.equal else fault.comparison.differences[0].kind


def _shown(bench: Bench, fault: Fault) -> str:
    """Show what a fault changed."""
    before, after = (p.text.splitlines() for p in (bench.program, fault.program))
    return "\n".join([*unified_diff(before, after, lineterm="", n=1), repr(fault.program.inputs)])


# What the edits see of a text


TEXT = """
#[cuda_tile::op(name = "x")]
fn declared<const S: [i32; N]>(x: Tile<i32, S>) -> Tile<i32, { [] }> { unreachable!() }
fn helper<E: ElementType>(x: Tile<E, { [] }>) -> Tile<E, { [] }> {
    x // not + an operator
}
#[cutile::entry(unchecked_accesses = true)]
pub unsafe fn kernel<const N: i32>(x: &Tensor<f32, { [-1] }>) {
    let mut total: Tile<f32, { [N, 1] }> = zero();
    for i in (to_i32(a - b * c)..end).step_by(2 as usize) {
        let (t, _): (Tile<f32, { [N, 1] }>, Token) = unsafe { load(x, [i, 0], None::<scope::TileBlock>) };
        total = total + t.reshape(shape![N, 1]) >> (k ^ l & m);
    }
    unsafe { store(total) };
}
"""


def test_the_scanner_sees_the_structure() -> None:
    text = RustText(TEXT)
    assert [f.name for f in text.functions] == ["kernel", "helper"]
    assert [(text[b.left], b.op, text[b.right]) for b in text.binaries("+", "-", "*", ">>", "^", "&")] == [
        ("a", "-", "b * c"), ("b", "*", "c"), ("total", "+", "t.reshape(shape![N, 1])"),
        ("total + t.reshape(shape![N, 1])", ">>", "(k ^ l & m)"), ("k", "^", "l & m"), ("l", "&", "m"),
    ]  # fmt: skip
    (loop,) = text.loops
    assert loop.step is not None
    assert [text[s] for s in (loop.low, loop.high, loop.step)] == ["to_i32(a - b * c)", "end", "2 as usize"]
    assert [(let.name, let.mutable) for let in text.lets] == [("total", True), ("t", False)]
    (load,) = text.calls("load")
    assert [text[a] for a in load.args] == ["x", "[i, 0]", "None::<scope::TileBlock>"]
    assert [text[i] for i in text.items(load.args[1])] == ["i", "0"]
    assert text[text.statement(load.span[0])].startswith("let (t, _)")
    (reshape,) = text.calls("reshape")
    assert reshape.receiver is not None
    assert (text[reshape.span], text[reshape.receiver]) == ("t.reshape(shape![N, 1])", "t")
    assert text[text.statement(next(text.calls("store")).span[0])] == "unsafe { store(total) };"


WRAPPED = """
fn load_1d<E: ElementType, const N: i32>(array: &Tensor<E, { [-1] }>, at: [Tile<i32, { [] }>; 1], token: Token) -> T {
    let view: Partition<E, { [N] }> = make_partition_view(array, shape![N], padding::Zero, dim_map::Identity, token);
    load_view_raw(&view, at, Some(token), ordering::Weak, scope::TileBlock, tma::Enabled, None, [false], shape![N])
}
#[cutile::entry()]
pub fn kernel(x: &Tensor<f32, { [-1] }>) {
    let y: T = load_1d::<f32, 4>(x, [const_i32(0)], first);
}
"""


def test_an_access_through_a_function_is_one_of_the_operation_inside() -> None:
    text = RustText(WRAPPED)
    outer, inner = accesses(text, "load_view_raw")
    assert {n: text[s] for n, s in outer.places.items()} == {"tensor": "x", "index": "[const_i32(0)]", "token": "first"}
    assert text[inner.places["inbounds"]] == "[false]"
