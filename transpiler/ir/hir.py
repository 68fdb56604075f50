"""HIR: the untyped, structured form of a kernel's Python, close to the source.

Expressions are names, constants, tuples and calls; every operator is a call of
``operator.<name>``.  Names are resolved: a local, a module-level name of this or a sibling
module, or an external thing by its qualified name, whatever alias the author used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from transpiler.diagnostics import NO_SPAN, Span


@dataclass(frozen=True)
class Node:
    """Anything with a place in the source."""

    span: Span = field(default=NO_SPAN, kw_only=True, compare=False)


@dataclass(frozen=True)
class Const(Node):
    """A literal: int, float, bool, str, None, or Ellipsis."""

    value: object


@dataclass(frozen=True)
class Local(Node):
    """A parameter or a local variable."""

    name: str


@dataclass(frozen=True)
class Global(Node):
    """A module-level name (constant or function) of the module ``module`` (its key in Program.modules)."""

    module: str
    name: str


@dataclass(frozen=True)
class External(Node):
    """Something outside the program by qualified name: "cuda.tile.load", "math.inf", "builtins.range"."""

    name: str


@dataclass(frozen=True)
class Tuple_(Node):  # noqa: N801
    """A tuple (or list) display."""

    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Star(Node):
    """``*value`` among the items of a tuple or the arguments of a call."""

    value: Expr


@dataclass(frozen=True)
class Attr(Node):
    """``value.name`` where value isn't a module."""

    value: Expr
    name: str


@dataclass(frozen=True)
class Call(Node):
    """A call; ``x.astype(d)`` is Call(Attr(x, "astype"), (d,)); ``a + b`` is Call(External("operator.add"), (a, b)).

    ``x[i]`` is operator.getitem(x, i); a slice index is Call(External("builtins.slice"), (start, stop, step)).
    Unary: operator.neg, operator.pos, operator.invert, operator.not_. Comparisons: operator.lt, le, gt, ge, eq, ne,
    is_, is_not, contains(not_in: not_ of contains). f-strings: builtins.format_string(parts...).
    """

    func: Expr
    args: tuple[Expr, ...]
    kwargs: tuple[tuple[str, Expr], ...] = ()


@dataclass(frozen=True)
class IfExp(Node):
    """``then if cond else orelse``."""

    cond: Expr
    then: Expr
    orelse: Expr


@dataclass(frozen=True)
class BoolOp(Node):
    """Short-circuit ``and``/``or`` of two operands (longer chains nest to the left; comparison chains are ``and``)."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Unsupported(Node):
    """A construct that the front end can't express; becomes a Hole when it is reached.

    ``text`` is that of a lambda: as an argument it belongs to the call, which may be filled.
    """

    code: str
    what: str
    text: str = ""


Expr = Const | Local | Global | External | Tuple_ | Star | Attr | Call | IfExp | BoolOp | Unsupported


@dataclass(frozen=True)
class Target(Node):
    """An assignment target: a name, or nested names of a tuple pattern."""

    name: str | None = None
    items: tuple[Target, ...] = ()


@dataclass(frozen=True)
class Stmt(Node):
    """A statement with the comments above it and at the end of its line, without the '#'."""

    comments: tuple[str, ...] = field(default=(), kw_only=True)
    trailing: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Assign(Stmt):
    """``target = value``; augmented assignment is ``x = operator.add(x, v)``, chains are several statements."""

    target: Target
    value: Expr


@dataclass(frozen=True)
class ExprStmt(Stmt):
    """An expression for its effect (docstrings are dropped)."""

    value: Expr


@dataclass(frozen=True)
class If(Stmt):
    """``if``; ``elif`` nests in orelse."""

    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class For(Stmt):
    """``for target in iterable``."""

    target: Target
    iterable: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class While(Stmt):
    """``while cond``."""

    cond: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Return(Stmt):
    """``return value``."""

    value: Expr | None = None


@dataclass(frozen=True)
class Break(Stmt):
    """``break``."""


@dataclass(frozen=True)
class Continue(Stmt):
    """``continue``."""


@dataclass(frozen=True)
class Hole(Stmt):
    """A statement that the front end can't express (try, with, del, nested def, star targets, ...)."""

    code: str
    what: str


@dataclass(frozen=True)
class Param(Node):
    """A parameter; ``comment`` is the one at the end of its line."""

    name: str
    annotation: Expr | None = None
    default: Expr | None = None
    comment: str = ""


@dataclass(frozen=True)
class Function(Node):
    """A kernel or helper. ``decorators`` are expressions, outermost first; ``comments`` stand above the def."""

    module: str
    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    decorators: tuple[Expr, ...] = ()
    docstring: str = ""
    comments: tuple[str, ...] = ()
    trailing_comments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Module:
    """A source module: key, path shown to users, and its module-level names."""

    key: str
    path: str
    functions: dict[str, Function]
    constants: dict[str, Expr]


@dataclass(frozen=True)
class Program:
    """All modules that the kernels of ``main`` reach."""

    main: str
    modules: dict[str, Module]
    kernels: tuple[str, ...]

    def function(self, ref: Global) -> Function | None:
        """The function that ``ref`` names, or None if it names a constant."""
        return self.modules[ref.module].functions.get(ref.name)

    def constant(self, ref: Global) -> Expr | None:
        """The expression of a module-level constant."""
        return self.modules[ref.module].constants.get(ref.name)


def digest(node: Node) -> str:
    """Return 12 hexadecimal digits of what a node means: without places, comments and docstrings."""
    return hashlib.sha256(_meaning(node).encode()).hexdigest()[:12]


def _meaning(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_meaning, value))})"
    if not isinstance(value, Node):
        return repr(value)
    kept = (
        f.name
        for f in fields(value)
        if f.name not in ("span", "comments", "comment", "trailing", "docstring", "trailing_comments")
    )
    return f"{type(value).__name__}({', '.join(_meaning(getattr(value, name)) for name in kept)})"


def walk(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement, outer before inner, in source order."""
    for s in body:
        yield s
        match s:
            case If():
                yield from walk(s.then)
                yield from walk(s.orelse)
            case For() | While():
                yield from walk(s.body)
            case _:
                pass
