"""Effects that aren't memory: printing, assertions, waiting for other grids."""

from __future__ import annotations

import re
from typing import Any

from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import MANY, Function, rows
from transpiler.tileir.ops.site import Site

Array = Any
_FORMAT = re.compile(r"%%|%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t)?[diuoxXeEfFgGaAcsp]")


_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)")


def _unquoted(text: str) -> str:
    """A printed string's text: ``\\0A`` is a character by its number, ``\\"`` the character itself."""
    if not text.startswith('"'):
        return text
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else m[1], text[1:-1])


def _print(site: Site) -> Function:
    """Format each operand's elements; what a GPU prints in which order is open, here it is the blocks' order."""
    text = _unquoted(site.get("text"))
    plain, token = site.role(""), next(iter(site.role("token")), -1)
    machine = site.machine

    def run(*values: Any) -> int:
        shown = iter([values[i] for i in plain])
        machine.prints.append(_FORMAT.sub(lambda m: "%" if m.group() == "%%" else _shown(next(shown, None)), text))
        return int(values[token]) if token >= 0 else 0

    return run


def _shown(value: Array) -> str:
    if value is None:
        return "?"
    return str(np.asarray(value).tolist())


def _assert(site: Site) -> Function:
    message, machine, op = _unquoted(site.get("text")), site.machine, site.op

    def run(condition: Array) -> None:
        if not np.all(condition):
            machine.report("assert", op, f"assertion failed: {message}")

    return run


def _wait(site: Site) -> Function:
    """Grids run one after another, so that there is nothing to wait for."""
    token = next(iter(site.role("token")), -1)
    return lambda *values: values[token] if token >= 0 else 0


ROWS = {
    **rows("print_tko", (0, MANY), "text", make=_print, kind="effect", results=(0, 1)),
    **rows("assert", 1, "text", make=_assert, kind="effect", results=(0, 0)),
    **rows("gdc_wait_tko gdc_launch_dependents_tko", (0, 1), make=_wait, kind="effect", results=(1, 1)),
}
