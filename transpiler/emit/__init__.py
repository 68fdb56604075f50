"""Emission: residual programs to kernel.rs, its ABI and the inputs of checks."""

from __future__ import annotations

from transpiler.emit.entry import EmittedEntry, emit_entry
from transpiler.emit.inputs import compile_inputs
from transpiler.emit.render import EmittedModule, emit_operator

__all__ = ["EmittedEntry", "EmittedModule", "compile_inputs", "emit_entry", "emit_operator"]
