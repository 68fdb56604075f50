"""Splitting printed lists."""

from __future__ import annotations

from functools import lru_cache

OPEN, CLOSE = "<[({", ">])}"


@lru_cache(maxsize=50_000)
def split_list(text: str) -> tuple[str, ...]:
    """Split at the commas outside all brackets."""
    parts: list[str] = []
    depth = start = 0
    for at, char in enumerate(text):
        if char in OPEN:
            depth += 1
        elif char in CLOSE and not (char == ">" and text[at - 1] == "-"):
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return (*parts, last) if last else tuple(parts)
