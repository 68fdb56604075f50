"""``transpile record``: run a command, write down what it launches, pass its exit status on."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from transpiler.diagnostics import error
from transpiler.manifests import to_toml
from transpiler.record.rows import Recorded, read_rows, recorded
from transpiler.report.carets import SourceCache
from transpiler.report.output import complain, write_whole
from transpiler.report.terminal import counted
from transpiler.spec import Corpus
from transpiler.temporary import temporary_folder

_INJECTED = Path(__file__).parent / "inject"
_FOLDER = "TRANSPILE_RECORD"
_USAGE = 2


def record(command: Sequence[str], out: Path) -> int:
    """Run a command and write the specializations that it launched to ``out``; returns the command's exit status.

    E0830 when the command can't be started, E0831 when it launched nothing, E0823 when ``out`` can't be written.
    """
    _writable(out)
    with temporary_folder("transpile-record-") as folder:
        status = _run(command, str(folder))
        found = recorded(read_rows(folder), out.parent)
    complain(found.diagnostics, SourceCache())
    if not found.operators:
        raise _nothing(command, status)
    name = operator_stem(out)
    corpus = Corpus(name=name, target=found.arch or Corpus.model_fields["target"].default, operators=found.operators)
    write_whole(out, to_toml(corpus, f"Recorded by `transpile record -- {shlex.join(command)}`."))
    _summary(found, out, status)
    return status


def operator_stem(out: Path) -> str:
    """The corpus' name: the file's, without what it ends in."""
    return out.name.partition(".")[0] or "recorded"


def _nothing(command: Sequence[str], status: int) -> Exception:
    after = f", which ended with status {status}," if status else ""
    message = f"`{shlex.join(command)}`{after} launched no kernel that could be recorded; nothing was written"
    return error("E0831", message, help="kernels have to be launched with ct.launch by a Python that reads PYTHONPATH "
                 "(not `python -I` or `-E`)", status=status or _USAGE)  # fmt: skip


def _summary(found: Recorded, out: Path, status: int) -> None:
    kernels = [kernel for operator in found.operators for kernel in operator.kernels]
    count = sum(len(kernel.specializations) for kernel in kernels)
    print(f"wrote {out.as_posix()}: {counted(len(found.operators), 'operator')}, {counted(len(kernels), 'kernel')}, "
          f"{counted(count, 'specialization')}; prove them with `transpile batch {out.as_posix()}`",
          file=sys.stderr)  # fmt: skip
    if status:
        print(f"the command ended with status {status}; what it launched before that is recorded", file=sys.stderr)


def _writable(out: Path) -> None:
    """Find out before the command runs."""
    folder = out.parent
    if out.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        why = "it is a folder" if out.is_dir() else f"the folder {folder.as_posix()} isn't there or may not be written"
        raise error("E0823", f"can't write {out.as_posix()}: {why}", help="choose another file with `-o`")


def _run(command: Sequence[str], folder: str) -> int:
    """Run the command with the hook in its Pythons; interrupts are the command's, which ends itself."""
    paths = [str(_INJECTED), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {_FOLDER: folder, "PYTHONPATH": os.pathsep.join(paths)}
    try:
        with _interrupts_ignored():
            child = subprocess.Popen(command, env=environment, preexec_fn=_defaults)
            code = child.wait()
    except OSError as exc:
        raise error("E0830", f"can't run `{command[0]}`: {exc.strerror}", help="give a command after `--`, such as "
                    "`transpile record -o SPEC.toml -- python -m pytest tests`") from None  # fmt: skip
    return code if code >= 0 else 128 - code


def _defaults() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
