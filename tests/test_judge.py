"""The judge's own check (E0707): a verdict that names or order had a part in is no verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from batch_corpus import corpus

from transpiler.jobs import corpus_jobs
from transpiler.pipeline import translate
from transpiler.tileir.model import Entry, Region
from transpiler.tileir.selfcheck import shuffled
from transpiler.translation import check_keys
from transpiler.verify import Judge, rust_text, tasks_of


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as one:
        yield one


SELFCHECK = import_module("transpiler.tileir.selfcheck")  # the package has a function of that name


def check(judge: Judge, folder: Path, *, change: str = "") -> tuple[str, list[tuple[str, str]]]:
    """The verdict and the diagnostics of the first check of a small kernel; ``change`` is put in place of its ``2``."""
    (job,) = corpus_jobs(str(corpus(folder, twice="x * 2")))
    made = translate(job)
    rust = rust_text(made)
    if change:
        assert "const_f(2.0" in rust.text
        rust = replace(rust, text=rust.text.replace("const_f(2.0", f"const_f({change}"))
    _, task, _ = next(iter(tasks_of(made.plan, check_keys(made.plan))))
    result = judge.check(rust, made.closures[task.kernel], task)
    return result.verdict, [(d.code, d.message) for d in result.diagnostics]


def without_stores(entry: Entry, seed: int) -> Entry:
    """A copy that isn't one: nothing is stored."""
    del seed
    kept = [op for op in entry.body.ops if not op.name.startswith("store")]
    return replace(entry, body=Region(entry.body.args, kept))


def test_each_program_must_equal_itself(judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for change, verdict in (("", "proved"), ("3.0", "differs")):
        with Judge() as fresh, monkeypatch.context() as patch:
            patch.setattr(SELFCHECK, "shuffled", without_stores)
            found, diagnostics = check(fresh, tmp_path, change=change)
        assert (found, [code for code, _ in diagnostics]) == ("error", ["E0707"])
        assert "the reference equal to itself" in diagnostics[0][1]
        assert check(judge, tmp_path, change=change)[0] == verdict


def test_the_translation_must_equal_itself_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Entry] = []

    def only_the_first(entry: Entry, seed: int) -> Entry:
        seen.append(entry)
        return shuffled(entry, seed) if len(seen) == 1 else without_stores(entry, seed)

    monkeypatch.setattr(SELFCHECK, "shuffled", only_the_first)
    with Judge() as fresh:
        found, diagnostics = check(fresh, tmp_path)
    assert (found, [code for code, _ in diagnostics]) == ("error", ["E0707"])
    assert "the translation equal to itself" in diagnostics[0][1]
