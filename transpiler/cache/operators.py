"""Results of whole operators: their part of the report, and the files that were written for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transpiler.cache import fingerprint
from transpiler.cache.folder import CacheFolder, key_of
from transpiler.cache.listing import Listed
from transpiler.cache.rows import cacheable, from_row, to_row
from transpiler.diagnostics import Diagnostic
from transpiler.inputs import Inputs, file_digest
from transpiler.report.model import Operator
from transpiler.shards import Wanted

if TYPE_CHECKING:
    from transpiler.batch import Results
    from transpiler.translation import Translation

_SUMMARIES = "operators"
_TRANSLATIONS = "translations"


@dataclass(frozen=True)
class KnownOperator:
    """An operator that was done before; ``stored`` is the digest of its part of manifest.json."""

    listed: Listed
    key: str
    operator: Operator
    diagnostics: tuple[Diagnostic, ...]
    equivalences: dict[str, int]
    stored: str


def operator_key(one: Listed, cubins: tuple[str, ...], wanted: Wanted | None, selection: Sequence[object] = ()) -> str:
    """Name the results of an operator: its job, what of it is wanted, what Rust is selected from, and the tool."""
    mine = None if wanted is None else sorted(key for key in wanted if key[0] == one.name)
    return key_of(fingerprint.tool(), one.digest, cubins, mine, *([selection] if selection else []))


def selection_key(overrides: Path, without: Sequence[str]) -> list[object]:
    """Digest what selection is given beside its tables: the override files of a folder, the rules switched off."""
    files = sorted(overrides.glob("*.toml")) if overrides.is_dir() else []
    rows = [(path.name, file_digest(path)) for path in files]
    return [rows, list(without)] if rows or without else []


def find_operator(folder: CacheFolder, one: Listed, key: str) -> KnownOperator | None:
    """Return an operator's results where no source of it has changed."""
    row = folder.get_json(_SUMMARIES, key)
    if row is None:
        return None
    try:
        if not Inputs.from_json(row["inputs"]).unchanged():
            return None
        diagnostics = tuple(from_row(d) for d in row["diagnostics"])
        return KnownOperator(one, key, Operator.model_validate(row["operator"]), diagnostics, row["equivalences"],
                             row["stored"])  # fmt: skip
    except (KeyError, TypeError, ValueError):
        return None


def store_operator(
    folder: CacheFolder, key: str, results: Results, name: str, wanted: Wanted | None, since_ns: int
) -> None:
    """Remember an operator's results, if every wanted check has one that would be the same again."""
    from transpiler.report import assemble
    from transpiler.store import stored_operator

    translation = results.translations[name]
    checks = [results.checks.get(k) for k in assemble.wanted_keys(translation.plan, wanted)]
    if any(c is None or not cacheable(c.verdict, c.diagnostics) for c in checks):
        return
    diagnostics = tuple(assemble.operator_diagnostics(results, name))
    inputs = translation.lookups.inputs(since_ns=since_ns)
    if inputs is None or not cacheable("proved", diagnostics):
        return
    operator = assemble.operator(results, translation.plan)
    for kernel in operator.kernels:
        for check in kernel.checks():
            check.seconds = 0.0  # nothing is spent on it next time
    equivalences: dict[str, int] = {}
    for check_result in checks:
        for what, uses in check_result.equivalences.items() if check_result is not None else ():
            equivalences[what] = equivalences.get(what, 0) + uses
    stored = stored_operator(translation)
    row = {"inputs": inputs.to_json(), "operator": operator.model_dump(exclude_none=True),
           "diagnostics": [to_row(d) for d in diagnostics], "equivalences": equivalences,
           "stored": stored_digest(json.loads(stored.model_dump_json(exclude_defaults=True)))}  # fmt: skip
    files = translation.files
    closures = {kernel: closure.to_text() for kernel, closure in translation.closures.items()}
    whole = {"plan": translation.plan.model_dump_json(exclude_defaults=True), "files": files, "closures": closures}
    folder.put_json(_TRANSLATIONS, key, whole)
    folder.put_json(_SUMMARIES, key, row)


def stored_digest(row: Any) -> str:
    """Digest an operator's part of manifest.json, as parsed."""
    return key_of(row)


def load_translations(folder: CacheFolder, known: Iterable[KnownOperator]) -> dict[str, Translation] | None:
    """Return the translations of operators done before, to be written again; None where one of them is damaged."""
    from transpiler.reference.closure import Closure
    from transpiler.translation import OperatorPlan, Translation

    found = {}
    for one in known:
        row = folder.get_json(_TRANSLATIONS, one.key)
        try:
            plan = OperatorPlan.model_validate_json(row["plan"])
            closures = {name: Closure.from_text(text) for name, text in row["closures"].items()}
            found[plan.name] = Translation(plan, row["files"], closures)
        except (KeyError, TypeError, ValueError):
            return None
    return found
