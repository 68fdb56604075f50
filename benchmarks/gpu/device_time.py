"""Time on the device, ours beside the reference's, of the launches of TileGym's tests: device_time.json.

python device_time.py --out DIR [--quota N] [--limit SECONDS] [TEST..]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import machine

TESTS = ["tests/ops/test_*.py", "tests/ops/activation/test_*.py", "tests/ops/experimental/test_*.py", "own/test_*.py"]
HERE = Path(__file__).resolve().parent
LIMIT = 0.98
HOISTED = (
    "equal graphs, but the reference's front end moves what is invariant in front of a loop and ours leaves it where "
    "the author wrote it: the assembler schedules a few instructions otherwise"
)
EXPLANATIONS = {
    "attention_sink_decode": HOISTED,
    "group_gemm": "a list of arrays is a matrix of 64-bit numbers for cutile, five parameters (pointer, sizes, "
    "strides) where the reference has two (pointer, length): parameters lie at other addresses, so the code that reads "
    "them differs",
    "layer_norm": HOISTED,
    "layer_norm_legacy": HOISTED,
}
"""Why the machine code of an operator isn't identical."""


def main() -> None:
    """Measure, write the table, print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=TESTS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quota", default="8")
    parser.add_argument("--limit", type=float, default=300, help="seconds for measuring")
    parser.add_argument("--compile-limit", type=float, default=300, help="seconds for compiling before that")
    parser.add_argument("-n", "--workers", default="12", help="processes that compile before that")
    parser.add_argument(
        "--caches", type=Path, help="folder with `ours` and `theirs`: machine code that is there already"
    )
    parser.add_argument(
        "--from-log", type=Path, nargs="+", help="use earlier runs; of a configuration, the last counts"
    )
    options = parser.parse_args()
    logs = options.from_log or [options.out / "device_time.jsonl"]
    if options.from_log is None:
        options.out.mkdir(parents=True, exist_ok=True)
        _run(logs[0], options)
    rows = [json.loads(line) for log in logs for line in log.read_text(encoding="utf-8").splitlines()]
    result = summary(list({row.get("config", row.get("key")): row for row in rows}.values()))
    machine.write(options.out / "device_time.json", result)
    print(table(result))


def _run(log: Path, options: argparse.Namespace) -> None:
    """Compile everything in parallel, then measure alone."""
    tests = sorted({str(path.relative_to(HERE)) for name in options.tests for path in HERE.glob(name)}, key=_order)
    with tempfile.TemporaryDirectory() as caches:
        environment = os.environ | {
            "DISABLE_FALLBACK": "1",
            "TILEGYM_DISABLE_AUTOTUNE": "1",
            "CUTILE_KERNELS_CACHE": f"{caches}/ours",
            "CUDA_TILE_CACHE_DIR": f"{caches}/theirs",
            "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE / "kernels"), os.environ.get("PYTHONPATH", "")]),
        }
        command = [
            sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "device_plugin", "-p", "no:cacheprovider",
            "--tb=line", "-W", "ignore", "--device-log", str(log), "--quota", options.quota, *tests,
        ]  # fmt: skip
        for index in range(int(options.workers) if options.caches is not None else 0):
            shutil.copytree(options.caches / "ours", Path(caches) / f"ours-gw{index}")
        if options.caches is not None:
            shutil.copytree(options.caches / "theirs", Path(caches) / "theirs")
        parallel = ["--compile-only", "-n", options.workers, "--dist", "loadfile", "--timeout", "100"]
        _pytest([*command, *parallel], environment, options.compile_limit)
        for cache in sorted(Path(caches).glob("ours-*")):
            shutil.copytree(cache, Path(caches) / "ours", dirs_exist_ok=True)
        _pytest([*command, "--codes", str(log.parent), "--timeout", "60"], environment, options.limit)


def _order(test: str) -> tuple[bool, str]:
    """Operators of the public repository first."""
    return not test.startswith(("tests/ops/test_", "own/")), test


def _pytest(command: list[str], environment: dict[str, str], limit: float) -> None:
    try:
        subprocess.run(command, cwd=HERE, env=environment, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        print(f"stopped after {limit:.0f} s: what was measured by then counts")


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The table with its geometric mean and its worst; launches that could not be measured stand beside it."""
    measured = [row for row in rows if "reference_us" in row]
    ratios = [row["reference_us"] / row["ours_us"] for row in measured]
    keys = (
        "operator", "config", "reference_us", "ours_us", "machine_code", "same_bits", "test", "samples",
        "ratio_standard_error",
    )  # fmt: skip
    configs = [{key: row.get(key) for key in keys} for row in measured]
    for row, ratio in zip(configs, ratios, strict=True):
        if row["machine_code"] != "identical":
            row["explanation"] = EXPLANATIONS.get(str(row["operator"]), "unknown")
        elif ratio < LIMIT:
            row["explanation"] = "the machine code is identical"
    return {
        "configs": configs,
        "geomean_reference_over_ours": math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None,
        "worst": min(ratios, default=None),
        "errors": [row for row in rows if "error" in row],
    }


def table(result: dict[str, Any]) -> str:
    """One line an operator, then the totals."""
    lines = [f"{'operator':32} configs  geomean    worst  identical code"]
    by_operator: dict[str, list[dict[str, Any]]] = {}
    for row in result["configs"]:
        by_operator.setdefault(row["operator"], []).append(row)
    for operator, rows in sorted(by_operator.items()):
        ratios = [row["reference_us"] / row["ours_us"] for row in rows]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        same = sum(row["machine_code"] == "identical" for row in rows)
        lines.append(f"{operator:32} {len(rows):7} {mean:8.4f} {min(ratios):8.4f}  {same}")
    lines.append(f"{len(result['configs'])} configurations, {len(result['errors'])} errors, geomean reference/ours "
                 f"{result['geomean_reference_over_ours']}, worst {result['worst']}")  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    main()
