"""The parser: both front ends' text, locations, and an error with a line for everything unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from transpiler.diagnostics import TranspileError
from transpiler.tileir import compare, parse, parse_entry
from transpiler.tileir.model import Loc, tile_type, walk
from transpiler.tileir.printer import print_entry

CASES = Path(__file__).parent / "tileir_cases"
FILES = sorted(CASES.glob("*.mlir"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_printing_and_parsing_again_gives_the_same(path: Path) -> None:
    entry = parse_entry(path.read_text(), path.name)
    again = parse_entry(print_entry(entry), path.name)
    assert print_entry(again) == print_entry(entry)
    assert [op.form.key for op in walk(again.body)] == [op.form.key for op in walk(entry.body)]
    assert compare(entry, again, target="sm_90").equal


def test_forms_hold_attributes_roles_types_and_hints() -> None:
    ops = {op.name: op for op in walk(parse_entry((CASES / "rows.mlir").read_text()).body)}
    load = ops["load_view_tko"]
    assert load.form.attributes == (("ordering", "weak"),)
    assert load.form.roles == ("", "index", "index", "token")
    assert load.form.hints == (("default", (("latency", "3"),)),)
    assert load.form.result_types == ("tile<1x64xf16>", "token")
    assert len(load.results) == 2
    assert ops["divf"].form.attributes == (("rounding", "approx"), ("flush_to_zero", "flush_to_zero"))
    assert ops["make_tensor_view"].form.get("strides") == "?,1"
    assert ops["make_tensor_view"].form.roles == ("", "shape", "shape", "strides")
    assert ops["reduce"].form.get("dim") == "1"
    assert ops["reduce"].regions[0].ops[-1].name == "yield"


def test_locations_are_resolved_to_the_authors_line() -> None:
    entry = parse_entry((CASES / "rows.mlir").read_text())
    located = {op.name: entry.location(op) for op in walk(entry.body)}
    place = located["divf"]
    assert place is not None and place.file == "kernels.py" and place.line == 15
    cast = located["ftof"]
    assert cast is not None and cast.file == "kernels.py", "a method of cuda.tile is shown at its caller"
    assert located["for"] is not None
    rust = parse_entry((CASES / "rust_softmax.mlir").read_text())
    places = [rust.location(op) for op in walk(rust.body) if op.name == "exp"]
    assert places == [Loc("kernel.rs", 18, 53)]


def test_names_are_scoped() -> None:
    body = """
  %c = constant <i1: true> : tile<i1>
  if %c {
    %a = constant <i32: 1> : tile<i32>
  } else {
    %b = addi %a, %a : tile<i32>
  }"""
    assert error_of(body) == ("E0686", 6, "`%a` is not defined here")


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("%a = fancy %n : tile<i32>", "E0681", "unknown Tile IR operation `fancy`"),
        ("%a = addi %n, %n carefully : tile<i32>", "E0682", "`carefully` in `addi` is not known"),
        ("%a = addi %n, %n rounding<zero> : tile<i32>", "E0682", "`addi` with `rounding`"),
        ("%a = addi %n, %n optimization_hints = <default = {}> : tile<i32>", "E0682", "`addi` with hints"),
        ("%a = addi %n, %n mode=3 : tile<i32>", "E0682", "`addi` with `mode`"),
        ("%a = addi %n : tile<i32>", "E0683", "`addi` has 1 operands"),
        ("%a = addi %n, %zz : tile<i32>", "E0686", "`%zz` is not defined here"),
        ("%a, %b, %c = addi %n, %n : tile<i32>, tile<i32>", "E0683", "results"),
        ("%a = constant <i32: 1 : tile<i32>", "E0683", "`>` is missing"),
        ("whatever {", "E0681", "unknown"),
        ("for %i over %n {", "E0683", "malformed"),
        ("} else {", "E0683", "unexpected"),
        ("(%a: tile<i32>) {", "E0683", "unexpected"),
        ("%a = reduce %n dim=0 identities=[0 : i32] : tile<i32> -> tile<i32>\n  return", "E0683", "has no body"),
        ("%a = addi %n, %n ~ : tile<i32>", "E0683", "unreadable"),
    ],
)
def test_unknown_text_is_an_error_with_its_line(line: str, code: str, message: str) -> None:
    found = error_of("\n  " + line)
    assert found[0] == code, found
    assert found[1] in (2, 3)
    assert message in found[2]


def test_text_outside_and_an_unfinished_entry_are_errors() -> None:
    for text, code in (("global @x\n", "E0681"), ("entry @k() {\n", "E0683"), ("", "E0685")):
        with pytest.raises(TranspileError) as caught:
            parse(text).entry()
        assert caught.value.diagnostic.code == code


def test_modules_and_several_entries() -> None:
    text = "cuda_tile.module @m {\n  entry @a() {\n    return\n  }\n  entry @b() {\n    return\n  }\n}\n"
    module = parse(text)
    assert [e.name for e in module.entries] == ["a", "b"]
    assert module.entry("b").name == "b"
    with pytest.raises(TranspileError):
        module.entry()


def test_tile_types() -> None:
    assert tile_type("tile<2x4xptr<f32>>").shape == (2, 4)
    assert tile_type("tile<i1>").size == 1
    assert tile_type("tile<8xf8E4M3FN>").element == "f8E4M3FN"
    with pytest.raises(TranspileError):
        tile_type("token")


def error_of(body: str) -> tuple[str, int, str]:
    """Parse a body in an entry with a parameter ``n``; return the error's code, line and message."""
    with pytest.raises(TranspileError) as caught:
        parse(f"entry @k(%n: tile<i32>) {{{body}\n  return\n}}\n", "file.mlir")
    diagnostic = caught.value.diagnostic
    assert diagnostic.span.file == "file.mlir"
    return diagnostic.code, diagnostic.span.line, diagnostic.message
