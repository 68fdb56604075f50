"""One drawn kernel through everything: translated, compiled, exported by the reference, compared."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz.kernel import NAME, Kernel
from transpiler.diagnostics import TranspileError
from transpiler.jobs import KernelJob, OperatorJob
from transpiler.pipeline import translate
from transpiler.report.model import Executed
from transpiler.translation import check_keys
from transpiler.verify import Judge, rust_text, tasks_of

_NAMES = re.compile(r"`[^`]*`|%[a-z0-9_]+|\{ \[.*?\] \}|tile<.*?>|(?<=text=)\".*?\"|f\w+:[-+\w.]+|drawn\S+")
EXPECTED = ("proved", "rejected", "limited")
"""What may become of a drawn kernel; anything else is a finding."""
LIMITS: dict[str, str] = {
    r"E0601 `(reduce|scan)` has no Rust form": "cutile 0.5's reductions and scans have fixed bodies and identities: "
    "no rounding modes, flush-to-zero or NaN propagation, and no reductions of 8 and 16 bit integers",
    r"E0602 the constant \S+ of type \S+tf32>": "cutile 0.5 writes 8 bytes for a tf32 constant",
    r"E0302 the (min|max) of bools": "cutile 0.5's reductions have identities of their own",
    r"E0302 cuda-tile \S+ starts the max of float64": "cutile 0.5's reductions have identities of their own",
    r"E0302 cutile 0.5 counts the tiles": "cutile 0.5 counts the tiles of partition views only",
    r"E0302 cutile 0.5 makes no arrays": "cutile 0.5 refuses a tensor view with a known size of 0",
    r"E0302 printing \S+ tiles": "cutile 0.5 prints one tile a statement in order with memory",
}
"""Holes that stand for what cutile can't express, with the reason: kernels with such alone are ``limited``."""


@dataclass(frozen=True)
class Outcome:
    """What became of a kernel, and which rows made it."""

    verdict: str
    messages: tuple[str, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)
    constructs: dict[str, int] = field(default_factory=dict)
    executed: str = ""
    """What executing both sides gave: "equal bits", "within tolerances", "no valid inputs", or "" (it wasn't)."""
    seconds: float = 0.0

    @property
    def expected(self) -> bool:
        """Whether the outcome is no finding."""
        return self.verdict in EXPECTED

    @property
    def signature(self) -> str:
        """What findings of one kind have in common: verdict and message without names, numbers and places."""
        first = (self.messages or ("",))[0].split("\n")[0]
        return f"{self.verdict}: {re.sub(r'[0-9]+', '#', re.sub(r'`[^`]*`|%[a-z0-9_]+', '_', first))[:160]}"


class Bench:
    """Judges kernels one after another; the reference stays warm."""

    def __init__(self, folder: Path, *, time_limit: float = 60.0) -> None:
        self._path = folder / "drawn.py"
        self._judge = Judge(time_limit=time_limit)
        self._executing = Judge(time_limit=time_limit, execute=True)

    def close(self) -> None:
        """End the reference's workers."""
        self._judge.close()
        self._executing.close()

    def run(self, kernel: Kernel, every: int = 0) -> Outcome:
        """Judge a kernel, and execute one of ``every`` too; whatever is raised is an outcome too."""
        started = time.perf_counter()
        execute = every > 0 and zlib.crc32(repr(kernel).encode()) % every == 0
        try:
            outcome = self._run(kernel, self._executing if execute else self._judge)
        except TranspileError as failure:
            outcome = Outcome("error", (f"{failure.diagnostic.code} {failure.diagnostic.message}",))
        except Exception as failure:
            outcome = Outcome("crash", (f"{type(failure).__name__}: {failure}",))
        return replace(outcome, seconds=time.perf_counter() - started)

    def _run(self, kernel: Kernel, judge: Judge) -> Outcome:
        self._path.write_text(kernel.source, encoding="utf-8")
        one = kernel.specialization
        made = translate(OperatorJob("drawn", self._path, "drawn.py", (KernelJob(NAME, (one,)),)))
        ((_, task, decided),) = tasks_of(made.plan, check_keys(made.plan))
        result = decided or judge.check(rust_text(made), made.closures[NAME], task)
        messages = tuple(f"{d.code} {d.message}" for d in result.diagnostics if d.severity == "error")
        trace = made.traces.get(NAME)
        rows = trace.names("rule") if trace else {}
        verdict: str = result.verdict
        if verdict == "unmapped" and all(any(re.match(p, m) for p in LIMITS) for m in messages):
            verdict = "limited"
        return Outcome(verdict, messages, rows, trace.names("construct") if trace else {}, _executed(result.executed))


def _executed(row: Executed | None) -> str:
    if row is None:
        return ""
    return "no valid inputs" if not row.valid else "equal bits" if row.exact == row.valid else "within tolerances"


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench with a folder of its own."""
    with TemporaryDirectory(prefix="fuzz-") as folder:
        one = Bench(Path(folder))
        try:
            yield one
        finally:
            one.close()
