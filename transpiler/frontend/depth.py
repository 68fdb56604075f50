"""What is nested too deeply to be read: Python's parser, LibCST and we follow syntax by recursion."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterable

from transpiler.diagnostics import Span, TranspileError, error

_NESTING = frozenset({"not", "and", "or", "if", "lambda", "await"})
_SPACE = frozenset({tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE})
_HELP = "split expressions into statements, and chains of `elif` into functions"


def too_deep(sources: Iterable[tuple[str, str]]) -> TranspileError:
    """E0902 at the deepest statement of files, each given as it is shown and its text."""
    depth, line, shown = max((*deepest_statement(text), shown) for shown, text in sources)
    message = f"a statement nests {depth} operators or branches, too deeply to be read"
    return error("E0902", message, Span(shown, line, 1), help=_HELP)


def deepest_statement(text: str) -> tuple[int, int]:
    """How many operators or ``elif`` the deepest statement may nest, and its line; the parser has no answer here."""
    deepest = (0, 1)
    chains: dict[int, tuple[int, int]] = {}  # of `elif`, by their column: how long, and where they start
    operators, first = 0, 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE:
                deepest = max(deepest, (operators, first), key=_depth)
                operators, first = 0, 0
            elif token.type == tokenize.OP or token.string in _NESTING:
                operators += 1
            if not first and token.type not in _SPACE:
                first, column = token.start
                if token.string == "if":
                    chains[column] = 0, first
                elif token.string == "elif" and column in chains:
                    chains[column] = chains[column][0] + 1, chains[column][1]
                    deepest = max(deepest, chains[column], key=_depth)
    except (tokenize.TokenError, SyntaxError):  # what comes after isn't Python
        pass
    return deepest


def _depth(found: tuple[int, int]) -> int:
    return found[0]
