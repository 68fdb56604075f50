"""Facts: what ``assume`` states of a value, and which of it follows without being stated.

A fact of the reference must be stated by ours on the same value, as strongly, and where the reference's
operand carries it ours must carry it too: the compiler below uses a predicate where the assumed value
flows.  A fact that only ours states must follow, by one of the rules of :class:`Known`, from the
operations and from what the reference states in that control context or around it: otherwise it would be
a promise nobody gave.  That holds for values that no effect needs, too: a false fact is undefined wherever it
stands.  Of such a value the reference may say nothing; then what is promised of the parameters counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from transpiler.tileir.graph import INITIAL, Program
from transpiler.tileir.liveness import around
from transpiler.tileir.model import tile_type
from transpiler.tileir.numbering import Numbering
from transpiler.tileir.rewrites import integer_value

Interval = tuple[int | None, int | None]
_DIV = re.compile(r"div_by<(\d+)>")
_BOUNDED = re.compile(r"bounded<(-?\d+|\?),\s*(-?\d+|\?)>")
_UNKNOWN: Interval = (None, None)
_SIZES = ("get_index_space_shape", "get_tensor_shape")
_VIEWS_OF_VIEWS = ("make_partition_view", "make_strided_view", "make_gather_scatter_view")


@dataclass(frozen=True)
class FactDifference:
    """A fact that is lost or not justified."""

    code: str
    message: str
    ours_node: int | None = None
    reference_node: int | None = None


@dataclass(frozen=True)
class Predicate:
    """A parsed predicate; ``other`` holds the text of one that is only compared literally."""

    divisor: int = 1
    low: int | None = None
    high: int | None = None
    other: str = ""


@lru_cache(maxsize=4096)
def parse_predicate(text: str) -> Predicate:
    """Read ``div_by<16>`` and ``bounded<0, ?>``; anything else is kept as text."""
    if match := _DIV.fullmatch(text):
        return Predicate(divisor=int(match[1]))
    if match := _BOUNDED.fullmatch(text):
        low, high = (None if g == "?" else int(g) for g in match.groups())
        return Predicate(low=low, high=high)
    return Predicate(other=text)


def implied_by(wanted: str, stated: Iterable[str]) -> bool:
    """Say whether one stated predicate, or all of them together, imply ``wanted``."""
    facts = [parse_predicate(s) for s in stated]
    goal = parse_predicate(wanted)
    if goal.other:
        return wanted in stated
    divisor = math.lcm(1, *(f.divisor for f in facts))
    lows = [f.low for f in facts if f.low is not None]
    highs = [f.high for f in facts if f.high is not None]
    return (
        divisor % goal.divisor == 0
        and (goal.low is None or (bool(lows) and max(lows) >= goal.low))
        and (goal.high is None or (bool(highs) and min(highs) <= goal.high))
    )


class Known:
    """Ranges and divisors of integer values that follow from the operations and from given facts.

    Rules: constants; block ids are at least 0 and block counts at least 1; sizes of tensor views and
    of their index spaces are at least 0; the index of a loop whose step is at least 1 lies between its bounds; sums,
    differences, products, quotients, remainders, minima, maxima, extensions and choices of such
    values, as long as the result can't overflow.

    To Tile IR the sizes of a view are unsigned.  That they are at least 0 is the assumption that arrays have less than
    2**31 elements along an axis; it is made of the given ``views`` alone, and only of those with 32-bit sizes.
    """

    DEPTH = 50
    """How many operations deep the rules look."""

    def __init__(self, numbering: Numbering, facts: dict[int, set[str]], views: set[int]) -> None:
        self._numbering = numbering
        self._facts = facts
        self._views = {view for view in views if _narrow(numbering, view)}
        for view in self._views:
            for size in _run_time_sizes(numbering, view):
                self._facts.setdefault(size, set()).add("bounded<0,?>")
        self._intervals: dict[int, Interval] = {}
        self._divisors: dict[int, int] = {}
        self._depth = 0

    def implies(self, number: int, predicate: str) -> bool:
        """Say whether the predicate holds of the value with this number."""
        goal = parse_predicate(predicate)
        if goal.other or self._width(number) is None:
            return implied_by(predicate, self._facts.get(number, ()))
        low, high = self.interval(number)
        return (
            (goal.low is None or (low is not None and low >= goal.low))
            and (goal.high is None or (high is not None and high <= goal.high))
            and self.divisor(number) % goal.divisor == 0
        )

    def interval(self, number: int) -> Interval:
        """Return a lower and an upper bound (None: only the type's)."""
        if number not in self._intervals:
            self._intervals[number] = _UNKNOWN
            self._depth += 1
            low, high = self._range(number) if self._depth <= self.DEPTH else _UNKNOWN
            self._depth -= 1
            for text in self._facts.get(number, ()):
                fact = parse_predicate(text)
                low = fact.low if low is None else low if fact.low is None else max(low, fact.low)
                high = fact.high if high is None else high if fact.high is None else min(high, fact.high)
            self._intervals[number] = (low, high)
        return self._intervals[number]

    def divisor(self, number: int) -> int:
        """Return a divisor of the value; 0 for the constant 0."""
        if number not in self._divisors:
            self._divisors[number] = 1
            self._depth += 1
            derived = self._derived_divisor(number) if self._depth <= self.DEPTH else 1
            self._depth -= 1
            stated = [parse_predicate(t).divisor for t in self._facts.get(number, ())]
            self._divisors[number] = math.lcm(derived, *stated) if derived else 0
        return self._divisors[number]

    def _width(self, number: int) -> int | None:
        types = self._numbering.form(number).result_types
        if len(types) != 1 or not types[0].startswith("tile<"):
            form = self._numbering.form(number)
            return 32 if form.name in ("result", "loop.index") else None
        element = tile_type(types[0]).element
        return int(element[1:]) if element.startswith("i") and element[1:].isdigit() else None

    def _range(self, number: int) -> Interval:
        constant = integer_value(self._numbering, number)
        if constant is not None:
            return constant[1], constant[1]
        form, args = self._numbering.form(number), self._numbering.args(number)
        name = form.name
        if name == "result":
            return self._result(args[0])
        if name in _SIZES:
            return self._result(number)
        if name == "loop.index":
            return self._index(args[0])
        if name in ("broadcast", "reshape", "exti"):
            inner = self.interval(args[0])
            signed = form.get("signedness") != "unsigned"
            return inner if signed or (inner[0] is not None and inner[0] >= 0) else _UNKNOWN
        if name in ("select", "gamma"):
            return _union(self.interval(args[1]), self.interval(args[2]))
        if len(args) == 2 and min(args) >= 0:
            return self._binary(number, name, form.get("signedness"), args)
        return _UNKNOWN

    def _result(self, operation: int) -> Interval:
        """The range of each result of an operation with several."""
        name = self._numbering.form(operation).name
        if name not in _SIZES:
            return {"get_tile_block_id": 0, "get_num_tile_blocks": 1}.get(name), None
        view = self._numbering.args(operation)[0]
        while self._numbering.form(view).name in _VIEWS_OF_VIEWS:
            view = self._numbering.args(view)[0]
        return (0, None) if view in self._views else _UNKNOWN

    def _index(self, loop: int) -> Interval:
        form, args = self._numbering.form(loop), self._numbering.args(loop)
        if form.name != "loop.for" or form.get("unsigned") is not None:
            return _UNKNOWN
        low, high, step = self.interval(args[1])[0], self.interval(args[2])[1], self.interval(args[3])[0]
        if step is None or step < 1:
            return _UNKNOWN
        return low, None if high is None else high - 1

    def _binary(self, number: int, name: str, signedness: str | None, args: tuple[int, ...]) -> Interval:
        width = self._width(number)
        if width is None or signedness == "unsigned":
            return _UNKNOWN
        least, most = -(1 << (width - 1)), (1 << (width - 1)) - 1
        (a, b), (c, d) = self.interval(args[0]), self.interval(args[1])
        if name in ("mini", "maxi"):
            pick = min if name == "mini" else max
            return _strip(pick(_or(a, least), _or(c, least)), pick(_or(b, most), _or(d, most)), least, most)
        a, b, c, d = _or(a, least), _or(b, most), _or(c, least), _or(d, most)
        if name == "addi":
            low, high = a + c, b + d
        elif name == "subi":
            low, high = a - d, b - c
        elif name == "muli":
            corners = (a * c, a * d, b * c, b * d)
            low, high = min(corners), max(corners)
        elif name == "divi" and c > 0:
            low, high = min(a, 0) if a < 0 else 0, max(b, 0)
        elif name == "remi" and c > 0:
            low, high = (0 if a >= 0 else 1 - d), d - 1
        else:
            return _UNKNOWN
        return _strip(low, high, least, most) if least <= low and high <= most else _UNKNOWN

    def _derived_divisor(self, number: int) -> int:
        constant = integer_value(self._numbering, number)
        if constant is not None:
            return abs(constant[1])
        form, args = self._numbering.form(number), self._numbering.args(number)
        if form.name in ("broadcast", "reshape", "exti"):
            return self.divisor(args[0])
        if form.name in ("select", "gamma"):
            return math.gcd(self.divisor(args[1]), self.divisor(args[2]))
        if form.name not in ("addi", "subi", "muli"):
            return 1
        left, right = self.divisor(args[0]), self.divisor(args[1])
        found = left * right if form.name == "muli" else math.gcd(left, right)
        overflows = self._range(number) == _UNKNOWN
        return found & -found if overflows else found


def _run_time_sizes(numbering: Numbering, view: int) -> tuple[int, ...]:
    """The sizes of a tensor view that are operands."""
    count = (numbering.form(view).get("shape") or "").count("?")
    return numbering.args(view)[1 : 1 + count]


def _narrow(numbering: Numbering, view: int) -> bool:
    """Say whether a number is a tensor view of which all sizes are 32-bit numbers."""
    form = numbering.form(view)
    known = re.findall(r"\d+", form.get("shape") or "")
    sizes = (numbering.form(size) for size in _run_time_sizes(numbering, view))
    return (
        form.name == "make_tensor_view"
        and all(int(size) < 1 << 31 for size in known)
        and not any(
            t.startswith("tile<i64") for t in (*form.operand_types, *(t for f in sizes for t in f.result_types))
        )
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _strip(low: int, high: int, least: int, most: int) -> Interval:
    """Turn the type's own bounds into None."""
    return (None if low <= least else low), (None if high >= most else high)


def _union(left: Interval, right: Interval) -> Interval:
    low = None if left[0] is None or right[0] is None else min(left[0], right[0])
    high = None if left[1] is None or right[1] is None else max(left[1], right[1])
    return low, high


class FactChecker:
    """Compare what both programs state.

    ``live`` are the values that both programs' effects need; ``promised`` is what is promised of values of which the
    reference states nothing, by number.
    """

    def __init__(
        self, numbering: Numbering, reference: Program, ours: Program, live: set[int], promised: dict[int, set[str]]
    ) -> None:
        self._numbering = numbering
        self._live = live
        self._reference, self._ours = reference, ours
        self._promised = promised
        self._theirs = _Stated(numbering, reference)
        self._mine = _Stated(numbering, ours)
        self._known: dict[tuple[int, bool], Known] = {}
        self.implied = 0
        """How many facts only one side states, but follow."""

    def check(self) -> list[FactDifference]:
        """Return lost and unjustified facts: by value first, then by use."""
        theirs, mine = self._theirs, self._mine
        if mine.places == theirs.places:
            return self._check_uses(set())
        found: list[FactDifference] = []
        reported: set[int] = set()
        for number in [*theirs.facts, *(n for n in mine.facts if n not in theirs.facts)]:
            stated, wanted = mine.facts.get(number, set()), theirs.facts.get(number, set())
            # The compiler knows a constant: what is stated of one matters where it flows, which the uses say.
            idle = number not in self._live or self._constant(number)
            lost = [] if idle else sorted(p for p in wanted - stated if not implied_by(p, stated))
            extra = sorted(p for p in stated if not self._justified(number, p))
            if number in self._live:
                self.implied += len(wanted ^ stated) - len(lost) - len(set(extra) - wanted)
            nodes = mine.nodes.get(number), theirs.nodes.get(number)
            if lost:
                found.append(
                    FactDifference("lost-fact", f"the reference states {', '.join(lost)}; ours doesn't", *nodes)
                )
            if extra:
                message = f"ours states {', '.join(extra)}, which nothing implies"
                found.append(FactDifference("unjustified-fact", message, *nodes))
            if lost or extra:
                reported.add(number)
        return found + self._check_uses(reported)

    def _justified(self, number: int, predicate: str) -> bool:
        """Say whether a fact of ours follows, wherever it is stated, from what holds there in the reference."""
        contexts = self._mine.places[number, predicate]
        if contexts <= self._theirs.places.get((number, predicate), set()):
            return True
        dead = number not in self._live
        return all(self._holding(context, dead).implies(number, predicate) for context in contexts)

    def _holding(self, context: int, dead: bool) -> Known:
        """What the reference states, and which views it makes, in a context or around it; promises for dead values."""
        key = context, dead
        if key not in self._known:
            places = set(around(self._numbering, context))
            facts = {n: set(promises) for n, promises in self._promised.items()} if dead else {}
            for (value, predicate), stated in self._theirs.places.items():
                if stated & places:
                    facts.setdefault(value, set()).add(predicate)
            number = self._numbering.number
            views = {number[view] for view, place in self._reference.views if number[place] in places}
            self._known[key] = Known(self._numbering, facts, views & self._live)
        return self._known[key]

    def _check_uses(self, reported: set[int]) -> list[FactDifference]:
        """Report operands that lack a fact which the reference's same operand carries."""
        theirs, mine = self._by_use(self._reference), self._by_use(self._ours)
        found: list[FactDifference] = []
        for (user, position), (wanted, node) in theirs.items():
            stated, my_node = mine.get((user, position), (set(), None))
            operand = self._operand(node, position)
            lost = sorted(p for p in wanted - stated if not implied_by(p, stated))
            if lost and operand not in reported:
                name = self._numbering.form(user).name
                use = (
                    "the initial value of a carried value" if position == INITIAL else f"operand {position} of `{name}`"
                )
                message = f"{use} carries {', '.join(lost)} in the reference only"
                found.append(FactDifference("lost-fact-at-use", message, my_node, node))
        return found

    def _constant(self, number: int) -> bool:
        return self._numbering.form(number).name == "constant"

    def _operand(self, node: int, position: int) -> int:
        args = self._numbering.graph.args[node]
        if position == INITIAL:
            return self._numbering.number[self._numbering.graph.mus[node][1]]
        return self._numbering.number[args[position]] if position < len(args) else -1

    def _by_use(self, program: Program) -> dict[tuple[int, int], tuple[set[str], int]]:
        found: dict[tuple[int, int], tuple[set[str], int]] = {}
        numbers, live = self._numbering.number, self._live
        for node, position, predicates in program.uses:
            number = numbers[node]
            if number in live and not self._constant(number):  # what was folded has no operands any more
                at = number, position
                if at in found:
                    found[at][0].update(predicates)
                else:
                    found[at] = set(predicates), node
        return found


class _Stated:
    """What one program states: each value's predicates, one of its nodes, and where each predicate is stated."""

    def __init__(self, numbering: Numbering, program: Program) -> None:
        self.facts: dict[int, set[str]] = {}
        self.nodes: dict[int, int] = {}
        self.places: dict[tuple[int, str], set[int]] = {}
        number = numbering.number
        for node, predicate, context in program.facts:
            at = number[node]
            self.facts.setdefault(at, set()).add(predicate)
            self.nodes.setdefault(at, node)
            self.places.setdefault((at, predicate), set()).add(number[context])
