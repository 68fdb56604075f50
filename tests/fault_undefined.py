"""Edits that add what no result shows: false facts, a loop that may not end, an overflow that is excluded."""

from __future__ import annotations

from collections.abc import Iterator

from fault_edits import TextEdit, flat, storing
from fault_text import Let, RustText

_NUMBER = "Tile<i32, { [] }>"


def _numbers(text: RustText) -> Iterator[Let]:
    """The integers of one element that aren't constants."""
    for let in text.lets:
        if flat(text[let.type]) == _NUMBER and "const_i32" not in text[let.value]:
            yield let


def stated_of_nothing(fact: str) -> TextEdit:
    """State a fact of a number, where nothing uses what it is stated of."""

    def edit(text: RustText) -> Iterator[str]:
        for let in _numbers(text):
            unneeded = f"let unneeded: {_NUMBER} = unsafe {{ {fact}({let.name}) }};"
            yield text.replaced((let.span, f"{text[let.span]}\n{unneeded}"))

    return edit


def endless_loop(text: RustText) -> Iterator[str]:
    """Go round in a loop before something is stored."""
    for span in storing(text):
        yield text.replaced((span, f"loop {{ continue; }}\n{text[span]}"))


def overflow_excluded(mode: str) -> TextEdit:
    """Say of an integer operation that it doesn't overflow."""
    names = {"+": "addi", "-": "subi", "*": "muli"}

    def edit(text: RustText) -> Iterator[str]:
        for found in text.binaries(*names):
            left, right = text[found.left], text[found.right]
            yield text.replaced((found.span, f"{names[found.op]}({left}, {right}, overflow::{mode})"))

    return edit
