"""The NVIDIA tools and CUDA headers: found in the installed packages, never guessed from PATH.

Set ``TRANSPILE_TOOLKIT`` to a directory with ``bin/`` and ``include/`` (a CUDA toolkit, 13.2 or newer)
to use that one instead of the packages.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from .diagnostics import NO_SPAN, error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .diagnostics import Span, TranspileError

OVERRIDE = "TRANSPILE_TOOLKIT"
# The assembler would prefer the libraries of a toolkit named here to those of its own package.
_FOREIGN = ("CUDA_HOME", "CUDA_PATH")


@dataclass(frozen=True)
class Component:
    """A file of the toolkit: its place under the toolkit's root and the package that brings it."""

    path: str
    package: str
    purpose: str


TILEIRDISASM = Component("bin/tileirdisasm", "nvidia-cuda-tileiras", "prints Tile IR")
TILEIRAS = Component("bin/tileiras", "nvidia-cuda-tileiras", "assembles Tile IR to machine code")
PTXAS = Component("bin/ptxas", "nvidia-cuda-nvcc", "is run by tileiras")
CUDA_HEADER = Component("include/cuda.h", "nvidia-cuda-runtime", "is read when generated crates are built")
CRT_HEADER = Component("include/crt/host_config.h", "nvidia-cuda-crt", "is read when generated crates are built")
CURAND_HEADER = Component("include/curand.h", "nvidia-curand", "is read when generated crates are built")
LIBCLANG = Component("clang/native/libclang.so", "libclang", "reads the headers when generated crates are built")

_BUILD = (CUDA_HEADER, CRT_HEADER, CURAND_HEADER, LIBCLANG)
"""What the extra ``build`` brings."""


@functools.cache
def locate(component: Component) -> Path:
    """Return where ``component`` lies, or raise E0650 that says what to install."""
    path = _found(component)
    if path is None:
        raise _missing([component])
    return path


def _found(component: Component) -> Path | None:
    override = os.environ.get(OVERRIDE)
    return _in_override(Path(override), component) if override and component is not LIBCLANG else _in_package(component)


def _missing(components: Sequence[Component]) -> TranspileError:
    """E0650 for all that is missing at once."""
    *others, last = (f"`{component.path.rpartition('/')[2]}`" for component in components)
    packages = " ".join(dict.fromkeys(component.package for component in components))
    message = f"{last} is not installed; it {components[0].purpose}"
    if others:
        message = f"{', '.join(others)} and {last} are not installed; building generated crates takes them"
    way = f"run `pip install {packages}`"
    if components[0] in _BUILD:
        way = f"run `pip install 'cutile-transpiler[build]'`, the extra that brings {packages}"
    other = f", or set {OVERRIDE} to a CUDA toolkit (13.2 or newer)" if LIBCLANG not in components else ""
    return error("E0650", message, help=way + other)


def _in_override(root: Path, component: Component) -> Path:
    path = root / component.path
    if not path.is_file():
        raise error(
            "E0651",
            f"the directory that {OVERRIDE} names has no `{component.path}`",
            help=f"unset {OVERRIDE} to use the installed packages, or name a CUDA toolkit (13.2 or newer)",
        )
    return path


def _in_package(component: Component) -> Path | None:
    """Look in the list of files that pip wrote down, so any layout and any environment will do."""
    try:
        files = metadata.files(component.package) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if str(file).endswith("/" + component.path) or str(file) == component.path:
            path = Path(os.path.normpath(file.locate()))
            return path if path.is_file() else None
    return None


# What tileiras assembles for.
_ARCHITECTURES = ("80", "86", "87", "88", "89", "90", "100", "103", "110", "120", "121")


def is_architecture(text: str) -> bool:
    """Whether a text names an architecture, as ``sm_90`` or ``sm_100a`` do."""
    return text.startswith("sm_") and text[3:].removesuffix("a").removesuffix("f") in _ARCHITECTURES


def not_an_architecture(text: str, span: Span = NO_SPAN) -> TranspileError:
    """Say that a text names no architecture (E0803)."""
    return error("E0803", f"`{text}` is not an architecture", span, help="for example sm_90, sm_100 or sm_120")


def tool_environment() -> dict[str, str]:
    """Return the environment in which NVIDIA's tools are run: no other toolkit is named."""
    return {name: value for name, value in os.environ.items() if name not in _FOREIGN}


def build_environment() -> dict[str, str]:
    """Return what cargo needs to build crates that depend on cutile, to be added to the environment.

    Raises E0650 with all that is missing.
    """
    missing = [component for component in _BUILD if _found(component) is None]
    if missing:
        raise _missing(missing)
    header, curand = locate(CUDA_HEADER), locate(CURAND_HEADER)
    locate(CRT_HEADER)
    if header.parent != curand.parent:
        raise error("E0651", "cuda.h and curand.h lie in different directories", help="install both in one environment")
    return {
        "CUDA_TOOLKIT_PATH": str(header.parent.parent),
        "LIBCLANG_PATH": str(locate(LIBCLANG).parent),
        "BINDGEN_EXTRA_CLANG_ARGS": f"-isystem {_compiler_headers()}",
    }


@functools.cache
def _compiler_headers() -> str:
    """Return gcc's own include directory: the libclang package has no headers of its own."""
    compiler = os.environ.get("CC", "gcc")
    try:
        found = subprocess.run([compiler, "-print-file-name=include"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        raise error("E0650", f"`{compiler}` does not run: {exc}", help="install gcc, or name it in CC") from None
    return found.stdout.strip()


def use() -> None:
    """Name the installed toolkit to code in this process that asks for one (cutile does, by CUDA_TOOLKIT_PATH)."""
    os.environ["CUDA_TOOLKIT_PATH"] = str(locate(TILEIRAS).parent.parent)


def disassemble(bytecode: bytes, *, debug: bool = False) -> str:
    """Return the text of Tile IR bytecode; ``debug`` adds source locations. Costs one process, 3 to 4 ms."""
    options = ["-g"] if debug else []
    return run_tool(TILEIRDISASM, [*options, "/dev/stdin"], stdin=bytecode).decode()


def run_tool(tool: Component, arguments: Sequence[str], *, stdin: bytes = b"", timeout: float = 600) -> bytes:
    """Run ``tool`` and return what it prints; raise E0652 when it fails or takes longer than ``timeout`` seconds."""
    name = tool.path.rpartition("/")[2]
    try:
        done = subprocess.run(
            [str(locate(tool)), *arguments],
            input=stdin,
            capture_output=True,
            timeout=timeout,
            env=tool_environment(),
            close_fds=False,
            check=False,
        )
    except OSError as exc:
        raise error("E0652", f"`{name}` does not run: {exc.strerror}", help=f"reinstall {tool.package}") from None
    except subprocess.TimeoutExpired:
        raise error("E0652", f"`{name}` did not end within {timeout:g} seconds") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}"
        raise error("E0652", f"`{name}` failed: {said}")
    return done.stdout


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions that a result depends on: Python, this package, the front ends and the assembler."""
    packages = ("cutile-transpiler", "cuda-tile", "nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm", "libcst")
    table = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in packages:
        try:
            table[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            table[package] = "missing"
    from . import _rust  # the build backend imports this module before there is an extension

    return table | _rust.versions()
