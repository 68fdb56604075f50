"""Files of one JSON object a line, which a process that is cut may leave with a torn line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file's text; damaged lines are left out."""
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row
