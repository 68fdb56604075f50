"""`make agents-demo`, step by step: what it shows has to have happened."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from transpiler.overrides import Override, load_overrides, overrides_folder

ROOT = Path(__file__).resolve().parents[1]
CALLS = "cuda_tile_exp2_*"


@dataclass(frozen=True)
class Demo:
    """A run: its folder, its exit status, what it printed."""

    out: Path
    status: int
    said: str

    @property
    def steps(self) -> dict[str, str]:
        """What was printed in each step, by its title."""
        titles, texts = re.findall(r"(?m)^=== (.*)$", self.said), re.split(r"(?m)^=== .*$", self.said)[1:]
        return dict(zip(titles, texts, strict=True))

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """The verdicts of every run of `fill`, in order."""
        rows = map(json.loads, (self.out / "filled/_agents/transcript.jsonl").read_text().splitlines())
        return [row["verdict"] for row in rows if "verdict" in row]

    @property
    def overrides(self) -> tuple[Override, ...]:
        """What was accepted."""
        return load_overrides(overrides_folder(self.out / "filled"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    out = tmp_path_factory.mktemp("agents-demo") / "out"
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}  # offline, as it says
    run = subprocess.run([sys.executable, "tools/agents_demo.py", str(out)], cwd=ROOT, capture_output=True, text=True,
                         env={**os.environ, **nowhere}, timeout=600)  # fmt: skip
    yield Demo(out, run.returncode, run.stdout + run.stderr)


def test_it_succeeds(demo: Demo) -> None:
    assert demo.status == 0, demo.said
    assert [title.partition(" ")[0] for title in demo.steps] == ["1.", "2.", "3.", "4.", "5.", "6.", "Tokens"]


def test_there_is_a_hole_and_its_task(demo: Demo) -> None:
    hole, task = (next(text for title, text in demo.steps.items() if title.startswith(n)) for n in ("1.", "2."))
    assert "E0301" in demo.said and "4 unmapped" in hole and "proved" not in hole
    assert '"construct": "cuda.tile.exp2"' in task and "ct.exp2(" in task and "exp2 %in0" in task


def test_a_wrong_answer_a_difference_a_right_answer_a_proof(demo: Demo) -> None:
    outcomes = [f"{v['stage']}: {v['outcome']}" for v in demo.verdicts]
    differs = outcomes.index("comparison: differs")
    assert outcomes.index("writer: waiting") < differs  # by hand first, where nobody answers
    assert outcomes[-2:] == ["comparison: proved", "validator: accepted"]
    assert "writer: answered" in outcomes[:differs] and "writer: answered" in outcomes[differs:]
    assert "ours has `exp` where the reference has `exp2`" in demo.verdicts[differs]["detail"]
    assert "ours has `exp` where the reference has `exp2`" in demo.said
    assert {o.rust for o in demo.overrides} == {"exp2($0, ftz::Disabled)"}
    for override in demo.overrides:
        assert override.evidence is not None and override.evidence.verdict == "proved"


def test_tokens_of_each_step_are_shown(demo: Demo) -> None:
    shown = re.findall(r"(?m)^(\w+) +(\w+) +(\d*)\s*$", demo.steps["Tokens of each step"])
    assert [(stage, outcome) for stage, outcome, _ in shown] == [(v["stage"], v["outcome"]) for v in demo.verdicts]
    assert all(int(tokens) > 0 for stage, outcome, tokens in shown if (stage, outcome) == ("writer", "answered"))
    total = sum(v["tokens"] for v in demo.verdicts if v["stage"] == "writer")
    assert re.search(rf"all questions +{total} ", demo.said) and total == sum(
        o.evidence.tokens for o in demo.overrides if o.evidence is not None
    )


def test_again_it_costs_nothing_and_is_the_same(demo: Demo) -> None:
    again = next(text for title, text in demo.steps.items() if title.startswith("4."))
    assert "4 proved" in again and "unmapped" not in again


def test_it_is_promoted_and_gives_what_the_original_rule_gives(demo: Demo) -> None:
    checkout = demo.out / "checkout"
    rows = sorted((checkout / "transpiler/rules/promoted").glob(f"{CALLS}.py"))
    cases = sorted((checkout / "tests/cases/promoted").glob(f"{CALLS}.case"))
    assert len(rows) == len(cases) == len(demo.overrides) > 0
    assert ROW_IS_GONE not in (checkout / "transpiler/rules/math.py").read_text()
    texts = {(demo.out / name / "online_softmax/kernel.rs").read_bytes() for name in ("original", "filled", "promoted")}
    assert len(texts) == 1 and "promoted rule: identical" in demo.said
    manifest = json.loads((demo.out / "promoted/manifest.json").read_text())
    assert not manifest["operators"][0]["plan"].get("without")


ROW_IS_GONE = 'for fn in ("exp2", "rsqrt"))'
