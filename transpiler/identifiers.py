"""Python's identifiers: two spellings that NFKC makes equal are one name, as in Python itself."""

from __future__ import annotations

import unicodedata


def identifier(text: str) -> str:
    """The name that Python makes of a spelling: its NFKC form."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)
