"""Parent side of the reference export: a warm worker process, with a time limit for every check."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import transpiler
from transpiler.diagnostics import Diagnostic, Span, TranspileError, error
from transpiler.reference.closure import Closure
from transpiler.spec import Specialization
from transpiler.temporary import signals_held, temporary_folder

_START_LIMIT = 120.0
_WORKER = ("-m", "transpiler.reference.worker")
_ONCE = ("-m", "transpiler.reference.once")
_HELP = {
    "E0212": "the specialization must describe each parameter of the kernel, as its annotations say",
    "E0213": "install cuda-tile and nvidia-cuda-tileiras into the environment that runs transpile",
}


@dataclass(frozen=True)
class Exported:
    """One exported check: Tile IR bytecode, the entry's symbol, and the seconds that the reference took."""

    bytecode: bytes
    symbol: str
    seconds: float


class ReferenceRejected(TranspileError):  # noqa: N818 (a verdict, not a fault)
    """The reference compiler itself refuses the kernel (E0220): verdict ``rejected``."""

    def __init__(self, diagnostic: Diagnostic, kind: str) -> None:
        super().__init__(diagnostic, status=0)
        self.kind = kind


class _WorkerDiedError(Exception):
    pass


class _TimeLimitError(Exception):
    pass


class ReferenceExporter:
    """Exports checks through a worker process that is started when first needed and replaced when it dies."""

    def __init__(self, *, time_limit: float = 120.0, command: tuple[str, ...] | None = None) -> None:
        self._time_limit = time_limit
        self._command = command or (sys.executable, *_WORKER)
        self._process: _Process | None = None
        self._ahead: tuple[str, dict[str, Any]] | None = None
        """The closure's digest and the request that the worker is at already."""
        self.seconds = 0.0
        """Seconds of exports so far: the worker's own, and those that its start took."""

    def __enter__(self) -> ReferenceExporter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def export(
        self, closure: Closure, specialization: Specialization, target: str = "sm_90", *,
        ahead: Specialization | None = None,
    ) -> Exported:  # fmt: skip
        """Export one check; raises :class:`ReferenceRejected` or a coded :class:`TranspileError`.

        The worker begins with ``ahead``, the next specialization of the same closure, while the caller goes on.
        """
        try:
            return self._export(closure, specialization, specialization.target or target)
        finally:
            if ahead is not None and self._process is not None:
                self._begin(self._process, closure, plain(ahead, ahead.target or target))

    def close(self) -> None:
        """End the worker."""
        with signals_held():
            if self._process is not None:
                self._process.close()
                self._process = None
        self._ahead = None

    def _export(self, closure: Closure, specialization: Specialization, target: str) -> Exported:
        place = Span(closure.modules[-1].display, _kernel_line(closure), 1)
        started, request = time.perf_counter(), plain(specialization, target)
        try:
            process = self._worker()
            self.seconds += time.perf_counter() - started
            if self._ahead is not None and self._ahead != (closure.digest, request):
                process.answer(self._time_limit)  # nobody wants it any more
                self._ahead = None
            if self._ahead is None:
                process.ask(closure, request)
            self._ahead = None
            reply, payload = process.answer(self._time_limit)
        except _TimeLimitError:
            self.close()
            raise error(
                "E0210",
                f"the reference compiler took more than {self._time_limit:g} s for "
                f"`{closure.kernel}` [{specialization.name}]",
                place,
                help="raise the time limit, or check a smaller specialization",
            ) from None
        except _WorkerDiedError as exc:
            self.close()
            raise error(
                "E0211",
                f"the reference compiler crashed on `{closure.kernel}` [{specialization.name}]: {exc}",
                place,
                help="report it to cuda-tile; other checks go on",
            ) from None
        self.seconds += reply["seconds"]
        if reply["status"] == "ok":
            return Exported(payload, reply["symbol"], reply["seconds"])
        raise _failure(reply, closure, place)

    def _begin(self, process: _Process, closure: Closure, request: dict[str, Any]) -> None:
        """Ask for an export whose answer is read later."""
        with contextlib.suppress(_WorkerDiedError):  # noticed when the answer is wanted
            process.ask(closure, request)
            self._ahead = closure.digest, request

    def _worker(self) -> _Process:
        if self._process is not None and not self._process.alive:
            self.close()
        if self._process is None:
            with signals_held():  # nobody else knows of the process and its folder
                self._process = _Process(self._command)
            try:
                reply, _ = self._process.reply(_START_LIMIT)
            except (_TimeLimitError, _WorkerDiedError) as exc:
                self.close()
                raise error(
                    "E0213", f"the worker for the reference compiler doesn't start: {exc}", help=_HELP["E0213"]
                ) from None
            if reply["status"] != "ready":
                self.close()
                raise error(reply["code"], reply["message"], help=_HELP["E0213"])
        return self._process


@dataclass(frozen=True)
class FreshRun:
    """What :func:`export_in_fresh_process` measured: wall time with imports, without them, outcomes, bytes."""

    wall_seconds: float
    export_seconds: float
    outcomes: dict[str, int]
    size: int


def export_in_fresh_process(closure: Closure, specializations: Iterable[Specialization], target: str) -> FreshRun:
    """Export all specializations of a kernel in a process of their own, as a user of cuda-tile alone would."""
    with temporary_folder("transpile-reference-") as folder:
        stored = folder / "closure.py"
        stored.write_text(closure.to_text(), encoding="utf-8")
        requests = folder / "requests.json"
        requests.write_text(json.dumps([plain(s, s.target or target) for s in specializations]), encoding="utf-8")
        command = (sys.executable, *_ONCE, str(stored), str(requests))
        started = time.perf_counter()
        done = subprocess.run(
            command, env=worker_environment(str(folder)), cwd=folder, capture_output=True, check=False
        )
        wall = time.perf_counter() - started
        if done.returncode != 0:
            raise error("E0211", f"the reference's process failed: {done.stderr[-400:].decode(errors='replace')}")
        row = json.loads(done.stdout.splitlines()[-1])
        return FreshRun(wall, row["seconds"], row["outcomes"], row["size"])


def plain(specialization: Specialization, target: str) -> dict[str, Any]:
    """Return a specialization as the plain data of a request."""
    params = {name: spec.model_dump() for name, spec in specialization.params.items()}
    return {"params": params, "hints": specialization.hints.model_dump(), "target": target}


def _kernel_line(closure: Closure) -> int:
    """Return the line of the kernel's ``def``."""
    for segment in closure.modules[-1].segments:
        for offset, line in enumerate(segment.text.split("\n")):
            if line.lstrip().startswith(f"def {closure.kernel}"):
                return segment.line + offset
    return 1


def _failure(reply: dict[str, Any], closure: Closure, place: Span) -> TranspileError:
    file, line, column = reply.get("file"), reply.get("line", 1), reply.get("column", 1)
    span = Span(file, line, column) if file else place
    if reply["status"] == "rejected":
        message = f"the reference compiler refuses `{closure.kernel}`: {reply['message']}"
        help_text = "cuTile Python itself can't compile the kernel for this specialization"
        return ReferenceRejected(Diagnostic("E0220", message, help_text, "error", span), reply["kind"])
    return error(reply["code"], reply["message"], span, help=_HELP.get(reply["code"], ""))


class _Process:
    """The worker process, its pipes, and a folder of its own for temporary files."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._folder = tempfile.mkdtemp(prefix="transpile-reference-")
        self._known: set[str] = set()
        self._asked = ""
        try:
            self._stderr = open(os.path.join(self._folder, "stderr"), "w+b")  # noqa: SIM115
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, cwd=self._folder,
                env=worker_environment(self._folder), start_new_session=True,
            )  # fmt: skip
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        return self._child.poll() is None

    def ask(self, closure: Closure, request: dict[str, Any]) -> None:
        """Send a request; its answer has to be read before the next one."""
        digest = self._asked = closure.digest
        message = {"digest": digest, **request}
        if digest not in self._known:
            message["closure"] = closure.to_text()
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(message).encode() + b"\n")
            self._child.stdin.flush()
        except OSError:
            raise _WorkerDiedError(self._last_words()) from None

    def answer(self, limit: float) -> tuple[dict[str, Any], bytes]:
        """Read the answer to the request that was sent."""
        answer = self.reply(limit)
        if answer[0]["status"] in ("ok", "rejected"):
            self._known.add(self._asked)
        return answer

    def reply(self, limit: float) -> tuple[dict[str, Any], bytes]:
        """Read one reply within ``limit`` seconds."""
        deadline = time.monotonic() + limit
        data = b""
        while b"\n" not in data:
            data += self._read(deadline)
        head, _, payload = data.partition(b"\n")
        reply: dict[str, Any] = json.loads(head)
        while len(payload) < reply.get("size", 0):
            payload += self._read(deadline)
        return reply, payload

    def _read(self, deadline: float) -> bytes:
        assert self._child.stdout is not None
        handle = self._child.stdout.fileno()
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise _TimeLimitError("no answer in time")
        data = os.read(handle, 1 << 20)
        if not data:
            raise _WorkerDiedError(self._last_words())
        return data

    def _last_words(self) -> str:
        """Say how the process ended: its signal or status and the last line that it wrote."""
        try:
            status = self._child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "its output ended"
        self._stderr.flush()
        tail = Path(self._stderr.name).read_bytes()[-4000:].decode(errors="replace").strip().rpartition("\n")[2]
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        return f"{how}: {tail}" if tail else how

    def close(self) -> None:
        """End the process group and remove the folder."""
        if self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout, self._stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def worker_environment(folder: str) -> dict[str, str]:
    """Return the worker's environment: no debugging switches of cuda-tile, a fixed hash seed, its own folders."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_TILE_", "EXPERIMENTAL_CUDA_TILE_"))}
    package = str(Path(transpiler.__file__).resolve().parents[1])
    path = os.pathsep.join([package, *([kept["PYTHONPATH"]] if kept.get("PYTHONPATH") else [])])
    own = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "CUDA_TILE_TEMP_DIR": folder, "TMPDIR": folder}
    return kept | own
