"""The text of a kernel.rs as a test edits it: calls, binary operators, bindings and loops with their places.

This is a scanner with brackets and operator precedence, not a parser: it looks only inside function bodies, and what it
doesn't know it skips.  It depends on the names of what is called, never on how the text is broken into lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

Span = tuple[int, int]
"""From the first character to the one after the last."""

_TOKEN = re.compile(
    r'//[^\n]*|"(?:\\.|[^"\\])*"'
    r"|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\w*|'?[A-Za-z_]\w*(?:!(?!=))?"
    r"|::|\.\.=|\.\.|->|=>|<<|>>|[=!<>]=|&&|\|\||[^\s\w]"
)
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
_PRECEDENCE = {"*": 6, "/": 6, "%": 6, "+": 5, "-": 5, "<<": 4, ">>": 4, "&": 3, "^": 2, "|": 1}
_KEYWORDS = {"let", "mut", "in", "return", "for", "if", "else", "while", "loop", "break", "continue"}
_TILE = re.compile(r"Tile\s*<\s*([\w*\s]+?)\s*,\s*\{\s*\[([^\]]*)\]\s*\}\s*>")


@dataclass(frozen=True)
class Call:
    """A call of a function or method: where it is as a whole, and where each argument is."""

    name: str
    span: Span
    args: tuple[Span, ...]
    receiver: Span | None = None
    """What a method is called on."""


@dataclass(frozen=True)
class Binary:
    """A binary operator with its operands."""

    op: str
    left: Span
    right: Span

    @property
    def span(self) -> Span:
        """The expression as a whole."""
        return self.left[0], self.right[1]


@dataclass(frozen=True)
class Let:
    """A binding: its pattern, type and value, and the whole statement."""

    pattern: str
    type: Span
    value: Span
    span: Span
    mutable: bool

    @property
    def name(self) -> str:
        """The first name that the pattern binds."""
        return self.pattern.strip("( ").split(",")[0].strip()


@dataclass(frozen=True)
class Loop:
    """A ``for`` loop over a range."""

    low: Span
    high: Span
    step: Span | None
    body: Span


@dataclass(frozen=True)
class Function:
    """A function, the names of its parameters, and its body, braces included."""

    name: str
    parameters: tuple[str, ...]
    body: Span


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int


class RustText:
    """One text, scanned; every place is in the coordinates of ``text``."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = [_Token(m[0], *m.span()) for m in _TOKEN.finditer(text)]
        self._tokens = [t for t in found if not t.text.startswith("//")]
        self._partner = _partners(self._tokens)
        self._types: set[int] = set()
        """Tokens inside types, where ``<`` and ``*`` aren't operators."""
        self._mark_types()

    def __getitem__(self, span: Span) -> str:
        return self.text[span[0] : span[1]]

    def replaced(self, *edits: tuple[Span, str]) -> str:
        """Return the text with some places replaced; the places must not overlap."""
        text, last = self.text, len(self.text)
        for (start, end), new in sorted(edits, reverse=True):
            assert end <= last, "edits overlap"
            text, last = text[:start] + new + text[end:], start
        return text

    # What there is

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The functions that have a body, the entries first."""
        return tuple(
            Function(self._tokens[i + 1].text, self._parameters(i), (self._tokens[o].start, self._tokens[c].end))
            for i, (o, c) in self._bodies.items()
        )

    def function(self, place: int) -> Function | None:
        """Return the function around a place."""
        return next((f for f in self.functions if f.body[0] <= place < f.body[1]), None)

    def calls(self, *names: str) -> Iterator[Call]:
        """Yield the calls of these functions or methods, in order."""
        for i in self._inside():
            if self._tokens[i].text in names and i not in self._types:
                call = self._call(i)
                if call is not None:
                    yield call

    def binaries(self, *ops: str) -> Iterator[Binary]:
        """Yield the uses of these binary operators, in order."""
        for i in self._inside():
            if self._tokens[i].text in ops and self._is_binary(i):
                yield Binary(self._tokens[i].text, self._left_of(i), self._right_of(i))

    @cached_property
    def lets(self) -> tuple[Let, ...]:
        """Every binding that has a type, in order."""
        return tuple(filter(None, (self._let(i) for i in self._inside() if self._tokens[i].text == "let")))

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Every loop over a range, in order."""
        return tuple(filter(None, (self._loop(i) for i in self._inside() if self._tokens[i].text == "for")))

    def definition(self, name: str, before: int) -> Let | None:
        """Return the last binding of a name in the same function before a place."""
        function = self.function(before)
        first = function.body[0] if function else before
        bound = [v for v in self.lets if v.name == name and first <= v.span[0] and v.span[1] <= before]
        return bound[-1] if bound else None

    def statement(self, place: int) -> Span:
        """Return the innermost statement around a place, an ``unsafe`` block being part of its statement."""
        at = next(i for i, t in enumerate(self._tokens) if t.end > place)
        opener = self._around(at)
        while self._tokens[opener].text != "{" or self._tokens[opener - 1].text == "unsafe":
            at, opener = opener, self._around(opener)
        first = last = at
        while self._tokens[first - 1].text not in (";", "{"):
            if self._tokens[first - 1].text == "}" and self._tokens[self._before(first) - 1].text not in (
                ",",
                "unsafe",
            ):
                break
            first = self._before(first)
        while self._tokens[last].text != ";" and last < self._partner[opener]:
            last = self._after(last)
        return self._tokens[first].start, self._tokens[min(last, self._partner[opener] - 1)].end

    def items(self, span: Span) -> tuple[Span, ...]:
        """Split a bracketed list, such as an array or the arguments of ``shape![..]``, at its commas."""
        inside = [i for i, t in enumerate(self._tokens) if span[0] <= t.start < span[1]]
        opener = next((i for i in inside if self._tokens[i].text in _OPEN), None)
        return () if opener is None else self._split(opener)

    # How it is found

    @cached_property
    def _bodies(self) -> dict[int, tuple[int, int]]:
        """The tokens of each function's braces by that of its ``fn``; declarations of operations are left out."""
        starts = [i for i, t in enumerate(self._tokens) if t.text == "fn"]
        starts.sort(key=lambda i: not self._is_entry(i))
        found = {i: body for i in starts if (body := self._body(i)) is not None}
        return {f: b for f, b in found.items() if "unreachable!" not in (t.text for t in self._tokens[b[0] : b[1]])}

    def _parameters(self, fn: int) -> tuple[str, ...]:
        opener = fn + 2
        if self._tokens[opener].text == "<":
            opener = self._generics_end(opener)
        parts = (re.match(r"(\w+)\s*:", self[span]) for span in self._split(opener))
        return tuple(part[1] for part in parts if part is not None)

    def _is_entry(self, fn: int) -> bool:
        i = fn - 1
        while self._tokens[i].text in ("unsafe", "pub"):
            i -= 1
        return self._tokens[i].text == "]" and "entry" in (t.text for t in self._tokens[self._partner[i] : i])

    def _body(self, fn: int) -> tuple[int, int] | None:
        i = fn
        while i < len(self._tokens) and self._tokens[i].text != ";":
            text = self._tokens[i].text
            if text == "{" and self._tokens[i - 1].text != ",":
                return i, self._partner[i]
            i = self._after(i)
        return None

    def _inside(self) -> Iterator[int]:
        for opener, closer in self._bodies.values():
            yield from range(opener + 1, closer)

    def _mark_types(self) -> None:
        for i in self._inside():
            text = self._tokens[i].text
            if text == "let" and (parts := self._let_parts(i)) is not None:
                self._types.update(range(*parts))
            elif text == "::" and self._tokens[i + 1].text == "<":
                self._types.update(range(i + 1, self._generics_end(i + 1)))

    def _generics_end(self, opener: int) -> int:
        depth, i = 0, opener
        while True:
            depth += {"<": 1, ">": -1, ">>": -2}.get(self._tokens[i].text, 0)
            i = self._after(i)
            if depth <= 0:
                return i

    def _let_parts(self, let: int) -> tuple[int, int] | None:
        """Return the tokens from the colon of a binding to its equals sign."""
        colon = let + 1
        while self._tokens[colon].text not in (":", "=", ";"):
            colon = self._after(colon)
        equals = colon
        while self._tokens[equals].text not in ("=", ";"):
            equals = self._after(equals)
        return (colon, equals) if self._tokens[colon].text == ":" and self._tokens[equals].text == "=" else None

    def _let(self, i: int) -> Let | None:
        parts = self._let_parts(i)
        if parts is None:
            return None
        colon, equals = parts
        end = equals
        while self._tokens[end].text != ";":
            end = self._after(end)
        mutable = self._tokens[i + 1].text == "mut"
        pattern = self.text[self._tokens[i + 1 + mutable].start : self._tokens[colon - 1].end]
        kind = self._span(colon + 1, equals)
        return Let(pattern, kind, self._span(equals + 1, end), self._span(i, end + 1), mutable)

    def _loop(self, i: int) -> Loop | None:
        start = i
        while self._tokens[start].text != "in":
            start += 1
        body = start + 1
        while self._tokens[body].text != "{":
            body = self._after(body)
        step = next((c for c in self._calls_between(start, body) if c.name == "step_by"), None)
        first, last = start + 1, body
        if step is not None and self._tokens[first].text == "(":
            first, last = first + 1, self._partner[first]
        dots = first
        while dots < last and self._tokens[dots].text != "..":
            dots = self._after(dots)
        if dots >= last:
            return None
        low, high = self._span(first, dots), self._span(dots + 1, last)
        return Loop(low, high, step.args[0] if step else None, self._span(body, self._partner[body] + 1))

    def _calls_between(self, first: int, last: int) -> Iterator[Call]:
        i = first
        while i < last:
            call = self._call(i) if self._tokens[i].text.isidentifier() else None
            if call is not None:
                yield call
            i = self._after(i)

    def _call(self, i: int) -> Call | None:
        opener = i + 1
        if self._tokens[opener].text == "::" and self._tokens[opener + 1].text == "<":
            opener = self._generics_end(opener + 1)
        if self._tokens[opener].text not in ("(", "[") or self._tokens[i - 1].text == "fn":
            return None
        if self._tokens[opener].text == "[" and not self._tokens[i].text.endswith("!"):
            return None
        start, receiver = i, None
        if self._tokens[i - 1].text == ".":
            start = self._postfix_start(i - 2)
            receiver = self._span(start, i - 1)
        return Call(self._tokens[i].text, self._span(start, self._partner[opener] + 1), self._split(opener), receiver)

    def _postfix_start(self, i: int) -> int:
        """Return the first token of the chain of calls and fields that ends at a token."""
        while True:
            if self._tokens[i].text in _CLOSE:
                i = self._partner[i]
                if not self._is_name(i - 1):
                    return i
                i -= 1
            if self._tokens[i - 1].text not in (".", "::"):
                return i
            i -= 2

    def _split(self, opener: int) -> tuple[Span, ...]:
        closer, parts, first, i = self._partner[opener], [], opener + 1, opener + 1
        while i <= closer:
            if i == closer or (self._tokens[i].text == "," and i not in self._types):
                if i > first:
                    parts.append(self._span(first, i))
                first = i + 1
                i += 1
            else:
                i = self._after(i)
        return tuple(parts)

    def _is_name(self, i: int) -> bool:
        text = self._tokens[i].text
        return (text[0].isalpha() or text[0] == "_") and text not in _KEYWORDS

    def _is_operand_end(self, i: int) -> bool:
        text = self._tokens[i].text
        return self._is_name(i) or text[0].isdigit() or text in (")", "]")

    def _is_binary(self, i: int) -> bool:
        return i not in self._types and self._tokens[i].text in _PRECEDENCE and self._is_operand_end(i - 1)

    def _left_of(self, op: int) -> Span:
        rank, i = _PRECEDENCE[self._tokens[op].text], op
        while True:
            before = self._tokens[i - 1].text
            weaker = self._is_binary(i - 1) and _PRECEDENCE[before] < rank
            if weaker or before in _OPEN or before in _KEYWORDS or before in (",", ";", "=", "..", "=>"):
                return self._span(i, op)
            i = self._before(i)

    def _right_of(self, op: int) -> Span:
        rank, i = _PRECEDENCE[self._tokens[op].text], op + 1
        while True:
            after = self._tokens[i].text
            weaker = self._is_binary(i) and _PRECEDENCE[after] <= rank
            if weaker or after in _CLOSE or after in (",", ";", "..", "{"):
                return self._span(op + 1, i)
            i = self._after(i)

    def _after(self, i: int) -> int:
        """Return the token after this one, or after the group that it opens."""
        return (self._partner[i] if self._tokens[i].text in _OPEN else i) + 1

    def _before(self, i: int) -> int:
        """Return the token before this one, or the opener of the group that ends there."""
        return self._partner[i - 1] if self._tokens[i - 1].text in _CLOSE else i - 1

    def _around(self, i: int) -> int:
        """Return the bracket that opens the group around a token."""
        while self._tokens[i - 1].text not in _OPEN:
            i = self._before(i)
        return i - 1

    def _span(self, first: int, after: int) -> Span:
        return self._tokens[first].start, self._tokens[after - 1].end


def element_and_shape(type_text: str) -> tuple[str, tuple[str, ...]] | None:
    """Read ``Tile<f32, { [M, N] }>``, which may stand in a tuple: its element and its dimensions."""
    match = _TILE.search(type_text)
    if match is None:
        return None
    return match[1], tuple(part.strip() for part in match[2].split(",") if part.strip())


def tile_type(element: str, shape: Iterable[str]) -> str:
    """Write a tile's type."""
    return f"Tile<{element}, {{ [{', '.join(shape)}] }}>"


def _partners(tokens: list[_Token]) -> dict[int, int]:
    """Pair the brackets, in both directions."""
    partner: dict[int, int] = {}
    open_at: list[int] = []
    for i, token in enumerate(tokens):
        if token.text in _OPEN:
            open_at.append(i)
        elif token.text in _CLOSE:
            opener = open_at.pop()
            partner[opener], partner[i] = i, opener
    return partner
