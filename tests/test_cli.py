"""The command line: exit statuses, one clear diagnostic for each failure, nothing left behind, no traceback."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from transpiler import cli
from transpiler.arguments import COMMANDS
from transpiler.frontend.depth import deepest_statement
from transpiler.internal import internal_error

GOOD = """\
import cuda.tile as ct


@ct.kernel
def vadd(a, b, c, TILE: ct.Constant[int]):
    # one tile each
    i = ct.bid(0)
    x = ct.load(a, index=(i,), shape=(TILE,))
    y = ct.load(b, index=(i,), shape=(TILE,))
    ct.store(c, index=(i,), tile=x + y)
"""
UNKNOWN = GOOD.replace("x + y", "ct.frobnicate(x)")
REFUSED = GOOD.replace("shape=(TILE,)", "shape=(3,)")
SPEC = """\
name = "mine"

[[operators]]
name = "vadd"
path = "vadd.py"

[[operators.kernels]]
name = "vadd"

[[operators.kernels.specializations]]
name = "f16"
params.a = {dtype = "float16", ndim = 1}
params.b = {dtype = "float16", ndim = 1}
params.c = {dtype = "float16", ndim = 1}
params.TILE = 64
"""
Run = tuple[int, str, str]


class Shell:
    """Runs the command line in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def write(self, name: str, text: str | bytes) -> Path:
        """Put a file there."""
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def run(self, *arguments: str) -> Run:
        """Return exit status, standard output and standard error."""
        self._capsys.readouterr()
        status = cli.main(arguments)
        out, err = self._capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    def names(self) -> set[str]:
        """What is in the folder."""
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


def codes(err: str) -> list[str]:
    """The codes of the errors printed, in order."""
    return [line.partition("[")[2].partition("]")[0] for line in err.splitlines() if line.startswith("error[")]


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("def f(:\n", "E0102", "x.py:1:7"),
        ("", "E0103", "x.py:1:1"),
        ("x = 1\n", "E0103", "x.py:1:1"),
        (b"\xff\xfe", "E0102", "x.py:1:1"),
        (b"a = 1\0\n", "E0102", "x.py:1:1"),
    ],
)
def test_unreadable_source(shell: Shell, text: str | bytes, code: str, place: str) -> None:
    shell.write("x.py", text)
    status, out, err = shell.run("x.py")
    assert (status, out, codes(err)) == (2, "", [code])
    assert place in err
    assert shell.names() == {"x.py"}


def test_missing_and_unreadable_files(shell: Shell) -> None:
    (shell.folder / "folder.py").mkdir()
    (shell.folder / "loop.py").symlink_to("loop.py")
    for name in ("nothing.py", "folder.py", "loop.py"):
        status, out, err = shell.run(name)
        assert (status, out, codes(err)) == (2, "", ["E0101"])
    assert shell.names() == {"folder.py", "loop.py"}


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{GOOD}",
        GOOD.replace("@ct.kernel", "\f@ct.kernel"),
        GOOD.replace("    # one", "    # \u2028 \x0b \x85 one"),
        GOOD.replace("(a, b, c", "(super, b, c").replace("load(a", "load(super"),
    ],
    ids=["byte order mark", "form feed", "line separators", "super"],
)
def test_unusual_text_is_translated(shell: Shell, text: str) -> None:
    shell.write("vadd.py", text)
    status, out, err = shell.run("vadd.py")
    assert (status, codes(err)) == (0, [])
    assert "4 proved" in out


def test_a_good_kernel_is_proved(shell: Shell) -> None:
    shell.write("vadd.py", GOOD)
    shell.write("spec.toml", SPEC)
    status, out, err = shell.run("vadd.py", "--spec", "spec.toml")
    assert (status, codes(err)) == (0, [])
    assert "1 check: 1 proved" in out
    assert "# one tile each" not in out
    text = (shell.folder / "cutile_rs" / "vadd" / "kernel.rs").read_text()
    assert "// one tile each" in text
    # DIR alone is enough, also elsewhere and without the source
    (shell.folder / "vadd.py").unlink()
    (shell.folder / "cutile_rs").rename(shell.folder / "moved")
    status, out, _ = shell.run("verify", "moved", "--json", "v.json")
    assert status == 0
    assert json.loads((shell.folder / "v.json").read_text())["totals"]["proved"] == 1
    # and a fault in it is found
    kernel = shell.folder / "moved" / "vadd" / "kernel.rs"
    kernel.write_text(kernel.read_text().replace("x + y", "x - y"))
    status, out, err = shell.run("verify", "moved")
    assert status == 1
    assert "differs" in out
    assert "vadd.py:10" in err
    kernel.write_text("fn {")
    status, _, err = shell.run("verify", "moved")
    assert (status, codes(err)) == (1, ["E0711"])
    assert "kernel.rs was changed since it was written: correct it" in err


def test_an_unknown_construct_is_left_as_a_hole(shell: Shell) -> None:
    shell.write("vadd.py", UNKNOWN)
    status, out, err = shell.run("vadd.py")
    assert (status, codes(err)) == (3, ["E0301"])
    assert "vadd.py:10:34" in err
    assert "ct.store(c, index=(i,), tile=ct.frobnicate(x))" in err
    assert "^^^^^^^^^^^^^^^^" in err
    assert "unmapped" in out
    assert "note[E0220]: the reference compiler refuses `vadd`: Module 'cuda.tile' has no attribute" in err
    assert "compile_error!" in (shell.folder / "cutile_rs" / "vadd" / "kernel.rs").read_text()


def test_a_kernel_that_the_reference_refuses(shell: Shell) -> None:
    shell.write("vadd.py", REFUSED)
    shell.write("spec.toml", SPEC)
    status, out, err = shell.run("vadd.py", "--spec", "spec.toml")
    assert (status, codes(err)) == (0, ["E0220"])
    assert "1 rejected" in out
    assert "power of two" in err


def test_json_has_the_shape_of_the_contract(shell: Shell) -> None:
    shell.write("vadd.py", GOOD)
    shell.write("spec.toml", SPEC)
    status, out, _ = shell.run("vadd.py", "--spec", "spec.toml", "--format", "json")
    assert status == 0
    report = json.loads(out)
    assert list(report) == ["tool", "seconds", "reference_seconds", "llm_tokens", "operators", "totals"]
    assert report["llm_tokens"] == 0
    assert {"cuda-tile", "cutile", "python"} <= set(report["tool"])
    (operator,) = report["operators"]
    assert (operator["name"], operator["source"], list(operator)) == ("vadd", "vadd.py", ["name", "source", "kernels"])
    (kernel,) = operator["kernels"]
    assert list(kernel) == ["name", "line", "diagnostics", "entries"]
    assert (kernel["name"], kernel["line"]) == ("vadd", 5)
    (entry,) = kernel["entries"]
    assert list(entry) == ["name", "condition", "generics", "checks"]
    assert (entry["name"], entry["generics"]) == ("vadd", ["E", "TILE"])
    (check,) = entry["checks"]
    assert list(check) == ["specialization", "target", "verdict", "machine_code", "diagnostics", "seconds"]
    assert (check["specialization"], check["target"], check["verdict"]) == ("f16", "sm_90", "proved")
    assert report["totals"] == {
        "operators": 1, "kernels": 1, "entries": 1, "checks": 1, "proved": 1, "tested": 0, "differs": 0, "unmapped": 0,
        "rejected": 0, "error": 0, "machine_code_identical": 0, "machine_code_refused": 0,
    }  # fmt: skip


def test_diagnostics_in_json_and_sarif(shell: Shell) -> None:
    shell.write("vadd.py", UNKNOWN)
    shell.write("spec.toml", SPEC)
    status, out, err = shell.run("vadd.py", "--spec", "spec.toml", "--format", "json", "-o", "a")
    assert (status, codes(err)) == (3, [])
    check = json.loads(out)["operators"][0]["kernels"][0]["entries"][0]["checks"][0]
    row, note = check["diagnostics"]
    assert (note["code"], note["severity"]) == ("E0220", "note")
    assert list(row) == ["code", "severity", "message", "help", "file", "line", "column"]
    assert (row["code"], row["severity"], row["file"], row["line"]) == ("E0301", "error", "vadd.py", 10)
    status, out, err = shell.run("vadd.py", "--spec", "spec.toml", "--format", "sarif", "-o", "b")
    assert (status, codes(err)) == (3, [])
    run = json.loads(out)["runs"][0]
    result, note = run["results"]
    assert (note["ruleId"], note["level"]) == ("E0220", "note")
    assert (result["ruleId"], run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"]) == ("E0301", "E0301")
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 10


def test_no_verify_says_what_can_not_be_translated(shell: Shell) -> None:
    shell.write("vadd.py", GOOD.replace("index=(i,), shape", "index=(i, 0), shape"))
    status, out, err = shell.run("vadd.py", "--no-verify")
    assert (status, codes(err)) == (1, ["E0401"])
    assert "4 error" in out


def test_no_verify_translates_only(shell: Shell) -> None:
    shell.write("vadd.py", GOOD)
    status, out, _ = shell.run("vadd.py", "--no-verify", "--format", "json", "-o", "here")
    assert status == 0
    assert json.loads(out)["totals"]["checks"] == 0
    assert (shell.folder / "here" / "vadd" / "kernel.rs").is_file()


def test_variants_of_a_kernel_without_a_spec(shell: Shell) -> None:
    shell.write("pick.py", GOOD.replace("x + y", "x if TILE > 16 else y"))
    status, out, _ = shell.run("pick.py", "--variants", "--format", "json")
    assert status == 0
    (kernel,) = json.loads(out)["operators"][0]["kernels"]
    conditions = [entry["condition"] for entry in kernel["entries"]]
    assert {"TILE > 16" in c for c in conditions} == {"TILE <= 16" in c for c in conditions} == {True, False}
    assert kernel["complete"] is True
    assert shell.names() == {"pick.py"}
    status, out, _ = shell.run("pick.py", "--variants")
    assert status == 0
    assert "TILE <= 16" in out


@pytest.mark.parametrize("stage", ["hir", "tir", "rust"])
def test_dump(shell: Shell, stage: str) -> None:
    shell.write("vadd.py", GOOD)
    status, out, _ = shell.run("vadd.py", f"--dump={stage}")
    assert status == 0
    assert "vadd" in out
    assert shell.names() == {"vadd.py"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["vadd.py", "--bogus"], "E0801"),
        (["vadd.py", "other.py"], "E0801"),
        (["vadd.py", "--format", "xml"], "E0801"),
        (["vadd.py", "--kernel", "other"], "E0201"),
        (["vadd.py", "--target", "h100"], "E0803"),
        (["vadd.py", "--cubin", "sm_90,turing"], "E0803"),
        (["vadd.py", "--spec", "none.toml"], "E0271"),
        (["vadd.py", "--spec", "broken.toml"], "E0271"),
        (["vadd.py", "--spec", "wrong.toml"], "E0271"),
        (["vadd.py", "--spec", "other.toml"], "E0805"),
        (["batch", "outside.toml"], "E0271"),
        (["vadd.py", "--spec", "kernel.toml"], "E0201"),
        (["vadd.py", "-o", "mine"], "E0820"),
        (["vadd.py", "-o", "vadd.py"], "E0820"),
        (["batch"], "E0801"),
        (["batch", "nonsense"], "E0270"),
        (["batch", "vadd.py", "--shard", "3/2"], "E0804"),
        (["batch", "vadd.py", "sub/vadd.py"], "E0806"),
        (["merge", "vadd.py"], "E0811"),
        (["merge", "none.json"], "E0811"),
        (["verify", "mine"], "E0821"),
        (["verify", "none"], "E0821"),
        (["verify", "damaged"], "E0822"),
        (["verify", "mine", "--execute"], "E0821"),
        (["explain", "E1"], "E0801"),
        (["coverage", "no-such-corpus"], "E0270"),
        (["record", "-o", "s.toml", "--", "no-such-command"], "E0830"),
        (["build", "mine"], "E0821"),
        (["changeset", "softmax", "--into", "x", "--patch", "y"], "E0842"),
    ],
)
def test_usage_errors(shell: Shell, arguments: list[str], code: str) -> None:
    shell.write("vadd.py", GOOD)
    shell.write("broken.toml", "name = \n")
    shell.write("wrong.toml", SPEC.replace("ndim = 1", "ndim = -1"))
    shell.write("outside.toml", SPEC.replace('name = "vadd"', 'name = "../vadd"'))
    shell.write("other.toml", SPEC.replace('"vadd"', '"gemm"').replace("vadd.py", "gemm.py"))
    shell.write("kernel.toml", SPEC.replace('kernels]]\nname = "vadd"', 'kernels]]\nname = "gone"'))
    for name, text in (("mine/notes.txt", "precious"), ("sub/vadd.py", GOOD), ("damaged/manifest.json", "{")):
        (shell.folder / name).parent.mkdir()
        (shell.folder / name).write_text(text)
    before = {p: p.read_bytes() for p in shell.folder.rglob("*") if p.is_file()}
    status, out, err = shell.run(*arguments)
    assert (status, out, codes(err)) == (2, "", [code])
    assert {p: p.read_bytes() for p in shell.folder.rglob("*") if p.is_file()} == before


def test_help_and_versions(shell: Shell) -> None:
    for arguments in (["--help"], ["-h"], ["vadd.py", "--help"], ["batch", "--help"], ["--version"]):
        status, out, err = shell.run(*arguments)
        assert (status, err) == (0, "")
        assert out
    status, out, _ = shell.run()
    assert status == 2
    assert "FILE.py" in out


def test_a_subcommand_wins_over_a_file(shell: Shell) -> None:
    shell.write("batch", GOOD)
    assert codes(shell.run("batch")[2]) == ["E0801"]
    assert shell.run("./batch", "--no-verify")[0] == 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("verfy b", "verify"), ("verfy", "verify"), ("chngeset softmax --into x", "changeset"),
     ("cov tilegym", "coverage"), ("tilegym-24 -o x", "batch tilegym-24")],
)  # fmt: skip
def test_a_misspelt_command_is_told_the_right_one(shell: Shell, typed: str, meant: str) -> None:
    status, out, err = shell.run(*typed.split())
    assert (status, out, codes(err)) == (2, "", ["E0801"])
    assert f"did you mean `transpile {meant}`?" in err
    shell.write(typed.split()[0], GOOD)
    assert "did you mean" not in shell.run(typed.split()[0], "--no-verify")[2], "it is a file"
    assert codes(shell.run("frobnicate")[2]) == ["E0101"]


def test_both_options_for_help_work_everywhere(shell: Shell) -> None:
    for command in (*sorted(COMMANDS), "vadd.py"):
        outputs = [shell.run(command, *more) for more in (["--help"], ["-h"], ["b", "-h"])]
        if command == "record":  # what follows its command is that command's
            outputs.pop()
        assert {(status, err) for status, _, err in outputs} == {(0, "")}
        assert len({out for _, out, _ in outputs}) == 1 and "Usage: transpile" in outputs[0][1]
    assert shell.run("-h") == shell.run("--help")


def test_an_internal_error_has_no_traceback(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("surprise")

    shell.write("vadd.py", GOOD)
    monkeypatch.setattr("transpiler.jobs.file_job", broken)
    status, out, err = shell.run("vadd.py")
    assert (status, out, codes(err)) == (1, "", ["E0900"])
    assert "surprise" in err
    assert "TRANSPILE_DEBUG" in err


def test_what_is_nested_too_deeply_is_said(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object, **__: object) -> None:
        raise RecursionError("maximum recursion depth exceeded")

    shell.write("vadd.py", GOOD)
    monkeypatch.setattr("transpiler.jobs.file_job", endless)
    status, out, err = shell.run("vadd.py")
    assert (status, out, codes(err)) == (1, "", ["E0902"])


def test_json_goes_into_pipes_and_through_links(shell: Shell) -> None:
    """What isn't a file is never replaced by one."""
    shell.write("vadd.py", GOOD)
    shell.write("spec.toml", SPEC)
    pipe, link = shell.folder / "pipe", shell.folder / "link"
    os.mkfifo(pipe)
    link.symlink_to("real.json")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    assert shell.run("batch", "spec.toml", "--json", str(pipe))[0] == 0
    reader.join()
    assert shell.run("batch", "spec.toml", "--json", "link")[0] == 0
    assert (pipe.is_fifo(), link.is_symlink()) == (True, True)
    assert json.loads(read[0])["totals"] == json.loads((shell.folder / "real.json").read_text())["totals"]


@pytest.mark.parametrize(("closed", "status", "said"), [("1>/dev/full", 1, "E0823"), ("1>&-", 0, ""), ("2>&-", 0, "")])
def test_outputs_that_are_full_or_closed(shell: Shell, closed: str, status: int, said: str) -> None:
    shell.write("vadd.py", GOOD)
    command = f"{shlex.quote(sys.executable)} -m transpiler.cli vadd.py --no-verify {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, codes(done.stderr)) == (status, [said] if said else [])
    assert "Traceback" not in done.stderr


def test_terminating_ends_like_an_interrupt(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[object] = []

    def terminated(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    shell.write("vadd.py", GOOD)
    monkeypatch.setattr("transpiler.verify.Judge.check", terminated)
    monkeypatch.setattr("transpiler.verify.Judge.close", lambda judge: closed.append(judge))
    try:
        status, out, err = shell.run("vadd.py", "-j", "1")
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert (status, out, err.strip().splitlines()[-1]) == (143, "", "terminated")
    assert len(closed) == 1


def test_an_interrupt_is_short(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    shell.write("vadd.py", GOOD)
    monkeypatch.setattr("transpiler.jobs.file_job", interrupted)
    status, out, err = shell.run("vadd.py")
    assert (status, out, err.strip()) == (130, "", "interrupted")
    assert shell.names() == {"vadd.py"}


INTERRUPTED_AT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
from transpiler.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("arguments", [["vadd.py"], ["--version"], ["explain", "E0101"], ["nothing.py"]])
@pytest.mark.parametrize(
    "module", ["threading", "transpiler.arguments", "typer", "transpiler.diagnostics", "dataclasses", "inspect"]
)
def test_an_interrupt_while_modules_are_imported_is_short(shell: Shell, module: str, arguments: list[str]) -> None:
    shell.write("vadd.py", GOOD)
    command = [sys.executable, "-c", INTERRUPTED_AT, module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=shell.folder)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")


def test_an_interrupt_while_a_failure_is_told_is_short(shell: Shell) -> None:
    command = [sys.executable, "-c", INTERRUPTED_AT, "transpiler.report.carets", "nothing.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=shell.folder)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")


def test_an_interrupt_in_exec_ends_with_the_same_status(shell: Shell) -> None:
    """Dataclasses and named tuples are made by ``exec``, and an interrupt there has Python kill itself at the end."""
    code = "import sys; from transpiler import cli; cli._dispatch = lambda _: exec('raise KeyboardInterrupt'); "
    command = [sys.executable, "-c", f"{code}sys.exit(cli.main([]))"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=shell.folder)
    assert (done.returncode, done.stderr.strip()) == (130, "interrupted")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_that_became_another_exception_is_still_one(stop: type[BaseException]) -> None:
    class Interrupting:
        def __set_name__(self, owner: object, name: str) -> None:
            raise stop

    with pytest.raises(stop):
        try:
            try:
                type("Made", (), {"field": Interrupting()})
            except stop as exc:  # as of Python 3.12
                raise RuntimeError from exc
        except RuntimeError as exc:
            internal_error(exc)


@pytest.mark.parametrize(
    ("deep", "line"),
    [
        ("    x = " + " + ".join(["a"] * 3000), 8),
        ("    x = " + " + ".join(["a"] * 1000), 8),
        ("    x = " + "-" * 5000 + "a", 8),
        ("    x = a" + ".b" * 5000, 8),
        ("    # one\n    x = (1 +\n         " + " * ".join(["a"] * 5000) + ")", 9),
        (
            "    if TILE == 0:\n        x = a" + "".join(f"\n    elif TILE < {i}:\n        x = a" for i in range(3000)),
            8,
        ),
    ],
    ids=["sum", "shorter sum", "signs", "attributes", "lines", "elif"],
)
def test_a_statement_that_is_nested_too_deeply_has_its_place(shell: Shell, deep: str, line: int) -> None:
    head = "import cuda.tile as ct\n\n\n@ct.kernel\ndef k(a, TILE: ct.Constant[int]):\n"
    shell.write("deep.py", f"{head}    # {'+ ' * 9000}\n    b = a\n{deep}\n")
    status, out, err = shell.run("deep.py")
    assert (status, out, codes(err)) == (2, "", ["E0902"])
    assert f"deep.py:{line}:1" in err and "split" in err
    assert shell.names() == {"deep.py"}


def test_what_is_deepest_is_found_in_a_file_that_is_not_python() -> None:
    assert deepest_statement('a = b + c\nif x:\n  y = (1 + 2) * 3 + 4\n"""') == (6, 3)
    assert deepest_statement("") == (0, 1)


@pytest.mark.parametrize(("number", "status", "said"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_a_signal_in_a_callback_is_not_lost(shell: Shell, number: str, status: int, said: str) -> None:
    """Python drops exceptions there, and would say so with a traceback."""
    code = f"""
import os, signal, sys, time, weakref
from transpiler import cli

class Referred: pass

def dispatch(argv):
    one = Referred()
    kept = weakref.ref(one, lambda _: os.kill(os.getpid(), signal.{number}))
    del one
    time.sleep(30)

signal.signal(signal.SIGINT, signal.default_int_handler)
cli._dispatch = dispatch
sys.exit(cli.main([]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=shell.folder)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (status, "", said)
