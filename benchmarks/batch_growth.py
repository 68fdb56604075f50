"""Does a batch's time grow linearly with the number of kernels? Prints seconds, CPU and memory, and the fit.

    python benchmarks/batch_growth.py [CORPUS...] [--steps N] [--most M] [-j N] [--json OUT]

Kernels of the corpora are put in an order that says nothing of them (by a digest of their names), and batches of the
first 10, ..., all of them are timed, each kernel with at most M specializations and each batch with an empty cache.
The line is fitted to CPU seconds, which other processes on the machine disturb less; wall seconds are printed too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.batch_speed import batch, fresh
from transpiler.corpora import LoadedCorpus, load_corpus
from transpiler.manifests import to_toml
from transpiler.spec import Corpus, KernelManifest, OperatorManifest
from transpiler.workers import usable_cores

CORPORA = ("tilegym", "tilegym-suites")
FIRST = 10
LEAST_R2 = 0.95
"""Below this, the growth isn't a line."""


@dataclass(frozen=True)
class Kernel:
    """A kernel and where its source is."""

    operator: str
    path: Path
    target: str
    manifest: KernelManifest


@dataclass(frozen=True)
class Step:
    """A batch of some kernels."""

    kernels: int
    checks: int
    seconds: float
    cpu: float
    peak_mib: float


def kernels_of(corpora: Sequence[LoadedCorpus], most: int) -> list[Kernel]:
    """Every kernel with its first specializations, in an order that says nothing of them."""
    found = []
    for corpus in corpora:
        for operator in corpus.operators:
            for kernel in operator.kernels:
                few = kernel.model_copy(update={"specializations": kernel.specializations[:most]})
                found.append(Kernel(operator.name, operator.source.path, corpus.target, few))
    return sorted(found, key=lambda k: hashlib.sha256(f"{k.operator}.{k.manifest.name}".encode()).digest())


def manifest(kernels: Sequence[Kernel]) -> str:
    """A corpus of some kernels."""
    by_source: dict[Path, list[Kernel]] = {}
    for kernel in kernels:
        by_source.setdefault(kernel.path, []).append(kernel)
    operators = [
        OperatorManifest(name=f"{rows[0].operator}_{number}", path=str(path), kernels=tuple(k.manifest for k in rows))
        for number, (path, rows) in enumerate(by_source.items())
    ]
    return to_toml(Corpus(name="growth", target=kernels[0].target, operators=tuple(operators)))


def measure(kernels: Sequence[Kernel], workers: int) -> Step:
    """Time a batch with an empty cache."""
    with fresh() as folder:
        path = folder / "corpus.toml"
        path.write_text(manifest(kernels), encoding="utf-8")
        done = batch(str(path), workers, folder)
    totals = done.report["totals"]
    assert isinstance(totals, dict)
    return Step(len(kernels), totals["checks"], done.seconds, done.cpu, done.peak)


def fit(steps: Sequence[Step]) -> tuple[float, float, float]:
    """Fit CPU = a + b * kernels: a, b, and how much of the variation the line explains."""
    x, y = np.array([s.kernels for s in steps], float), np.array([s.cpu for s in steps], float)
    slope, start = np.polyfit(x, y, 1)
    rest = float(((y - start - slope * x) ** 2).sum())
    return float(start), float(slope), 1 - rest / float(((y - y.mean()) ** 2).sum())


def main() -> int:
    """Measure, print, and fail where the growth isn't a line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--most", type=int, default=2)
    parser.add_argument("-j", "--jobs", type=int, default=usable_cores())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kernels = kernels_of([load_corpus(name) for name in options.corpora], options.most)
    counts = [round(n) for n in np.linspace(FIRST, len(kernels), options.steps)]
    steps = []
    print(f"{'kernels':>8}{'checks':>8}{'seconds':>9}{'CPU':>8}{'peak MiB':>10}")
    for count in counts:
        steps.append(one := measure(kernels[:count], options.jobs))
        print(f"{one.kernels:8}{one.checks:8}{one.seconds:9.1f}{one.cpu:8.1f}{one.peak_mib:10.0f}", flush=True)
    start, slope, r2 = fit(steps)
    print(f"CPU seconds = {start:.1f} + {slope:.3f} * kernels (R2 {r2:.3f}, at least {LEAST_R2})")
    if options.json is not None:
        row = {"steps": [asdict(one) for one in steps], "start": start, "slope": slope, "r2": r2}
        options.json.write_text(json.dumps(row, indent=2) + "\n")
    return 0 if r2 >= LEAST_R2 else 1


if __name__ == "__main__":
    sys.exit(main())
