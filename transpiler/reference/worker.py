"""The worker process: imports cuda.tile once and exports one check after another.

Protocol: a JSON line per request on the standard input; per reply a JSON line on what was the standard output,
followed by ``size`` bytes of bytecode.  Whatever the kernel's module prints goes to the standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, BinaryIO


def serve(exporter: Any, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until the input ends."""
    for line in requests:
        reply, payload = exporter.export(json.loads(line))
        replies.write(json.dumps(reply).encode() + b"\n" + payload)
        replies.flush()


def main() -> None:
    """Take the standard streams away from user code, import cuda.tile, say hello and serve."""
    replies = os.fdopen(os.dup(1), "wb")
    requests = os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        exporting = importlib.import_module("transpiler.reference.exporting")
    except Exception as exc:
        message = f"cuda.tile can't be imported: {type(exc).__name__}: {exc}"
        replies.write(json.dumps({"status": "error", "code": "E0213", "message": message}).encode() + b"\n")
        return
    replies.write(b'{"status": "ready"}\n')
    replies.flush()
    serve(exporting.Exporter(), requests, replies)


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    main()
