"""Forms: declarative rows that say which Rust expression an operation of TIR becomes.

A row is an opcode, a condition on its attributes and types, and a template in Rust.  In a template
``$0`` is the first operand and ``$name`` a parameter (:func:`transpiler.select.params.parameters`).
Templates are parsed when the table is built; two rows that could match one operation are an error
then, not later.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from transpiler.ir import rust

Keys = Mapping[str, Hashable]


@dataclass(frozen=True)
class Not:
    """A condition that holds for every value but these."""

    values: tuple[Hashable, ...]


def other_than(*values: Hashable) -> Not:
    """Any value but ``values``."""
    return Not(values)


@dataclass(frozen=True)
class Form:
    """One row. ``nest``: the expression may stand inside another one (its type needs no ``let``)."""

    opcode: str
    template: str
    when: tuple[tuple[str, tuple[Hashable, ...] | Not], ...] = ()
    nest: bool = True
    expr: rust.Expr = field(default=rust.Text(""))
    body: tuple[rust.Stmt, ...] = ()  # statements that end in the value, of a row that isn't one expression

    @property
    def key(self) -> str:
        """A unique, stable name for reports: the opcode with its conditions."""
        return self.opcode + (f" [{', '.join(map(_condition, self.when))}]" if self.when else "")

    def matches(self, keys: Keys) -> bool:
        """Whether the row takes an operation with these keys."""
        for name, allowed in self.when:
            value = keys.get(name)
            if (value in allowed.values) if isinstance(allowed, Not) else (value not in allowed):
                return False
        return True


def form(opcode: str, template: str, *, nest: bool = True, **when: Hashable | tuple[Hashable, ...] | Not) -> Form:
    """Declare a row; a condition is a value, a tuple of values, or :func:`other_than`."""
    conditions = tuple((k, v if isinstance(v, tuple | Not) else (v,)) for k, v in when.items())
    return Form(opcode, template, conditions, nest, parse(template))


def block_form(opcode: str, text: str, **when: Hashable | tuple[Hashable, ...] | Not) -> Form:
    """Declare a row whose Rust is several statements, the last of which is the value."""
    from transpiler.select.fragments import parse_body

    return replace(form(opcode, "$0", nest=False, **when), template=text, body=parse_body(text))


def forms(
    opcodes: str, template: str, *, nest: bool = True, **when: Hashable | tuple[Hashable, ...] | Not
) -> list[Form]:
    """One row for each of several opcodes; ``$op`` in the template is the opcode."""
    return [form(op, template.replace("$op", op), nest=nest, **when) for op in opcodes.split()]


def _condition(item: tuple[str, tuple[Hashable, ...] | Not]) -> str:
    name, allowed = item
    values = allowed.values if isinstance(allowed, Not) else allowed
    return f"{name} {'is not' if isinstance(allowed, Not) else 'is'} {' or '.join(map(str, values))}"


def _disjoint(a: tuple[Hashable, ...] | Not, b: tuple[Hashable, ...] | Not) -> bool:
    if isinstance(a, Not):
        return not isinstance(b, Not) and all(v in a.values for v in b)
    if isinstance(b, Not):
        return all(v in b.values for v in a)
    return not set(a) & set(b)


def overlap(a: Form, b: Form) -> bool:
    """Whether some operation could match both rows."""
    if a.opcode != b.opcode:
        return False
    theirs = dict(b.when)
    return not any(name in theirs and _disjoint(values, theirs[name]) for name, values in a.when)


class Table:
    """The rows by opcode."""

    def __init__(self, rows: Iterable[Form]) -> None:
        """Index the rows; raises ValueError when two could match the same operation."""
        self.rows: dict[str, list[Form]] = {}
        for row in rows:
            known = self.rows.setdefault(row.opcode, [])
            for other in known:
                if overlap(row, other):
                    raise ValueError(f"two forms match {row.opcode}: {row.template!r} and {other.template!r}")
            known.append(row)

    def find(self, opcode: str, keys: Keys) -> Form | None:
        """The row that matches, or None."""
        return next((row for row in self.rows.get(opcode, ()) if row.matches(keys)), None)


def instantiate(e: rust.Expr, params: Mapping[str, rust.Expr | str]) -> rust.Expr:
    """Fill a parsed template; a parameter inside a path must be text."""
    if isinstance(e, rust.Text) and e.text.startswith("$") and e.text[1:] in params:
        value = params[e.text[1:]]
        return rust.Text(value) if isinstance(value, str) else value
    if isinstance(e, rust.Text):
        return rust.Text(_fill(e.text, params))
    if isinstance(e, rust.Index) and "$" in e.index:
        e = rust.Index(e.base, _fill(e.index, params), e.dot)
    if isinstance(e, rust.Call) and "$" in e.func:
        e = rust.Call(_fill(e.func, params), e.args)
    return rust.map_children(e, lambda c: instantiate(c, params))


def _fill(text: str, params: Mapping[str, rust.Expr | str]) -> str:
    return re.sub(r"\$(\w+)", lambda m: str(params[m[1]]), text)


_TOKEN = re.compile(
    r"\s*(?:(?P<path>\$?[A-Za-z_]\w*(?:::(?:<[^<>()]*>|\$?\w+))*!?)|(?P<hole>\$\d+)|(?P<lit>\d[\w.]*|\"[^\"]*\")"
    r"|(?P<punct>\.\.|<<|>>|[-+*/%&|^()\[\]{},.]))"
)


def parse(template: str) -> rust.Expr:
    """Parse a template; raises ValueError where it isn't one of the expressions of the Rust IR."""
    return _Parser(template).whole()


class _Parser:
    """Precedence climbing over the tokens of one template."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(template):
            m = _TOKEN.match(template, at)
            if m is None or m.lastgroup is None:
                raise ValueError(f"bad template {template!r} at {at}")
            self.tokens.append((m.lastgroup, m[m.lastgroup]))
            at = m.end()
        self.at = 0

    def whole(self) -> rust.Expr:
        e = self.binary(0)
        if self.at != len(self.tokens):
            raise ValueError(f"bad template {self.template!r}: {self.peek()!r} is left over")
        return e

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, text: str = "") -> str:
        token = self.peek()
        if not token or (text and token != text):
            raise ValueError(f"bad template {self.template!r}: {text or 'more'!r} expected, {token!r} found")
        self.at += 1
        return token

    def binary(self, strength: int) -> rust.Expr:
        left = self.postfix()
        while (op := self.peek()) in rust.PRECEDENCE and rust.PRECEDENCE[op] > strength:
            self.take()
            right: rust.Expr = rust.Text(self.take()) if op == "as" else self.binary(rust.PRECEDENCE[op])
            left = rust.Binary(op, left, right)
        return left

    def postfix(self) -> rust.Expr:
        e = self.atom()
        while (token := self.peek()) in (".", "["):
            self.take()
            if token == "[":
                e = rust.Index(e, self.take())
                self.take("]")
            elif self.tokens[self.at][0] == "lit" or self.tokens[self.at + 1 : self.at + 2] != [("punct", "(")]:
                e = rust.Index(e, self.take(), dot=True)
            else:
                name = self.take()
                self.take("(")
                e = rust.Method(e, name, self.items(")"))
        return e

    def items(self, close: str) -> tuple[rust.Expr, ...]:
        out = []
        while self.peek() != close:
            out.append(self.binary(0))
            if self.peek() != close:
                self.take(",")
        self.take(close)
        return tuple(out)

    def atom(self) -> rust.Expr:
        token = self.take()
        if token == "(":
            items = self.items(")")
            return items[0] if len(items) == 1 else rust.Seq(items, "(", ")")
        if token == "[":
            return rust.Seq(self.items("]"))
        if token == "&":
            return rust.Ref(self.postfix())
        if token == "unsafe":
            self.take("{")
            inner = self.binary(0)
            self.take("}")
            return rust.Unsafe(inner)
        if token.endswith("!"):
            self.take("[")
            return rust.Seq(self.items("]"), f"{token}[", "]")
        if self.peek() == "(" and not token[:1].isdigit():
            self.take()
            return rust.Call(token, self.items(")"))
        return rust.Text(token)
