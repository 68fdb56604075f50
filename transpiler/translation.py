"""What translating an operator gives: the plan of its checks, its files and its kernels' closures.

The plan is also what ``manifest.json`` holds, so a check right after translating and one of ``transpile verify DIR``
start from the same data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from transpiler.diagnostics import Diagnostic, Span
from transpiler.emit.abi import CompileInputs, KernelAbi
from transpiler.emit.author import Author
from transpiler.identifiers import c_symbol
from transpiler.inputs import Lookups
from transpiler.ir.construct import HoleSite
from transpiler.ir.trace import RuleTrace
from transpiler.reference.closure import Closure
from transpiler.spec import FolderName, InnerPath, Model, Specialization

KERNEL_FILE = "kernel.rs"


class FilledHole(Model):
    """A Hole that an override fills: its construct's digest and name, the override's key and kind, who wrote it."""

    hole: str
    name: str
    override: str
    kind: Literal["rust", "raised"] = "rust"
    model: str
    line: int


class CheckPlan(Model):
    """A check to do; ``outcome`` is set where translating already decided the verdict.

    ``holes`` are the digests of constructs that nothing maps, ``filled`` what overrides fill.  Without compile inputs
    the ``diagnostics`` say why; the reference may still refuse the kernel as well.  ``execute``: an override was
    accepted because executing agrees, so that comparing alone would say that the sides differ.
    """

    specialization: Specialization
    target: str
    inputs: CompileInputs | None = None
    outcome: Literal["unmapped", "error"] | None = None
    holes: tuple[str, ...] = ()
    filled: tuple[FilledHole, ...] = ()
    execute: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()


class EntryPlan(Model):
    """One Rust function: when it is taken, its generics in order, and its checks."""

    name: str
    condition: str
    generics: tuple[str, ...] = ()
    checks: tuple[CheckPlan, ...] = ()


class UncoveredPlan(Model):
    """Calls that no entry takes: the condition that they fulfil, in the author's words, and why."""

    condition: str
    reason: str


class KernelPlan(Model):
    """One kernel; ``closure`` is where its closure lies in the operator's folder, "" when it has none.

    ``uncovered`` is what its entries leave open, where its paths were explored (None: they weren't).
    """

    name: str
    line: int
    closure: InnerPath | Literal[""] = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    entries: tuple[EntryPlan, ...] = ()
    uncovered: tuple[UncoveredPlan, ...] | None = None

    @property
    def check_count(self) -> int:
        """How many checks the kernel has."""
        return sum(len(entry.checks) for entry in self.entries)


class OperatorPlan(Model):
    """One operator. ``lines`` says where the lines of kernel.rs come from (see :func:`write_lines`).

    ``without`` are the rules that were switched off.
    """

    name: FolderName
    source: str
    sha256: str
    module: str
    lines: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    kernels: tuple[KernelPlan, ...] = ()

    @property
    def symbols(self) -> dict[str, str]:
        """The C symbols of its kernels, and the kernel of each."""
        made = ((k.name, next((e.name for e in k.entries if e.name), "")) for k in self.kernels)
        return {c_symbol(self.name, entry): kernel for kernel, entry in made if entry}

    @property
    def in_library(self) -> bool:
        """Can the library of a folder have its kernels? Rust refuses a kernel.rs with a Hole as a whole."""
        return not holed(self.kernels)


def holed(kernels: Iterable[KernelPlan]) -> dict[str, Diagnostic]:
    """Return the kernels that have a Hole in kernel.rs, in order, and the first Hole of each."""
    found: dict[str, Diagnostic] = {}
    for kernel in kernels:
        for check in (check for entry in kernel.entries if entry.name for check in entry.checks):
            if check.outcome == "unmapped":
                found.setdefault(kernel.name, check.diagnostics[0])
    return found


def left_out_text(operator: str, holes: dict[str, Diagnostic]) -> str:
    """Say that the library doesn't have an operator, and why: the kernels with Holes."""
    rows = [f"`{kernel}` has a Hole at {hole.span.file}:{hole.span.line} ({hole.code}: {hole.message})"
            for kernel, hole in holes.items()]  # fmt: skip
    return f"the library doesn't have the kernels of `{operator}`: {'; '.join(rows)}"


@dataclass(frozen=True)
class SiteOf:
    """A Hole and the specialization of a kernel that meets it."""

    kernel: str
    specialization: Specialization
    site: HoleSite


@dataclass(frozen=True)
class CheckKey:
    """Names one check of a run: operator, then indices of kernel, entry and check in its plan."""

    operator: str
    kernel: int
    entry: int
    check: int


@dataclass(frozen=True)
class LaunchTables:
    """What the files that choose entries are rendered from.

    ``paths`` says which of its entry's alternatives a check takes, ``left_out`` why the library doesn't have the
    operator, ``author`` what host code may ask kernels for.
    """

    abis: tuple[KernelAbi, ...]
    paths: dict[CheckKey, int]
    left_out: str
    author: Author


@dataclass(frozen=True)
class Translation:
    """A translated operator: plan, files by their path in the operator's folder, closures and traces by kernel.

    ``lookups`` is what was read for it, ``sites`` its Holes and ``tables`` what a launch chooses from.  An operator
    that was read back from its folder has neither traces nor these.
    """

    plan: OperatorPlan
    files: dict[str, str]
    closures: dict[str, Closure]
    traces: dict[str, RuleTrace] = field(default_factory=dict)
    lookups: Lookups = field(default_factory=Lookups, compare=False)
    sites: tuple[SiteOf, ...] = field(default=(), compare=False)
    tables: LaunchTables | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The text of kernel.rs."""
        return self.files[KERNEL_FILE]


@dataclass(frozen=True)
class Failure:
    """An operator that could not be translated at all, such as a file that can't be read."""

    name: str
    source: str
    diagnostic: Diagnostic
    kernels: tuple[tuple[str, tuple[Specialization, ...]], ...] = ()
    """What the manifest asked for: each is a check with the verdict ``error``."""
    target: str = ""


def check_keys(plan: OperatorPlan) -> list[CheckKey]:
    """Name every check of a plan, in order."""
    return [
        CheckKey(plan.name, k, e, c)
        for k, kernel in enumerate(plan.kernels)
        for e, entry in enumerate(kernel.entries)
        for c in range(len(entry.checks))
    ]


def place_of(plan: OperatorPlan, kernel: KernelPlan) -> Span:
    """Return where a kernel's ``def`` is."""
    return Span(plan.source, kernel.line, 1)


def write_lines(spans: dict[int, Span], count: int) -> tuple[str, ...]:
    """Write a map of kernel.rs: ``15 softmax.py:4`` for each line where the place changes, ``15`` where it ends."""
    out: list[str] = []
    last = ""
    for line in range(1, count + 1):
        span = spans.get(line)
        place = f" {span.file}:{span.line}" if span is not None and span.line else ""
        if place != last:
            out.append(f"{line}{place}")
            last = place
    return tuple(out)


def read_lines(lines: Iterable[str]) -> dict[int, tuple[str, int]]:
    """Read what :func:`write_lines` wrote; a line that comes from nowhere has the place ("", 0)."""
    out: dict[int, tuple[str, int]] = {}
    for text in lines:
        line, _, place = text.partition(" ")
        file, _, number = place.rpartition(":")
        out[int(line)] = (file, int(number or 0))
    return out


@dataclass
class Timing:
    """Seconds of a run: reference exports over all workers, and how many workers there were."""

    reference: float = 0.0
    workers: int = 1
    equivalences: dict[str, int] = field(default_factory=dict)

    def add(self, seconds: float, equivalences: dict[str, int]) -> None:
        """Count one check."""
        self.reference += seconds
        for name, uses in equivalences.items():
            self.equivalences[name] = self.equivalences.get(name, 0) + uses
