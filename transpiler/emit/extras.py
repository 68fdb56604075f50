"""What is rendered beside kernel.rs: the C interface, the crate, the Python side. Pure functions of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from transpiler.diagnostics import Diagnostic, TranspileError
from transpiler.emit.abi import KernelAbi
from transpiler.emit.author import Author, author_functions
from transpiler.emit.bindings import render_bindings
from transpiler.emit.crate import render_crate_files, render_operator_modules
from transpiler.emit.ffi import check_kernel, render_ffi
from transpiler.emit.host import render_host


@dataclass(frozen=True)
class ExtraFiles:
    """Files by their path in the operator's folder; ``diagnostics`` say which kernels have no C symbol, and why.

    ``author`` is what the bindings say of the author's functions.
    """

    files: dict[str, str]
    diagnostics: tuple[Diagnostic, ...] = field(default=())
    author: Author = field(default=Author())


def extra_files(
    operator: str, abis: Sequence[KernelAbi], source_text: str, *, module: str, package: str = "", source: str = "",
    left_out: str = "", origin: str = "",
) -> ExtraFiles:  # fmt: skip
    """Render an operator's ffi.rs, ``_bindings.py`` and ``host.py``, and what joins them.

    ``module`` is the module's name in kernel.rs, ``package`` the dotted package that the source module is in (for
    its relative imports), ``source`` what to call it, ``left_out`` why the library doesn't have it, ``origin`` the
    source module's dotted name. A kernel that can't be called through the C interface is left out; the host module
    goes on launching it with cuda.tile.
    """
    able, diagnostics = _able(abis)
    author = Author(author_functions(source_text, {abi.kernel for abi in abis}), origin)
    files = _launch_files(operator, able, module, left_out, author)
    files["host.py"] = render_host(source_text, {abi.kernel for abi in able}, package=package, source=source)
    return ExtraFiles(render_operator_modules(operator) | files, tuple(diagnostics), author)


def launch_files(
    operator: str, abis: Sequence[KernelAbi], module: str, left_out: str, author: Author
) -> dict[str, str]:  # fmt: skip
    """Render what says which entry a launch takes: an operator's ffi.rs and ``_bindings.py``."""
    return _launch_files(operator, _able(abis)[0], module, left_out, author)


def _launch_files(
    operator: str, able: Sequence[KernelAbi], module: str, left_out: str, author: Author
) -> dict[str, str]:  # fmt: skip
    bindings = render_bindings(operator, able, left_out, author.functions, author.origin)
    return {"ffi.rs": render_ffi(operator, able, module), "_bindings.py": bindings}


def _able(abis: Sequence[KernelAbi]) -> tuple[list[KernelAbi], list[Diagnostic]]:
    """The kernels that can be called through the C interface, and why others can't be."""
    able: list[KernelAbi] = []
    diagnostics: list[Diagnostic] = []
    for abi in abis:
        try:
            check_kernel(abi)
            able.append(abi)
        except TranspileError as refusal:
            diagnostics.append(refusal.diagnostic)
    return able, diagnostics


def render_extra_files(
    operator: str, abis: Sequence[KernelAbi], source_text: str, *, module: str, package: str = "", source: str = "",
    origin: str = "",
) -> dict[str, str]:  # fmt: skip
    """Return the files of :func:`extra_files`."""
    return extra_files(operator, abis, source_text, module=module, package=package, source=source, origin=origin).files


__all__ = ["ExtraFiles", "extra_files", "launch_files", "render_crate_files", "render_extra_files"]
