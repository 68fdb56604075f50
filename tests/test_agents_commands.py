"""`transpile fill`, `promote`, batch, coverage and --without, as they are called."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import anthropic_server
import jsonschema
import openai_server
import pytest

from transpiler import cli
from transpiler.coverage.model import Coverage
from transpiler.overrides import load_overrides, overrides_folder

KERNEL = """\
import cuda.tile as ct


@ct.kernel
def power(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    result = ct.exp2(tile)
    ct.store(y, index=(i,), tile=result)
"""
SPEC = """\
name = "mine"
[[operators]]
name = "power"
path = "power.py"
[[operators.kernels]]
name = "power"
[[operators.kernels.specializations]]
name = "f32"
params.x = {dtype = "float32", ndim = 1}
params.y = {dtype = "float32", ndim = 1}
params.N = 32
"""
ANSWER = 'rust = "{rust}"\n[[results]]\ndtype = "$0"\nshape = "$0"\n'
OFF = "cuda.tile.exp2"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a kernel and its specialization, the current one; no client is configured."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRANSPILE_CLIENT", raising=False)
    (tmp_path / "power.py").write_text(KERNEL)
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def with_hole() -> int:
    """Translate without the rule."""
    return cli.main(["power.py", "--spec", "spec.toml", "-o", "out", "--without", OFF])


def answer(rust: str) -> None:
    """Put an answer where the task asks for it."""
    (task,) = Path("out/_agents/tasks").glob("*.json")
    folder = Path("out/_agents/answers")
    folder.mkdir(exist_ok=True)
    (folder / f"{task.stem}.toml").write_text(ANSWER.format(rust=rust))


def test_by_hand(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a client the task is a file; an answer file goes on, and a wrong one is told what differs."""
    assert with_hole() == 3
    assert cli.main(["fill", "out"]) == 3
    assert "write out/_agents/answers/" in capsys.readouterr().out
    (question,) = Path("out/_agents/tasks").glob("*.md")
    assert "ct.exp2(tile)" in question.read_text() and "How" not in question.name
    answer("exp($0)")
    capsys.readouterr()
    assert cli.main(["fill", "out", "--json", "fill.json"]) == 3
    assert "the last answer failed: ours has `exp` where the reference has `exp2`" in capsys.readouterr().out
    assert "ours has `exp` where the reference has `exp2`" in question.read_text()
    answer("exp2($0, ftz::Disabled)")
    assert cli.main(["fill", "out", "--json", "fill.json"]) == 0
    report = json.loads(Path("fill.json").read_text())
    (hole,) = report["holes"]
    assert (hole["status"], hole["hole"], hole["line"], hole["model"]) == ("filled", OFF, 8, "hand")
    assert report["llm_tokens"] == 0 and report["totals"]["proved"] == 1
    (check,) = report["operators"][0]["kernels"][0]["entries"][0]["checks"]
    assert check["filled"] == [
        {"hole": OFF, "override": hole["override"], "kind": "rust", "model": "hand", "line": 8}
    ]  # fmt: skip
    text = Path("out/power/kernel.rs").read_text()
    assert with_hole() == 0 and Path("out/power/kernel.rs").read_text() == text
    assert cli.main(["verify", "out"]) == 0
    assert cli.main(["fill", "out"]) == 0  # nothing is left


@pytest.mark.parametrize(
    ("client", "variable", "serving"),
    [("openai:gpt-4o", "OPENAI", openai_server.serving),
     (f"anthropic:{anthropic_server.MODEL}", "ANTHROPIC", anthropic_server.serving)],
)  # fmt: skip
def test_through_an_endpoint(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], client: str, variable: str,
    serving: Callable[..., AbstractContextManager[str]],
) -> None:  # fmt: skip
    """From the command to the proof, with tokens and cost; the key is in no file of it and nothing that is printed."""
    monkeypatch.setenv(f"{variable}_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setenv("TRANSPILE_CLIENT", client)
    assert with_hole() == 3
    good = {"outcome": "answered", "answer": {"rust": "exp2($0, ftz::Disabled)"}}
    with serving("unauthorized") as base:
        monkeypatch.setenv(f"{variable}_BASE_URL", base)
        assert cli.main(["fill", "out"]) == 3
    assert "the run ended: client unreachable" in (said := capfd.readouterr()).out and "401" in said.out
    with serving("good", good) as base:
        monkeypatch.setenv(f"{variable}_BASE_URL", base)
        assert cli.main(["fill", "out", "--json", "fill.json"]) == 0
    report = json.loads(Path("fill.json").read_text())
    (hole,) = report["holes"]
    assert (hole["status"], hole["model"], hole["tokens"], report["llm_tokens"]) == ("filled", client, 542, 542)
    assert 0 < hole["cost"] < 0.1 and 0 < hole["task_tokens"] <= 5_000
    (override,) = load_overrides(overrides_folder(here / "out"))
    assert override.evidence is not None and override.evidence.cost == pytest.approx(hole["cost"])
    written = [p.read_bytes() for p in here.rglob("*") if p.is_file()]
    assert not any(b"0123456789abcdef" in data for data in written)
    assert "0123456789abcdef" not in "".join((*said, *capfd.readouterr()))


PAIR = """\
import cuda.tile as ct


def both(a, b, c, d):
    return a + c, ct.maximum(b, d)


@ct.kernel
def power(x, y, N: ct.Constant[int]):
    tile = ct.load(x, index=(0,), shape=(N,))
    s, m = ct.reduce((tile, tile), 0, both, (0.0, float("-inf")))
    ct.store(y, index=(0,), tile=tile * s + m)
"""


def test_what_was_accepted_as_tested_is_executed_every_time(here: Path) -> None:
    """Two reductions in the place of one of two tiles: the graphs differ, the results don't."""
    (here / "power.py").write_text(PAIR)
    results = [{"dtype": "$0", "shape": []}] * 2
    reply = {"outcome": "answered", "answer": {"rust": "(reduce_sum($0, 0), reduce_max($1, 0))", "results": results}}
    (here / "client.py").write_text(f"print('<VALIDATOR_OUTPUT>')\nprint({json.dumps(reply)!r})\n"
                                    "print('</VALIDATOR_OUTPUT>')\nprint('VERDICT: ANSWERED')\n")  # fmt: skip
    assert cli.main(["power.py", "--spec", "spec.toml", "-o", "out"]) == 3
    assert cli.main(["fill", "out", "--client", f"command:{sys.executable} client.py", "--json", "r.json"]) == 0
    (override,) = load_overrides(overrides_folder(here / "out"))
    assert override.evidence is not None and override.evidence.verdict == "tested"
    assert cli.main(["power.py", "--spec", "spec.toml", "-o", "out"]) == 0
    batch = ["batch", "spec.toml", "-o", "out"]
    for again in (["verify", "out"], batch, batch):
        assert cli.main([*again, "--json", "r.json"]) == 0
        totals = json.loads(Path("r.json").read_text())["totals"]
        assert (totals["tested"], totals["executed"], totals["differs"]) == (1, 1, 0)


def test_a_person_may_write_what_can_only_be_tested(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody is asked again: what differs is executed at once, and what computes something else still is told so."""
    (here / "power.py").write_text(PAIR)
    assert cli.main(["power.py", "--spec", "spec.toml", "-o", "out"]) == 3
    assert cli.main(["fill", "out"]) == 3
    (task,) = Path("out/_agents/tasks").glob("*.json")
    file = Path("out/_agents/answers") / f"{task.stem}.toml"
    file.parent.mkdir()
    two = '[[results]]\ndtype = "$0"\nshape = []\n' * 2
    file.write_text(f'rust = "(reduce_sum($0, 0), reduce_min($1, 0))"\n{two}')
    assert cli.main(["fill", "out"]) == 3
    assert "the last answer failed: ours has `reduce`" in capsys.readouterr().out
    file.write_text(f'rust = "(reduce_sum($0, 0), reduce_max($1, 0))"\n{two}')
    assert cli.main(["fill", "out"]) == 0
    assert "tested, not proved" in capsys.readouterr().out


def test_batches_notice_overrides(here: Path) -> None:
    """A cached result isn't taken where an override came, changed or went."""
    batch = ["batch", "spec.toml", "-j", "1", "-o", "out", "--json", "batch.json", "--without", OFF]

    def verdict(status: int) -> str:
        assert cli.main(batch) == status
        report = json.loads(Path("batch.json").read_text())
        (check,) = report["operators"][0]["kernels"][0]["entries"][0]["checks"]
        return str(check["verdict"])

    assert verdict(3) == "unmapped"
    assert cli.main(["fill", "out"]) == 3
    answer("exp2($0, ftz::Disabled)")
    assert cli.main(["fill", "out"]) == 0
    assert verdict(0) == "proved" and verdict(0) == "proved"
    (override,) = overrides_folder(here / "out").glob("*.toml")
    override.unlink()
    assert verdict(3) == "unmapped"


def test_coverage_counts_holes_and_what_fills_them(here: Path) -> None:
    """Holes, overrides, tokens and cost, and how often each kind came up."""
    assert with_hole() == 3
    program = here / "client.py"
    reply = {"outcome": "answered", "answer": {"rust": "exp2($0, ftz::Disabled)"}}
    program.write_text(f"print('<VALIDATOR_OUTPUT>')\nprint({json.dumps(reply)!r})\n"
                       "print('</VALIDATOR_OUTPUT>')\nprint('VERDICT: ANSWERED')\n")  # fmt: skip
    cover = ["coverage", "spec.toml", "--json", "coverage.json", "--html", "page.html", "--without", OFF, "--no-cache"]

    def row(*more: str) -> tuple[dict[str, Any], dict[str, Any]]:
        cli.main([*cover, *more])
        text = Path("coverage.json").read_text()
        jsonschema.validate(json.loads(text), Coverage.model_json_schema())
        data = json.loads(text)
        (found,) = data["holes"]
        return found, data["totals"]

    found, totals = row()
    assert (found["name"], found["code"], found["uses"], found["open"], found["filled"]) == (OFF, "E0301", 1, 1, 0)
    assert (totals["holes"], totals["holes_filled"], totals["llm_tokens"]) == (1, 0, 0)
    assert cli.main(["fill", "out", "--client", f"command:{sys.executable} client.py"]) == 0
    found, totals = row("--overrides", "out")
    assert (found["open"], found["filled"], found["places"]) == (0, 1, ["power.py:8"])
    assert found["models"][0].startswith("command:python") and found["tokens"] == totals["llm_tokens"] > 100
    assert totals["holes_filled"] == 1
    page = Path("page.html").read_text()
    assert "Constructs without a rule" in page and found["digest"] in page


def test_promotion_as_it_is_called(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_hole()
    cli.main(["fill", "out"])
    answer("exp2($0, ftz::Disabled)")
    assert cli.main(["fill", "out"]) == 0
    (override,) = overrides_folder(here / "out").glob("*.toml")
    assert cli.main(["promote", str(override), "--into", "elsewhere"]) == 2
    assert "E0874" in capsys.readouterr().err
    for folder in ("transpiler/rules", "tests/cases"):
        (here / "checkout" / folder).mkdir(parents=True)
    assert cli.main(["promote", str(override), "--into", "checkout"]) == 0
    assert len(list((here / "checkout").rglob("cuda_tile_exp2_*"))) == 2
    assert cli.main(["promote", str(override), "--into", "checkout"]) == 2


PACKAGE = {
    "pkg/__init__.py": "from .util import activate\n",
    "pkg/util.py": "import cuda.tile as ct\nfrom .sub.consts import SCALE\n\n\ndef activate(x):\n"
    "    return ct.exp2(x * SCALE)\n",
    "pkg/sub/__init__.py": "",
    "pkg/sub/consts.py": "SCALE = 1.5\n",
    "pkg/power.py": KERNEL.replace("\n\n\n", "\n\nfrom . import activate\nfrom pkg.sub import consts\n\n\n").replace(
        "ct.exp2(tile)", "activate(tile) + consts.SCALE"
    ),
}


def test_a_kernel_of_several_modules_is_promoted_with_them(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The case holds the modules that the kernel reaches, and lowers to what it says with the promoted row."""
    import case_format as cf

    from transpiler.agents.promote import with_rows

    for name, text in PACKAGE.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text)
    (here / "spec.toml").write_text(SPEC.replace("power.py", "pkg/power.py"))
    assert cli.main(["pkg/power.py", "--spec", "spec.toml", "-o", "out", "--without", OFF]) == 3
    assert cli.main(["fill", "out"]) == 3
    answer("exp2($0, ftz::Disabled)")
    assert cli.main(["fill", "out"]) == 0
    (override,) = overrides_folder(here / "out").glob("*.toml")
    for folder in ("transpiler/rules", "tests/cases"):
        (here / "checkout" / folder).mkdir(parents=True)
    assert cli.main(["promote", str(override), "--into", "checkout"]) == 0
    (row,), (path,) = ((here / "checkout").rglob(f"cuda_tile_exp2_*.{kind}") for kind in ("py", "case"))
    case = cf.read(path)
    assert [t for t in case.sections if t.startswith(cf.MODULE)] == [
        "module pkg.util",
        "module pkg",
        "module pkg.sub.consts",
    ]
    monkeypatch.setattr(cf, "table", lambda: with_rows(OFF, (OFF,), row.read_text()))
    got = cf.result(case)
    assert got["tir"].strip() == case.sections["tir"].strip() and got["holes"] == ""
    assert "rust(" in got["tir"]


def test_a_source_that_was_changed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_hole()
    (here / "power.py").rename(here / "moved.py")
    assert cli.main(["fill", "out"]) == 2
    assert "E0872" in capsys.readouterr().err
    assert cli.main(["fill", "out", "--source", "moved.py"]) == 3
    (here / "power.py").write_text(KERNEL.replace("result", "other"))
    assert cli.main(["fill", "out"]) == 2
    assert "was changed since" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("exp2($0", "use std::fs; exp2($0"), "refused"),
        (('model = "hand"', 'model = "somebody"'), "was changed"),
        (("format =", "formal ="), "is not an override"),
        (("[hole]", "[hole"), "is not an override"),
    ],
)
def test_an_override_that_was_changed_by_hand(
    here: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], said: str
) -> None:
    from transpiler.overrides import ConstructKey, Override, ResultType

    key = ConstructKey(kind="call", name=OFF, operands=("tile generic 1",), arguments=(("0", "$0"),))
    made = Override(rules="0" * 16, model="hand", hole=key, results=(ResultType(dtype="$0", shape="$0"),),
                    rust="exp2($0, ftz::Disabled)").keyed()  # fmt: skip
    assert cli.main(["power.py", "--spec", "spec.toml", "-o", "out", "--no-verify"]) == 0
    folder = overrides_folder(here / "out")
    folder.mkdir()
    (folder / f"{made.key}.toml").write_text(made.to_toml())
    assert load_overrides(folder) == (made,)
    (folder / f"{made.key}.toml").write_text(made.to_toml().replace(*change))
    assert cli.main(["power.py", "--spec", "spec.toml", "-o", "out"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "E0870" in error and said in error


def test_a_kernel_that_the_folder_does_not_have(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert with_hole() == 3
    for how in ([], ["--raise"]):
        assert cli.main(["fill", "out", "--kernel", "powr", *how]) == 2
        error = " ".join(capsys.readouterr().err.split())
        assert "E0201" in error and "power" in error


def test_an_unknown_rule_cannot_be_switched_off(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["power.py", "--without", "cuda.tile.nonsense"]) == 2
    assert "E0871" in capsys.readouterr().err
