"""A share of the work: kernels about one thing, judged; the first finding of a new kind is minimized."""

from __future__ import annotations

import contextlib
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzz.grammar import kernels
from fuzz.kernel import Kernel
from fuzz.run import Bench, Outcome

SHRINKS, SHRINK_SECONDS = 150, 60.0
"""How many kernels may be judged to make a finding smaller, and for how long."""


@dataclass(frozen=True)
class Chunk:
    """So many examples about one row or construct; ``minimize`` is the signature of a finding among them."""

    focus: str
    seed: int
    examples: int
    minimize: str = ""
    execute: int = 0
    """One of so many kernels is executed; 0: none."""


@dataclass(frozen=True)
class Finding:
    """A kernel whose outcome isn't expected."""

    kernel: Kernel
    outcome: Outcome


@dataclass
class Done:
    """What a chunk came to. ``rows`` and ``constructs`` count the proved kernels that use each."""

    verdicts: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    constructs: Counter[str] = field(default_factory=Counter)
    signatures: Counter[str] = field(default_factory=Counter)
    executed: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    findings: dict[str, Finding] = field(default_factory=dict)

    def count(self, kernel: Kernel, outcome: Outcome) -> None:
        """Add one kernel."""
        self.verdicts[outcome.verdict] += 1
        self.seconds += outcome.seconds
        if outcome.executed:
            self.executed[outcome.executed] += 1
        if outcome.verdict == "proved":
            self.rows.update(outcome.rows.keys())
            self.constructs.update(outcome.constructs.keys())
        else:
            self.signatures[outcome.signature] += 1
        if not outcome.expected:
            self.findings.setdefault(outcome.signature, Finding(kernel, outcome))

    def add(self, other: Done) -> None:
        """Add another chunk."""
        for name in ("verdicts", "rows", "constructs", "signatures", "executed"):
            getattr(self, name).update(getattr(other, name))
        self.seconds += other.seconds
        self.findings = {**other.findings, **self.findings}


def run(bench: Bench, chunk: Chunk) -> Done:
    """Judge a chunk; equal kernels count once."""
    done, seen = Done(), set[str]()

    def judge(kernel: Kernel) -> None:
        if repr(kernel) not in seen:
            seen.add(repr(kernel))
            done.count(kernel, bench.run(kernel, chunk.execute))

    examples(chunk, judge)()
    return done


class _FoundError(Exception):
    """A finding; hypothesis makes the kernel that raises it smaller."""


def minimize(bench: Bench, chunk: Chunk) -> Finding | None:
    """Make the chunk's finding smaller, as far as the limits allow."""
    seen: dict[str, Outcome] = {}
    found: list[Finding] = []
    since, tries = 0.0, 0

    def judge(kernel: Kernel) -> None:
        nonlocal since, tries
        outcome = seen.get(repr(kernel))
        if outcome is None:
            if found and (tries >= SHRINKS or time.monotonic() - since > SHRINK_SECONDS):
                return
            tries += bool(found)
            outcome = seen[repr(kernel)] = bench.run(kernel, chunk.execute)
        if outcome.signature == chunk.minimize:
            since = since or time.monotonic()
            found.append(Finding(kernel, outcome))
            raise _FoundError

    with contextlib.suppress(_FoundError):
        examples(chunk, judge, Phase.shrink)()
    return min(found, key=lambda f: len(f.kernel.source), default=None)


def examples(chunk: Chunk, judge: Callable[[Kernel], None], *phases: Phase) -> Callable[[], None]:
    """Something to call that draws the chunk's kernels, always the same ones."""

    @seed(zlib.crc32(f"{chunk.focus} {chunk.seed}".encode()))
    @settings(max_examples=chunk.examples, database=None, deadline=None, phases=[Phase.generate, *phases],
              report_multiple_bugs=False, suppress_health_check=list(HealthCheck), print_blob=False)  # fmt: skip
    @given(kernels(chunk.focus))
    def judged(kernel: Kernel) -> None:
        judge(kernel)

    return cast("Callable[[], None]", judged)
