"""rustc's gate: everything that is generated for TileGym compiles, a crate for each corpus, without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from ffi_build import cargo_check

from transpiler.emit.extras import render_crate_files
from transpiler.jobs import corpus_jobs
from transpiler.pipeline import translate


@pytest.mark.parametrize(("corpus", "operators"), [("tilegym", 40), ("tilegym-suites", 51)])
def test_everything_generated_compiles_without_a_warning(corpus: str, operators: int, tmp_path: Path) -> None:
    """The corpus ``tilegym`` holds every check of ``tilegym-core`` and ``tilegym-24``."""
    jobs = corpus_jobs(corpus)
    files = render_crate_files([job.name for job in jobs])
    for job in jobs:
        made = translate(job)
        files |= {f"{job.name}/{path}": text for path, text in made.files.items()}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(jobs) == operators
    assert cargo_check(tmp_path) == ""
