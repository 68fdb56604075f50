"""Worker side: export checks through ``cuda.tile``, with kernels kept loaded by their closure's digest."""

from __future__ import annotations

import io
import time
from typing import Any

from cuda.tile._exception import TileError
from cuda.tile.compilation import export_kernel

from transpiler.reference.closure import Closure
from transpiler.reference.constraints import SpecializationError, signature, with_hints
from transpiler.reference.load import LoadedKernel, LoadError


class Exporter:
    """Exports with kernels kept loaded by their closure's digest."""

    def __init__(self) -> None:
        self._kernels: dict[str, LoadedKernel] = {}

    def load(self, digest: str, text: str | None) -> LoadedKernel:
        """Return the loaded kernel of a closure, whose text is needed the first time."""
        if digest not in self._kernels:
            if text is None:
                raise KeyError(digest)
            self._kernels[digest] = LoadedKernel(Closure.from_text(text))
        return self._kernels[digest]

    def export(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Export one check; failures become replies with a status. Every reply says how many seconds it took."""
        started = time.perf_counter()
        reply, bytecode = self._reply(request)
        return reply | {"seconds": time.perf_counter() - started, "size": len(bytecode)}, bytecode

    def _reply(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        try:
            symbol, bytecode = self._compile(request)
        except TileError as exc:
            return _refusal(exc), b""
        except LoadError as exc:
            reply = {"status": "error", "code": exc.code, "message": str(exc), "file": exc.file, "line": exc.line}
            return reply, b""
        except SpecializationError as exc:
            return {"status": "error", "code": "E0212", "message": str(exc)}, b""
        except Exception as exc:
            return _internal(exc), b""
        return {"status": "ok", "symbol": symbol}, bytecode

    def _compile(self, request: dict[str, Any]) -> tuple[str, bytes]:
        loaded = self.load(request["digest"], request.get("closure"))
        loaded.activate()
        kernel = with_hints(loaded.kernel, request["hints"])
        one = signature(kernel, request["params"])
        buffer = io.BytesIO()
        export_kernel(kernel, [one], buffer, output_format="tileir_bytecode", gpu_code=request["target"])
        return one.symbol, buffer.getvalue()


def _refusal(exc: Any) -> dict[str, Any]:
    """Describe a refusal; the innermost place in the user's source that is known."""
    loc = exc.loc
    known = loc is not None and not loc.is_unknown()
    place = {"file": loc.filename, "line": loc.line, "column": loc.col + 1} if known else {}
    lines = [line for line in str(exc.message).splitlines() if line.strip() != "Unknown location"]
    return {"status": "rejected", "kind": type(exc).__name__, "message": "\n".join(lines).strip(), **place}


def _internal(exc: Exception) -> dict[str, Any]:
    """Describe an exception that is not a TileError: a parameter that doesn't fit, or a crash of the compiler."""
    message = str(exc)
    if isinstance(exc, TypeError) and message.startswith(("Invalid kernel parameter", "Invalid item", "Invalid field")):
        return {"status": "error", "code": "E0212", "message": message}
    if isinstance(exc, FileNotFoundError):
        return {"status": "error", "code": "E0213", "message": message}
    return {"status": "rejected", "kind": type(exc).__name__, "message": f"{type(exc).__name__}: {message}"}
