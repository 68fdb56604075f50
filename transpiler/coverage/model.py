"""The JSON of ``transpile coverage``, as pydantic models; docs/coverage.schema.json is their JSON Schema.

Everything is in a fixed order and nothing depends on the run: two runs over the same sources give the same file.
A kernel is named ``operator.kernel`` wherever it is referred to.
"""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from transpiler.report.model import DiagnosticRow, MachineCode, Verdict

Kind = Literal["operation", "method", "operator", "builtin", "function"]
Status = Literal["exact", "unsupported"]
KernelName = str


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class KernelCoverage(_Model):
    """One kernel: its verdict, and how often each row of each table was used in its programs and checks."""

    name: str
    line: int
    verdict: Verdict | None = Field(description="the worst verdict of its checks; null when it has none")
    entries: int
    checks: dict[Verdict, int] = Field(description="how many checks have each verdict")
    raised: int = Field(description="checks of code that was made from the reference's Tile IR, not by rules")
    machine_code: dict[str, dict[MachineCode, int]] = Field(description="by architecture; empty without --cubin")
    rules: dict[str, int]
    constructs: dict[str, int]
    forms: dict[str, int]
    equivalences: dict[str, int]
    blocked_by: list[int] = Field(description="indices into `unmapped`")


class OperatorCoverage(_Model):
    """One source module; ``diagnostics`` say why nothing of it could be translated."""

    name: str
    source: str
    verdict: Verdict | None
    kernels: list[KernelCoverage]
    diagnostics: list[DiagnosticRow] = []


class _Row(_Model):
    """``uses`` counts over the distinct programs of all kernels; ``kernels`` are those that it occurs in."""

    uses: int
    kernels: list[KernelName]


class RuleRow(_Row):
    """A row of the rule table: something that a kernel can call."""

    key: str
    callee: str
    kind: Kind
    family: str
    status: Status
    reason: str = Field(description="why there is no translation; empty for `exact`")
    doc: str
    places: list[str] = Field(description="`file:line`, at most 20")


class ConstructRow(_Row):
    """A construct of Python; ``code`` is the diagnostic of one without a translation."""

    name: str
    status: Status
    code: str
    doc: str
    places: list[str] = Field(description="`file:line`, at most 20")


class FormRow(_Row):
    """A row of the table of forms: what an operation of the tile program is written as in Rust."""

    key: str
    opcode: str
    family: str
    rust: str
    rules: list[str] = Field(description="the rules whose operations it wrote")


class UnmappedRow(_Model):
    """A reason for which checks are not proved, by how many kernels it blocks: the first is what to do next."""

    verdict: Literal["unmapped", "differs", "error"]
    code: str
    reason: str
    help: str
    kernels: list[KernelName]
    alone: int = Field(description="how many of the kernels have no other reason")
    checks: int
    places: list[str]


class HoleKindRow(_Model):
    """A construct that no rule maps: how often it came up, what fills it, and what that took.

    Those that came up most are the rules to write next. ``overrides`` fill it for some kernels, ``open`` are Holes.
    """

    digest: str
    name: str
    kind: Literal["call", "operation", "statement", "other"]
    code: str = Field(description="the diagnostic of an open Hole; empty where overrides fill all")
    uses: int = Field(description="in how many checks it was met, filled or not")
    open: int
    filled: int
    raised: int = Field(description="of the filled ones, those made from the reference's Tile IR")
    kernels: list[KernelName]
    overrides: list[str]
    models: list[str]
    tokens: int = Field(description="what the overrides' answers took")
    cost: float = Field(description="in US dollars, where it is known")
    places: list[str] = Field(description="`file:line`, at most 20")


class EquivalenceRow(_Row):
    """A named equivalence that the judge admits; ``checks`` needed it ``uses`` times in all."""

    name: str
    justification: str
    checks: int


class CoverageTotals(_Model):
    """Counts; ``names`` are cuda.tile's public ones.

    ``kernels_by_verdict`` has "none" for kernels without checks, and "raised" for kernels that are proved or tested but
    that no rules translated.
    """

    operators: int
    kernels: int
    entries: int
    checks: int
    kernels_by_verdict: dict[str, int]
    checks_by_verdict: dict[Verdict, int]
    rules: int
    rules_unsupported: int
    rules_exercised: int
    names: int
    names_mapped: int
    names_exercised: int
    constructs: int
    constructs_exercised: int
    forms: int
    forms_exercised: int
    holes: int = Field(description="constructs without a rule, by kind of construct")
    holes_filled: int = Field(description="of these, those that overrides fill everywhere")
    llm_tokens: int
    llm_cost: float


class Coverage(_Model):
    """The whole report."""

    format: Literal["cutile-coverage 1"] = "cutile-coverage 1"
    tool: dict[str, str] = Field(description="the versions that the results depend on")
    sources: list[str] = Field(description="the corpora and files that were asked for")
    totals: CoverageTotals
    machine_code: dict[str, dict[MachineCode, int]] = Field(description="checks by architecture and outcome")
    operators: list[OperatorCoverage]
    unmapped: list[UnmappedRow]
    rules: list[RuleRow]
    constructs: list[ConstructRow]
    forms: list[FormRow]
    equivalences: list[EquivalenceRow]
    holes: list[HoleKindRow]

    def to_json(self) -> str:
        """Return the report as indented JSON with a line end."""
        return self.model_dump_json(indent=1) + "\n"


def json_schema() -> str:
    """Return docs/coverage.schema.json."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Coverage.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"
