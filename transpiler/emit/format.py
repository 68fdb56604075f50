"""rustfmt, and where each statement's line went."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from shutil import which

from transpiler.ir.rust import Line

_CONFIG = "max_width=120,use_small_heuristics=Max,style_edition=2024"
_TOKEN = re.compile(r"//[^\n]*|\"(?:\\.|[^\"\\])*\"|\w+|[^\s\w]")


@cache
def _rustfmt() -> str | None:
    """Where rustfmt is; the one behind rustup's, which takes as long to find it each time as it takes itself."""
    found = which("rustfmt")
    if found is None or Path(found).resolve().name != "rustup":
        return found
    asked = subprocess.run(["rustup", "which", "rustfmt"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else found


def rustfmt(text: str) -> str:
    """``text`` as rustfmt lays it out; unchanged where rustfmt is missing or refuses it."""
    program = _rustfmt()
    if program is None:
        return text
    done = subprocess.run(
        [program, "--edition", "2024", "--config", _CONFIG], input=text, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 and done.stdout else text


def _tokens(lines: Sequence[str]) -> list[tuple[str, int]]:
    """Tokens with their line; commas are left out, rustfmt adds and removes them."""
    return [(t, i) for i, line in enumerate(lines) for t in _TOKEN.findall(line) if t != ","]


def formatted(lines: Sequence[Line]) -> list[Line]:
    """The lines after rustfmt, each with the span that its first token had before."""
    before = [line.text for line in lines]
    text = "\n".join(before) + "\n"
    after = rustfmt(text).removesuffix("\n").split("\n")  # a comment may hold other line separators
    if after == before:
        return list(lines)
    old, new = _tokens(before), _tokens(after)
    home: dict[int, int] = {}
    for i, j in _aligned([t for t, _ in old], [t for t, _ in new]):
        home.setdefault(new[j][1], old[i][1])
    return [Line(t, lines[home[i]].span) if i in home else Line(t) for i, t in enumerate(after)]


def _aligned(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Pairs of equal tokens; the lists are equal as a rule."""
    if old == new:
        return [(i, i) for i in range(len(old))]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [(b.a + k, b.b + k) for b in matcher.get_matching_blocks() for k in range(b.size)]
