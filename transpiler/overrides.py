"""Override files: accepted answers for what no rule maps, an input of instruction selection.

An override is one TOML file in ``DIR/_overrides``, where DIR is what ``-o`` names. Its name is the digest of the
construct, of the rule tables and of who wrote it. Translating reads the folder, so output stays a function of files
alone and an answer costs no tokens again. An override whose ``rules`` isn't the digest of the tables in use is stale:
it isn't read, and ``transpile fill`` checks it anew before it asks anybody.

    format = "cutile-override 1"
    kind = "rust"                        # or "raised": made from the reference's Tile IR, for one specialization
    key = "9f0c1e..."                    # the file's name
    rules = "0b7e..."                    # digest of the rule tables that had nothing for the construct
    model = "openai:gpt-5"               # who wrote it; "reference" for raised ones, "hand" for a person
    rust = "exp2($0, ftz::Disabled)"     # kind "rust": lets, then the value; $0, $1.. are the operands
    [hole]                               # see transpiler.ir.construct
    kind = "call"
    name = "cuda.tile.exp2"
    operands = ["tile generic 2"]
    arguments = [["0", "$0"]]
    [[results]]                          # in terms of the operands; not needed for constructs of kind "operation"
    dtype = "$0"
    shape = "$0"
    [evidence]                           # why it was accepted
    verdict = "proved"
    checks = ["f16_4096"]
    tokens = 812

Raised overrides have ``kernel``, ``specialization`` (:func:`specialization_digest`), ``body`` in the format of
transpiler/agents/raising.py and ``missing``, the rules that would make them superfluous; without ``hole`` they
stand for the whole kernel. How selection uses them: :class:`transpiler.selection.Selection`.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import tomlkit
from pydantic import BeforeValidator, Field, ValidationError

from transpiler.diagnostics import Span, error
from transpiler.ir.construct import RAISED_MODEL, Construct, Fragment
from transpiler.ir.construct import ResultType as FragmentResult
from transpiler.resources import OVERRIDES
from transpiler.select.fragments import parse_body
from transpiler.spec import Model, Specialization

FORMAT = "cutile-override 1"


class ConstructKey(Model):
    """A construct as a file has it."""

    kind: Literal["call", "operation", "statement", "other"]
    name: str
    operands: tuple[str, ...] = ()
    arguments: tuple[tuple[str, str], ...] = ()

    def value(self) -> Construct:
        """Return it as the translator has it."""
        return Construct(self.kind, self.name, self.operands, self.arguments)

    @staticmethod
    def of(construct: Construct) -> ConstructKey:
        """Return a construct as a file has it."""
        return ConstructKey(kind=construct.kind, name=construct.name, operands=construct.operands,
                            arguments=construct.arguments)  # fmt: skip


def _dimensions(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


class ResultType(Model):
    """The type of a result: ``$0`` or a dtype's name; ``$0``, or integers and ``$0.1`` one a dimension."""

    dtype: str = Field(pattern=r"^(\$\d+|[a-z]\w*)$")
    shape: Annotated[str | tuple[int | str, ...], BeforeValidator(_dimensions)]


class Evidence(Model):
    """What an override was accepted for: the weakest verdict, and the checks that have it or a stronger one."""

    verdict: Literal["proved", "tested"]
    checks: tuple[str, ...] = ()
    tokens: int = 0
    cost: float | None = None


class Override(Model):
    """One override file."""

    format: Literal["cutile-override 1"] = "cutile-override 1"
    kind: Literal["rust", "raised"] = "rust"
    key: str = ""
    rules: str
    model: str
    hole: ConstructKey | None = None
    results: tuple[ResultType, ...] = ()
    rust: str = ""
    kernel: str = ""
    specialization: str = ""
    body: str = ""
    missing: tuple[str, ...] = ()
    evidence: Evidence | None = None

    def keyed(self) -> Override:
        """Return it with its key."""
        digest = self.hole.value().digest if self.hole is not None else self.kernel
        return self.model_copy(update={"key": override_key(digest, self.rules, self.model, self.specialization)})

    def to_toml(self) -> str:
        """Return the file's text."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        document = tomlkit.document()
        for name, value in {"format": FORMAT, "kind": self.kind, **data}.items():
            multiline = isinstance(value, str) and "\n" in value
            document.add(name, tomlkit.string(value, multiline=True) if multiline else value)
        return tomlkit.dumps(document)

    def fragment(self) -> Fragment:
        """Return the Rust of an override of kind ``rust``; raises ValueError where it isn't a fragment."""
        results = tuple(FragmentResult(r.dtype, r.shape) for r in self.results)
        return Fragment(self.key, self.model, results, parse_body(self.rust))


def override_key(construct: str, rules: str, model: str, specialization: str = "") -> str:
    """Return the name of an override: the digest of the construct, of the rule tables, and the model's name."""
    data = json.dumps([construct, rules, model, specialization])
    return hashlib.sha256(data.encode()).hexdigest()[:16]


def specialization_digest(one: Specialization) -> str:
    """Return 16 digits that name what a specialization says; its own name and grid don't count."""
    data = one.model_dump_json(exclude={"name", "grid"})
    return hashlib.sha256(data.encode()).hexdigest()[:16]


def overrides_folder(out: Path) -> Path:
    """Return where the overrides of an output folder lie."""
    return out / OVERRIDES


def load_overrides(folder: Path) -> tuple[Override, ...]:
    """Read every override of a folder by name, stale ones too; raises E0870 for a file that isn't one."""
    if not folder.is_dir():
        return ()
    return tuple(load_override(path) for path in sorted(folder.glob("*.toml")))


def load_override(path: Path) -> Override:
    """Read one file; raises E0870 where it can't be read, isn't an override, or was given another one's name."""
    shown = path.as_posix()
    try:
        text = path.read_text(encoding="utf-8")
        found = Override.model_validate(tomllib.loads(text))
        found.fragment() if found.kind == "rust" else None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError, ValueError) as exc:
        raise error("E0870", f"{shown} is not an override: {_reason(exc)}", Span(shown, 1, 1),
                    help="delete it, and run `transpile fill` again") from None  # fmt: skip
    if found.keyed().key != found.key:
        raise error("E0870", f"{shown} was changed: its key isn't that of its construct, rules and model",
                    Span(shown, 1, 1), help="delete it, and run `transpile fill` again")  # fmt: skip
    return found


def _reason(exc: Exception) -> str:
    if isinstance(exc, ValidationError):
        first = exc.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"
    return (exc.strerror or str(exc)) if isinstance(exc, OSError) else str(exc)


def of_kind(overrides: Iterable[Override], rules: str) -> dict[str, Fragment]:
    """Return the fragments for these rule tables, by construct; of several answers the first model's by name."""
    out: dict[str, Fragment] = {}
    for one in sorted(overrides, key=lambda o: (o.model, o.key)):
        if one.kind == "rust" and one.rules == rules and one.hole is not None:
            out.setdefault(one.hole.value().digest, one.fragment())
    return out


__all__ = [
    "FORMAT", "RAISED_MODEL", "ConstructKey", "Evidence", "Override", "ResultType", "load_override",
    "load_overrides", "of_kind", "override_key", "overrides_folder", "specialization_digest",
]  # fmt: skip
