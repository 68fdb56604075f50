"""What a launch may take: of the entries that were emitted, those whose checks say that they are right.

An entry is made before it is checked. Once the verdicts are known, what no check speaks for is left out of the tables
that choose: an entry of which every check was refused, differs or failed, and of an entry with several ways to get
there the ways whose checks did. What wasn't checked (``--no-verify``, another shard) stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from transpiler.diagnostics import Diagnostic, Span
from transpiler.emit.abi import EntryAbi, KernelAbi
from transpiler.emit.disjoint import call_text, shared_calls
from transpiler.emit.extras import launch_files
from transpiler.report.model import Verdict
from transpiler.specialize.conditions import alternatives_text
from transpiler.translation import CheckKey, EntryPlan, KernelPlan, LaunchTables, Translation, place_of

_GOOD = ("proved", "tested")
Verdicts = Mapping[CheckKey, Verdict]


def settled(translation: Translation, verdicts: Verdicts) -> Translation:
    """Return a translation whose launch tables hold what its checks speak for; the text of kernel.rs stays."""
    tables = translation.tables
    if tables is None:
        return translation
    plan = translation.plan
    kept: list[KernelAbi] = []
    kernels: list[KernelPlan] = []
    for index, kernel in enumerate(plan.kernels):
        abi = next((abi for abi in tables.abis if abi.kernel == kernel.name), None)
        if abi is not None:
            abi, kernel = _kernel(abi, kernel, CheckKey(plan.name, index, 0, 0), tables, verdicts)
            clashes = tuple(_clashes(abi, place_of(plan, kernel)))
            kernel = kernel.model_copy(update={"diagnostics": (*kernel.diagnostics, *clashes)}) if clashes else kernel
            kept.append(abi)
        kernels.append(kernel)
    files = dict(translation.files)
    if tuple(kept) != tables.abis:
        files |= launch_files(plan.name, kept, plan.module, tables.left_out, tables.author)
    return replace(
        translation, plan=plan.model_copy(update={"kernels": tuple(kernels)}), files=files,
        tables=replace(tables, abis=tuple(kept)),
    )  # fmt: skip


def _kernel(
    abi: KernelAbi, kernel: KernelPlan, key: CheckKey, tables: LaunchTables, verdicts: Verdicts
) -> tuple[KernelAbi, KernelPlan]:
    """A kernel's table, and its plan with the conditions that are left."""
    entries: list[EntryAbi] = []
    plans: list[EntryPlan] = []
    of = {entry.name: entry for entry in abi.entries}
    for index, plan in enumerate(kernel.entries):
        keys = [replace(key, entry=index, check=check) for check in range(len(plan.checks))]
        entry = _entry(of[plan.name], keys, tables, verdicts) if plan.name in of else None
        if entry is not None:
            entries.append(entry)
            plan = plan.model_copy(update={"condition": alternatives_text(entry.conditions, entry.alternatives)})
        plans.append(plan)
    return replace(abi, entries=tuple(entries)), kernel.model_copy(update={"entries": tuple(plans)})


def _entry(entry: EntryAbi, keys: Sequence[CheckKey], tables: LaunchTables, verdicts: Verdicts) -> EntryAbi | None:
    """An entry with the ways to get there that some check speaks for, or that weren't checked."""
    ways = entry.alternatives or (entry.conditions,)
    good = {tables.paths[key] for key in keys if verdicts.get(key, _GOOD[0]) in _GOOD}
    left = tuple(way for index, way in enumerate(ways) if index in good)
    if not left:
        return None
    if left == ways:
        return entry
    common = tuple(c for c in left[0] if all(c in way for way in left))
    return replace(entry, conditions=common, alternatives=left if len(left) > 1 else ())


def _clashes(abi: KernelAbi, place: Span) -> Iterator[Diagnostic]:
    """What to say of entries that could both serve a call: a launch would take whichever comes first."""
    for one, other, call in shared_calls(abi):
        message = f"`{one.name}` and `{other.name}` of `{abi.kernel}` would both serve a call with {call_text(call)}"
        yield Diagnostic("E0621", message, "a decision of the translation wasn't recorded: please report it", "error",
                         place)  # fmt: skip


__all__ = ["settled"]
