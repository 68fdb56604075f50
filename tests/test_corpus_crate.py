"""rustc's gate: everything that is generated for TileGym compiles, a crate for each corpus, without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from ffi_build import cargo_check, write_folder

from transpiler.jobs import corpus_jobs
from transpiler.pipeline import translate


@pytest.mark.parametrize(("corpus", "operators"), [("tilegym", 40), ("tilegym-suites", 54)])
def test_everything_generated_compiles_without_a_warning(corpus: str, operators: int, tmp_path: Path) -> None:
    """The corpus ``tilegym`` holds every check of ``tilegym-core`` and ``tilegym-24``."""
    jobs = corpus_jobs(corpus)
    write_folder(tmp_path, {job.name: translate(job).files for job in jobs})
    assert len(jobs) == operators
    assert cargo_check(tmp_path) == ""
