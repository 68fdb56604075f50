"""Tokens are sets of memory accesses; facts are checked where they are stated."""

from __future__ import annotations

import re
from typing import Any

from transpiler.tileir.elements import BITS, is_pointer
from transpiler.tileir.model import tile_type
from transpiler.tileir.ops.lazy import np
from transpiler.tileir.ops.row import MANY, Function, rows
from transpiler.tileir.ops.site import Site

Array = Any
_EVERY = re.compile(r"div_by<(\d+)(?:,\s*every (\d+) along (\d+))?>")
_BOUNDED = re.compile(r"bounded<(-?\d+|\?),\s*(-?\d+|\?)>")
_SAME = re.compile(r"same_elements<\[([\d,\s]*)\]>")


def _make_token(site: Site) -> Function:
    del site
    return lambda: 0


def _join(site: Site) -> Function:
    del site

    def run(*tokens: int) -> int:
        joined = 0
        for token in tokens:
            joined |= token
        return joined

    return run


def _assume(site: Site) -> Function:
    """Pass the value through; report a stated fact that doesn't hold."""
    text = site.get("assumption")
    broken = None if not site.operand_types[0].startswith("tile<") else _broken(text, site.operand_types[0])
    if broken is None:
        return lambda value: value

    def run(value: Array) -> Array:
        if np.any(broken(value)):
            site.machine.report("assumption", site.op, f"`{text}` doesn't hold")
        return value

    return run


def _broken(text: str, type_text: str) -> Function | None:
    """Return what finds the elements for which a predicate doesn't hold; None for a predicate that isn't checked."""
    tile = tile_type(type_text)
    if match := _EVERY.fullmatch(text):
        divisor = int(match[1])
        if match[2] is None:
            return lambda value: np.asarray(value) % divisor != 0
        every, axis = int(match[2]), int(match[3])
        step = 1 if is_pointer(tile.element) is False else max(1, BITS.get(tile.element[4:-1], 8) // 8)
        return lambda value: _broken_groups(np.asarray(value), divisor, every, axis, step)
    if match := _BOUNDED.fullmatch(text):
        low, high = (None if bound == "?" else int(bound) for bound in match.groups())
        return lambda value: _outside(np.asarray(value), low, high)
    if match := _SAME.fullmatch(text):
        chunk = tuple(int(part) for part in match[1].split(",") if part.strip())
        return lambda value: _different(np.asarray(value), chunk)
    return None


def _outside(value: Array, low: int | None, high: int | None) -> Array:
    below = value < low if low is not None else np.False_
    return below | (value > high) if high is not None else below


def _broken_groups(value: Array, divisor: int, every: int, axis: int, step: int) -> Array:
    """Every ``every``-th element along an axis is divisible, and elements count up in between."""
    lines = np.moveaxis(value, axis, -1)
    groups = lines.reshape(*lines.shape[:-1], -1, min(every, lines.shape[-1]))
    first = groups[..., :1]
    return (first % divisor != 0) | (groups != first + np.arange(groups.shape[-1]) * step)


def _different(value: Array, chunk: tuple[int, ...]) -> Array:
    """Each chunk has equal elements."""
    for axis, size in enumerate(chunk):
        lines = np.moveaxis(value, axis, -1)
        groups = lines.reshape(*lines.shape[:-1], -1, min(size, lines.shape[-1]))
        if np.any(groups != groups[..., :1]):
            return np.True_
    return np.False_


ROWS = {
    **rows("make_token", 0, make=_make_token, kind="token"),
    **rows("join_tokens", (1, MANY), make=_join, kind="token"),
    **rows("assume", 1, "assumption", make=_assume, kind="assume"),
}
