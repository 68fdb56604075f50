"""What a row of the operation tables says: what an operation prints, what it computes, how exactly.

A row's ``make`` takes the place of an operation (:class:`~.site.Site`: attributes, types, regions, the
machine) once, and returns the function that is called with the operands' values each time that the
operation is executed.  It returns the result (a tuple where there are several).  Control operations
return a signal instead, see :mod:`.control`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from transpiler.tileir.ops.site import Site

Kind = Literal["pure", "token", "memory", "effect", "control", "assume"]
Function = Callable[..., Any]
Make = Callable[["Site"], Function]
MANY = 1 << 20


@dataclass(frozen=True)
class Schema:
    """What an operation prints: number of operands, attributes, and which printed type its result has."""

    operands: tuple[int, int]
    attributes: frozenset[str] = frozenset()
    kind: Kind = "pure"
    results: tuple[int, int] = (1, 1)
    result_type: int = -1
    """Index of the result's type among the printed types when there is no arrow."""
    regions: int = 0


@dataclass(frozen=True)
class Tolerance:
    """How far hardware may be from what the row computes.

    ``exact``: every bit is defined.  ``ulp``: at most ``ulps`` units in the last place of the result's
    type, element by element.  ``sum``: at most ``ulps`` times sqrt(n) times eps times the sum of the terms'
    magnitudes, for n terms of which only the order or the intermediate precision is open: two orders differ by
    n eps at worst, but roundings are independent enough for their sum to grow with sqrt(n) (Higham and Mary 2019).
    Where the positive or the negative terms alone are more than the largest number, a sum may overflow as well.
    Where ``where`` says no, an operation is exact all the same.
    """

    kind: Literal["exact", "ulp", "sum"] = "exact"
    ulps: float = 0.0
    reason: str = ""
    where: Callable[[Site], bool] | None = None

    def applies(self, site: Site) -> bool:
        """Whether the operation at ``site`` may be off."""
        return self.kind != "exact" and (self.where is None or self.where(site))


EXACT = Tolerance()


def ulp(ulps: float, reason: str, where: Callable[[Site], bool] | None = None) -> Tolerance:
    """A result may be off by units in the last place."""
    return Tolerance("ulp", ulps, reason, where)


def summed(factor: float, reason: str, where: Callable[[Site], bool] | None = None) -> Tolerance:
    """A result of n terms may be off by ``factor * sqrt(n) * eps * sum(|term|)``."""
    return Tolerance("sum", factor, reason, where)


@dataclass(frozen=True)
class Row:
    """An operation: its schema, its semantics in NumPy, and how exact they are."""

    schema: Schema
    make: Make
    tolerance: Tolerance = EXACT
    static: bool = True
    """The result depends on operands and attributes alone: it may be computed once, ahead of time."""


def rows(
    names: str, operands: int | tuple[int, int], attributes: str = "", *, make: Make, tolerance: Tolerance = EXACT,
    static: bool | None = None, kind: Kind = "pure", **rest: Any,
) -> dict[str, Row]:  # fmt: skip
    """Make equal rows for several names; ``static`` is what ``pure`` operations are unless said otherwise."""
    count = operands if isinstance(operands, tuple) else (operands, operands)
    schema = Schema(count, frozenset(attributes.split()), kind, **rest)
    fixed = kind == "pure" if static is None else static
    return dict.fromkeys(names.split(), Row(schema, make, tolerance, fixed))
