"""Turn launches on a GPU into corpus manifests: corpus/tilegym/perf/OPERATOR.toml, corpus/suites/tests/OPERATOR.toml.

    python -m tools.measured_manifests [-o corpus]

TileGym's performance tests launch kernels with other sizes than its tests of results: a batch of one, for instance,
is a specialization of its own. The same goes for its benchmark scripts and for its tests of suites. What a corpus has
already is left out. A configuration states shapes, strides and values; facts follow from them by the JIT's own rules,
and which numbers are constants from the corpus's other specializations of the kernel.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.launches_to_manifest import renamed, without
from transpiler.corpora import Operator, load_corpus
from transpiler.manifests import to_toml
from transpiler.recordings import array_for, named
from transpiler.spec import (
    ArraySpec,
    ConstantSpec,
    Corpus,
    Hints,
    KernelManifest,
    ListSpec,
    OperatorManifest,
    ParamSpec,
    Specialization,
)


@dataclass(frozen=True)
class Target:
    """A folder of manifests: the files with launches, and the corpus that has the rest of what is launched."""

    folder: str
    prefix: str
    files: tuple[Path, ...]
    beside: str
    what: str

    @property
    def comment(self) -> str:
        """What the manifests begin with."""
        return f"{self.what}.\nWritten by tools/measured_manifests.py; don't edit."


_OWN = Path("benchmarks/gpu/own")
PERF = Target(
    "tilegym/perf", "perf",
    (Path("benchmarks/results/device_time.json"), _OWN / "launches.txt", _OWN / "pipeline_launches.txt"),
    "tilegym-tests",
    "What TileGym's performance tests and benchmark scripts launch on an H200 and its tests of results don't",
)  # fmt: skip
SUITES = Target(
    "suites/tests", "tests", (_OWN / "suites_launches.txt",), "tilegym-suites",
    "What TileGym's tests of its suites launch on an H200 and tilegym-suites lacks",
)  # fmt: skip
_ARRAY = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d, ]*)\](?:@\[(?P<strides>[\d, ]*)\])?")
_DTYPES = {"bool": "bool_"}


def main() -> None:
    """Write the manifests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("corpus"))
    arguments = parser.parse_args()
    for target in (PERF, SUITES):
        write(target, Path(), arguments.output)


def write(target: Target, root: Path, output: Path) -> None:
    """Write the manifests of a target into its folder below ``output``; its files are below ``root``."""
    configs = [config for path in target.files for config in configurations(root / path)]
    known = load_corpus(target.beside).operators
    operators = [found for operator in known if (found := measured(operator, configs)) is not None]
    folder = output / target.folder
    folder.mkdir(parents=True, exist_ok=True)
    for operator in renamed(without(operators, target.beside), target.prefix):
        path = folder / f"{operator.name}.toml"
        corpus = Corpus(name=f"{target.folder}/{operator.name}", operators=(operator,))
        path.write_text(to_toml(corpus, target.comment), encoding="utf-8")
        print(f"{path}: {sum(len(kernel.specializations) for kernel in operator.kernels)} specializations")


def configurations(path: Path) -> list[str]:
    """The configurations of a file, JSON or text."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return [row["config"] for row in json.loads(text)["configs"]]
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def measured(operator: Operator, configs: Sequence[str]) -> OperatorManifest | None:
    """The operator with what was measured of its kernels, or None."""
    kernels = []
    for kernel in operator.kernels:
        template = kernel.specializations[0].params
        found = {
            one.model_dump_json(): one
            for config in configs
            if config.partition(" ")[0] == kernel.name and (one := specialization(config, template)) is not None
        }
        if found:
            kernels.append(KernelManifest(name=kernel.name, specializations=named(list(found.values()))))
    if not kernels:
        return None
    module = operator.source.display.removesuffix(".py").replace("/", ".")
    return OperatorManifest(name=operator.name, module=module, kernels=tuple(kernels))


def specialization(config: str, template: dict[str, ParamSpec]) -> Specialization | None:
    """A configuration as the JIT specializes it; None if it is that of another kernel of the same name."""
    values = dict(fields(config))
    hints = {name: int(values.pop(name)) for name in Hints.model_fields if name in values and name not in template}
    values.pop("grid")
    if values.keys() != template.keys():
        return None
    params = {name: parameter(values[name], like) for name, like in template.items()}
    return Specialization(name="", params=params, hints=Hints.model_validate(hints))


def fields(config: str) -> Iterator[tuple[str, str]]:
    """Names and texts of values; a list or a shape may hold blanks."""
    starts = list(re.finditer(r" (\w+)=", config))
    for here, after in zip(starts, [*starts[1:], None], strict=True):
        yield here[1], config[here.end() : after.start() if after is not None else len(config)]


def parameter(text: str, like: ParamSpec) -> ParamSpec:
    """A value by its text, of the kind that the same parameter has elsewhere."""
    match like:
        case ArraySpec():
            return array(text)
        case ListSpec():
            # The JIT knows of a list what holds for all of its arrays.
            return ListSpec(element=common([array(one[0]) for one in _ARRAY.finditer(text)]))
        case ConstantSpec():
            return ConstantSpec(value=ast.literal_eval(text))
    return like


def array(text: str) -> ArraySpec:
    """An array as PyTorch allocates it: aligned to 16 bytes."""
    found = _ARRAY.fullmatch(text)
    if found is None:
        raise ValueError(f"no array: {text}")
    strides = _sizes(found["strides"]) if found["strides"] is not None else None
    return array_for(_DTYPES.get(found["dtype"], found["dtype"]), _sizes(found["shape"]), strides)


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",") if size.strip()]


def common(arrays: Sequence[ArraySpec]) -> ArraySpec:
    """What is known of each of several arrays."""
    first: dict[str, Any] = arrays[0].model_dump()
    for other in arrays[1:]:
        for name, values in other.model_dump().items():
            if name.endswith("_constant"):
                first[name] = tuple(a if a == b else None for a, b in zip(first[name], values, strict=True))
            elif name.endswith("divisible_by") and isinstance(values, tuple):
                first[name] = tuple(min(a, b) for a, b in zip(first[name], values, strict=True))
    return ArraySpec.model_validate(first)


if __name__ == "__main__":
    main()
