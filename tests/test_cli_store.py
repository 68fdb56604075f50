"""The output folder: whole or not at all, nothing of the user's lost, readable without the sources."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from transpiler.commands import run_verify
from transpiler.diagnostics import Span, TranspileError
from transpiler.reference.closure import Closure, ClosureModule, Segment
from transpiler.report.carets import SourceCache
from transpiler.store import OutputFolder
from transpiler.translation import (
    KERNEL_FILE,
    EntryPlan,
    KernelPlan,
    OperatorPlan,
    Translation,
    read_lines,
    write_lines,
)

TOOL = {"cutile": "0.5.0"}


def crate(names: Sequence[str]) -> dict[str, str]:
    return {"Cargo.toml": f"# {' '.join(names)}\n", "src/lib.rs": "".join(f"mod {name};\n" for name in names)}


def translation(name: str, text: str = "fn k() {}\n") -> Translation:
    closure = Closure("k", (ClosureModule(name, f"{name}.py", (Segment(1, "def k(): pass"),)),))
    kernel = KernelPlan(name="k", line=1, closure="reference/k.closure")
    plan = OperatorPlan(name=name, source=f"{name}.py", sha256="0" * 64, module=f"{name}_kernels", kernels=(kernel,))
    return Translation(plan, {KERNEL_FILE: text, "ffi.rs": "// ffi\n"}, {"k": closure})


def files(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def code_of(act: object) -> str:
    with pytest.raises(TranspileError) as caught:
        act()  # type: ignore[operator]
    return caught.value.diagnostic.code


def test_write_and_read_back(tmp_path: Path) -> None:
    out = OutputFolder(tmp_path / "new" / "out")
    out.write([translation("b"), translation("a")], TOOL, crate)
    assert set(files(out.path)) == {
        "Cargo.toml", "src/lib.rs", "manifest.json", "a/kernel.rs", "a/ffi.rs", "a/reference/k.closure",
        "b/kernel.rs", "b/ffi.rs", "b/reference/k.closure",
    }  # fmt: skip
    manifest = out.load()
    assert [o.plan for o in manifest.operators] == [translation("a").plan, translation("b").plan]
    assert not out.read(manifest.operators[0]).changed
    (out.path / "a" / KERNEL_FILE).write_text("fn other() {}\n")
    assert out.read(manifest.operators[0]).changed
    assert Closure.from_text(out.closure_text("a", "reference/k.closure")) == translation("a").closures["k"]
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["out"]


def test_a_second_run_adds_and_replaces(tmp_path: Path) -> None:
    out = OutputFolder(tmp_path / "out")
    out.write([translation("a"), translation("b")], TOOL, crate)
    (out.path / "a" / "notes.txt").write_text("mine")
    (out.path / "target").mkdir()
    (out.path / "target" / "lib.so").write_text("built")
    out.write([translation("a", "fn new() {}\n"), translation("c")], TOOL, crate)
    now = files(out.path)
    assert now["Cargo.toml"] == "# a b c\n"
    assert now["a/kernel.rs"] == "fn new() {}\n"
    assert now["a/notes.txt"] == "mine"
    assert now["target/lib.so"] == "built"
    assert [o.plan.name for o in out.load().operators] == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["A", "aB", "addRows"])
def test_an_operator_never_takes_another_one_s_place(tmp_path: Path, name: str) -> None:
    folder = OutputFolder(tmp_path / "out")
    folder.write([translation("a"), translation("ab"), translation("add_rows")], TOOL, crate)
    before = files(tmp_path)
    assert code_of(lambda: folder.write([translation(name)], TOOL, crate)) == "E0806"
    assert code_of(lambda: folder.refuse_foreign([name])) == "E0806"
    assert files(tmp_path) == before


def test_two_kernels_never_share_a_symbol(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path / "out")
    folder.write([_with_entry("a", "b_k")], TOOL, crate)
    before = files(tmp_path)
    assert code_of(lambda: folder.write([_with_entry("a_b", "k")], TOOL, crate)) == "E0806"
    assert files(tmp_path) == before
    folder.write([_with_entry("a_b", "k_2")], TOOL, crate)


def _with_entry(name: str, entry: str) -> Translation:
    made = translation(name)
    (kernel,) = made.plan.kernels
    kernels = (kernel.model_copy(update={"entries": (EntryPlan(name=entry, condition=""),)}),)
    return replace(made, plan=made.plan.model_copy(update={"kernels": kernels}))


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = OutputFolder(tmp_path / "one"), OutputFolder(tmp_path / "deeper" / "two")
    one.write([translation("a"), translation("b")], TOOL, crate)
    two.write([translation("b")], TOOL, crate)
    two.write([translation("a")], TOOL, crate)
    assert files(one.path) == files(two.path)


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    foreign, file = tmp_path / "foreign", tmp_path / "file"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("precious")
    file.write_text("precious")
    for path in (foreign, file):
        out = OutputFolder(path)
        assert code_of(out.refuse_foreign) == "E0820"
        assert code_of(lambda out=out: out.write([translation("a")], TOOL, crate)) == "E0820"
    ours = OutputFolder(tmp_path / "ours")
    ours.write([translation("a")], TOOL, crate)
    (ours.path / "b").mkdir()
    (ours.path / "b" / "data.csv").write_text("precious")
    before = files(tmp_path)
    assert code_of(lambda: ours.write([translation("b")], TOOL, crate)) == "E0820"
    assert files(tmp_path) == before


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    out = OutputFolder(tmp_path / "out")
    out.path.mkdir()
    out.write([translation("a")], TOOL, crate)
    assert "a/kernel.rs" in files(out.path)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("failure", [RuntimeError("renderer"), KeyboardInterrupt()])
def test_a_failure_leaves_everything_as_it_was(tmp_path: Path, before: bool, failure: BaseException) -> None:
    def broken(names: Sequence[str]) -> dict[str, str]:
        raise failure

    out = OutputFolder(tmp_path / "out")
    if before:
        out.write([translation("a")], TOOL, crate)
    state = files(tmp_path)
    with pytest.raises(type(failure)):
        out.write([translation("a", "fn new() {}\n")], TOOL, broken)
    assert files(tmp_path) == state
    assert {p.name for p in tmp_path.iterdir()} == ({"out"} if before else set())


def test_an_interrupt_while_moving_into_place_comes_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = OutputFolder(tmp_path / "out")
    out.write([translation("a")], TOOL, crate)
    replace = os.replace

    def slow(*arguments: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        replace(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", slow)
    with pytest.raises(KeyboardInterrupt):
        out.write([translation("a", "fn new() {}\n"), translation("b")], TOOL, crate)
    monkeypatch.undo()
    assert files(out.path)["a/kernel.rs"] == "fn new() {}\n"
    assert [o.plan.name for o in out.load().operators] == ["a", "b"]
    assert {p.name for p in tmp_path.iterdir()} == {"out"}


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../secret", "a//b", "./a", "a\\b", "a\0b", ""])
@pytest.mark.parametrize("where", ["name", "closure", "file", "shared file"])
def test_a_manifest_never_leads_out_of_its_folder(
    tmp_path: Path, where: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = OutputFolder(tmp_path / "out")
    out.write([translation("a")], TOOL, crate)
    file = out.path / "manifest.json"
    data = json.loads(file.read_text())
    operator = data["operators"][0]
    match where:
        case "name":
            operator["plan"]["name"] = path
        case "closure":
            operator["plan"]["kernels"][0]["closure"] = path or "/"  # "" says that there is none
        case "file":
            operator["files"][path] = "0" * 64
        case _:
            data["files"][path] = "0" * 64
    file.write_text(json.dumps(data))
    monkeypatch.setattr(Path, "is_file", lambda _: pytest.fail("it looks"))
    assert code_of(out.load) == "E0822"
    assert code_of(lambda: run_verify(out.path, (), 1, None)) == "E0822"


def test_lines_outside_of_this_folder_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret.py").write_text("secret = 1\n")
    (tmp_path / "here").mkdir()
    (tmp_path / "here/a.py").write_text("a = 1\n")
    monkeypatch.chdir(tmp_path / "here")
    for outside in ("../secret.py", (tmp_path / "secret.py").as_posix()):
        assert (SourceCache()(outside), SourceCache(below=True)(outside)) == (["secret = 1", ""], None)
    assert SourceCache(below=True)("a.py") == ["a = 1", ""]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "cutile-rs 0"}', '{"format": "cutile-rs 1", "tool": 3}', "\0"]
)
def test_a_damaged_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    assert code_of(OutputFolder(tmp_path).load) == "E0822"


def test_an_unwritable_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    out = OutputFolder(tmp_path / "file" / "out")
    assert code_of(lambda: out.write([translation("a")], TOOL, crate)) in ("E0820", "E0823")


def test_lines_are_written_where_they_change() -> None:
    spans = {2: Span("a.py", 7, 1), 3: Span("a.py", 7, 5), 5: Span("b:c.py", 9, 1), 6: Span("a.py", 7, 1)}
    written = write_lines(spans, 7)
    assert written == ("2 a.py:7", "4", "5 b:c.py:9", "6 a.py:7", "7")
    assert read_lines(written) == {2: ("a.py", 7), 4: ("", 0), 5: ("b:c.py", 9), 6: ("a.py", 7), 7: ("", 0)}
