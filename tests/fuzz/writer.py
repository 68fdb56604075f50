"""The state of a kernel that is being written: parameters, functions, scopes, lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fuzz.draw import Draw
from fuzz.kernel import NAME, Kernel

Shape = tuple[int, ...]
SIZES = (8, 4, 16, 2, 1, 32)
LIMIT = 1024
"""Elements of the largest tile."""


@dataclass(frozen=True)
class Value:
    """An expression of tile type; rank 0 is a scalar."""

    text: str
    dtype: str
    shape: Shape = ()


@dataclass(frozen=True)
class Array:
    """An array in scope: a parameter, a slice of one, or an item of a list."""

    text: str
    dtype: str
    ndim: int


@dataclass
class Frame:
    """A function that is being written. ``used`` are the kernel's names that a helper needs as parameters."""

    name: str
    visible: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    used: dict[str, None] = field(default_factory=dict)
    indent: int = 1
    loops: int = 0
    branches: int = 0
    static: int = 0


class Writer:
    """Writes one kernel."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.frames = [Frame(NAME)]
        self.params: dict[str, Any] = {}
        self.annotations: dict[str, str] = {}
        self.functions: list[str] = []
        self.globals: list[str] = []
        self.arrays: list[Array] = []
        self.hints: dict[str, str] = {}
        self.target: str | None = None
        self.depth = 0
        self._names = 0

    # -- names and lines --------------------------------------------------------------------------
    @property
    def frame(self) -> Frame:
        """The function that is being written."""
        return self.frames[-1]

    def name(self, prefix: str = "v") -> str:
        """A name that is used nowhere."""
        self._names += 1
        return f"{prefix}{self._names}"

    def use(self, name: str) -> str:
        """A name of the kernel, which helpers get as a parameter."""
        for frame in self.frames[1:]:
            frame.used[name] = None
        return name

    def line(self, text: str) -> None:
        """Append a statement."""
        self.frame.lines.append("    " * self.frame.indent + text)

    def let(self, value: Value) -> Value:
        """Give a value a name."""
        name = self.name()
        self.line(f"{name} = {value.text}")
        return self.bind(Value(name, value.dtype, value.shape))

    def bind(self, value: Value) -> Value:
        """Make a name visible."""
        self.frame.visible.append(value)
        return value

    @contextmanager
    def block(self, head: str, *, loop: bool = False) -> Iterator[None]:
        """An indented block; what is defined in it is visible in it only."""
        frame = self.frame
        self.line(head)
        before = list(frame.visible), len(frame.lines)
        frame.indent += 1
        frame.loops += loop
        frame.branches += not loop
        try:
            yield
        finally:
            if len(frame.lines) == before[1]:
                self.line("pass")
            frame.indent -= 1
            frame.loops -= loop
            frame.branches -= not loop
            frame.visible = before[0]

    # -- parameters -------------------------------------------------------------------------------
    def constant(self, value: bool | int | float, kind: str = "int") -> str:
        """A constant parameter of this value."""
        for name, given in self.params.items():
            if type(given) is type(value) and given == value:
                return self.use(name)
        name = self.name({"int": "N", "float": "S", "bool": "FLAG"}[kind])
        self.params[name] = value
        self.annotations[name] = f"ct.Constant[{kind}]"
        return self.use(name)

    def scalar(self, dtype: str = "int32") -> Value:
        """A scalar parameter."""
        known = [name for name, given in self.params.items() if given == dtype]
        if known:
            return Value(self.use(self.draw.pick(known)), dtype)
        name = self.name("n")
        self.params[name] = dtype
        return Value(self.use(name), dtype)

    def array(self, dtype: str, ndim: int, *, fresh: bool = False) -> Array:
        """An array parameter of this dtype and rank; often one that is there."""
        known = [a for a in self.arrays if (a.dtype, a.ndim) == (dtype, ndim)]
        if known and not fresh and not self.draw.chance(20):
            found = self.draw.pick(known)
        else:
            found = Array(self.name("x"), dtype, ndim)
            self.params[found.text] = array_facts(self.draw, dtype, ndim)
            self.arrays.append(found)
        self.use(found.text)
        return found

    # -- the result -------------------------------------------------------------------------------
    def kernel(self) -> Kernel:
        """The finished kernel."""
        order = sorted(self.params, key=lambda name: isinstance(self.params[name], bool | int | float))
        given = ", ".join(f"{n}: {self.annotations[n]}" if n in self.annotations else n for n in order)
        hints = ", ".join(f"{k}={v}" for k, v in self.hints.items())
        head = f"@ct.kernel{f'({hints})' if hints else ''}\ndef {NAME}({given}):\n"
        body = "\n".join(self.frames[0].lines) or "    pass"
        parts = ["import math\n\nimport cuda.tile as ct\n", *self.globals, *self.functions, head + body + "\n"]
        return Kernel("\n\n".join(parts), {name: self.params[name] for name in order}, self.target)


def array_facts(draw: Draw, dtype: str, ndim: int) -> dict[str, Any]:
    """The facts of an array: mostly a plain one with aligned sizes."""
    facts: dict[str, Any] = {"dtype": dtype, "ndim": ndim}
    if draw.chance(70):
        facts["base_addr_divisible_by"] = draw.pick((16, 4, 2, 128))
    if ndim and draw.chance(50):
        facts["shape_divisible_by"] = draw.pick((16, 8, 4))
    if ndim > 1 and draw.chance(40):
        facts["stride_divisible_by"] = [*[draw.pick((16, 8))] * (ndim - 1), 1]
    if ndim and draw.chance(15):
        facts["stride_constant"] = ["?"] * ndim
    if ndim and draw.chance(10):
        facts["shape_constant"] = known = [draw.pick(("?", 1, 1, 16)) for _ in range(ndim)]
        if facts.get("shape_divisible_by"):
            facts["shape_divisible_by"] = [1 if size == 1 else facts["shape_divisible_by"] for size in known]
    if draw.chance(5):
        facts["may_alias_internally"] = True
    return facts


def elements(shape: Sequence[int]) -> int:
    """The number of elements of a shape."""
    out = 1
    for size in shape:
        out *= size
    return out
