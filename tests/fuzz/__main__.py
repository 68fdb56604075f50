"""``python -m fuzz``: judge random kernels until there are enough of them, and print the figures."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from fuzz.chunk import Chunk, Done, Finding, minimize, run
from fuzz.grammar import NOT_DRAWN, focuses, rows
from fuzz.run import EXPECTED, bench
from transpiler.workers import Crash, Handler, Pool

EXECUTE = 8
"""One of so many kernels is executed."""
EXAMPLES = 12
"""Examples a chunk; fewer kernels, since equal ones count once."""


class Campaign:
    """All that was found, and where findings are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.total = Done()
        self.places: dict[str, Chunk] = {}
        self.crashes: list[tuple[Chunk, str]] = []

    @property
    def kernels(self) -> int:
        """How many kernels were judged."""
        return sum(self.total.verdicts.values())

    def add(self, chunk: Chunk, done: Done | Finding | Crash | None) -> list[Chunk]:
        """Add what a task came to; returns the findings to minimize."""
        match done:
            case Crash(how):
                self.crashes.append((chunk, how))
            case Finding():
                self._write(chunk.minimize, done)
            case Done():
                new = [s for s in done.findings if s not in self.places]
                self.places |= dict.fromkeys(new, chunk)
                self.total.add(done)
                for signature in new:
                    print(f"finding: {signature}", file=sys.stderr, flush=True)
                    self._write(signature, done.findings[signature])
                return [replace(chunk, minimize=signature) for signature in new]
        return []

    def _write(self, signature: str, finding: Finding) -> None:
        """A case file to look at, and to keep under tests/cases once its kind is fixed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"finding_{list(self.places).index(signature) + 1}.case"
        path.write_text(finding.kernel.case(found="\n".join(finding.outcome.messages) or finding.outcome.verdict))

    def figures(self) -> dict[str, object]:
        """The result as JSON."""
        done = self.total
        return {
            "kernels": self.kernels, "verdicts": dict(done.verdicts.most_common()),
            "seconds_a_kernel": round(done.seconds / max(self.kernels, 1), 3),
            "executed": dict(done.executed.most_common()),
            "rows": {row.key: done.rows[row.key] for row in rows()},
            "constructs": dict(sorted(done.constructs.items())),
            "rows_not_drawn": NOT_DRAWN, "unexpected": dict(self.unexpected()),
            "crashes": [f"{chunk.focus} {chunk.seed}: {how}" for chunk, how in self.crashes],
        }  # fmt: skip

    def unexpected(self) -> Counter[str]:
        """Findings by kind."""
        found = {s: n for s, n in self.total.signatures.items() if not s.startswith(EXPECTED)}
        return Counter(found)

    def missing(self) -> list[str]:
        """Rows that no proved kernel uses."""
        return [row.key for row in rows() if not self.total.rows[row.key]]


@contextmanager
def _handler() -> Iterator[Handler]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that counts
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # Hypothesis takes an exception for a finding
    with bench() as one:
        yield lambda chunk: (minimize if chunk.minimize else run)(one, chunk)


def chunks(seed: int, examples: int = EXAMPLES, execute: int = EXECUTE) -> Iterator[Chunk]:
    """One chunk for every row and construct, then again with other kernels, without an end."""
    return (Chunk(focus, number, examples, execute=execute) for number in itertools.count(seed) for focus in focuses())


def campaign(
    waiting: Iterator[Chunk], folder: Path, *, count: float = math.inf, seconds: float = math.inf, jobs: int = 2,
    shrink: bool = True,
) -> Campaign:  # fmt: skip
    """Judge the chunks until there are ``count`` kernels, or as many as ``seconds`` or a Ctrl-C allow."""
    result, started = Campaign(folder), time.monotonic()
    with suppress(KeyboardInterrupt), Pool(jobs, _handler, time_limit=400) as pool:
        for chunk in itertools.islice(waiting, jobs + 1):
            pool.submit(chunk)
        for chunk, done in pool.results():
            for finding in result.add(chunk, done):
                if shrink:
                    pool.submit(finding)
            if not chunk.minimize and result.kernels < count and time.monotonic() - started < seconds:
                for more in itertools.islice(waiting, 1):
                    pool.submit(more)
    return result


def report(result: Campaign, wall: float) -> str:
    """The figures for people."""
    done = result.total
    lines = [f"{key:<48}{done.rows[key]:6}" for key in (row.key for row in rows())]
    lines += [f"{f'({name})':<48}{n:6}" for name, n in sorted(done.constructs.items())]
    lines += [f"{key:<48}not drawn: {why}" for key, why in NOT_DRAWN.items()]
    lines += [f"{n:6} {signature}" for signature, n in done.signatures.most_common(40)]
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in done.verdicts.most_common())
    lines.append(f"{result.kernels} kernels: {verdicts}; {done.seconds / max(result.kernels, 1):.2f} s a kernel, "
                 f"{wall:.0f} s in all")  # fmt: skip
    executed = ", ".join(f"{n} with {what}" for what, n in done.executed.most_common())
    lines.append(f"executed on both sides: {sum(done.executed.values())}: {executed or 'none'}")
    if result.missing():
        lines.append(f"rows without a proved kernel: {', '.join(result.missing())}")
    return "\n".join([*lines, *(f"{chunk.focus} {chunk.seed}: {how}" for chunk, how in result.crashes)])


def main() -> int:
    """Status 1 when something was found, or a row was never drawn."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="kernels to judge")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to stop in any case")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other kernels")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="drawn for each row before the next one's turn")
    parser.add_argument("--execute", type=int, default=EXECUTE, help="execute one kernel of so many; 0: none")
    parser.add_argument("--no-shrink", action="store_true", help="leave findings as they were drawn")
    parser.add_argument("-o", "--out", type=Path, default=Path("out/fuzz"), help="where findings and figures go")
    options = parser.parse_args()
    started = time.monotonic()
    result = campaign(chunks(options.seed, options.examples, options.execute), options.out, count=options.count,
                      seconds=options.seconds, jobs=options.jobs, shrink=not options.no_shrink)  # fmt: skip
    text = report(result, time.monotonic() - started)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "figures.txt").write_text(text + "\n")
    (options.out / "figures.json").write_text(json.dumps(result.figures(), indent=1) + "\n")
    print(text)
    return int(bool(result.unexpected() or result.crashes or result.missing()))


if __name__ == "__main__":
    sys.exit(main())
