"""The author's text in Rust: string literals and comments that rustc accepts, whatever is in the text.

rustc refuses characters that change the direction of text (CVE-2021-42574) in literals and comments, carriage
returns, and surrogates; an editor breaks lines at more characters than Rust does.  What isn't seen is written out.
"""

from __future__ import annotations

import unicodedata

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
# Unicode's general categories: controls, surrogates, separators of lines and of paragraphs.
_WRITTEN_OUT = frozenset({"Cc", "Cs", "Zl", "Zp"})
_DIRECTIONS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def literal(text: str, *, ascii_only: bool = False) -> str:
    """Write a string literal; characters that can't be seen are escaped, with ``ascii_only`` all but ASCII's."""
    return f'"{"".join(_escaped(c, ascii_only) for c in text)}"'


def _escaped(c: str, ascii_only: bool) -> str:
    if "\ud800" <= c <= "\udfff":
        return "\\u{fffd}"  # Rust has no surrogates, and the reference refuses them
    plain = c.isprintable() and (c.isascii() or not ascii_only)
    return _ESCAPES.get(c) or (c if plain else f"\\u{{{ord(c):x}}}")


def comment(text: str) -> str:
    """One line of a comment: controls, characters for text direction and line separators as ``U+202E``."""
    if text.isprintable():
        return text
    return "".join(f"U+{ord(c):04X}" if _refused(c) else c for c in text)


def _refused(c: str) -> bool:
    return c != "\t" and (unicodedata.category(c) in _WRITTEN_OUT or unicodedata.bidirectional(c) in _DIRECTIONS)
