"""rustc's gate: everything that is generated for the core corpus compiles in one crate, without a warning."""

from __future__ import annotations

from pathlib import Path

from ffi_build import cargo_check, translate, write

from transpiler.corpora import load_corpus


def test_everything_generated_for_the_core_corpus_compiles_without_a_warning(tmp_path: Path) -> None:
    operators = [
        translate(o.source.path, [(k.name, s) for k in o.kernels for s in k.specializations], o.name)
        for o in load_corpus("tilegym-core").operators
    ]
    write(tmp_path, operators)
    assert len(operators) == 13
    assert cargo_check(tmp_path) == ""
