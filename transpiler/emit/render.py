"""kernel.rs of an operator: all entries of all its kernels in one module, with a map back to the source."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

import jinja2

from transpiler.diagnostics import NO_SPAN, Diagnostic, Span
from transpiler.emit.abi import Argument, EntryAbi, Generic, KernelAbi
from transpiler.emit.entry import EmittedEntry
from transpiler.emit.format import formatted
from transpiler.emit.naming import LAUNCHERS, function_name, snake, unique
from transpiler.identifiers import c_symbol
from transpiler.ir import rust
from transpiler.ir.rust import Line
from transpiler.ir.rust_text import comment
from transpiler.ir.symbolic import Sym, to_python
from transpiler.ir.tir import Condition, Kernel
from transpiler.resources import templates_dir
from transpiler.select import SURFACE
from transpiler.select.declarations import DECLARATIONS, used
from transpiler.specialize.conditions import bare

_MARK = "// @@body@@"


@dataclass(frozen=True)
class EmittedModule:
    """kernel.rs: its text, the module's name, the Python place of each line, and the kernels' ABIs.

    ``entries`` has, for each residual program given, the name of the entry that serves it, ``paths`` which of that
    entry's alternatives is the program's.
    """

    text: str
    module: str
    line_map: dict[int, Span]
    kernel_abis: tuple[KernelAbi, ...]
    entries: tuple[str, ...]
    paths: tuple[int, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass
class _Group:
    """The distinct entries of one kernel, in order of appearance."""

    kernel: Kernel
    entries: list[EmittedEntry] = field(default_factory=list)
    paths: list[list[tuple[Condition, ...]]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def emit_operator(operator: str, programs: Sequence[tuple[Kernel, EmittedEntry]], source: str = "") -> EmittedModule:
    """Write the module of an operator; entries with the same text become one."""
    groups, places = _group(programs)
    taken = {*DECLARATIONS, *SURFACE, *LAUNCHERS}
    for group in groups:
        base = function_name(group.kernel.name)
        for _ in group.entries:
            name = unique(base, taken)
            taken.add(name)
            group.names.append(name)
    module = snake(f"{operator}_kernels")
    lines = formatted(_lines(operator, module, source, groups))
    return EmittedModule(
        "\n".join(line.text for line in lines) + "\n",
        module,
        {i: line.span for i, line in enumerate(lines, 1) if line.span != NO_SPAN},
        tuple(_kernel_abi(operator, g) for g in groups),
        tuple(groups[g].names[e] for g, e, _ in places),
        tuple(path for _, _, path in places),
        tuple(dict.fromkeys(d for _, e in programs for d in e.diagnostics)),
    )


def _group(programs: Sequence[tuple[Kernel, EmittedEntry]]) -> tuple[list[_Group], list[tuple[int, int, int]]]:
    """The entries of each kernel, and for each program its group, entry and path."""
    groups: dict[str, _Group] = {}
    places = []
    for kernel, entry in programs:
        group = groups.setdefault(kernel.name, _Group(kernel))
        known = next((i for i, e in enumerate(group.entries) if e.key == entry.key), None)
        if known is None:
            known = len(group.entries)
            group.entries.append(entry)
            group.paths.append([])
        if entry.conditions not in group.paths[known]:
            group.paths[known].append(entry.conditions)
        path = group.paths[known].index(entry.conditions)
        places.append((list(groups).index(kernel.name), known, path))
    return list(groups.values()), places


# -- text ---------------------------------------------------------------------------------------------


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates_dir()), undefined=jinja2.StrictUndefined, keep_trailing_newline=True,
        autoescape=False,
    )  # fmt: skip


def render_template(name: str, **values: object) -> str:
    """A template of the ``templates`` folder, filled in."""
    return _templates().get_template(name).render(**values)


def _lines(operator: str, module: str, source: str, groups: Sequence[_Group]) -> list[Line]:
    text = render_template(
        "kernel.rs.j2", title=f"Kernels of `{operator}`.", source=comment(source or operator), module=module,
        body=_MARK + "\n", kernels=bool(groups),
    )  # fmt: skip
    lines: list[Line] = []
    for line in text.splitlines():
        if line.strip() == _MARK:
            lines += _items(groups, set(DECLARATIONS))
        else:
            lines.append(Line(line))
    return lines


def _items(groups: Sequence[_Group], taken: set[str]) -> list[Line]:
    """Declarations that are used, helper functions, entries."""
    entries = [e for g in groups for e in g.entries]
    printer = rust.Printer()
    for text in used(name for e in entries for name in e.declarations):
        _raw(printer, text)
    functions = _Names(taken | {name for g in groups for name in g.names})
    for group in groups:
        for name, entry in zip(group.names, group.entries, strict=True):
            printer.functions = functions.place(entry, printer)
            printer.names = entry.names
            printer.put(0, "")
            docs = entry.function.docs if name == group.names[0] else _variant(group, entry)
            printer.function(replace(entry.function, name=name, docs=docs), 1)
            printer.span = NO_SPAN
    return printer.lines


def _variant(group: _Group, entry: EmittedEntry) -> tuple[str, ...]:
    """What another entry of a kernel says of itself: the conditions that set it apart from the first."""
    first = set(group.entries[0].conditions)
    texts = [condition_text(c) for c in entry.conditions if c not in first]
    when = f" when {', '.join(texts)}" if texts else ""
    return tuple(textwrap.wrap(f"[`{group.names[0]}`]{when}.", 100))


def condition_text(c: Condition) -> str:
    """A condition as Python."""
    text = to_python(bare(c.sym) if isinstance(c.outcome, bool) else c.sym)
    if c.outcome is True:
        return f"`{text}`"
    return f"`not ({text})`" if c.outcome is False else f"`{text} == {c.outcome!r}`"


class _Names:
    """Gives the functions of all entries their names; equal functions are written once."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.known: dict[tuple[str, str], str] = {}

    def place(self, entry: EmittedEntry, printer: rust.Printer) -> dict[str, str]:
        """Write the entry's functions that aren't written yet; returns the name of each id."""
        names: dict[str, str] = {}
        for f in entry.functions:
            trial = rust.Printer(f.names, functions=names)
            trial.function(replace(f.fn, name="f"), 0)
            text = "\n".join(line.text for line in trial.lines)
            if (f.base, text) not in self.known:
                name = unique(f.base, self.taken)
                self.taken.add(name)
                self.known[f.base, text] = name
                printer.put(0, "")
                printer.names, printer.functions = f.names, names
                printer.function(replace(f.fn, name=name), 1)
                printer.span = NO_SPAN
            names[f.id] = self.known[f.base, text]
        return names


def _raw(printer: rust.Printer, text: str) -> None:
    printer.put(0, "")
    for line in text.splitlines():
        printer.put(1 if line else 0, line)


# -- ABI ----------------------------------------------------------------------------------------------


def _kernel_abi(operator: str, group: _Group) -> KernelAbi:
    kernel = group.kernel
    metadata, ranks = _metadata_leaves(group), _differing_ranks(group)
    entries = []
    either = {c.sym for paths in group.paths for path in paths for c in path if c.sym.op == "is_bool" and c.outcome}
    for name, entry, paths in zip(group.names, group.entries, group.paths, strict=True):
        of_rank = [Condition(sym, use.rank) for sym in ranks if (use := entry.arrays.get(sym.args[0])) is not None]
        full = [(*of_rank, *path, *_missing(path, entry, metadata)) for path in paths]
        common = tuple(c for c in full[0] if all(c in path for path in full))
        abi = entry.abi(name)
        generics = tuple(_said_by_type(generic, common, either) for generic in abi.generics)
        said = {Sym("is_bool", (generic.value,)) for generic in generics if generic.no_bool}
        common, full = _without(common, said), [_without(path, said) for path in full]
        arguments = tuple(_with_dynamic_strides(argument, entry, metadata) for argument in abi.arguments)
        alternatives = tuple(full) if len(full) > 1 else ()
        entries.append(replace(
            abi, conditions=common, alternatives=alternatives, generics=generics, arguments=arguments
        ))  # fmt: skip
    return KernelAbi(
        operator,
        kernel.name,
        c_symbol(operator, group.names[0]),
        tuple((p, _role(kernel, p)) for p in kernel.params),
        tuple(entries),
        kernel.hints,
    )


def _said_by_type(generic: Generic, common: Sequence[Condition], either: set[Sym]) -> Generic:
    """Let a size say that its constant is no bool, where no entry of the kernel is for a bool."""
    said = Condition(Sym("is_bool", (generic.value,)), False)
    decided = generic.kind == "i32" and said in common and said.sym not in either
    return replace(generic, no_bool=generic.no_bool or decided)


def _without(conditions: Sequence[Condition], syms: set[Sym]) -> tuple[Condition, ...]:
    return tuple(c for c in conditions if c.sym not in syms)


def _role(kernel: Kernel, name: str) -> Literal["array", "scalar", "constant"]:
    if name in kernel.constants:
        return "constant"
    return "scalar" if name in kernel.scalars else "array"


def _differing_ranks(group: _Group) -> list[Sym]:
    """The ranks of arrays that some entries take with another rank than others: dummies, for instance."""
    ranks: dict[str, set[int]] = {}
    for entry in group.entries:
        for name, use in entry.arrays.items():
            ranks.setdefault(name, set()).add(use.rank)
    return [Sym("rank", (name,)) for name, known in ranks.items() if len(known) > 1]


def _metadata_leaves(group: _Group) -> list[Sym]:
    """Static dims and strides that some entry depends on."""
    syms = (c.sym for paths in group.paths for path in paths for c in path if c.sym.op in ("dim", "stride"))
    return list(dict.fromkeys(syms))


def _with_dynamic_strides(argument: Argument, entry: EmittedEntry, leaves: Sequence[Sym]) -> Argument:
    """State the strides that the text reads and that no entry has as a constant, so that no condition says so.

    A launch has them passed even where one is 1, which is compiled in otherwise.
    """
    use = entry.arrays.get(argument.source)
    if argument.kind != "tensor" or use is None or not use.reads_strides:
        return argument
    free = (axis for axis in range(use.rank) if Sym("stride", (use.name, axis)) not in leaves)
    return replace(argument, dynamic_strides=tuple(free))


def _missing(path: Sequence[Condition], entry: EmittedEntry, leaves: Sequence[Sym]) -> list[Condition]:
    """What of the pattern of static dims and strides the path doesn't say."""
    known = {c.sym for c in path}
    out = []
    for sym in leaves:
        name, axis = sym.args
        use = entry.arrays.get(name)
        if sym not in known and use is not None and axis < use.rank:  # in another entry it may have more axes
            out.append(Condition(sym, (use.dims if sym.op == "dim" else use.strides)[axis]))
    return out


__all__ = ["EmittedModule", "EntryAbi", "emit_operator", "render_template"]
