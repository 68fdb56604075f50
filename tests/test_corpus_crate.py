"""rustc's gate: what is generated for the core corpus and the 24 compiles in one crate, without a warning."""

from __future__ import annotations

from pathlib import Path

from ffi_build import cargo_check

from transpiler.emit.extras import render_crate_files
from transpiler.jobs import corpus_jobs
from transpiler.pipeline import translate


def test_everything_generated_for_core_and_the_24_compiles_without_a_warning(tmp_path: Path) -> None:
    jobs = {job.name: job for corpus in ("tilegym-core", "tilegym-24") for job in corpus_jobs(corpus)}
    files = render_crate_files(list(jobs))
    for job in jobs.values():
        made = translate(job)
        assert not [check for kernel in made.plan.kernels for entry in kernel.entries for check in entry.checks
                    if check.outcome is not None]  # fmt: skip
        files |= {f"{job.name}/{path}": text for path, text in made.files.items()}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(jobs) == 27
    assert cargo_check(tmp_path) == ""
