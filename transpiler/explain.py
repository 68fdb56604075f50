"""``transpile explain CODE``, and docs/diagnostics.md, which is made of the same table."""

from __future__ import annotations

import difflib
import sys
import textwrap

from transpiler.codes import CODES
from transpiler.diagnostics import error

_WIDTH = 100


def explain_code(code: str) -> int:
    """Print what a diagnostic means and what to do; E0801 for a code that isn't one."""
    row = CODES.get(code.upper())
    if row is None:
        near = difflib.get_close_matches(code.upper(), CODES, n=3, cutoff=0.6)
        help_text = f"near it: {', '.join(near)}" if near else "codes are written like E0301"
        raise error("E0801", f"there is no code `{code}`", help=help_text)
    sys.stdout.write(f"{code.upper()}: {row.title}\n\n{_wrapped(row.meaning)}\n\nWhat to do: {row.remedy}\n")
    return 0


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH)


def reference_page() -> str:
    """Return docs/diagnostics.md."""
    rows = ["# Diagnostics", "", "Made from `transpiler/codes.py` by `python -m transpiler.explain`; don't edit.", ""]
    for code, row in CODES.items():
        rows += [f"## {code}: {row.title}", "", row.meaning, "", f"What to do: {row.remedy}", ""]
    return "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(reference_page())
