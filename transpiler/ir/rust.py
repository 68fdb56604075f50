"""A small Rust AST and its printer: kernel bodies are built here, templates hold scaffolding only.

Only what generated kernels need is modelled; types are text.  A variable is a :class:`Var` around
any hashable key, and the printer is given the names.  The printer follows rustfmt's layout where
that is simple (line width 120, ``use_small_heuristics = "Max"``); rustfmt has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from transpiler.diagnostics import NO_SPAN, Span
from transpiler.ir.rust_text import comment

WIDTH = 120
INDENT = "    "
# binary operator -> binding strength, as in the Rust reference
PRECEDENCE = {"as": 11, "*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "&": 7, "^": 6, "|": 5, "..": 2}


@dataclass(frozen=True)
class Var:
    """A variable; ``key`` stands for it until names are given."""

    key: Hashable


@dataclass(frozen=True)
class Text:
    """A path, literal or other atom, verbatim."""

    text: str


@dataclass(frozen=True)
class Call:
    """``func(args)``; ``func`` may carry a turbofish."""

    func: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Method:
    """``receiver.name(args)``."""

    receiver: Expr
    name: str
    args: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Binary:
    """``left op right``; op ".." is a range, "as" a cast to the type text on the right."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Index:
    """``base[index]`` or, with ``dot``, ``base.index``."""

    base: Expr
    index: str
    dot: bool = False


@dataclass(frozen=True)
class Seq:
    """A bracketed list: an array, a tuple, or a macro's ``name![..]``."""

    items: tuple[Expr, ...]
    open: str = "["
    close: str = "]"


@dataclass(frozen=True)
class Ref:
    """``&expr``."""

    expr: Expr


@dataclass(frozen=True)
class Unsafe:
    """``unsafe { expr }``."""

    expr: Expr


@dataclass(frozen=True)
class If:
    """``if cond { then } else { other }``, as an expression when the blocks have tails."""

    cond: Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()


Expr = Var | Text | Call | Method | Binary | Index | Seq | Ref | Unsafe | If


@dataclass(frozen=True)
class Note:
    """What a statement carries over from the source."""

    span: Span = NO_SPAN
    comments: tuple[str, ...] = ()
    trailing: str = ""
    blank: bool = False  # an empty line before it


NO_NOTE = Note()


@dataclass(frozen=True)
class Let:
    """``let pattern: type = value;``; several variables make a tuple pattern. None is ``_``."""

    vars: tuple[Hashable | None, ...]
    types: tuple[str, ...]
    value: Expr
    mut: tuple[bool, ...] = ()
    note: Note = NO_NOTE


@dataclass(frozen=True)
class Assign:
    """``var = value;``."""

    var: Hashable
    value: Expr
    note: Note = NO_NOTE


@dataclass(frozen=True)
class Do:
    """An expression statement."""

    value: Expr
    note: Note = NO_NOTE


@dataclass(frozen=True)
class Tail:
    """The value of a block (no semicolon)."""

    value: Expr
    note: Note = NO_NOTE


@dataclass(frozen=True)
class For:
    """``for var in iter { body }``."""

    var: Hashable | None
    iter: Expr
    body: tuple[Stmt, ...]
    note: Note = NO_NOTE


@dataclass(frozen=True)
class Loop:
    """``loop { body }``, or ``while cond { body }``."""

    body: tuple[Stmt, ...]
    cond: Expr | None = None
    note: Note = NO_NOTE


@dataclass(frozen=True)
class Jump:
    """``break;``, ``continue;`` or ``return;``."""

    keyword: str
    note: Note = NO_NOTE


Stmt = Let | Assign | Do | Tail | For | Loop | Jump


@dataclass(frozen=True)
class Fn:
    """A function. ``params`` and ``generics`` are text; ``attrs`` are whole lines."""

    name: str
    generics: tuple[str, ...]
    params: tuple[str, ...]
    returns: str
    body: tuple[Stmt, ...]
    attrs: tuple[str, ...] = ()
    docs: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    unsafe: bool = False
    public: bool = False
    span: Span = NO_SPAN


def call(func: str, *args: Expr) -> Call:
    """``func(args)``."""
    return Call(func, args)


def shape(items: tuple[str, ...], macro: str = "shape") -> Seq:
    """``shape![..]``."""
    return Seq(tuple(Text(i) for i in items), f"{macro}![", "]")


def children(e: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions (an ``If``'s blocks are not included)."""
    match e:
        case Call(args=args):
            return args
        case Method():
            return (e.receiver, *e.args)
        case Binary():
            return (e.left, e.right)
        case Index():
            return (e.base,)
        case Seq(items=items):
            return items
        case Ref() | Unsafe():
            return (e.expr,)
        case If():
            return (e.cond,)
        case _:
            return ()


def map_children(e: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Rebuild ``e`` with ``f`` applied to its direct subexpressions."""
    match e:
        case Call():
            return replace(e, args=tuple(map(f, e.args)))
        case Method():
            return replace(e, receiver=f(e.receiver), args=tuple(map(f, e.args)))
        case Binary():
            return replace(e, left=f(e.left), right=f(e.right))
        case Index():
            return replace(e, base=f(e.base))
        case Seq():
            return replace(e, items=tuple(map(f, e.items)))
        case Ref() | Unsafe():
            return replace(e, expr=f(e.expr))
        case If():
            return replace(e, cond=f(e.cond))
        case _:
            return e


def subexpressions(e: Expr) -> Iterator[Expr]:
    """``e`` and everything below it, blocks of an ``If`` excluded, in evaluation order (post-order)."""
    for c in children(e):
        yield from subexpressions(c)
    yield e


def expressions_of(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions directly in a statement."""
    match stmt:
        case Let() | Assign() | Do() | Tail():
            return (stmt.value,)
        case For():
            return (stmt.iter,)
        case Loop():
            return (stmt.cond,) if stmt.cond is not None else ()
        case _:
            return ()


def blocks_of(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The nested blocks directly in a statement."""
    match stmt:
        case For() | Loop():
            return (stmt.body,)
        case Let(value=If() as e) | Assign(value=If() as e) | Do(value=If() as e) | Tail(value=If() as e):
            return (e.then, e.other)
        case _:
            return ()


def walk(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement, nested ones after their parent."""
    for stmt in body:
        yield stmt
        for block in blocks_of(stmt):
            yield from walk(block)


@dataclass
class Line:
    """A line of text and the Python place it came from."""

    text: str
    span: Span = NO_SPAN


@dataclass
class Printer:
    """Prints statements and functions as lines; ``functions`` names those that are called by an id (``@0``)."""

    names: Mapping[Hashable, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    span: Span = NO_SPAN
    functions: Mapping[str, str] = field(default_factory=dict)

    def expr(self, e: Expr, strength: int = 0) -> str:
        """One line of text, with parentheses where an outer operator of ``strength`` needs them."""
        match e:
            case Var(key=key):
                return self.names[key]
            case Text(text=text):
                return text
            case Call():
                return f"{self.callee(e.func)}({', '.join(map(self.expr, e.args))})"
            case Method():
                return f"{self.expr(e.receiver, 99)}.{e.name}({', '.join(map(self.expr, e.args))})"
            case Binary():
                own = PRECEDENCE[e.op]
                space = "" if e.op == ".." else " "
                text = f"{self.expr(e.left, own)}{space}{e.op}{space}{self.expr(e.right, own + 1)}"
                return f"({text})" if own < strength else text
            case Index():
                text = self.expr(e.base, 99)
                return f"{text}.{e.index}" if e.dot else f"{text}[{e.index}]"
            case Seq():
                comma = "," if e.open == "(" and len(e.items) == 1 else ""
                return f"{e.open}{', '.join(map(self.expr, e.items))}{comma}{e.close}"
            case Ref():
                return f"&{self.expr(e.expr, 99)}"
            case Unsafe():
                return f"unsafe {{ {self.expr(e.expr)} }}"
            case If():
                raise ValueError("an `if` is printed by statement")

    def callee(self, func: str) -> str:
        """A function's name, with its generics."""
        name, sep, generics = func.partition("::<")
        return self.functions.get(name, name) + sep + generics

    def put(self, depth: int, text: str) -> None:
        """Add a line."""
        self.lines.append(Line(INDENT * depth + text if text else "", self.span))

    def block(self, body: tuple[Stmt, ...], depth: int) -> None:
        """Print statements."""
        for i, stmt in enumerate(body):
            self.stmt(stmt, depth, first=i == 0)

    def stmt(self, stmt: Stmt, depth: int, first: bool = False) -> None:
        """Print one statement with its comments."""
        note = stmt.note
        outer, self.span = self.span, note.span if note.span != NO_SPAN else self.span
        if note.blank and not first:
            self.put(0, "")
        for line in note.comments:
            self.put(depth, f"// {comment(line)}".rstrip())
        start = len(self.lines)
        match stmt:
            case Let():
                names = [self.names[v] if v is not None else "_" for v in stmt.vars]
                mut = stmt.mut or (False,) * len(names)
                parts = [f"mut {n}" if m else n for n, m in zip(names, mut, strict=True)]
                if len(parts) == 1:
                    self._assignment(f"let {parts[0]}: {stmt.types[0]} =", stmt.value, depth)
                else:
                    self._assignment(f"let ({', '.join(parts)}): ({', '.join(stmt.types)}) =", stmt.value, depth)
            case Assign():
                self._assignment(f"{self.names[stmt.var]} =", stmt.value, depth)
            case Do():
                self._value("", stmt.value, depth, "" if isinstance(stmt.value, If) else ";")
            case Tail():
                self._value("", stmt.value, depth, "")
            case For():
                name = self.names[stmt.var] if stmt.var is not None else "_"
                self._braces(f"for {name} in {self.expr(stmt.iter)}", stmt.body, depth)
            case Loop():
                head = "loop" if stmt.cond is None else f"while {self.expr(stmt.cond)}"
                self._braces(head, stmt.body, depth)
            case Jump():
                self.put(depth, f"{stmt.keyword};")
        if note.trailing:
            last = self.lines[-1 if not blocks_of(stmt) else start]
            last.text += f" // {comment(note.trailing)}"
        self.span = outer

    def _braces(self, head: str, body: tuple[Stmt, ...], depth: int) -> None:
        self.put(depth, f"{head} {{")
        self.block(body, depth + 1)
        self.put(depth, "}")

    def _assignment(self, head: str, value: Expr, depth: int) -> None:
        """``head value;`` on one line, else the value on its own line, else the value broken."""
        if not isinstance(value, If):
            text = self.expr(value)
            room = WIDTH - len(INDENT) * depth - 1
            if len(head) + 1 + len(text) > room and len(text) + len(INDENT) <= room:
                self.put(depth, head)
                self.put(depth + 1, f"{text};")
                return
        self._value(f"{head} ", value, depth, ";")

    def _value(self, head: str, value: Expr, depth: int, tail: str) -> None:
        if isinstance(value, If):
            self.put(depth, f"{head}if {self.expr(value.cond)} {{")
            self.block(value.then, depth + 1)
            if value.other:
                self.put(depth, "} else {")
                self.block(value.other, depth + 1)
            self.put(depth, "}" + tail)
            return
        text = f"{head}{self.expr(value)}{tail}"
        if len(text) + len(INDENT) * depth <= WIDTH:
            self.put(depth, text)
        elif isinstance(value, Unsafe):
            self.put(depth, f"{head}unsafe {{")
            self._value("", value.expr, depth + 1, "")
            self.put(depth, "}" + tail)
        elif isinstance(value, Call):
            self.put(depth, f"{head}{self.callee(value.func)}(")
            for arg in value.args:
                self._value("", arg, depth + 1, ",")
            self.put(depth, ")" + tail)
        else:
            self.put(depth, text)

    def function(self, fn: Fn, depth: int) -> None:
        """Print a function."""
        self.span = fn.span
        for line in fn.comments:
            self.put(depth, f"// {comment(line)}".rstrip())
        for line in fn.docs:
            self.put(depth, f"/// {comment(line)}".rstrip())
        for line in fn.attrs:
            self.put(depth, line)
        head = f"{'pub ' if fn.public else ''}{'unsafe ' if fn.unsafe else ''}fn {fn.name}"
        generics = f"<{', '.join(fn.generics)}>" if fn.generics else ""
        returns = f" -> {fn.returns}" if fn.returns else ""
        text = f"{head}{generics}({', '.join(fn.params)}){returns} {{"
        if len(text) + len(INDENT) * depth <= WIDTH:
            self.put(depth, text)
        else:
            self.put(depth, f"{head}{generics}(")
            for p in fn.params:
                self.put(depth + 1, f"{p},")
            self.put(depth, f"){returns} {{")
        self.block(fn.body, depth + 1)
        self.span = fn.span
        self.put(depth, "}")
