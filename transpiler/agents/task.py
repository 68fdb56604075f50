"""What is known of a Hole and what is asked: the models that cross a process, a file or a client.

A task file is the JSON of :class:`HoleTask`; an answer is :class:`Answer`, as JSON from a client or as TOML from a
person (``rust`` and, for constructs of kind ``call``, ``results``).
"""

from __future__ import annotations

from pydantic import Field

from transpiler.overrides import ConstructKey, ResultType
from transpiler.spec import Model

TASK_FORMAT = "cutile-task 1"


class Typed(Model):
    """A value of the construct: what the fragment calls it, the author's name (or ""), its type here."""

    name: str
    author: str = ""
    type: str


class HoleTask(Model):
    """One Hole: a construct, where it was met, and all that its Rust is written from. Sizes are one specialization's.

    ``python`` are the lines of the construct alone; ``reference`` the Tile IR operations that come from them.
    """

    format: str = TASK_FORMAT
    digest: str
    hole: ConstructKey
    code: str
    reason: str
    operator: str
    kernel: str
    file: str
    line: int
    specializations: tuple[str, ...]
    python: tuple[str, ...]
    inputs: tuple[Typed, ...] = ()
    outputs: tuple[Typed, ...] = ()
    reference: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


class Answer(Model):
    """Rust for a construct: statements that end in the value, of ``$0``, ``$1``.. (see transpiler.overrides)."""

    rust: str = Field(max_length=20_000)
    results: tuple[ResultType, ...] = ()
