"""Turn recorded launches into corpus manifests, one file an operator: corpus/tilegym/<operator>.toml.

python tools/launches_to_manifest.py RECORDING.json.gz [-o corpus/tilegym]
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

from transpiler.manifests import to_toml
from transpiler.recordings import load_recording, operators_from_recording
from transpiler.spec import Corpus

_COMMENT = """Specializations that TileGym's own tests compiled on an H200 (autotuning off).
Written by tools/launches_to_manifest.py; don't edit."""


def main() -> None:
    """Write the manifests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("corpus/tilegym"))
    arguments = parser.parse_args()
    with gzip.open(arguments.recording, "rt", encoding="utf-8") as file:
        operators = operators_from_recording(load_recording(file.read()))
    arguments.output.mkdir(parents=True, exist_ok=True)
    for operator in operators:
        corpus = Corpus(name=f"tilegym/{operator.name}", operators=(operator,))
        path = arguments.output / f"{operator.name}.toml"
        path.write_text(to_toml(corpus, _COMMENT), encoding="utf-8")
        print(f"{path}: {sum(len(k.specializations) for k in operator.kernels)} specializations")


if __name__ == "__main__":
    main()
