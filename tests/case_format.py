"""The case files: a kernel, a specialization and the TIR (or diagnostic) that comes of it.

A ``.case`` file has sections that start with ``=== name``: ``python`` (the kernel file), ``params``
(TOML, the short forms of a manifest), ``target`` (an architecture, where not sm_90) and ``tir`` (what the
passes leave) or ``error``.  Where the kernel imports helpers, there are sections ``module DOTTED.NAME`` with
their modules and ``name`` with the dotted name of the kernel's own.
``pytest --update`` rewrites the expected sections.
"""

from __future__ import annotations

import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from transpiler import passes
from transpiler.diagnostics import TranspileError
from transpiler.frontend import load_program
from transpiler.ir import tir
from transpiler.reference.layout import lay_out
from transpiler.rules import table
from transpiler.spec import Specialization
from transpiler.specialize import specialize

GIVEN = ("python", "params", "target", "name")
MODULE = "module "
CASES = Path(__file__).parent / "cases"


@dataclass
class Case:
    """A parsed case file."""

    path: Path
    sections: dict[str, str]

    @property
    def specialization(self) -> Specialization:
        """The specialization of the ``params`` section."""
        params = tomllib.loads(self.sections["params"])
        target = self.sections.get("target", "").strip() or None
        return Specialization.model_validate({"name": "case", "params": params, "target": target})


def given(title: str) -> bool:
    """Whether a section is what a case is made of, not what comes of it."""
    return title in GIVEN or title.startswith(MODULE)


def read(path: Path) -> Case:
    """Parse a case file."""
    sections: dict[str, str] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("=== "):
            name = line[4:].strip()
            sections[name] = ""
        elif name:
            sections[name] += line
    return Case(path, sections)


def write(case: Case) -> None:
    """Write a case file."""
    text = "".join(f"=== {name}\n{body.rstrip()}\n\n" for name, body in case.sections.items() if body.strip())
    case.path.write_text(text.rstrip() + "\n", encoding="utf-8")


def place(case: Case, folder: Path) -> Path:
    """Write a case's modules below a folder; returns the kernel's file."""
    name = case.sections.get("name", "case").strip()
    helpers = {title.removeprefix(MODULE): s for title, s in case.sections.items() if title.startswith(MODULE)}
    return lay_out(folder, {**helpers, name: case.sections["python"]})[name]


def lower(case: Case) -> tir.Kernel:
    """Run the front end, the specializer and the passes."""
    with tempfile.TemporaryDirectory() as folder:
        program = load_program(place(case, Path(folder)), display="case.py")
    return passes.run(specialize(program, program.kernels[0], case.specialization, table()))


def result(case: Case) -> dict[str, str]:
    """The expected sections as they come out now."""
    try:
        kernel = lower(case)
    except TranspileError as e:
        d = e.diagnostic
        return {"error": f"{d.code} {d.span.line}:{d.span.column} {d.message}\n"}
    holes = "".join(f"{d.code} {d.span.line}:{d.span.column} {d.message}\n" for d in kernel.holes)
    return {"tir": tir.dump(kernel), "holes": holes}


def all_cases() -> list[Path]:
    """Every case file (those of the front end have a format of their own)."""
    return sorted(p for p in CASES.rglob("*.case") if p.parent.name != "frontend")
