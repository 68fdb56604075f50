"""A drawn kernel: its source, and the specialization to check it for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from transpiler.spec import Specialization

NAME = "kernel"


@dataclass(frozen=True)
class Kernel:
    """Source text with one kernel, and its parameters in the short forms of a manifest."""

    source: str
    params: dict[str, Any]
    target: str | None = None

    @property
    def specialization(self) -> Specialization:
        """The specialization to check."""
        return Specialization.model_validate({"name": "drawn", "params": self.params, "target": self.target})

    def case(self, **sections: str) -> str:
        """The text of a case file (tests/case_format.py), with more sections at the end."""
        rows = "".join(f"{name} = {_toml(value)}\n" for name, value in self.params.items())
        parts = {"python": self.source, "params": rows}
        if self.target:
            parts["target"] = self.target
        return "\n".join(f"=== {name}\n{text.rstrip()}\n" for name, text in {**parts, **sections}.items())

    def __repr__(self) -> str:
        return "\n" + self.case()


def _toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case None:
            return '"?"'
        case float():
            return repr(value)
        case _:
            return json.dumps(value)
