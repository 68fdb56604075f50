"""TileGym's own tests with both backends in one run, compared: results/tilegym_tests.json or suites_tests.json.

    python tilegym_tests.py --out DIR [--suites] [-n WORKERS] [--limit SECONDS] [TEST..]

Without TESTs those of the operators are run, and our own of what the repository doesn't test; with ``--suites`` those
of the suites. Files that have no test of any backend left are named: a codemod that doesn't reach them leaves them out.

A test passes with ``cutile-rs`` only if our library launched something in it, or if the reference launches nothing in
it either (dropout without training, arguments that are refused). A test that the time limit ended (bmm tunes itself,
on a GPU that other processes use too) neither passed nor failed: ``timed_out`` counts it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine

HERE = Path(__file__).resolve().parent
OUTCOMES = ("passed", "failed", "skipped", "timed_out")
TIMED_OUT = "from pytest-timeout."


def main() -> int:
    """Run, compare, print a table; the exit status says whether something passes with the reference only."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--suites", action="store_true", help="the tests of the suites: suites_tests.json")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("-n", "--workers", default="12")
    parser.add_argument("--limit", type=float, default=480, help="seconds for all tests")
    parser.add_argument("--timeout", default="100", help="seconds for one test")
    parser.add_argument("--from-log", type=Path, nargs="+", help="compare earlier runs; of a test, the last counts")
    options = parser.parse_args()
    name = "suites_tests" if options.suites else "tilegym_tests"
    options.tests = options.tests or (["tests/suites"] if options.suites else ["tests/ops", "own"])
    logs = options.from_log or [options.out / f"{name}.jsonl"]
    if options.from_log is None:
        options.out.mkdir(parents=True, exist_ok=True)
        _run(logs[0], options)
    rows = [json.loads(line) for log in logs for line in log.read_text(encoding="utf-8").splitlines()]
    result = compare(list({row["test"]: row for row in rows}.values()))
    machine.write(options.out / f"{name}.json", result)
    print(table(result))
    absent = sorted(_given(options.tests) - {row["file"] for row in result["files"]})
    if absent:
        print(f"no test ran of: {', '.join(absent)}")
    return int(bool(absent) or any(row["only_cutile_passes"] for row in result["files"]))


def _given(tests: Sequence[str]) -> set[str]:
    """The test files of the folders and files that were asked for, as results name them."""
    paths = [HERE / test for test in tests if "::" not in test]
    files = [file for path in paths for file in (path.rglob("test_*.py") if path.is_dir() else [path])]
    return {_file(file.relative_to(HERE).as_posix()) for file in files}


def _run(log: Path, options: argparse.Namespace) -> None:
    environment = os.environ | {
        "DISABLE_FALLBACK": "1",
        "TILEGYM_DISABLE_AUTOTUNE": "1",
        "CUTILE_MAX_LAUNCH_TIMEOUT_SEC": "60",  # TileGym's own: its tuner gives up after 5 s on a busy machine
        "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE / "kernels"), os.environ.get("PYTHONPATH", "")]),
    }
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "plugin", "-p", "no:cacheprovider",
        "--backend-log", str(log), "-n", options.workers, "--dist", "load",
        "--maxschedchunk", "1",
        "--timeout", options.timeout, "--tb=short", "-W", "ignore", *options.tests,
    ]  # fmt: skip
    try:
        subprocess.run(command, cwd=HERE, env=environment, check=False, timeout=options.limit)
    except subprocess.TimeoutExpired:
        print(f"stopped after {options.limit:.0f} s: what had run by then is compared")


def compare(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the outcomes of both backends beside each other, by file."""
    idle = {_pair(row["test"]) for row in rows if row["backend"] == "cutile" and not row["reference_launches"]}
    files: dict[str, dict[str, Any]] = {}
    passed: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        file = _file(row["test"])
        entry = files.setdefault(file, _empty(file))
        which = _which(row)
        outcome = "timed_out" if timed_out(row) else row["outcome"]
        if which == "cutile_rs" and outcome == "passed" and not row["launches"] and _pair(row["test"]) not in idle:
            outcome = "failed"
        entry[which][outcome] += 1
        if outcome == "passed":
            passed.setdefault(file, {"cutile": set(), "cutile_rs": set()})[which].add(_pair(row["test"]))
    for file, entry in files.items():
        both = passed.get(file, {"cutile": set(), "cutile_rs": set()})
        ran = {
            which: {_pair(row["test"]) for row in rows if _which(row) == which and not timed_out(row)} for which in both
        }
        entry["only_cutile_passes"] = sorted((both["cutile"] - both["cutile_rs"]) & ran["cutile_rs"])
        entry["not_run_with_both"] = sum(_file(test) == file for test in ran["cutile"] ^ ran["cutile_rs"])
    return {"files": [files[name] for name in sorted(files)]}


def timed_out(row: dict[str, Any]) -> bool:
    """Whether the time limit ended a test."""
    return str(row.get("why", "")).rstrip().endswith(TIMED_OUT)


def _file(test: str) -> str:
    file = test.partition("::")[0]
    if "tests/" in file:
        return "tests/" + file.partition("tests/")[2]
    return "benchmarks/gpu/own/" + Path(file).name  # ours, of operators that the repository doesn't test


def _which(row: dict[str, Any]) -> str:
    return "cutile" if row["backend"] == "cutile" else "cutile_rs"


def _empty(file: str) -> dict[str, Any]:
    zero = dict.fromkeys(OUTCOMES, 0)
    operator = Path(file).stem.removeprefix("test_")
    return {"file": file, "operator": operator, "cutile": dict(zero), "cutile_rs": dict(zero), "only_cutile_passes": []}


def _pair(test: str) -> str:
    """The same test's name for both backends."""
    return test.replace("cutile_rs", "cutile").replace("cutile-rs", "cutile")


def table(result: dict[str, Any]) -> str:
    """Both columns for each test file."""
    lines = [f"{'file':52} {'cutile p/f/s/t':>16} {'cutile-rs p/f/s/t':>17}  only cutile passes"]
    for row in result["files"]:
        cells = ["/".join(str(row[which][o]) for o in OUTCOMES) for which in ("cutile", "cutile_rs")]
        lines.append(f"{row['file']:52} {cells[0]:>16} {cells[1]:>17}  {len(row['only_cutile_passes'])}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
