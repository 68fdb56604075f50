"""The command line: ``transpile FILE.py``, and the subcommands.

Whatever goes wrong ends in one coded diagnostic and the contract's exit status: 0 everything proved, tested or
rejected; 1 something differs or failed; 2 usage or unreadable input; 3 unmapped constructs are left; 130 interrupted.

Importing this module imports next to nothing: whatever takes time is imported where an interrupt ends well.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence

TYPE_CHECKING = False  # as in `typing`, which takes long to import
if TYPE_CHECKING:
    from typing import Any

    from transpiler.diagnostics import Diagnostic

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; never raises."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = _guarded(lambda: _run(argv))
        return status if sys.stdout is None else _guarded(lambda: _flushed(status))
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _give_up_output()
        return 128 + signal.SIGPIPE


def _run(argv: list[str]) -> int:
    with _signals_that_are_kept():
        _end_well_when_terminated()
        return _dispatch(argv)


def _flushed(status: int) -> int:
    """Write out what was printed; a full disk is noticed here (E0823)."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as exc:
        _give_up_output()
        from transpiler.diagnostics import error

        raise error("E0823", f"can't write the results: {exc.strerror}", status=1) from None
    return status


def _give_up_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _TerminatedError(SystemExit):
    """SIGTERM: ends like an interrupt, so that workers and temporary folders don't stay."""


def _end_well_when_terminated() -> None:
    import threading

    def leave(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        raise _TerminatedError

    in_charge = threading.current_thread() is threading.main_thread()
    if in_charge and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)


class _signals_that_are_kept:  # noqa: N801 (contextlib takes long to import)
    """Where Python drops an exception (in callbacks of weak references, as importing has), the signal comes again."""

    def __enter__(self) -> None:
        self._before = sys.unraisablehook
        sys.unraisablehook = self._hook

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._before

    def _hook(self, dropped: Any) -> None:
        if issubclass(dropped.exc_type, _TerminatedError):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _end_well_when_terminated()
            _send_soon(signal.SIGTERM)
        elif issubclass(dropped.exc_type, KeyboardInterrupt):
            _send_soon(signal.SIGINT)
        else:
            self._before(dropped)


def _send_soon(number: int) -> None:
    """Send a signal to this process, when its main thread is out of the callback."""
    import threading

    threading.Timer(0.01, os.kill, (os.getpid(), number)).start()


def _dispatch(argv: list[str]) -> int:
    from transpiler.arguments import COMMANDS, commands_app, translate_app

    if "--version" in argv[:1]:
        return _version()
    if not argv:
        commands_app(["--help"], prog_name="transpile", standalone_mode=False)
        return 2
    general = argv[0] in COMMANDS or argv[0] in ("-h", "--help")
    app = commands_app if general else translate_app
    if not general:
        _refuse_misspelt(argv[0])
    status: object = app(argv, prog_name="transpile", standalone_mode=False)
    if status == _INTERRUPTED:  # typer makes an exit status of KeyboardInterrupt
        raise KeyboardInterrupt
    return status if isinstance(status, int) else 0


def _refuse_misspelt(word: str) -> None:
    """Raise E0801 where the first word is no file, and a corpus or close to a subcommand."""
    if word.startswith("-") or word.endswith(".py") or os.path.exists(word):
        return
    from transpiler.arguments import near_command
    from transpiler.corpora import corpus_names
    from transpiler.diagnostics import error

    meant = f"batch {word}" if word in corpus_names() else near_command(word)
    if meant is not None:
        raise error("E0801", f"there is no command `{word}`", help=f"did you mean `transpile {meant}`?")


def _version() -> int:
    from transpiler import toolkit

    for name, version in toolkit.versions().items():
        print(f"{name} {version}")
    return 0


def _guarded(run: Callable[[], int], *, last: bool = False) -> int:
    """Turn every failure into a diagnostic on the standard error and an exit status; ``last``: it can't be told."""
    try:
        return run()
    except _TerminatedError:
        print("\nterminated", file=sys.stderr)
        return 128 + signal.SIGTERM
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        # an interrupt in an `exec` has the interpreter kill itself in the end; the next `exec` makes it forget
        exec("")
        return _INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as exc:
        if last:
            raise
        failure = exc
    return _guarded(lambda: _failed(failure), last=True)


def _failed(exc: Exception) -> int:
    """Say what went wrong, and return the exit status."""
    import errno

    from transpiler.diagnostics import TranspileError, error

    if isinstance(exc, TranspileError):
        _complain(exc.diagnostic)
        return exc.status or 2
    if isinstance(exc, OSError) and exc.errno in (errno.ENOSPC, errno.EDQUOT):
        _give_up_output()
        _complain(error("E0823", f"can't write the results: {exc.strerror}").diagnostic)
        return 1
    usage = _usage_error(exc)
    if usage is not None:
        _complain(usage)
        return 2
    from transpiler.internal import internal_error

    _complain(internal_error(exc))
    return 1


def _usage_error(exc: Exception) -> Diagnostic | None:
    """Read an exception of the option parser, None for any other; they all have a formatted message."""
    from transpiler.diagnostics import Diagnostic

    say = getattr(exc, "format_message", None)
    if say is None or not type(exc).__module__.startswith(("typer", "click")):
        return None
    context = getattr(exc, "ctx", None)
    command = context.command_path if context is not None else "transpile"
    return Diagnostic("E0801", str(say()).rstrip("."), f"`{command} --help` shows how to use it")


def _complain(diagnostic: Diagnostic) -> None:
    from transpiler.report.carets import render
    from transpiler.report.terminal import console

    console(sys.stderr).print(render(diagnostic), soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
