"""`make agents-demo`: a Hole from end to end, offline. Nothing of it is staged but the writer, which is a script.

A rule is switched off, so that a kernel has a Hole. `transpile fill` makes a task of it and pipes that to a program
(this file with --writer), whose first answer is wrong. The difference goes back, the second answer is proved and
becomes an override, and `transpile promote` makes a rule of that in a copy of the checkout where the original one was
deleted. There the kernel is translated again, and has to be what the original rule gives.

    python tools/agents_demo.py [FOLDER]
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNEL = ("corpus/examples/online_softmax.py", "--spec", "corpus/examples.toml")
OFF = "cuda.tile.exp2"
ROW = ('for fn in ("exp2", "rsqrt"))', 'for fn in ("rsqrt",))')
ANSWERS = ("exp($0)", "exp2($0, ftz::Disabled)")
REPLY = """\
<VALIDATOR_OUTPUT>
{reply}
</VALIDATOR_OUTPUT>
VERDICT: ANSWERED
"""


def writer() -> int:
    """Play the model: wrong at first, right when it is shown the difference."""
    question = sys.stdin.read()
    rust = ANSWERS["An answer that failed" in question]
    answer = {"rust": rust, "results": [{"dtype": "$0", "shape": "$0"}]}
    print(REPLY.format(reply=json.dumps({"outcome": "answered", "answer": answer})))
    return 0


def say(title: str) -> None:
    """Print a heading."""
    print(f"\n=== {title}", flush=True)


def transpile(*arguments: str, package: Path = ROOT, expected: int = 0) -> None:
    """Run a command, with the rules of a checkout."""
    print(f"$ transpile {' '.join(arguments)}", flush=True)
    environment = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, "-m", "transpiler.cli", *arguments]
    status = subprocess.run(command, cwd=package, env=environment, check=False).returncode
    if status != expected:
        raise SystemExit(f"exit status {status}, expected {expected}")


def transcript(folder: Path) -> list[dict[str, object]]:
    """The verdicts of a folder's runs."""
    lines = (folder / "_agents" / "transcript.jsonl").read_text().splitlines()
    return [row["verdict"] for row in map(json.loads, lines) if "verdict" in row]


def checkout(place: Path) -> Path:
    """A copy of the tool in which the rule isn't there."""
    shutil.copytree(ROOT / "transpiler", place / "transpiler", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("templates", "corpus", "rust_runtime", "pyproject.toml"):
        (place / name).symlink_to(ROOT / name)
    (place / "tests" / "cases").mkdir(parents=True)
    rules = place / "transpiler" / "rules" / "math.py"
    text = rules.read_text()
    assert ROW[0] in text
    rules.write_text(text.replace(*ROW))
    return place


def main(out: Path) -> int:
    """Run the demo in a folder of its own; gives 1 where something isn't as it should be."""
    shutil.rmtree(out, ignore_errors=True)
    filled, original = out / "filled", out / "original"
    say("1. Without the rule for exp2 the kernel has Holes")
    transpile(*KERNEL, "-o", str(filled), "--without", OFF, expected=3)
    say("2. The task, as a person would get it")
    transpile("fill", str(filled), expected=3)
    question = next((filled / "_agents" / "tasks").glob("*.md")).read_text()
    print(question[question.index("The task:") :])
    say("3. A program writes: a wrong answer, the difference, a right one, the proof")
    transpile("fill", str(filled), "--client", f"command:{sys.executable} tools/agents_demo.py --writer")
    verdicts = transcript(filled)
    differences = [str(v["detail"]) for v in verdicts if v["outcome"] == "differs"]
    print("The difference that went back:\n" + re.sub(r"(?m)^", "    ", differences[0]))
    say("4. Translated again, the override is an input: no tokens")
    transpile(*KERNEL, "-o", str(filled), "--without", OFF)
    say("5. Promoted to rules, in a copy of the checkout that has no rule for exp2")
    copy = checkout(out / "checkout")
    for override in sorted((filled / "_overrides").glob("*.toml")):
        transpile("promote", str(override), "--into", str(copy))
    row = next((copy / "transpiler" / "rules" / "promoted").glob("cuda_*.py"))
    print(row.read_text())
    transpile(*KERNEL, "-o", str(out / "promoted"), package=copy)
    say("6. The same as with the original rule?")
    transpile(*KERNEL, "-o", str(original))
    texts = [(out / name / "online_softmax" / "kernel.rs").read_text() for name in ("original", "filled", "promoted")]
    same = "identical" if len(set(texts)) == 1 else "DIFFERENT"
    print(f"kernel.rs with the rule, the override, the promoted rule: {same}")
    say("Tokens of each step")
    for verdict in verdicts:
        print(f"{verdict['stage']!s:<11} {verdict['outcome']!s:<12} {verdict.get('tokens') or '':>6}")
    total = sum(int(str(v.get("tokens") or 0)) for v in verdicts if v["stage"] == "writer")
    print(f"{'all questions':<24} {total:>6} (counted; a command's own use isn't known)")
    return 0 if len(set(texts)) == 1 else 1


if __name__ == "__main__":
    if "--writer" in sys.argv:
        sys.exit(writer())
    sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "out" / "agents-demo"))
