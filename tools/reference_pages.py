"""Write the pages of docs/ that are made from the code: `python tools/reference_pages.py`.

tests/test_docs.py says when one of them isn't fresh.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import cuda.tile as ct

from transpiler import corpora, explain
from transpiler.coverage import model as coverage
from transpiler.coverage.collect import CONSTRUCTOR
from transpiler.diagnostics import TranspileError
from transpiler.emit.entry import emit_entry
from transpiler.emit.lower import WRITTEN
from transpiler.frontend.constructs import CONSTRUCTS as WITHOUT_MEANING
from transpiler.ir.trace import RuleTrace, joined
from transpiler.rules import Rule, table
from transpiler.rules.constructs import CONSTRUCTS
from transpiler.select import TABLE
from transpiler.specialize.evaluate import external_dtype
from transpiler.tileir.equivalences import EQUIVALENCES

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- made by tools/reference_pages.py: {} -->", "<!-- end -->"
_HEAD = "Made by `tools/reference_pages.py` from {}; don't edit."
_SECTIONS = (
    ("Operations of cuda.tile", ("cuda.tile.",)),
    ("Methods and properties", ("Tile.", "Array.", "TiledView.", "Tuple.")),
    ("Operators of Python", ("operator.",)),
    ("Built-in functions and others", ("",)),
)
# What nearly every rule needs on its way: left out of the Rust column where something else is left.
_EVERYWHERE = {"constant", "reshape", "broadcast", "convert", "make_token", "join_tokens"}
_ADDRESSES = {"base", "make_tensor", "offset", "dim", "stride", "view", "addi", "muli", "andi", "cmpi", "assume"}
_ACCESSES = {"load_ptr", "store_ptr", "atomic_rmw", "atomic_cas", "load_view", "store_view", "atomic_red_view"}


def pages() -> dict[str, str]:
    """Return every page by its path in docs/."""
    trust = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    return {
        "diagnostics.md": explain.reference_page(),
        "operations.md": operations(),
        "coverage.schema.json": coverage.json_schema(),
        "spec.schema.json": corpora.json_schema(),
        "trust.md": filled(trust, "equivalences", equivalences()),
    }


def filled(text: str, name: str, content: str) -> str:
    """Replace what stands between the marks of a page that is written by hand otherwise."""
    before, begin, rest = text.partition(BEGIN.format(name) + "\n")
    _, end, after = rest.partition(END)
    assert begin and end, f"docs/trust.md has no place for the {name}"
    return f"{before}{begin}\n{content}\n{end}{after}"


def equivalences() -> str:
    """Every equivalence with its justification and the operations that it is tried on."""
    rows = []
    for one in EQUIVALENCES:
        where = f" (on `{'`, `'.join(one.operations)}`)" if one.operations else ""
        rows.append(f"* **{one.name}**{where}: {one.justification}\n")
    return "".join(rows)


# The table of operations


def operations() -> str:
    """Every public name of cuda.tile, every method, operator and function: status, reason, Rust, documentation."""
    forms = written_forms()
    rows = list(table())
    out = ["# Operations", "", _HEAD.format("the tables of rules and forms"), "", _INTRODUCTION, ""]
    out += [_counts(rows), ""]
    for title, prefixes in _SECTIONS:
        mine = [row for row in rows if row.callee.startswith(prefixes)]
        rows = [row for row in rows if row not in mine]
        out += [f"## {title}", "", "| name | status | in Rust | |", "|---|---|---|---|"]
        out += [_row(row, forms.get(row.key, [])) for row in sorted(mine, key=lambda row: row.key)]
        out += [""]
    out += ["## Other public names of cuda.tile", "", "| name | what it is |", "|---|---|"]
    out += [f"| `ct.{name}` | {what} |" for name, what in other_names()]
    out += ["", "## Constructs of Python", "", "| construct | status | |", "|---|---|---|"]
    out += [f"| {name} | exact | {doc} |" for name, doc in CONSTRUCTS.items()]
    out += [f"| {row.what} | {code} | {row.help} |" for code, row in WITHOUT_MEANING.items()]
    return "\n".join(out) + "\n"


_INTRODUCTION = """\
A name that has several rows is told apart by its operands. `exact` rows translate to the same Tile IR that cuTile
Python makes; `unsupported` rows become a Hole with the reason that is given. The Rust is what the cases in
`tests/cases/` come to: `$0` is the first operand, other `$` names are parameters of the form
(`transpiler/select/params.py`). What only selects addresses or shapes on the way is left out."""


def _counts(rows: list[Rule]) -> str:
    public = _SECTIONS[0][1] + _SECTIONS[1][1]
    names = {row.callee for row in rows if row.callee.startswith(public) and row.callee != CONSTRUCTOR}
    mapped = {row.callee for row in rows if row.callee in names and row.status == "exact"}
    return f"{len(mapped)} of {len(names)} operations, methods and properties of cuda.tile have a rule."


def _row(row: Rule, forms: list[str]) -> str:
    name = row.key.replace("cuda.tile.", "ct.", 1) if row.callee != CONSTRUCTOR else "ct.float32(x), .."
    if row.status == "unsupported":
        return f"| `{name}` | unsupported | | {_cell(row.reason)} |"
    rust = "<br>".join(f"`{_cell(text)}`" for text in forms) or "known while translating"
    return f"| `{name}` | exact | {rust} | {_cell(row.doc)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def written_forms() -> dict[str, list[str]]:
    """By rule, the Rust that the operations which it makes are written as in the cases."""
    templates = {row.key: row.template for rows in TABLE.rows.values() for row in rows} | WRITTEN
    found: dict[str, set[str]] = {}
    for use in _cases_trace().counts:
        if use.table == "form" and use.rule:
            found.setdefault(use.rule, set()).add(use.name)
    return {rule: sorted({templates[key] for key in _telling(keys)}) for rule, keys in found.items()}


def _cases_trace() -> RuleTrace:
    sys.path.insert(0, str(ROOT / "tests"))
    import case_format as cases

    traces = []
    for path in cases.all_cases():
        try:
            traces.append(emit_entry(cases.lower(cases.read(path))).trace)
        except TranspileError:  # cases of errors
            continue
    return joined(traces)


def _telling(keys: Iterable[str]) -> list[str]:
    """The forms that say something of the rule."""
    by_opcode = {key: key.split(" ")[0].rstrip(",") for key in keys}
    dropped = _EVERYWHERE | (_ADDRESSES if _ACCESSES & set(by_opcode.values()) else set())
    return [key for key, opcode in by_opcode.items() if opcode not in dropped] or list(by_opcode)


def other_names() -> Iterator[tuple[str, str]]:
    """The public names that a kernel doesn't call."""
    rows = table().rows
    for name in sorted(ct.__all__):
        if f"cuda.tile.{name}" not in rows:
            yield name, _what(name, getattr(ct, name))


def _what(name: str, thing: object) -> str:
    if isinstance(thing, ct.DType):
        known = external_dtype(f"cuda.tile.{name}") is not None
        return "element type" if known else "element type that has no translation (E0301)"
    if isinstance(thing, type) and issubclass(thing, enum.Enum):
        return f"argument of operations: {', '.join(f'`{member}`' for member in thing.__members__)}"
    if isinstance(thing, type) and issubclass(thing, Exception):
        return "raised by cuTile Python: such a kernel is `rejected`"
    return _HOST.get(name, "type of values or of parameters; read from annotations")


_HOST = {
    "launch": "launches a kernel; read as a call site",
    "kernel": "makes a kernel; its hints are carried over",
    "function": "marks a helper function",
    "ByTarget": "a hint by architecture; carried over",
    "tune": "tuning on the host; launches in it are read as call sites",
    "compilation": "compiling ahead of time; used for the reference side",
    "compiler_timeout": "on the host only",
    "DType": "the type of element types",
}


def main() -> None:
    """Write all pages."""
    for name, text in pages().items():
        (ROOT / "docs" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
