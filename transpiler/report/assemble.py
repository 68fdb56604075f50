"""From the results of a run to the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from transpiler import toolkit
from transpiler.batch import Results
from transpiler.diagnostics import Diagnostic
from transpiler.report.model import (
    Check,
    DiagnosticRow,
    Entry,
    Filled,
    Kernel,
    Operator,
    Report,
    Uncovered,
    count,
    diagnostic_row,
    make_report,
)
from transpiler.shards import Wanted
from transpiler.translation import CheckKey, CheckPlan, EntryPlan, Failure, KernelPlan, OperatorPlan, check_keys
from transpiler.verify import CheckResult


def report(results: Results, *, seconds: float) -> Report:
    """Return the report of a run. The reference's seconds are what as many workers would need for it alone."""
    made = operators(results)
    return make_report(toolkit.versions(), made, seconds=seconds, reference_seconds=reference_seconds(results))


def operators(results: Results) -> list[Operator]:
    """Return the operators of a run, those that could not be translated too."""
    found = [operator(results, plan) for plan in results.plans()]
    return found + [_failure(results.failures[name]) for name in sorted(results.failures)]


def reference_seconds(results: Results) -> float:
    """Return the wall time that the run's workers would need for the reference's exports alone."""
    return results.timing.reference / max(1, results.timing.workers)


def drop_checks(made: Report) -> None:
    """Leave the entries only, for ``--variants``; what has no entry goes, but for its diagnostics."""
    for operator in made.operators:
        for kernel in operator.kernels:
            lost = [entry for entry in kernel.entries if not entry.name]
            if len(lost) == len(kernel.entries):
                kernel.diagnostics += [row for entry in lost for check in entry.checks for row in check.diagnostics]
            kernel.entries = [entry for entry in kernel.entries if entry.name]
            for entry in kernel.entries:
                entry.checks = []
    made.totals = count(made.operators)


def diagnostics(results: Results) -> Iterator[Diagnostic]:
    """Yield every diagnostic of a run in the report's order, with its whole span."""
    for name in sorted({*results.translations, *results.failures}):
        yield from operator_diagnostics(results, name)


def operator_diagnostics(results: Results, name: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics of one operator."""
    if name in results.failures:
        yield results.failures[name].diagnostic
        return
    plan = results.translations[name].plan
    for kernel in plan.kernels:
        yield from kernel.diagnostics
    for key in check_keys(plan):
        if key in results.checks:
            yield from results.checks[key].diagnostics


def wanted_keys(plan: OperatorPlan, wanted: Wanted | None) -> list[CheckKey]:
    """Return the checks of a plan that a run does."""

    def names(key: CheckKey) -> tuple[str, str, str]:
        kernel = plan.kernels[key.kernel]
        return key.operator, kernel.name, kernel.entries[key.entry].checks[key.check].specialization.name

    return [key for key in check_keys(plan) if wanted is None or names(key) in wanted]


def operator(results: Results, plan: OperatorPlan) -> Operator:
    """Return an operator of a run with the checks that have a result."""
    kernels = [_kernel(results, plan, index, kernel) for index, kernel in enumerate(plan.kernels)]
    return Operator(name=plan.name, source=plan.source, kernels=kernels)


def _kernel(results: Results, plan: OperatorPlan, index: int, kernel: KernelPlan) -> Kernel:
    entries = []
    for number, entry in enumerate(kernel.entries):
        checks = []
        for position, check in enumerate(entry.checks):
            result = results.checks.get(CheckKey(plan.name, index, number, position))
            if result is not None:
                checks.append(_check(check, result))
        entries.append(_entry(entry, checks))
    made = Kernel(name=kernel.name, line=kernel.line, diagnostics=_rows(kernel.diagnostics), entries=entries)
    if kernel.uncovered is not None:
        made.uncovered = [Uncovered(condition=one.condition, reason=one.reason) for one in kernel.uncovered]
        made.complete = not made.uncovered
    return made


def _entry(entry: EntryPlan, checks: list[Check]) -> Entry:
    return Entry(name=entry.name, condition=entry.condition, generics=list(entry.generics), checks=checks)


def _check(plan: CheckPlan, result: CheckResult) -> Check:
    filled = [Filled(hole=one.name, override=one.override, kind=one.kind, model=one.model, line=one.line)
              for one in plan.filled]  # fmt: skip
    return Check(
        specialization=plan.specialization.name, target=plan.target, verdict=result.verdict,
        machine_code=dict(result.machine_code), diagnostics=_rows(result.diagnostics), filled=filled or None,
        seconds=round(result.seconds, 4), executed=result.executed,
        raised=True if any(one.kind == "raised" for one in filled) else None,
    )  # fmt: skip


def _failure(failed: Failure) -> Operator:
    """An operator of which nothing could be translated: every check of it is an error."""
    row = diagnostic_row(failed.diagnostic)
    kernels = []
    for name, specializations in failed.kernels:
        checks = [Check(specialization=s.name, target=s.target or failed.target, verdict="error", diagnostics=[row])
                  for s in specializations]  # fmt: skip
        kernels.append(Kernel(name=name, line=0, entries=[
            Entry(name="", condition="no entry could be made", generics=[], checks=checks)]))  # fmt: skip
    return Operator(name=failed.name, source=failed.source, kernels=kernels, diagnostics=[row])


def _rows(diagnostics: Iterable[Diagnostic]) -> list[DiagnosticRow]:
    return [diagnostic_row(one) for one in diagnostics]
