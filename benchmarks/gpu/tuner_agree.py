"""Which configuration both tuners choose, and do_bench of the operator with it, in one process: tuner_agree.json.

    python tuner_agree.py --out DIR

Each operator is tuned by both, several times in turn. Beside the two choices stands how often a tuner agrees with
itself: where configurations are within a percent of each other neither tuner always chooses the same one. Then the
medians of ``do_bench``, each with what its own tuner chose at last.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine

BACKENDS = {"reference": "cutile", "ours": "cutile-rs"}
TUNED, TIMED = 5, 5


def main() -> None:
    """Tune, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    importlib.import_module("tilegym.ops")
    importlib.import_module("cutile_kernels._runtime.tilegym").install()
    chosen: list[Any] = []
    for package in ("cuda.tile.tune", "cutile_kernels._runtime"):
        _record(importlib.import_module(package).TuningResult, chosen)
    rows = []
    for name, call in cases().items():
        rows.append({"operator": name} | compare(call, chosen))
        print("\n".join(f"{key}: {value}" for key, value in rows[-1].items()), end="\n\n", flush=True)
    agreed = sum(row.get("agree", False) for row in rows)
    print(f"{agreed} of {len(rows)} agree")
    if options.out is not None:
        machine.write(options.out / "tuner_agree.json", {"rows": rows})


def cases() -> dict[str, Callable[[str], Any]]:
    """Return calls of tuned operators, by name; each takes the backend."""
    torch: Any = importlib.import_module("torch")
    ops: Any = importlib.import_module("tilegym.ops")
    torch.manual_seed(0)

    def half(*shape: int) -> Any:
        return torch.randn(shape, dtype=torch.float16, device="cuda")

    a, b, large = half(1024, 1024), half(1024, 1024), half(4096, 4096)
    left, right = half(8, 1024, 1024), half(8, 1024, 1024)
    groups = [half(1024, 1024) for _ in range(4)], [half(1024, 1024) for _ in range(4)]
    q, k, v = (half(2, 16, 2048, 128) for _ in range(3))
    cos, sin = half(2, 2048, 128), half(2, 2048, 128)
    return {
        "persistent matmul 1024": lambda backend: ops.matmul(a, b, static_persistent=True, backend=backend),
        "matmul 1024": lambda backend: ops.matmul(a, b, static_persistent=False, backend=backend),
        "persistent matmul 4096": lambda backend: ops.matmul(large, large, static_persistent=True, backend=backend),
        "bmm 8 x 1024": lambda backend: ops.bmm(left, right, backend=backend),
        "group_gemm 4 x 1024": lambda backend: ops.group_gemm(*groups, backend=backend),
        "attention 2048": lambda backend: ops.fmha(q, k, v, backend=backend),
        "rope 2048": lambda backend: ops.apply_rope_base(q, k, cos, sin, backend=backend),
    }


def compare(call: Callable[[str], Any], chosen: list[Any]) -> dict[str, Any]:
    """Tune an operator with both in turn, then time it with what was chosen last."""
    testing: Any = importlib.import_module("triton.testing")
    found: dict[str, list[str]] = {which: [] for which in BACKENDS}
    times: dict[str, list[float]] = {which: [] for which in BACKENDS}
    try:
        for _ in range(TUNED):
            for which, backend in BACKENDS.items():
                forget()
                chosen.clear()
                call(backend)
                found[which] += [str(config) for config in chosen]
        forget()
        for _ in range(TIMED):
            for which, backend in BACKENDS.items():
                call(backend)
                median = testing.do_bench(lambda backend=backend: call(backend), return_mode="median")
                times[which].append(median * 1000)
    except Exception as exc:  # the others are measured all the same
        return {"error": f"{type(exc).__name__}: {exc}"}
    medians = {f"{which}_us": statistics.median(taken) for which, taken in times.items()}
    common = {which: max(set(names), key=names.count, default="not tuned") for which, names in found.items()}
    return {
        "agree": common["ours"] == common["reference"],
        **{f"{which}_chooses": config for which, config in common.items()},
        **{f"{which}_same": f"{found[which].count(config)} of {len(found[which])}" for which, config in common.items()},
        **medians,
        "ratio": medians["reference_us"] / medians["ours_us"],
    }


def forget() -> None:
    """Empty the caches of tuned configurations in the host modules of both."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("tilegym.ops.", "cutile_kernels.")):
            for attribute, value in vars(module).copy().items():
                if attribute.endswith("_tune_cache") and isinstance(value, dict):
                    value.clear()


def _record(result: Any, chosen: list[Any]) -> None:
    """Have every result of a tuner note the configuration that it chose."""
    original = result.__init__

    def noting(self: Any, **fields: Any) -> None:
        original(self, **fields)
        chosen.append(fields["best"].config)

    result.__init__ = noting


if __name__ == "__main__":
    main()
