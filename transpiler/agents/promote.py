"""Promotion: an accepted override as a row of the rule tables and a case, for a maintainer to review.

The row goes into a module of its own in ``transpiler/rules/promoted`` (a call without a rule) or
``transpiler/select/promoted`` (an operation without a form), the case into ``tests/cases/promoted``: the kernel that
the override was accepted for, the specialization, and what it lowers to. Nothing is overwritten.
"""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from transpiler.diagnostics import TranspileError, error
from transpiler.manifests import param_item
from transpiler.overrides import Override, load_override
from transpiler.reference.closure import Closure
from transpiler.reference.layout import lay_out
from transpiler.rules import table
from transpiler.rules.inline import Variant, rules_of
from transpiler.rules.promoted import VARIANTS
from transpiler.rules.registry import Table as RuleTable
from transpiler.select import TABLE
from transpiler.select.forms import Form
from transpiler.select.forms import Table as FormTable
from transpiler.spec import Specialization
from transpiler.store import OutputFolder

_SLUG = re.compile(r"[^a-z0-9]+")
_HOLE = re.compile(r"\$(\d+)")
_WIDTH = 112


def promote(path: Path, into: Path) -> list[Path]:
    """Write the row and the case into a checkout; E0874 where something is in the way, and nothing is written."""
    override = load_override(path)
    if override.kind != "rust" or override.hole is None or override.evidence is None:
        raise _refused(path, "only an accepted override of kind `rust` can be promoted")
    if not (into / "transpiler" / "rules").is_dir() or not (into / "tests" / "cases").is_dir():
        raise _refused(path, f"{into.as_posix()} isn't a checkout of this tool", "name it with --into")
    call = override.hole.kind == "call"
    name = _SLUG.sub("_", f"{override.hole.name.lower()}_{override.key[:6]}").strip("_")
    row = into / "transpiler" / ("rules" if call else "select") / "promoted" / f"{name}.py"
    case = into / "tests" / "cases" / "promoted" / f"{name}.case"
    for target in (row, case):
        if target.exists():
            raise _refused(path, f"{target.as_posix()} is there already", "delete it to promote again")
    use = _used_for(override, path)
    text = _rule_module(override, path, use.without) if call else _form_module(override, path, use.without)
    written = {row: text, case: _case(override, text, use)}
    for target, content in written.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    return list(written)


def _refused(path: Path, why: str, help: str = "") -> TranspileError:
    return error("E0874", f"{path.as_posix()} can't be promoted: {why}", help=help)


_HEAD = '''"""`{name}`: promoted from an override by {model} ({verdict} for {checks}).

Review it, generalize it, and move it to its family.
"""

from __future__ import annotations

'''


def _head(override: Override) -> str:
    assert override.hole is not None and override.evidence is not None
    evidence = override.evidence
    return _HEAD.format(name=override.hole.name, model=override.model, verdict=evidence.verdict,
                        checks=", ".join(evidence.checks))  # fmt: skip


# Calls


def _rule_module(override: Override, path: Path, without: tuple[str, ...]) -> str:
    """A module with the row of a call; raises E0874 where another row takes such calls."""
    assert override.hole is not None
    construct = override.hole.value()
    signature = _signature(construct.name)
    arguments, order = _bound(construct.arguments, signature)
    renamed = {str(old): str(new) for new, old in enumerate(order)}
    operands = [construct.operands[old] for old in order]
    accepts = _accepts([text for _, text in construct.arguments if _], construct.operands)

    def fill(text: str) -> str:
        return _HOLE.sub(lambda m: f"${renamed.get(m[1], m[1])}", text)

    results = [(fill(r.dtype), fill(r.shape) if isinstance(r.shape, str) else
                tuple(fill(d) if isinstance(d, str) else d for d in r.shape)) for r in override.results]  # fmt: skip
    attribute = not construct.name.startswith("cuda.tile.") and _is_property(construct.name)
    lines = [
        "from transpiler.rules.inline import ResultType, Variant\n",
        "VARIANTS = (",
        "    Variant(",
        f"        {construct.name!r},",
        f"        {signature!r},",
        f"        {fill(override.rust)!r},",
        f"        operands={tuple(operands)!r},",
        f"        arguments={tuple(fill(a) for a in arguments)!r},",
        f"        results=({', '.join(f'ResultType({d!r}, {s!r})' for d, s in results)},),",
        f"        accepts={accepts!r},",
        *(["        attribute=True,"] if attribute else []),
        "    ),",
        ")  # fmt: skip",
    ]
    text = _head(override) + _wrapped(lines)
    try:
        with_rows(construct.name, without, text)
    except ValueError as exc:
        raise _refused(path, f"a row takes such calls already ({exc})", "extend that row by hand") from None
    return text


def _signature(callee: str) -> str:
    """The parameters of a function or method of cuda.tile as the rule table writes them; else any."""
    import cuda.tile as ct

    module, _, name = callee.rpartition(".")
    home = ct if module == "cuda.tile" else getattr(ct, module, None)
    found = getattr(home, name, None)
    if found is None or not callable(found):
        return "self" if found is not None else "*args, **kwargs"
    parts: list[str] = []
    kind = None
    parameters = list(inspect.signature(found).parameters.values())
    for p in parameters:
        if kind is inspect.Parameter.POSITIONAL_ONLY and p.kind is not kind:
            parts.append("/")
        if p.kind is inspect.Parameter.KEYWORD_ONLY and kind is not p.kind and "*" not in parts:
            parts.append("*")
        parts.append(p.name + ("" if p.default is p.empty else f"={_literal(p.default)}"))
        kind = p.kind
    return ", ".join(parts) + (", /" if kind is inspect.Parameter.POSITIONAL_ONLY else "")


def _literal(value: object) -> str:
    return repr(value) if isinstance(value, bool | int | float | str) or value is None else "None"


def _is_property(callee: str) -> bool:
    import cuda.tile as ct

    module, _, name = callee.rpartition(".")
    return isinstance(inspect.getattr_static(getattr(ct, module, None), name, None), property)


def _bound(arguments: Sequence[tuple[str, str]], signature: str) -> tuple[list[str], list[int]]:
    """How each parameter is passed in the signature's order, defaults filled in, and the operands in that order."""
    scope: dict[str, object] = {}
    exec(f"def f({signature}): ...", scope)
    bound = inspect.signature(scope["f"]).bind(  # type: ignore[arg-type]
        *(text for name, text in arguments if name.isdecimal()),
        **{name: text for name, text in arguments if not name.isdecimal()},
    )
    given = set(bound.arguments)
    bound.apply_defaults()
    texts = []
    for name, value in bound.arguments.items():
        items = value if isinstance(value, tuple) else tuple(value.values()) if isinstance(value, dict) else (value,)
        texts += [str(v) for v in items] if name in given or isinstance(value, tuple | dict) else [repr(value)]
    return texts, [int(n) for text in texts for n in _HOLE.findall(text)]


def _accepts(texts: Sequence[str], operands: Sequence[str]) -> tuple[str, ...]:
    """The kinds of the leading arguments, as far as they are tiles and arrays."""
    out = []
    for text in texts:
        found = re.fullmatch(r"\$(\d+)", text)
        kind = operands[int(found[1])].partition(" ")[0] if found is not None else ""
        if kind not in ("tile", "array"):
            break
        out.append(kind)
    return tuple(out)


# Operations


def _form_module(override: Override, path: Path, without: tuple[str, ...]) -> str:
    """A module with the row of an operation."""
    assert override.hole is not None
    construct = override.hole.value()
    when: dict[str, object] = {}
    for name, text in construct.arguments:
        if name != "results":
            try:
                when[name] = ast.literal_eval(text)
            except (SyntaxError, ValueError):
                continue  # an expression of the launch: the form is right for any
    kept = [row for rows in TABLE.rows.values() for row in rows if row.key not in without]
    for known in (row for row in kept if row.opcode == construct.name):
        when |= {name: None for name, _ in known.when if name not in when}
    conditions = "".join(f"\n        {name}={value!r}," for name, value in sorted(when.items()))
    simple = not re.search(r"[;\n]|\bif |\$[a-z]", override.rust)  # what the table's own templates can say
    make, nest = "block_form", ""
    if simple:
        make, nest = "form", f"\n        nest={_nests(construct.operands, construct.arguments)},"
    text = _head(override) + (
        f"from transpiler.select.forms import {make}\n\nROWS = [\n    {make}(\n        {construct.name!r},\n"
        f"        {override.rust!r},{nest}{conditions}\n    ),\n]  # fmt: skip\n"
    )
    try:
        FormTable([*kept, *(row for row in _run(text, "ROWS") if isinstance(row, Form))])
    except ValueError as exc:
        raise _refused(path, f"a row takes such operations already ({exc})", "extend that row by hand") from None
    return text


def _nests(operands: Sequence[str], arguments: Sequence[tuple[str, str]]) -> bool:
    return len({*operands, dict(arguments).get("results", "")}) == 1


def _wrapped(lines: Sequence[str]) -> str:
    """Lines, with literals that are too long for one marked for the linter."""
    return "\n".join(line + ("  # noqa: E501" if len(line) > _WIDTH else "") for line in lines) + "\n"


# Cases


def _run(module: str, name: str) -> Sequence[object]:
    """What a module that was just written declares."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "row.py"
        path.write_text(module, encoding="utf-8")
        rows: Sequence[object] = runpy.run_path(str(path))[name]
        return rows


@dataclass(frozen=True)
class _Use:
    """Where an override was accepted: a kernel, a specialization, the closure, the rules that were switched off."""

    kernel: str
    specialization: Specialization
    closure: Closure
    without: tuple[str, ...]


def _used_for(override: Override, path: Path) -> _Use:
    """The first check in the override's folder that it fills a Hole of."""
    folder = OutputFolder(path.resolve().parent.parent)
    for stored in folder.load().operators:
        for kernel in stored.plan.kernels:
            for check in (c for e in kernel.entries for c in e.checks):
                if any(f.override == override.key for f in check.filled) and kernel.closure:
                    text = folder.closure_text(stored.plan.name, kernel.closure)
                    closure = Closure.from_text(text, kernel.closure)
                    return _Use(kernel.name, check.specialization, closure, stored.plan.without)
    raise _refused(path, "no kernel of its folder uses it", "translate again with its folder as `-o`")


def _case(override: Override, module: str, use: _Use) -> str:
    """The kernel, the specialization and the TIR, as tests/case_format.py reads them; helpers' modules by name."""
    *helpers, main = ((m.name, "\n".join(s.text for s in m.segments).strip() + "\n") for m in use.closure.modules)
    params = tomlkit.document()
    for name, param in use.specialization.params.items():
        params.add(name, param_item(param))
    sections = {"name": main[0]} if helpers else {}
    sections |= {f"module {name}": text for name, text in helpers if text.strip()}
    sections |= {"python": main[1], "params": tomlkit.dumps(params)}
    if use.specialization.target:
        sections["target"] = use.specialization.target
    sections["tir"] = _tir(override, dict(helpers), main if helpers else ("case", main[1]), use, module)
    return "\n".join(f"=== {title}\n{text.rstrip()}\n" for title, text in sections.items())


def with_rows(callee: str, without: tuple[str, ...], module: str) -> RuleTable:
    """The rule table with a module's variants; those that said `unsupported` of the callee make room."""
    rows = [r for r in table() if r.key not in without and (r.status == "exact" or r.callee != callee)]
    variants = [*VARIANTS, *(v for v in _run(module, "VARIANTS") if isinstance(v, Variant))]
    return RuleTable([*(r for r in rows if r.family != "promoted"), *rules_of(variants)])


def _tir(override: Override, helpers: dict[str, str], main: tuple[str, str], use: _Use, module: str) -> str:
    """What the kernel lowers to with the new row."""
    from transpiler import passes
    from transpiler.frontend import load_program
    from transpiler.ir import tir
    from transpiler.specialize import specialize

    assert override.hole is not None
    call = override.hole.kind == "call"
    rules = with_rows(override.hole.name, use.without, module) if call else table()
    with tempfile.TemporaryDirectory() as folder:
        places = lay_out(Path(folder), {**helpers, main[0]: main[1]})
        program = load_program(places[main[0]], display="case.py")
    return tir.dump(passes.run(specialize(program, use.kernel, use.specialization, rules)))
