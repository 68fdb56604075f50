"""The judge's bench: compile our Rust, export the reference, compare the two, say the verdict of a check.

It knows the translator only through what a stored translation holds (text, compile inputs, closure), so that
``transpile verify DIR`` and the check right after translating are the same code.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from transpiler import toolkit
from transpiler.diagnostics import Diagnostic, Span, TranspileError, error
from transpiler.emit.abi import CompileInputs
from transpiler.report.model import Executed, MachineCode, Verdict
from transpiler.spec import ArraySpec, ListSpec, ParamSpec, ScalarSpec, Specialization
from transpiler.translation import CheckKey, OperatorPlan, Translation, place_of, read_lines

if TYPE_CHECKING:
    from transpiler import _rust
    from transpiler.reference.closure import Closure
    from transpiler.tileir.compare import Comparison, Difference
    from transpiler.tileir.model import Entry, Loc

_CODES = {"structure": "E0701", "effect": "E0702", "fact": "E0703", "hint": "E0704", "signature": "E0705"}
_KEPT_MODULES = 4
LineMap = dict[int, tuple[str, int]]
"""Line of kernel.rs -> file and line of the Python source, for every line where that changes (0: nothing)."""


@dataclass(frozen=True)
class RustText:
    """The generated module as the compiler reads it, and where its lines come from."""

    module: str
    text: str
    lines: LineMap
    display: str = "kernel.rs"

    def python_span(self, line: int, column: int = 1) -> Span:
        """Return the Python line that a line of the Rust text came from, or the Rust line where none is known."""
        start = max((first for first in self.lines if first <= line), default=0)
        file, number = self.lines.get(start, ("", 0))
        return Span(file, number, 1) if number else Span(self.display, line, column)


@dataclass(frozen=True)
class CheckTask:
    """One check, ready to be done: both sides and the place of the kernel in the source."""

    kernel: str
    specialization: Specialization
    target: str
    inputs: CompileInputs | None
    place: Span
    problems: tuple[Diagnostic, ...] = ()
    """Why there are no compile inputs: our own refusal. The reference may refuse as well (then ``rejected``)."""
    execute: bool = False
    """Whether both sides are executed, whatever the judge was made for."""
    unmapped: bool = False
    """The kernel has Holes, which is the verdict; where the reference refuses the kernel as well, that is said."""


@dataclass(frozen=True)
class CheckResult:
    """What became of a check; ``cached`` says that an earlier run found it out."""

    verdict: Verdict
    diagnostics: tuple[Diagnostic, ...] = ()
    machine_code: dict[str, MachineCode] = field(default_factory=dict)
    equivalences: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    reference_seconds: float = 0.0
    cached: bool = False
    executed: Executed | None = None


def parameter_map(spec: Specialization) -> tuple[int, ...] | None:
    """Our flat parameters' places among the reference's (-1: ours alone); None where both have the same.

    A list of arrays is a table of words: the reference passes its pointer and length, a tensor its
    pointer, two sizes and two strides.
    """
    if not any(isinstance(p, ListSpec) for p in spec.params.values()):
        return None
    out: list[int] = []
    place = 0
    for p in spec.params.values():
        ours, theirs = _flat_sizes(p)
        out += [place + i if i < theirs else -1 for i in range(ours)]
        place += theirs
    return tuple(out)


def _flat_sizes(p: ParamSpec) -> tuple[int, int]:
    """How many flat parameters of ours and of the reference a Python parameter becomes."""
    match p:
        case ArraySpec():
            return (1 + 2 * p.ndim,) * 2
        case ListSpec():
            return 5, 2
        case ScalarSpec():
            return 1, 1
        case _:
            return 0, 0


def promises(spec: Specialization) -> tuple[frozenset[str], ...]:
    """What a specialization promises of the reference's flat parameters, as predicates of Tile IR.

    An array is its pointer (divisors in bytes), its sizes and its strides (in elements), a list the pointer of its
    table and its length; sizes and lengths are at least 0.
    """
    out: list[frozenset[str]] = []
    for p in spec.params.values():
        if isinstance(p, ArraySpec):
            sizes = zip(p.shape_constant, p.shape_divisible_by, (0,) * p.ndim, strict=True)
            strides = zip(p.stride_constant, p.stride_divisible_by, p.stride_lower_bound_incl, strict=True)
            out += [frozenset((f"div_by<{p.base_addr_divisible_by}>",))]
            out += [_of_integer(*known) for known in (*sizes, *strides)]
        elif isinstance(p, ListSpec):
            out += [frozenset(), _of_integer(None, 1, 0)]
        else:
            out += [frozenset()] * _flat_sizes(p)[1]
    return tuple(out)


def _of_integer(value: int | None, divisor: int, least: int | None) -> frozenset[str]:
    if value is not None:
        return frozenset((f"bounded<{value},{value}>", f"div_by<{abs(value)}>"))
    return frozenset((f"div_by<{divisor}>", *(() if least is None else (f"bounded<{least},?>",))))


class Judge:
    """Does checks one after another; keeps the reference's worker, parsed modules and disassemblies."""

    def __init__(self, *, cubins: Sequence[str] = (), time_limit: float = 120.0, execute: bool = False) -> None:
        from transpiler.reference.export import ReferenceExporter

        self.exporter = ReferenceExporter(time_limit=time_limit)
        self._cubins = tuple(cubins)
        self._execute = execute
        self._modules: dict[str, _rust.Module] = {}
        self._entries: dict[bytes, Entry] = {}
        self._comparisons: dict[tuple[object, ...], Comparison] = {}

    def close(self) -> None:
        """End the reference's worker."""
        self.exporter.close()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(
        self, rust: RustText, closure: Closure, task: CheckTask, following: CheckTask | None = None
    ) -> CheckResult:
        """Do one check; whatever goes wrong becomes a verdict with a diagnostic.

        The reference is exported for ``following``, the next check of the same kernel, while this one is done.
        """
        started, exported = time.perf_counter(), self.exporter.seconds
        try:
            result = self._check(rust, closure, task, following)
        except TranspileError as failure:
            problem = _placed(failure.diagnostic, task.place)
            result = CheckResult("unmapped", task.problems) if task.unmapped else CheckResult("error", (problem,))
        reference = self.exporter.seconds - exported
        return replace(result, seconds=time.perf_counter() - started, reference_seconds=reference)

    def _check(
        self, rust: RustText, closure: Closure, task: CheckTask, following: CheckTask | None
    ) -> CheckResult:  # fmt: skip
        from transpiler.reference.export import ReferenceRejected

        try:
            reference = self._reference(closure, task, following)
        except ReferenceRejected as refusal:
            if task.unmapped:
                return CheckResult("unmapped", (*task.problems, replace(refusal.diagnostic, severity="note")))
            return CheckResult("rejected", (refusal.diagnostic,))
        if task.unmapped:
            return CheckResult("unmapped", task.problems)
        if task.inputs is None:
            return self._not_compiled(reference, task)
        ours = self.compile(rust, task.inputs, task.target)
        mapping = parameter_map(task.specialization)
        comparison = self._compared(reference, ours, mapping, task)
        result = CheckResult("proved", equivalences=comparison.equivalences)
        if not comparison.equal:
            located = _located(reference, ours, mapping, task)
            shown = tuple(_difference(d, rust, task) for d in located.differences)
            result = CheckResult("differs", shown, equivalences=comparison.equivalences)
        if self._execute or task.execute:
            result = self._executed(result, reference, ours, rust, task)
        for arch in self._cubins:
            result = self._assembled(
                result, arch, (reference, ours) if arch == task.target else None, rust, closure, task
            )
        return result

    # The two sides

    def _reference(self, closure: Closure, task: CheckTask, following: CheckTask | None) -> bytes:
        """Export the reference; raises ReferenceRejected when cuda-tile refuses it or makes ill-formed Tile IR."""
        from transpiler.reference.refusal import ill_formed

        ahead = None
        if following is not None and following.target == task.target and not self._cubins:
            ahead = following.specialization  # with cubins, other exports may come in between
        bytecode = self.exporter.export(closure, task.specialization, task.target, ahead=ahead).bytecode
        try:
            self._entry(bytecode)
        except TranspileError as failure:
            rejected = ill_formed(failure, task.kernel, task.problems)
            if rejected is not None:
                raise rejected from None
            raise
        return bytecode

    def _not_compiled(self, reference: bytes, task: CheckTask) -> CheckResult:
        """A check that we have no Rust for, though cuda-tile takes the kernel; the assembler may refuse it."""
        from transpiler.reference.refusal import assembler_refusal

        refused = assembler_refusal(reference, task.target, task.kernel, task.problems[0]) if task.problems else None
        if refused is not None:
            return CheckResult("rejected", (refused,))
        return CheckResult("error", tuple(map(_ours, task.problems)))

    def compile(self, rust: RustText, inputs: CompileInputs, target: str) -> bytes:
        """Compile one specialization of our text to Tile IR; E0711 with the place when the compiler refuses.

        It refuses less than the disassembler does: Tile IR that is ill-formed is E0711 too.
        """
        from transpiler import _rust
        from transpiler.reference.refusal import unreadable

        try:
            bytecode = self._module(rust).compile(
                inputs.entry,
                generics=list(inputs.generics),
                strides=[(name, list(values)) for name, values in inputs.strides],
                specs=[(name, list(dims), list(strides), base) for name, dims, strides, base in inputs.specs],
                scalar_hints=list(inputs.scalar_hints),
                target=target,
                occupancy=inputs.occupancy,
                num_ctas=inputs.num_ctas,
                num_worker_warps=inputs.num_worker_warps,
            )
            self._entry(bytecode)
        except _rust.CompileError as failure:
            raise TranspileError(
                _compile_error(failure.message, failure.line, failure.column, rust), status=1
            ) from None
        except TranspileError as failure:
            found = unreadable(failure)
            if found is None:
                raise
            reason, place = found
            line, column = (place.line, place.column) if place is not None else (0, 0)
            raise TranspileError(
                _compile_error(f"ill-formed Tile IR: {reason}", line, column, rust), status=1
            ) from None
        return bytecode

    def _module(self, rust: RustText) -> _rust.Module:
        from transpiler import _rust

        digest = hashlib.sha256(f"{rust.module}\n{rust.text}".encode()).hexdigest()
        if digest not in self._modules:
            while len(self._modules) >= _KEPT_MODULES:  # each keeps a thread
                del self._modules[next(iter(self._modules))]
            self._modules[digest] = _rust.Module(rust.text, rust.module, rust.display)
        return self._modules[digest]

    # The comparison

    def _compared(
        self, reference: bytes, ours: bytes, mapping: tuple[int, ...] | None, task: CheckTask
    ) -> Comparison:  # fmt: skip
        """Compare two bytecodes; equal questions are answered once.

        The judge must find each program equal to a shuffled copy of itself; raises E0707 where it doesn't.
        """
        from transpiler.tileir.selfcheck import checked_comparison

        promised = promises(task.specialization)
        key = (_digest(reference), _digest(ours), mapping, promised, task.target)
        if key not in self._comparisons:
            sides = self._entry(reference), self._entry(ours)
            checked = checked_comparison(*sides, target=task.target, parameter_map=mapping, promises=promised)
            for equal, side in ((checked.reference, "reference"), (checked.ours, "translation")):
                if not equal:
                    message = f"the judge doesn't find the {side} equal to itself, so its verdict would mean nothing"
                    raise error("E0707", message, task.place, status=1)
            self._comparisons[key] = checked.comparison
        return self._comparisons[key]

    def _entry(self, bytecode: bytes) -> Entry:
        """Parse a disassembly, each bytecode once (the last few hundred are kept)."""
        digest = _digest(bytecode)
        if digest not in self._entries:
            if len(self._entries) >= 256:
                self._entries.clear()
            self._entries[digest] = _parse(bytecode)
        return self._entries[digest]

    # Executing

    def _executed(
        self, result: CheckResult, reference: bytes, ours: bytes, rust: RustText, task: CheckTask
    ) -> CheckResult:
        """Execute both sides on the same inputs; where the graphs differ, agreeing results make it ``tested``."""
        from transpiler.execute.agree import execute_check
        from transpiler.execute.report import Sides, judged

        if any(d.code == _CODES["signature"] for d in result.diagnostics):
            return result  # there are no arguments for both
        codes = {d.code for d in result.diagnostics}
        sides = Sides(_parse(ours, debug=True), _parse(reference, debug=True),
                      lambda loc: rust.python_span(loc.line, loc.column),
                      codes <= {_CODES["structure"], _CODES["effect"]})  # fmt: skip
        seed = f"{task.kernel} {task.specialization.model_dump_json(exclude={'name'})} {task.target}"
        agreement = execute_check(sides.ours, sides.reference, task.specialization, seed=seed)
        verdict, diagnostics, row = judged(result.verdict, result.diagnostics, agreement, sides, task.place)
        return replace(result, verdict=verdict, diagnostics=diagnostics, executed=row)

    # Machine code

    def _assembled(
        self, result: CheckResult, arch: str, bytecode: tuple[bytes, bytes] | None, rust: RustText, closure: Closure,
        task: CheckTask,
    ) -> CheckResult:  # fmt: skip
        """Add what the machine code of both sides says for one architecture, compiled for that architecture."""
        outcome, reasons = self._machine_code(arch, bytecode, rust, closure, task)
        code = "E0706" if outcome == "differs" else "E0660"
        notes = tuple(Diagnostic(code, f"{arch}: {reason}", "", "note", task.place) for reason in reasons)
        codes: dict[str, MachineCode] = {**result.machine_code, arch: outcome}
        return replace(result, diagnostics=(*result.diagnostics, *notes), machine_code=codes)

    def _machine_code(
        self, arch: str, bytecode: tuple[bytes, bytes] | None, rust: RustText, closure: Closure, task: CheckTask
    ) -> tuple[MachineCode, Sequence[str]]:
        from transpiler.cubin import compare_cubins
        from transpiler.reference.export import ReferenceRejected

        if bytecode is None:
            assert task.inputs is not None
            try:
                anywhere = task.specialization.model_copy(update={"target": arch})
                reference = self.exporter.export(closure, anywhere, arch).bytecode
            except ReferenceRejected as refusal:
                return "refused", [refusal.diagnostic.message]
            try:
                bytecode = reference, self.compile(rust, task.inputs, arch)
            except TranspileError as failure:
                return "differs", [failure.diagnostic.message]
        compared = compare_cubins(*bytecode, arch=arch)
        return compared.outcome, compared.reasons


def rust_text(translation: Translation) -> RustText:
    """Return an operator's kernel.rs with the map of its lines."""
    plan = translation.plan
    return RustText(plan.module, translation.text, read_lines(plan.lines), f"{plan.name}/kernel.rs")


def tasks_of(plan: OperatorPlan, keys: Iterable[CheckKey]) -> Iterator[tuple[CheckKey, CheckTask, CheckResult | None]]:
    """Yield the checks of a plan as tasks, with the result where translating already decided it."""
    for key in keys:
        kernel = plan.kernels[key.kernel]
        check = kernel.entries[key.entry].checks[key.check]
        task = CheckTask(kernel.name, check.specialization, check.target, check.inputs, place_of(plan, kernel),
                         check.diagnostics, check.execute, check.outcome == "unmapped")  # fmt: skip
        decided = CheckResult(check.outcome, check.diagnostics) if check.outcome is not None else None
        yield key, task, decided


def _ours(refusal: Diagnostic) -> Diagnostic:
    """What we refuse although the reference compiles it is a limit of ours, not the author's mistake."""
    if refusal.code != "E0401":
        return refusal
    return replace(refusal, help="cuTile Python compiles the kernel: a limit of transpile; please report it")


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _parse(bytecode: bytes, *, debug: bool = False) -> Entry:
    from transpiler.tileir import parse_entry

    return parse_entry(toolkit.disassemble(bytecode, debug=debug))


def _located(reference: bytes, ours: bytes, mapping: tuple[int, ...] | None, task: CheckTask) -> Comparison:
    """Compare two bytecodes again, with the places that their differences come from."""
    from transpiler.tileir import compare

    sides = _parse(reference, debug=True), _parse(ours, debug=True)
    return compare(*sides, target=task.target, parameter_map=mapping, promises=promises(task.specialization))


def _compile_error(why: str, line: int, column: int, rust: RustText) -> Diagnostic:
    where = f"{rust.display}:{line}:{column}: " if line else ""
    span = rust.python_span(line, column) if line else Span("", 0, 0)
    message = f"the generated Rust doesn't compile: {where}{why}"
    return Diagnostic("E0711", message, "this is a mistake of a rule: please report it", "error", span)


def _difference(difference: Difference, rust: RustText, task: CheckTask) -> Diagnostic:
    """Describe a difference with both source lines; it points at the Python line."""
    rows = [difference.message]
    if difference.ours or difference.ours_loc:
        rows.append(f"ours:      {difference.ours}{_at(difference.ours_loc)}")
    if difference.reference or difference.reference_loc:
        rows.append(f"reference: {difference.reference}{_at(difference.reference_loc)}")
    return Diagnostic(_CODES[difference.kind], "\n".join(rows), "", "error", _where(difference, rust, task))


def _where(difference: Difference, rust: RustText, task: CheckTask) -> Span:
    if difference.reference_loc is not None:
        return difference.reference_loc.in_python
    if difference.ours_loc is not None:
        return rust.python_span(difference.ours_loc.line, difference.ours_loc.column)
    return task.place


def _at(loc: Loc | None) -> str:
    return f"  ({loc.file}:{loc.line})" if loc is not None else ""


def _placed(diagnostic: Diagnostic, place: Span) -> Diagnostic:
    """Give a diagnostic without a place the kernel's."""
    return diagnostic if diagnostic.span.file else replace(diagnostic, span=place)
