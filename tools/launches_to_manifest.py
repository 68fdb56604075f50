"""Turn recorded launches into corpus manifests, one file an operator.

    python tools/launches_to_manifest.py RECORDING.json.gz -o corpus/tilegym
    python tools/launches_to_manifest.py LAUNCHES.jsonl --beside tilegym --prefix tests -o corpus/tilegym/tests

A recording is JSON with all compilations, or the lines that the hook of `transpile record` writes. With --beside, what
a corpus has already is left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transpiler.corpora import load_corpus
from transpiler.manifests import to_toml
from transpiler.recordings import load_recording, operators_from_recording
from transpiler.spec import Corpus, OperatorManifest, Specialization

_COMMENT = """Specializations that TileGym's own tests compiled on an H200 (autotuning off).
Written by tools/launches_to_manifest.py; don't edit."""
_BESIDE = """What TileGym's tests launch on an H200 and the first recording lacks (`transpile record`).
Written by tools/launches_to_manifest.py; don't edit."""


def main() -> None:
    """Write the manifests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("corpus/tilegym"))
    parser.add_argument("--beside", metavar="CORPUS")
    parser.add_argument("--prefix", default="", help="goes in front of the specializations' names")
    arguments = parser.parse_args()
    operators = operators_from_recording(rows(arguments.recording))
    if arguments.beside:
        operators = without(operators, arguments.beside)
    arguments.output.mkdir(parents=True, exist_ok=True)
    folder = "/".join(("tilegym", *([arguments.prefix] if arguments.prefix else [])))
    for operator in renamed(operators, arguments.prefix):
        corpus = Corpus(name=f"{folder}/{operator.name}", operators=(operator,))
        path = arguments.output / f"{operator.name}.toml"
        path.write_text(to_toml(corpus, _BESIDE if arguments.beside else _COMMENT), encoding="utf-8")
        print(f"{path}: {sum(len(k.specializations) for k in operator.kernels)} specializations")


def rows(path: Path) -> list[dict[str, Any]]:
    """Read a recording of either kind; launches with other grids are the same."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return load_recording(file.read())
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row | {"grid": None} for row in found if "problem" not in row]


def without(operators: Sequence[OperatorManifest], corpus: str) -> tuple[OperatorManifest, ...]:
    """Leave out the specializations that a corpus has, by whatever name."""
    known: dict[tuple[str, str], set[str]] = {}
    for operator in load_corpus(corpus).operators:
        for kernel in operator.kernels:
            known.setdefault((operator.name, kernel.name), set()).update(map(_content, kernel.specializations))
    kept = []
    for one in operators:
        kernels = []
        for k in one.kernels:
            new = tuple(s for s in k.specializations if _content(s) not in known.get((one.name, k.name), set()))
            kernels += [k.model_copy(update={"specializations": new})] if new else []
        kept += [one.model_copy(update={"kernels": tuple(kernels)})] if kernels else []
    return tuple(kept)


def _content(specialization: Specialization) -> str:
    return specialization.model_dump_json(exclude={"name", "grid"})


def renamed(operators: Sequence[OperatorManifest], prefix: str) -> list[OperatorManifest]:
    """Put a prefix in front of all names of specializations."""
    if not prefix:
        return list(operators)
    out = []
    for operator in operators:
        kernels = []
        for k in operator.kernels:
            named = tuple(s.model_copy(update={"name": f"{prefix}_{s.name}"}) for s in k.specializations)
            kernels.append(k.model_copy(update={"specializations": named}))
        out.append(operator.model_copy(update={"kernels": tuple(kernels)}))
    return out


if __name__ == "__main__":
    main()
