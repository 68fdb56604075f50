"""What the tools that write the corpus tilegym-suites have in common: entries, sizes, and the writing of manifests.

A suite is a package of operators: ``corpus/suites/SUITE/OPERATOR.toml`` holds one source module of it, and
``corpus/suites/SUITE.toml`` includes them all.  None of these kernels was recorded: an entry states the concrete
shapes and constants that the operator's host code passes, and facts follow from them by the JIT's own rules.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transpiler.corpora import find_module
from transpiler.manifests import to_toml
from transpiler.recordings import array_for
from transpiler.reference.source import SourceTree
from transpiler.spec import ArraySpec, Corpus, Hints, KernelManifest, OperatorManifest, ScalarSpec, Specialization

F16, BF16, F32, F64 = "float16", "bfloat16", "float32", "float64"
I32, I64 = ScalarSpec(dtype="int32"), ScalarSpec(dtype="int64")
"""What a host's int becomes when it isn't a ``ct.Constant``."""
FLOAT = ScalarSpec(dtype="float32")
"""What a host's float becomes when it isn't a ``ct.Constant``."""
E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"
TAG = {F16: "f16", BF16: "bf16", F32: "f32", F64: "f64", E4M3: "e4m3", E5M2: "e5m2"}

Entries = list[Specialization]
Operator = Callable[[], Mapping[str, Entries]]
"""Returns the entries of each kernel of one source module."""


@dataclass(frozen=True)
class Suite:
    """A suite's name, the package of its modules, and its operators by the module's path in that package.

    ``host_only``: modules without kernels of their own, whose host code launches those of others or none.
    """

    name: str
    package: str
    operators: Mapping[str, Operator]
    host_only: Sequence[str] = ()


def entry(
    label: str, hints: Mapping[str, Any] | None = None, target: str | None = None, /, **params: Any
) -> Specialization:
    """Make an entry called ``label``; parameters may come in any order, constants as bare numbers."""
    return Specialization(name=label, params=params, hints=Hints.model_validate(hints or {}), target=target)


def array(dtype: str, *shape: int, strides: Sequence[int] | None = None, base: int = 16) -> ArraySpec:
    """Describe an array of concrete extents and strides (row-major when left out), in elements; ``base`` in bytes."""
    return array_for(dtype, shape, strides, base)


def pow2(n: int) -> int:
    """Return the smallest power of two that is at least ``n``."""
    return 1 if n <= 1 else 1 << (n - 1).bit_length()


def item_size(dtype: str) -> int:
    """Return the bytes of an element of the floating dtypes here."""
    return {F64: 8, F32: 4}.get(dtype, 2)


def write(suite: Suite, output: Path) -> None:
    """Write the manifests of a suite below ``output`` (the folder corpus/suites)."""
    folder = output / suite.name
    folder.mkdir(parents=True, exist_ok=True)
    comment = f"Written by tools/suite_manifests/{suite.name}.py; don't edit."
    names = []
    found = {path: _operator(suite, path, operator()) for path, operator in suite.operators.items()}
    for path in suite.host_only:
        found[path] = OperatorManifest(name=f"{suite.name}_{path}", module=f"{suite.package}.{path}", host_only=True)
    for path, manifest in found.items():
        stem = _stem(path, found)
        names.append(f"{suite.name}/{stem}.toml")
        corpus = Corpus(name=f"suites/{suite.name}/{stem}", operators=(manifest,))
        (folder / f"{stem}.toml").write_text(to_toml(corpus, comment), encoding="utf-8")
    for old in sorted(set(folder.glob("*.toml")) - {output / name for name in names}):
        old.unlink()
    index = Corpus(name=f"suites/{suite.name}", include=tuple(sorted(names)))
    (output / f"{suite.name}.toml").write_text(to_toml(index, comment), encoding="utf-8")


def _stem(path: str, paths: Iterable[str]) -> str:
    """Return a module's own name; where several of the suite have it, their package's name before it."""
    package, _, name = path.rpartition(".")
    alike = [other for other in paths if other.rpartition(".")[2] == name]
    return name if len(alike) == 1 else f"{package.partition('.')[0]}_{name}"


def _operator(suite: Suite, path: str, entries: Mapping[str, Entries]) -> OperatorManifest:
    """Build one module's manifest; its name carries the suite's, as several suites have a softmax."""
    module = f"{suite.package}.{path}"
    source = find_module(module)
    order = {info.name: info.params for info in SourceTree(source.path, source.display).kernels()}
    for kernel in sorted(set(order) - set(entries)):
        raise SystemExit(f"{module}: kernel {kernel} has no entry")
    kernels = tuple(
        KernelManifest(name=kernel, specializations=tuple(_in_order(item, order[kernel]) for item in items))
        for kernel, items in entries.items()
    )
    name = f"{suite.name}_{_stem(path, suite.operators)}"
    return OperatorManifest(name=name, module=module, kernels=kernels)


def _in_order(item: Specialization, names: Sequence[str]) -> Specialization:
    """Put the parameters into the kernel's order."""
    if set(item.params) != set(names):
        raise SystemExit(f"{item.name}: parameters differ from the kernel's: {sorted(set(item.params) ^ set(names))}")
    return item.model_copy(update={"params": {name: item.params[name] for name in names}})


def main(suite: Suite) -> None:
    """Write the manifests of a suite from the command line."""
    parser = argparse.ArgumentParser(description=f"Write the manifests of the suite {suite.name}.")
    parser.add_argument("-o", "--output", type=Path, default=Path("corpus/suites"))
    write(suite, parser.parse_args().output)
    found = {path: operator() for path, operator in suite.operators.items()}
    kernels = sum(len(entries) for entries in found.values())
    total = sum(len(items) for entries in found.values() for items in entries.values())
    print(f"{len(found)} manifests, {kernels} kernels, {total} specializations")
