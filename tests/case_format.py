"""The case files: a kernel, a specialization and the TIR (or diagnostic) that comes of it.

A ``.case`` file has sections that start with ``=== name``: ``python`` (the kernel file), ``params``
(TOML, the short forms of a manifest), ``target`` (an architecture, where not sm_90) and ``tir`` (what the
passes leave) or ``error``.
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
from transpiler.rules import table
from transpiler.spec import Specialization
from transpiler.specialize import specialize

GIVEN = ("python", "params", "target")
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


def lower(case: Case) -> tir.Kernel:
    """Run the front end, the specializer and the passes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.py"
        path.write_text(case.sections["python"], encoding="utf-8")
        program = load_program(path, display="case.py")
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
