"""Raise kernels of corpora from the reference's Tile IR and print what the judge says of them.

    python tools/raise_corpus.py tilegym-24 corpus/examples.toml [--checks N] [--all]

A kernel that translates is the strongest test of raising: its Tile IR is known to be within reach of cutile. Prints a
row for every check that isn't proved (with ``--all`` for every check), then the counts of each corpus. Exit status 1
when something differs or failed.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Annotated

import typer

from transpiler.jobs import argument_jobs
from transpiler.raising.selftest import Outcome, raise_checks
from transpiler.verify import Judge


def main(
    corpora: list[str],
    checks: Annotated[int, typer.Option(help="specializations of each kernel")] = 1,
    seed: Annotated[int, typer.Option(help="which ones")] = 0,
    show_all: Annotated[bool, typer.Option("--all", help="a row for every check")] = False,
) -> None:
    """Raise and judge."""
    bad = False
    with Judge() as judge:
        for corpus in corpora:
            started = time.perf_counter()
            counts: Counter[str] = Counter()
            for row in raise_checks(argument_jobs(corpus, None), judge, checks=checks, seed=seed):
                counts[row.outcome] += 1
                if show_all or row.outcome != "proved":
                    print(_line(row))
            bad = bad or bool(counts["differs"] or counts["error"])
            said = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
            print(f"{corpus}: {counts.total()} checks raised: {said}; {time.perf_counter() - started:.0f} s")
    sys.exit(1 if bad else 0)


def _line(row: Outcome) -> str:
    why = f": {row.why.splitlines()[0][:150]}" if row.why else ""
    return f"{row.outcome:8}  {row.operator}.{row.kernel} [{row.specialization}]{why}"


if __name__ == "__main__":
    typer.run(main)
