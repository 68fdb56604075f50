"""Export every specialization of one kernel in one fresh process: the reference's own speed, for benchmarks.

``python -m transpiler.reference.once CLOSURE REQUESTS.json`` where REQUESTS.json is a list of the requests that
:func:`transpiler.reference.export.plain` makes.  Prints a JSON object: the number of checks by outcome, their
seconds (without the imports), and the size of the bytecode.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from transpiler.reference.exporting import Exporter


def main(closure_path: str, requests_path: str) -> None:
    """Export the requests one after another and print what became of them."""
    text = Path(closure_path).read_text(encoding="utf-8")
    requests = json.loads(Path(requests_path).read_text(encoding="utf-8"))
    exporter = Exporter()
    outcomes: dict[str, int] = {}
    size = 0
    started = time.perf_counter()
    for request in requests:
        reply, payload = exporter.export({**request, "digest": "", "closure": text})
        outcomes[reply["status"]] = outcomes.get(reply["status"], 0) + 1
        size += len(payload)
    print(json.dumps({"outcomes": outcomes, "seconds": time.perf_counter() - started, "size": size}))


if __name__ == "__main__":
    main(*sys.argv[1:])
