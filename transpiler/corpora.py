"""Corpus manifests: read, check, join includes, and find the source file of each operator without importing it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from transpiler.diagnostics import Span, TranspileError, error
from transpiler.inputs import Lookups
from transpiler.resources import corpus_dir
from transpiler.spec import Corpus, KernelManifest, OperatorManifest, Specialization

_MAX_INCLUDE_DEPTH = 8


@dataclass(frozen=True)
class SourceFile:
    """Where an operator's source is, and the stable path under which it is shown (it names no machine)."""

    path: Path
    display: str


@dataclass(frozen=True)
class Operator:
    """An operator of a corpus with its source found; ``kernels`` holds what the manifest says of them."""

    name: str
    source: SourceFile
    kernels: tuple[KernelManifest, ...]


@dataclass(frozen=True)
class LoadedCorpus:
    """A corpus with all includes joined; operators are in the manifest's order."""

    name: str
    target: str
    operators: tuple[Operator, ...]


def corpus_names() -> tuple[str, ...]:
    """Return the names of the corpora that come with the tool."""
    return tuple(sorted(path.stem for path in corpus_dir().glob("*.toml")))


def is_corpus(argument: str) -> bool:
    """Whether a command line argument means a corpus: a known name, or the path of a manifest."""
    return argument in corpus_names() or argument.endswith(".toml")


def load_corpus(argument: str, lookups: Lookups | None = None) -> LoadedCorpus:
    """Load a corpus by its name or its manifest's path (E027x when it can't be read or a source isn't found)."""
    if argument in corpus_names():
        path = corpus_dir() / f"{argument}.toml"
        display = f"corpus/{argument}.toml"
    else:
        path = Path(argument)
        display = path.as_posix() if not path.is_absolute() else path.name
    if not path.is_file() and not argument.endswith(".toml"):
        known = ", ".join(corpus_names())
        raise error("E0270", f"there is no corpus `{argument}`", help=f"known corpora: {known}; or give a path")
    return resolve_corpus(load_manifest(path, display, lookups), path.parent, lookups)


def resolve_corpus(corpus: Corpus, folder: Path, lookups: Lookups | None = None) -> LoadedCorpus:
    """Find the source of every operator; relative paths are relative to ``folder``."""
    operators = tuple(Operator(o.name, find_source(o, folder, lookups), o.kernels) for o in corpus.operators)
    return LoadedCorpus(corpus.name, corpus.target, operators)


def load_manifest(path: Path, display: str | None = None, lookups: Lookups | None = None) -> Corpus:
    """Read a manifest and everything that it includes into one corpus whose includes are empty."""
    return _read(path, display or path.name, 0, lookups or Lookups())


def _read(path: Path, display: str, depth: int, lookups: Lookups) -> Corpus:
    lookups.read(path)
    corpus = _parse(path, display)
    operators: list[OperatorManifest] = []
    for name in corpus.include:
        if depth >= _MAX_INCLUDE_DEPTH:
            raise error("E0271", f"{display} includes itself, or too deeply", _span(display, 1))
        inner = _read(path.parent / name, os.path.normpath(Path(display).parent / name), depth + 1,
                      lookups)  # fmt: skip
        operators.extend(_moved(o, Path(name).parent) for o in inner.operators)
    operators.extend(corpus.operators)
    return corpus.model_copy(update={"include": (), "operators": _join(operators, display)})


def _parse(path: Path, display: str) -> Corpus:
    try:
        text = path.read_bytes().decode("utf-8")
        return Corpus.model_validate(tomllib.loads(text))
    except OSError as exc:
        raise error("E0271", f"can't read {display}: {exc.strerror}", _span(display, 1)) from None
    except UnicodeDecodeError:
        raise error("E0271", f"{display} is not UTF-8 text", _span(display, 1)) from None
    except tomllib.TOMLDecodeError as exc:
        raise _toml_error(exc, display) from None
    except ValidationError as exc:
        raise _schema_error(exc, text, display) from None


def _toml_error(exc: tomllib.TOMLDecodeError, display: str) -> TranspileError:
    message, line, column = str(exc), 1, 1
    found = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if found is not None:
        line, column = int(found[1]), int(found[2])
        message = message[: found.start()]
    return error("E0271", f"{display} is not valid TOML: {message}", Span(display, line, column))


def _schema_error(exc: ValidationError, text: str, display: str) -> TranspileError:
    errors = exc.errors(include_url=False)
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])  # a typing error explains others
    where = ".".join(str(part) for part in first["loc"])
    more = f" (and {exc.error_count() - 1} more)" if exc.error_count() > 1 else ""
    message = first["msg"].removeprefix("Value error, ")
    line = locate(text, first["loc"])
    return error("E0271", f"{display}: {where}: {message}{more}", _span(display, line),
                 help="the schema of manifests is in docs/spec.schema.json")  # fmt: skip


def locate(text: str, loc: tuple[int | str, ...]) -> int:
    """Return the line of a TOML text that a pydantic location leads to: its table, or the key in it."""
    counts: dict[str, int] = {}
    best, best_line, inside = -1, 1, False
    wanted = [str(part) for part in loc]
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[\[?)\s*([\w.\"'-]+)\s*\]", line)
        if header is not None:
            here = _table_path(header[2], header[1] == "[[", counts)
            depth = len(here) if wanted[: len(here)] == here else -1
            inside = depth >= 0
            if depth > best:
                best, best_line = depth, number
        elif (inside or best < 0) and (key := re.match(r"\s*([\w.\"'-]+)\s*=", line)):
            rest = wanted[max(best, 0) :]
            parts = key[1].replace('"', "").replace("'", "").split(".")
            shared = min(len(rest), len(parts))
            if shared and rest[:shared] == parts[:shared]:
                return number
    return best_line


def _table_path(header: str, repeated: bool, counts: dict[str, int]) -> list[str]:
    """Return a table's path with the indices that it has among its repeated parents."""
    path: list[str] = []
    names = header.split(".")
    for depth in range(1, len(names) + 1):
        key = ".".join(names[:depth])
        path.append(names[depth - 1])
        if depth == len(names) and repeated:
            counts[key] = counts.get(key, -1) + 1
            for inner in [name for name in counts if name.startswith(f"{key}.")]:
                del counts[inner]
        if key in counts:
            path.append(str(counts[key]))
    return path


def _span(display: str, line: int) -> Span:
    return Span(display, line, 1)


def _moved(operator: OperatorManifest, folder: Path) -> OperatorManifest:
    """Make a relative path of an included manifest relative to the including one."""
    if operator.path is None or Path(operator.path).is_absolute():
        return operator
    return operator.model_copy(update={"path": (folder / operator.path).as_posix()})


def _join(operators: list[OperatorManifest], display: str) -> tuple[OperatorManifest, ...]:
    """Join operators of one name: their kernels' specializations add up."""
    joined: dict[str, OperatorManifest] = {}
    for operator in operators:
        known = joined.get(operator.name)
        if known is None:
            joined[operator.name] = operator
            continue
        if (known.module, known.path) != (operator.module, operator.path):
            raise error("E0272", f"operator `{operator.name}` has two sources in {display}", _span(display, 1))
        kernels = _join_kernels(known.kernels + operator.kernels)
        joined[operator.name] = known.model_copy(update={"kernels": kernels})
    for operator in joined.values():
        for kernel in operator.kernels:
            _check_names(operator, kernel, display)
    return tuple(joined.values())


def _join_kernels(kernels: tuple[KernelManifest, ...]) -> tuple[KernelManifest, ...]:
    found: dict[str, tuple[Specialization, ...]] = {}
    for kernel in kernels:
        found[kernel.name] = found.get(kernel.name, ()) + kernel.specializations
    return tuple(KernelManifest(name=name, specializations=items) for name, items in found.items())


def _check_names(operator: OperatorManifest, kernel: KernelManifest, display: str) -> None:
    names = [s.name for s in kernel.specializations]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise error("E0272", f"{operator.name}.{kernel.name} has several specializations called {', '.join(twice)}",
                    _span(display, 1), help="give each its own name")  # fmt: skip


def find_source(operator: OperatorManifest, folder: Path, lookups: Lookups | None = None) -> SourceFile:
    """Find an operator's source file; a module is looked up on the top-level package, which isn't imported."""
    if operator.path is not None:
        path = folder / operator.path
        display = Path(operator.path).as_posix() if not Path(operator.path).is_absolute() else path.name
        if not path.is_file():
            raise error("E0273", f"operator `{operator.name}`: there is no file {display}")
        return SourceFile(path, display.removeprefix("./"))
    assert operator.module is not None
    return find_module(operator.module, lookups)


def find_module(module: str, lookups: Lookups | None = None) -> SourceFile:
    """Find an installed module's file; its display path is the dotted name's (``tilegym/ops/cutile/softmax.py``)."""
    top, *rest = module.split(".")
    lookups = lookups or Lookups()
    lookups.package(top)
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise error("E0273", f"module `{module}` isn't installed here", help=f"install the package that holds `{top}`")
    if not rest and spec.origin and not spec.submodule_search_locations:
        return SourceFile(Path(spec.origin), Path(spec.origin).name)
    for location in spec.submodule_search_locations or ():
        base = Path(location).joinpath(*rest)
        path = lookups.first_file((base.with_name(base.name + ".py"), base / "__init__.py"))
        if path is not None:
            return SourceFile(path, "/".join((top, *path.relative_to(location).parts)))
    raise error("E0273", f"module `{module}` has no source file in the installed `{top}`",
                help=f"install a version of `{top}` that has it")  # fmt: skip


def specializations_for(corpus: Corpus, folder: Path, source: Path) -> dict[str, tuple[Specialization, ...]] | None:
    """Return what a SPEC.toml says of a source file, by kernel, or None when it doesn't name the file.

    An operator fits when its source is this very file, or else when it has the file's stem as its name.
    """
    by_name = None
    for operator in corpus.operators:
        kernels = {kernel.name: kernel.specializations for kernel in operator.kernels}
        try:
            if find_source(operator, folder).path.resolve() == source.resolve():
                return kernels
        except TranspileError:
            pass
        if operator.name == source.stem:
            by_name = kernels
    return by_name


def json_schema() -> str:
    """Return the JSON Schema of manifests and SPEC.toml files, as docs/spec.schema.json holds it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Corpus.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"
