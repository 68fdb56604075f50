"""Parse the text of ``tileirdisasm`` (with or without ``-g``) into a :class:`~.model.Module`.

The text of both front ends has the same form.  Anything unknown is an error with its line:
E0681 unknown operation, E0682 unknown clause, E0683 malformed text, E0686 undefined value.
"""

from __future__ import annotations

import re
from functools import lru_cache

from transpiler.diagnostics import TranspileError, error
from transpiler.tileir.forms import located, parse_form, parse_hints, split_list, split_types
from transpiler.tileir.model import Entry, Form, LocationTable, Module, Op, Region, Value
from transpiler.tileir.ops.schema import REGION_LAMBDAS, SCHEMAS

_NAME = re.compile(r"%[\w$.-]+(?:#\d+)?")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_ENTRY = re.compile(r"(?:cuda_tile\.)?entry @([\w$.-]+|\"[^\"]*\")\((.*?)\)(?: optimization_hints\s*=\s*<(.*)>)? \{$")
_PARAM = re.compile(r"\s*(%[\w$.-]+): (.*)")
_FOR = re.compile(
    r"for (unsigned )?(%[\w$.-]+) in \((%\S+) to (%\S+), step (%[^)\s]+)\) : (\S+)"
    r"(?: iter_values\((.*)\) -> \((.*)\))? \{$"
)
_LOOP = re.compile(r"loop(?: iter_values\(([^)]*)\))?(?: : (.*?))?(?: -> (.*?))? \{$")
_IF = re.compile(r"if (%[\w$.-]+(?:#\d+)?)(?: -> \((.*)\))? \{$")
_LAMBDA = re.compile(r"\((.*)\) \{$")
_WRAPPER = re.compile(r"(?:cuda_tile\.)?module(?: @\S+)? \{$|builtin\.module \{$")


def parse(text: str, file: str = "<tile-ir>") -> Module:
    """Parse a whole disassembly; ``file`` names it in errors (``TranspileError``, status 1)."""
    return _Parser(text, file).run()


def parse_entry(text: str, file: str = "<tile-ir>", name: str | None = None) -> Entry:
    """Parse a disassembly and return its entry ``name`` (or its only one)."""
    return parse(text, file).entry(name)


class _Frame:
    """A region that is being filled, and the SSA names to restore at its end."""

    __slots__ = ("names", "op", "region", "shadowed")

    def __init__(self, op: Op | None, region: Region, names: list[str]) -> None:
        self.op, self.region, self.names = op, region, names
        self.shadowed: list[tuple[str, int | None]] = []


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self._lines = text.splitlines()
        self._file = file
        self._entries: list[Entry] = []
        self._aliases: dict[str, str] = {}
        self._table = LocationTable(self._aliases)
        self._frames: list[_Frame] = []
        self._env: dict[str, int] = {}
        self._values: list[Value] = []
        self._wrappers = 0
        self._pending: tuple[Op, list[str]] | None = None

    def run(self) -> Module:
        number = 0
        try:
            for number, raw in enumerate(self._lines, 1):
                line = raw.strip()
                if line:
                    self._line(line, number)
            if self._frames:
                raise error("E0683", "the text ends inside an entry")
        except TranspileError as exc:
            raise located(exc, self._file, number) from None
        return Module(self._entries)

    def _line(self, line: str, number: int) -> None:
        first = line[0]
        if first == "#":
            key, _, value = line.partition(" = ")
            self._aliases[key] = value
            return
        loc = ""
        if line[-1] == ")" and (at := line.rfind(" loc(")) >= 0:
            loc, line = line[at + 5 : -1], line[:at].rstrip()
        if not self._frames:
            self._top(line, number)
        elif first == "}":
            self._close(line, loc)
        elif first == "(":
            self._lambda(line)
        else:
            self._operation(line, number, loc)

    def _top(self, line: str, number: int) -> None:
        """Read a line outside entries: an entry's head, or a module around the entries."""
        if _WRAPPER.match(line):
            self._wrappers += 1
        elif line == "}" and self._wrappers:
            self._wrappers -= 1
        elif (match := _ENTRY.match(line)) is not None:
            self._env, self._values = {}, []
            frame = _Frame(None, Region(), [])
            self._frames.append(frame)
            params = self._block_args(match[2])
            hints = parse_hints(match[3] or "")
            self._entries.append(
                Entry(match[1].strip('"'), hints, params, self._values, frame.region, number, self._table)
            )
        else:
            raise error("E0681", f"unknown Tile IR outside entries: `{line[:80]}`")

    def _block_args(self, text: str) -> tuple[int, ...]:
        """Define the arguments ``%a: T, %b: T`` in the innermost region."""
        ids: list[int] = []
        for item in split_list(text):
            match = _PARAM.fullmatch(item)
            if match is None:
                raise error("E0683", f"malformed argument `{item}`")
            ids.append(self._define(match[1], match[2]))
        return tuple(ids)

    def _define(self, name: str, type_text: str) -> int:
        index = len(self._values)
        self._values.append(Value(name, type_text))
        self._frames[-1].shadowed.append((name, self._env.get(name)))
        self._env[name] = index
        return index

    def _use(self, name: str) -> int:
        index = self._env.get(name)
        if index is None:
            raise error("E0686", f"`{name}` is not defined here")
        return index

    def _close(self, line: str, loc: str) -> None:
        frame = self._frames.pop()
        for name, old in reversed(frame.shadowed):
            if old is None:
                self._env.pop(name, None)
            else:
                self._env[name] = old
        if line == "} else {" and frame.op is not None and frame.op.name == "if":
            self._open(frame.op, frame.names)
        elif line != "}":
            raise error("E0683", f"unexpected `{line}`")
        elif frame.op is not None:
            frame.op.loc = loc
            self._finish(frame.op, frame.names)

    def _finish(self, op: Op, names: list[str]) -> None:
        """Define the results of an operation whose regions are closed (they are not visible inside)."""
        if op.name == "if" and len(op.regions) == 1:
            op.regions.append(Region())
        op.results = self._results(names, op.form.result_types)

    def _open(self, op: Op, names: list[str]) -> None:
        """Open the next region of ``op``, whose results will be called ``names``."""
        op.regions.append(Region())
        self._frames.append(_Frame(op, op.regions[-1], names))

    def _lambda(self, line: str) -> None:
        """Read the line ``(%lhs: T, %rhs: T) {`` that opens the body of the operation before it."""
        match = _LAMBDA.match(line)
        if match is None or self._pending is None:
            raise error("E0683", f"unexpected `{line}`")
        op, names = self._pending
        self._pending = None
        self._open(op, names)
        op.regions[-1].args = self._block_args(match[1])

    def _operation(self, line: str, number: int, loc: str) -> None:
        if self._pending is not None:
            raise error("E0683", f"`{self._pending[0].name}` has no body")
        names: list[str] = []
        if line[0] == "%":
            left, equals, line = line.partition(" = ")
            if not equals:
                raise error("E0683", f"unexpected `{left}`")
            names = left.split(", ")
        if line[-1] == "{":
            self._structured(line, names, number, loc)
            return
        bare = _STRING.sub("", line) if '"' in line else line
        form = parse_form(_NAME.sub("%", line) if bare is line else _skeleton(line))
        env = self._env
        try:
            operands = tuple([env[name] for name in _NAME.findall(bare)])
        except KeyError as exc:
            raise error("E0686", f"`{exc.args[0]}` is not defined here") from None
        op = Op(form, (), operands, number, loc)
        self._frames[-1].region.ops.append(op)
        if form.name in REGION_LAMBDAS:
            self._pending = (op, names)
            return
        if names:
            op.results = self._results(names, form.result_types)
        low, high = SCHEMAS[form.name].results
        if not low <= len(op.results) <= high:
            raise error("E0683", f"`{form.name}` has {len(op.results)} results")

    def _results(self, names: list[str], types: tuple[str, ...]) -> tuple[int, ...]:
        """Define result names: ``%a, %b`` or ``%a:2``, whose parts are ``%a#0`` and ``%a#1``."""
        if len(names) == 1 and ":" in names[0]:
            base, _, count = names[0].partition(":")
            names = [f"{base}#{i}" for i in range(int(count))]
        if len(types) == 1 and len(names) > 1:
            types *= len(names)
        if len(types) != len(names):
            raise error("E0683", f"{len(names)} results with {len(types)} types")
        return tuple([self._define(name, type_text) for name, type_text in zip(names, types, strict=True)])

    def _structured(self, line: str, names: list[str], number: int, loc: str) -> None:
        """Read the head of ``for``, ``loop`` or ``if``."""
        line = line.removeprefix("cuda_tile.")
        if (match := _FOR.match(line)) is not None:
            inits, args = _iter_values(match[7] or "")
            types = split_list(match[8] or "")
            form = _control_form("for", match[1] is not None, (match[6],), types)
            operands = (match[3], match[4], match[5], *inits)
            arguments = [(match[2], match[6]), *_typed(args, types)]
        elif (match := _LOOP.match(line)) is not None:
            inits, args = _iter_values(match[1] or "")
            types = split_list(match[2] or "")
            form = _control_form("loop", False, types, split_list(match[3] or ""))
            operands, arguments = tuple(inits), _typed(args, types)
        elif (match := _IF.match(line)) is not None:
            form = _control_form("if", False, (), split_list(match[2] or ""))
            operands, arguments = (match[1],), []
        else:
            name = split_types(line)[0].split(" ")[0]
            known = name in SCHEMAS
            raise error("E0683" if known else "E0681", f"unknown or malformed Tile IR operation `{line[:80]}`")
        op = Op(form, (), tuple(self._use(name) for name in operands), number, loc)
        self._frames[-1].region.ops.append(op)
        self._open(op, names)
        op.regions[0].args = tuple(self._define(name, type_text) for name, type_text in arguments)


def _skeleton(line: str) -> str:
    """Replace the SSA names outside string literals by ``%``."""
    at, parts = 0, []
    for match in _STRING.finditer(line):
        parts += [_NAME.sub("%", line[at : match.start()]), match.group()]
        at = match.end()
    return "".join(parts) + _NAME.sub("%", line[at:])


@lru_cache(maxsize=4096)
def _control_form(name: str, unsigned: bool, operand_types: tuple[str, ...], results: tuple[str, ...]) -> Form:
    attributes = (("unsigned", "true"),) if unsigned else ()
    return Form(name, attributes, (), operand_types, results)


def _typed(args: list[str], types: tuple[str, ...]) -> list[tuple[str, str]]:
    """Pair carried values with their types."""
    if len(args) != len(types):
        raise error("E0683", f"{len(args)} carried values with {len(types)} types")
    return list(zip(args, types, strict=True))


def _iter_values(text: str) -> tuple[list[str], list[str]]:
    """Split ``%arg = %init, ..`` into the inits and the argument names."""
    pairs = [item.partition(" = ") for item in text.split(", ")] if text else []
    return [init.strip() for _, _, init in pairs], [arg.strip() for arg, _, _ in pairs]
