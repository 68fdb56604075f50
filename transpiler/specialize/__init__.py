"""Specialization: constants, types and branches resolved together; see :mod:`transpiler.specialize.kernel`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transpiler.ir.hir import Program
    from transpiler.ir.tir import Kernel
    from transpiler.rules.registry import Table
    from transpiler.spec import Specialization


def specialize(program: Program, name: str, spec: Specialization, table: Table) -> Kernel:
    """Partially evaluate kernel ``name``; see :func:`transpiler.specialize.kernel.specialize`."""
    from transpiler.specialize import kernel  # the rules import this package's values

    return kernel.specialize(program, name, spec, table)
