"""Parse one operation's text, apart from its SSA names, into a :class:`~.model.Form`.

``tileirdisasm`` prints every operation as ``NAME clause.. : types``.  A clause is an operand, a bare
word (``signed``), a keyed value (``rounding<approx>``, ``dim=1``, ``token = %0``) or a list
(``[%i, %j]``, ``[1, 0]``).  The text with each SSA name replaced by ``%`` is the key of a cache:
programs print few different ones.
"""

from __future__ import annotations

import re
from functools import lru_cache

from transpiler.diagnostics import Span, TranspileError, error
from transpiler.tileir.constants import dense_bytes
from transpiler.tileir.elements import BITS
from transpiler.tileir.model import Form, Hints, tile_type
from transpiler.tileir.ops.schema import SCHEMAS, WORDS, Schema
from transpiler.tileir.text import CLOSE, OPEN
from transpiler.tileir.text import split_list as split_list

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|(->|[%,:=<>()\[\]{}])|([\w.+-]+|\?))')
_LIST_ATTRIBUTES = {"permute": "permutation"}


@lru_cache(maxsize=50_000)
def parse_form(text: str) -> Form:
    """Parse ``NAME clauses : types`` in which every SSA name is ``%``.

    Raises E0681 (unknown operation), E0682 (unknown clause) and E0683 (malformed text), without a line.
    """
    name, _, rest = text.partition(" ")
    name = name.removeprefix("cuda_tile.")
    schema = SCHEMAS.get(name)
    if schema is None or name in ("for", "loop", "if"):
        raise error("E0681", f"unknown Tile IR operation `{name}`", help="the judge knows no meaning for it")
    clauses, types = split_types(rest)
    scanner = _Clauses(name, schema, clauses)
    scanner.run()
    operand_types, result_types = _split_arrow(types, schema)
    form = Form(name, tuple(scanner.attributes), tuple(scanner.roles), operand_types, result_types, scanner.hints, text)
    low, high = schema.operands
    if not low <= len(form.roles) <= high:
        raise error("E0683", f"`{name}` has {len(form.roles)} operands")
    if name == "constant":
        _check_bytes(form)
    return form


def _check_bytes(form: Form) -> None:
    """A constant that prints bytes has those of all its elements."""
    value = form.get("value") or ""
    try:
        content = dense_bytes(value)
    except ValueError:
        raise error("E0683", f"malformed constant `{value[:80]}`") from None
    if content is None:
        return
    tile = tile_type(form.result_types[0])
    wanted = tile.size * -(-BITS.get(tile.element, 0) // 8)
    if len(content) != wanted or value.partition(":")[0] != tile.element:
        raise error("E0683", f"a constant of {form.result_types[0]} with {len(content)} bytes")


def split_types(text: str) -> tuple[str, str]:
    """Split at the colon outside all brackets; a missing colon leaves the types empty (or from ``->`` on)."""
    depth = 0
    quoted = False
    for at, char in enumerate(text):
        if char == '"' and text[at - 1 : at] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif char in OPEN:
            depth += 1
        elif char in CLOSE:
            if char == ">" and text[at - 1] == "-":
                if depth == 0:
                    return text[: at - 1].strip(), text[at - 1 :].strip()
                continue
            depth -= 1
        elif char == ":" and depth == 0:
            return text[:at].strip(), text[at + 1 :].strip()
    return text.strip(), ""


def _split_arrow(types: str, schema: Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return operand types and result types of the text after the colon."""
    left, arrow, right = types.partition("->") if types.startswith("->") else types.partition(" -> ")
    if arrow:
        return split_list(left), split_list(right.strip())
    operand_types = split_list(types)
    if schema.results == (0, 0) or not operand_types:
        return operand_types, ()
    return operand_types, (operand_types[schema.result_type],)


def parse_hints(text: str) -> Hints:
    """Parse ``default = {latency = 3}, sm_90 = {}``; keys and options are sorted."""
    rows: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for item in split_list(text):
        key, _, body = item.partition("=")
        body = body.strip()
        if not (body.startswith("{") and body.endswith("}")):
            raise error("E0683", f"malformed optimization hints `{text}`")
        options = (option.partition("=") for option in split_list(body[1:-1]))
        rows.append((key.strip(), tuple(sorted((k.strip(), v.strip()) for k, _, v in options))))
    return tuple(sorted(rows))


class _Clauses:
    """Scan the clauses of one operation from left to right."""

    def __init__(self, name: str, schema: Schema, text: str) -> None:
        self._name, self._schema, self._text = name, schema, text
        self._at = 0
        self.attributes: list[tuple[str, str]] = []
        self.roles: list[str] = []
        self.hints: Hints = ()

    def run(self) -> None:
        while (token := self._next()) is not None:
            if token == "%":
                self.roles.append("")
            elif token == "[":
                self._list("")
            elif token == "<" and self._name == "constant":
                self._attribute("value", self._until(">"))
            elif token.startswith('"'):
                self._attribute("text", token)
            elif token != ",":
                self._word(token)

    def _next(self) -> str | None:
        if self._at >= len(self._text) or not self._text[self._at :].strip():
            return None
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise error("E0683", f"unreadable text in `{self._name}`: `{self._text[self._at :]}`")
        self._at = match.end()
        return match.group().strip()

    def _peek(self) -> str:
        at = self._at
        token = self._next()
        self._at = at
        return token or ""

    def _until(self, close: str) -> str:
        """Take the text up to the bracket that closes the one just read."""
        depth, start = 1, self._at
        for at in range(start, len(self._text)):
            char = self._text[at]
            if char in OPEN:
                depth += 1
            elif char in CLOSE:
                depth -= 1
                if depth == 0:
                    self._at = at + 1
                    return re.sub(r"\s*([=,:])\s*", r"\1", self._text[start:at].strip())
        raise error("E0683", f"`{close}` is missing in `{self._name}`")

    def _attribute(self, key: str, value: str) -> None:
        if key not in self._schema.attributes:
            raise error("E0682", f"`{self._name}` with `{key}` ({value}) is not known")
        self.attributes.append((key, value))

    def _list(self, key: str) -> None:
        """Read ``[..]``: operands, numbers, or both (the numbers become an attribute with ``?`` for operands)."""
        items = split_list(self._until("]"))
        count = items.count("%")
        self.roles += [key or "index"] * count
        if count == len(items) and not key:
            return
        key = key or _LIST_ATTRIBUTES.get(self._name, "list")
        self._attribute(key, ",".join("?" if item == "%" else item for item in items))

    def _word(self, word: str) -> None:
        following = self._peek()
        if following == "=":
            self._next()
            self._keyed(word)
        elif following == "<":
            self._next()
            if self._name == "assume":
                self._attribute("assumption", f"{word}<{self._until('>')}>")
            else:
                self._attribute(word, self._until(">"))
        elif word in WORDS:
            self._attribute(WORDS[word], word)
        else:
            raise error("E0682", f"`{word}` in `{self._name}` is not known")

    def _keyed(self, key: str) -> None:
        value = self._next()
        if value == "%" and key == "token":
            self.roles.append(key)
        elif value == "[":
            self._list(key)
        elif value == "<" and key == "optimization_hints":
            if "hints" not in self._schema.attributes:
                raise error("E0682", f"`{self._name}` with hints is not known")
            self.hints = parse_hints(self._until(">"))
        elif value is not None and re.fullmatch(r"[\w.+-]+", value):
            self._attribute(key, value)
        else:
            raise error("E0682", f"`{key} = {value}` in `{self._name}` is not known")


def located(exc: TranspileError, file: str, line: int) -> TranspileError:
    """Give a parse error its line of the disassembly."""
    d = exc.diagnostic
    return error(d.code, d.message, Span(file, line, 1), help=d.help, status=1)
