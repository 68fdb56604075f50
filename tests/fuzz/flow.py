"""Control flow: branches, loops and helper functions that return early in each other, around accesses to three arrays.

Everything is a 32-bit integer, so that what is drawn is nearly all of how a kernel flows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from fuzz.draw import Draw
from fuzz.kernel import NAME, Kernel

FOCUSES = tuple(f"control flow {n}" for n in range(1, 17))
"""What such kernels are about: each stands for a share of them."""
_ARRAYS = ("x", "y", "z")
_HELPER = f"({', '.join(_ARRAYS)}, a, b)"
_DEPTH = 3
Returns = Literal["", "nothing", "number", "pair"]


@dataclass(frozen=True)
class _Place:
    """Where a statement stands: the names that it can read and assign, and the jumps that it can be."""

    indent: int
    names: tuple[str, ...]
    assigned: tuple[str, ...]
    depth: int = _DEPTH
    in_loop: bool = False
    returns: Returns = ""

    def inside(self, *names: str, loop: bool = False) -> _Place:
        return replace(
            self, indent=self.indent + 1, names=self.names + names, depth=self.depth - 1, in_loop=self.in_loop or loop
        )


@dataclass
class _Flow:
    """Writes one kernel and its helpers."""

    draw: Draw
    lines: list[str] = field(default_factory=list)
    helpers: dict[str, Returns] = field(default_factory=dict)
    count: int = 0

    def line(self, place: _Place, text: str) -> None:
        self.lines.append("    " * place.indent + text)

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    # -- expressions ------------------------------------------------------------------------------
    def atom(self, place: _Place) -> str:
        return self.draw.pick(place.names) if self.draw.chance(65) else str(self.draw.number(0, 5))

    def load(self, place: _Place) -> str:
        array, at = self.draw.pick(_ARRAYS), self.atom(place)
        return f"ct.gather({array}, {at})" if self.draw.chance(20) else f"ct.load({array}, {at}, (1,)).item()"

    def call(self, place: _Place, *kinds: Returns) -> str:
        """A call of a helper that returns one of some things; "" where there is none."""
        known = [name for name, kind in self.helpers.items() if kind in kinds]
        if not known:
            return ""
        arrays = self.draw.pick((_ARRAYS, _ARRAYS, ("y", "x", "z"), ("z", "y", "x")))
        return f"{self.draw.pick(known)}({', '.join(arrays)}, {self.atom(place)}, {self.atom(place)})"

    def number(self, place: _Place, depth: int = 2) -> str:
        match self.draw.number(0, 11) if depth else 0:
            case 0 | 1 | 2:
                return self.atom(place)
            case 3 | 4 | 5:
                return self.load(place)
            case 6 | 7:
                return f"{self.number(place, depth - 1)} {self.draw.pick('+-*')} {self.atom(place)}"
            case 8:
                return f"({self.number(place, depth - 1)}) % {self.draw.number(2, 5)}"
            case 9:
                yes, no = self.number(place, depth - 1), self.number(place, depth - 1)
                return f"({yes} if {self.condition(place, depth - 1)} else {no})"
            case 10:
                return f"{self.draw.pick(('min', 'max'))}({self.atom(place)}, {self.atom(place)})"
            case _:
                return self.call(place, "number") or self.atom(place)

    def comparison(self, place: _Place) -> str:
        return f"{self.atom(place)} {self.draw.pick(('>', '<', '>=', '<=', '==', '!='))} {self.atom(place)}"

    def condition(self, place: _Place, depth: int = 2) -> str:
        match self.draw.number(0, 8) if depth else 0:
            case 0 | 1 | 2 | 3:
                return self.comparison(place)
            case 4 | 5:
                return f"{self.load(place)} > {self.atom(place)}"
            case 6:
                return f"({self.condition(place, depth - 1)} and {self.condition(place, depth - 1)})"
            case 7:
                return f"({self.condition(place, depth - 1)} or {self.condition(place, depth - 1)})"
            case _:
                return f"not {self.comparison(place)}"

    # -- statements -------------------------------------------------------------------------------
    def effect(self, place: _Place) -> None:
        array = self.draw.pick(_ARRAYS)
        match self.draw.number(0, 11):
            case 9 | 10:
                self.line(place, f"ct.atomic_add({array}, {self.atom(place)}, {self.atom(place)})")
            case 11:
                self.line(place, f"ct.scatter({array}, {self.atom(place)}, {self.atom(place)})")
            case _:
                self.line(place, f"ct.store({array}, {self.atom(place)}, {self.number(place, 1)})")

    def block(self, place: _Place, statements: int) -> None:
        """Some statements, and perhaps a jump."""
        for _ in range(statements):
            place = self.statement(place)
        if place.depth < _DEPTH and (place.in_loop or place.returns) and self.draw.chance(30):
            self.jump(place)

    def statement(self, place: _Place) -> _Place:
        """One statement; returns the place after it."""
        kind = self.draw.number(0, 15)
        if kind >= 11 and place.depth:
            (self.branch if kind < 14 else self.loop)(place)
        elif kind in (8, 9, 10):
            value = self.number(place)
            if place.assigned and self.draw.chance(50):
                self.line(place, f"{self.draw.pick(place.assigned)} {self.draw.pick(('=', '+='))} {value}")
                return place
            made = self.name("v")
            self.line(place, f"{made} = {value}")
            return replace(place, names=(*place.names, made), assigned=(*place.assigned, made))
        elif kind == 7 and (called := self.call(place, "pair")):
            first, second = self.name("v"), self.name("v")
            self.line(place, f"{first}, {second} = {called}")
            return replace(place, names=(*place.names, first, second))
        elif kind == 6 and (called := self.call(place, "nothing")):
            self.line(place, called)
        else:
            self.effect(place)
        return place

    def jump(self, place: _Place) -> None:
        kinds = (*(("break", "continue") if place.in_loop else ()), *(("return",) * 2 if place.returns else ()))
        kind = self.draw.pick(kinds)
        value = self.result(place) if kind == "return" else ""
        self.line(place, f"{kind} {value}".rstrip())

    def result(self, place: _Place) -> str:
        if place.returns in ("", "nothing"):
            return ""
        return self.number(place, 1) + (f", {self.atom(place)}" if place.returns == "pair" else "")

    def body(self, place: _Place) -> None:
        if (place.in_loop or place.returns) and self.draw.chance(25):
            self.jump(place)
        else:
            self.block(place, self.draw.number(1, 3))

    def branch(self, place: _Place) -> None:
        self.line(place, f"if {self.condition(place)}:")
        self.body(place.inside())
        if self.draw.chance(25):
            self.line(place, f"elif {self.condition(place)}:")
            self.body(place.inside())
        if self.draw.chance(45):
            self.line(place, "else:")
            self.body(place.inside())

    def loop(self, place: _Place) -> None:
        if self.draw.chance(30):
            left = self.name("w")
            self.line(place, f"{left} = {self.atom(place)}")
            self.line(place, f"while {left} > 0:")
            inside = place.inside(left, loop=True)
            self.line(inside, f"{left} -= 1")
        else:
            index = self.name("i")
            first = f"{self.atom(place)}, " if self.draw.chance(40) else ""
            step = f", {self.draw.number(1, 3)}" if first and self.draw.chance(40) else ""
            self.line(place, f"for {index} in range({first}{self.atom(place)}{step}):")
            inside = place.inside(index, index, loop=True)
        self.block(inside, self.draw.number(1, 3))

    # -- functions --------------------------------------------------------------------------------
    def helper(self) -> None:
        name = f"helper{len(self.helpers)}"
        kind: Returns = self.draw.pick(("number", "number", "pair", "nothing"))
        mutable = ("a", "b") if self.draw.chance(30) else ()
        place = _Place(1, ("a", "b"), mutable, depth=2, returns=kind)
        self.lines += [f"def {name}{_HELPER}:"]
        self.block(replace(place, depth=_DEPTH), self.draw.number(1, 3))
        if kind != "nothing":
            self.line(place, f"return {self.result(place)}")
        self.lines += ["", ""]
        self.helpers[name] = kind

    def kernel(self) -> Kernel:
        for _ in range(self.draw.number(0, 3)):
            self.helper()
        returns: Returns = "nothing" if self.draw.chance(30) else ""
        place = _Place(1, ("n", "m", "t"), ("t",), returns=returns)
        self.lines += ["@ct.kernel", f"def {NAME}({', '.join(_ARRAYS)}, n, m):", "    t = ct.bid(0)"]
        self.block(place, self.draw.number(1, 4))
        self.line(place, "ct.store(x, 0, t)")
        params = {array: {"dtype": "int32", "ndim": 1} for array in _ARRAYS} | {"n": "int32", "m": "int32"}
        return Kernel("\n".join(["import cuda.tile as ct", "", "", *self.lines, ""]), params)


def kernel(draw: Draw) -> Kernel:
    """A kernel that is about its control flow."""
    return _Flow(draw).kernel()
