"""The judge: parse Tile IR text of both front ends, compare the value graphs, facts and hints.

It imports nothing of the translator, so that a wrong rule can't approve itself.  Use :func:`parse`
and :func:`compare`.
"""

from transpiler.tileir.compare import Comparison, Difference, compare
from transpiler.tileir.parse import parse, parse_entry
from transpiler.tileir.selfcheck import selfcheck

__all__ = ["Comparison", "Difference", "compare", "parse", "parse_entry", "selfcheck"]
