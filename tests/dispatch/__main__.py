"""``python -m dispatch CORPUS.. --count 5000``: draw calls of all kernels; status 1 where a wrong program is taken."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from dispatch.run import draw_calls, library, run
from transpiler.jobs import corpus_jobs


def main() -> int:
    """Draw calls and say what became of them."""
    parser = argparse.ArgumentParser(prog="dispatch", description=__doc__)
    parser.add_argument("corpora", nargs="*", default=["examples", "tilegym", "tilegym-suites"])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    jobs = [job for corpus in options.corpora for job in corpus_jobs(corpus)]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with library(folder, jobs, "dispatch_library") as built:
            outcome = run(built, draw_calls(jobs, options.count, options.seed), folder)
    for line in outcome.wrong:
        print(line)
    rows = ", ".join(f"{count} {what}" for what, count in outcome.counts.most_common())
    print(
        f"{options.count} calls of {sum(len(j.kernels) for j in jobs)} kernels ({len(outcome.reached)} reached): {rows}"
    )
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
