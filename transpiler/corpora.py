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

from transpiler.diagnostics import Diagnostic, Span, TranspileError, error
from transpiler.inputs import Lookups
from transpiler.manifest_places import operator_places, place, stated_specializations
from transpiler.resources import corpus_dir
from transpiler.sources import SourcesFolder
from transpiler.spec import Corpus, KernelManifest, OperatorManifest, Specialization
from transpiler.toolkit import is_architecture, not_an_architecture

_MAX_INCLUDE_DEPTH = 8
REQUIREMENTS = {"tilegym": "tilegym==1.5.1"}
"""The packages that our corpora translate, by top-level module, in the version that their manifests fit."""


@dataclass(frozen=True)
class SourceFile:
    """Where an operator's source is, and the stable path under which it is shown (it names no machine)."""

    path: Path
    display: str


@dataclass(frozen=True)
class Operator:
    """An operator of a corpus with its source found; ``kernels`` holds what the manifest says of them.

    ``problem`` is why there is no source where a folder of sources was named; ``source`` is then where it would be.
    """

    name: str
    source: SourceFile
    kernels: tuple[KernelManifest, ...]
    host_only: bool = False
    problem: Diagnostic | None = None


@dataclass(frozen=True)
class LoadedCorpus:
    """A corpus with all includes joined; operators are in the manifest's order."""

    name: str
    target: str
    operators: tuple[Operator, ...]


Stated = tuple[str, dict[str, tuple[Specialization, ...]]]


def corpus_names() -> tuple[str, ...]:
    """Return the names of the corpora that come with the tool."""
    return tuple(sorted(path.stem for path in corpus_dir().glob("*.toml")))


def is_corpus(argument: str) -> bool:
    """Whether a command line argument means a corpus: a known name, or the path of a manifest."""
    return argument in corpus_names() or argument.endswith(".toml")


def load_corpus(
    argument: str, lookups: Lookups | None = None, sources: SourcesFolder | None = None
) -> LoadedCorpus:  # fmt: skip
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
    return resolve_corpus(load_manifest(path, display, lookups), path.parent, lookups, sources)


def resolve_corpus(
    corpus: Corpus, folder: Path, lookups: Lookups | None = None, sources: SourcesFolder | None = None
) -> LoadedCorpus:  # fmt: skip
    """Find the source of every operator; relative paths are relative to ``folder``, modules are those of ``sources``.

    What ``sources`` lacks is the problem of its operator alone.
    """
    if sources is None:
        operators = tuple(
            Operator(o.name, find_source(o, folder, lookups), o.kernels, o.host_only) for o in corpus.operators
        )
    else:
        operators = tuple(_in_sources(o, sources, lookups or Lookups()) for o in corpus.operators)
    return LoadedCorpus(corpus.name, corpus.target, operators)


def _in_sources(operator: OperatorManifest, sources: SourcesFolder, lookups: Lookups) -> Operator:
    """Find an operator's source in a folder of sources, and never anywhere else."""
    try:
        if operator.module is None:
            raise error("E0848", f"operator `{operator.name}` is a file beside the manifest, no module of "
                        f"{sources.shown}", help="translate it without other sources, or name a module")  # fmt: skip
        path = sources.module(operator.module, lookups)
    except TranspileError as exc:
        parts = (operator.module or operator.name).split(".")
        missing = SourceFile(sources.root.joinpath(*parts).with_suffix(".py"), "/".join(parts) + ".py")
        return Operator(operator.name, missing, operator.kernels, operator.host_only, exc.diagnostic)
    return Operator(operator.name, SourceFile(path, sources.display(path)), operator.kernels, operator.host_only)


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
    return corpus.model_copy(update={"include": (), "operators": _join(operators, path, display)})


def _parse(path: Path, display: str) -> Corpus:
    try:
        text = path.read_bytes().decode("utf-8")
        corpus = Corpus.model_validate(tomllib.loads(text))
    except OSError as exc:
        raise error("E0271", f"can't read {display}: {exc.strerror}", _span(display, 1)) from None
    except UnicodeDecodeError:
        raise error("E0271", f"{display} is not UTF-8 text", _span(display, 1)) from None
    except tomllib.TOMLDecodeError as exc:
        raise _toml_error(exc, display) from None
    except ValidationError as exc:
        raise _schema_error(exc, text, display) from None
    _check_targets(corpus, text, display)
    return corpus


def _check_targets(corpus: Corpus, text: str, display: str) -> None:
    """Raise E0803 at the first target that isn't an architecture."""
    stated: list[tuple[str, tuple[int | str, ...]]] = [(corpus.target, ("target",))]
    for i, operator in enumerate(corpus.operators):
        for j, kernel in enumerate(operator.kernels):
            for k, one in enumerate(kernel.specializations):
                if one.target is not None:
                    stated.append((one.target, ("operators", i, "kernels", j, "specializations", k, "target")))
    for target, loc in stated:
        if not is_architecture(target):
            raise not_an_architecture(target, place(text, loc, display))


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
    return error("E0271", f"{display}: {where}: {message}{more}", place(text, first["loc"], display),
                 help="the schema of manifests is in docs/spec.schema.json")  # fmt: skip


def _span(display: str, line: int) -> Span:
    return Span(display, line, 1)


def _moved(operator: OperatorManifest, folder: Path) -> OperatorManifest:
    """Make a relative path of an included manifest relative to the including one."""
    if operator.path is None or Path(operator.path).is_absolute():
        return operator
    return operator.model_copy(update={"path": (folder / operator.path).as_posix()})


def _join(operators: list[OperatorManifest], path: Path, display: str) -> tuple[OperatorManifest, ...]:
    """Join operators of one name: their kernels' specializations add up."""
    joined: dict[str, OperatorManifest] = {}
    for operator in operators:
        known = joined.get(operator.name)
        if known is None:
            joined[operator.name] = operator
            continue
        if (known.module, known.path) != (operator.module, operator.path):
            second = operator_places(path, display, operator.name)[1]
            raise error("E0272", f"operator `{operator.name}` has two sources in {display}", second,
                        help="give the second one another name")  # fmt: skip
        kernels = _join_kernels(known.kernels + operator.kernels)
        both = {"kernels": kernels, "host_only": known.host_only and operator.host_only}
        joined[operator.name] = known.model_copy(update=both)
    for operator in joined.values():
        for kernel in operator.kernels:
            _check_names(operator, kernel, path, display)
    return tuple(joined.values())


def _join_kernels(kernels: tuple[KernelManifest, ...]) -> tuple[KernelManifest, ...]:
    found: dict[str, tuple[Specialization, ...]] = {}
    for kernel in kernels:
        found[kernel.name] = found.get(kernel.name, ()) + kernel.specializations
    return tuple(KernelManifest(name=name, specializations=items) for name, items in found.items())


def _check_names(operator: OperatorManifest, kernel: KernelManifest, path: Path, display: str) -> None:
    names = [s.name for s in kernel.specializations]
    twice = sorted({name for name in names if names.count(name) > 1}, key=names.index)
    if twice:
        second = stated_specializations(path, display, operator.name, kernel.name, twice[0])[1]
        raise error("E0272", f"{operator.name}.{kernel.name} has several specializations called {', '.join(twice)}",
                    second.span("name"), help="give each its own name")  # fmt: skip


def find_source(operator: OperatorManifest, folder: Path, lookups: Lookups | None = None) -> SourceFile:
    """Find an operator's source file; a module is looked up on the top-level package, which isn't imported."""
    if operator.path is not None:
        path = folder / operator.path
        display = Path(operator.path).as_posix() if not Path(operator.path).is_absolute() else path.name
        if not path.is_file():
            raise error("E0273", f"operator `{operator.name}`: there is no file {display}",
                        help="paths are relative to the manifest")  # fmt: skip
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
        raise error("E0273", f"module `{module}` isn't installed here", help=_installing(top))
    if not rest and spec.origin and not spec.submodule_search_locations:
        return SourceFile(Path(spec.origin), Path(spec.origin).name)
    for location in spec.submodule_search_locations or ():
        path = lookups.module(Path(location).joinpath(*rest))
        if path is not None:
            return SourceFile(path, "/".join((top, *path.relative_to(location).parts)))
    raise error("E0273", f"module `{module}` has no source file in the installed `{top}`",
                help=_installing(top, "a version of "))  # fmt: skip


def _installing(top: str, what: str = "") -> str:
    """How to get a package's sources."""
    requirement = REQUIREMENTS.get(top)
    if requirement is None:
        return f"install {what or 'the package that holds '}`{top}` where transpile is installed"
    return (f"run `pip install --no-deps {requirement}` where transpile is installed; "
            "its sources are read and never run, so what it depends on isn't needed")  # fmt: skip


def specializations_for(corpus: Corpus, folder: Path, source: Path) -> Stated | None:
    """Return what a SPEC.toml says of a source file: the operator's name and specializations by kernel, else None.

    An operator fits when its source is this very file, or else when it has the file's stem as its name.
    """
    by_name = None
    for operator in corpus.operators:
        kernels = {kernel.name: kernel.specializations for kernel in operator.kernels}
        try:
            if find_source(operator, folder).path.resolve() == source.resolve():
                return operator.name, kernels
        except TranspileError:
            pass
        if operator.name == source.stem:
            by_name = operator.name, kernels
    return by_name


def json_schema() -> str:
    """Return the JSON Schema of manifests and SPEC.toml files, as docs/spec.schema.json holds it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Corpus.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"
