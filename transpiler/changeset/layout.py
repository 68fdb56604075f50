"""Translated operators in the layout of TileGym's own Rust ports: pure functions from texts to texts.

Six files a new operator, all under ``src/tilegym/ops/cutile_rs`` but for the test:
``<op>_kernel/kernel.rs``, ``<op>_kernel/ffi.rs``, ``<op>.py``, and a line in ``cutile_kernels/src/lib.rs``, in
``__init__.py`` and in ``tests/ops/test_<op>.py``. What all operators share comes once: the support module of the
crate, and the Python package ``_runtime``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from transpiler.emit.crate import CUTILE_VERSION, render_crate_files
from transpiler.identifiers import crate_module

ROOT = "src/tilegym/ops/cutile_rs"
CRATE = f"{ROOT}/cutile_kernels"
REPLACED = ("attention_sink", "bmm", "matmul", "silu_and_mul", "swiglu")
"""The ports that TileGym has; they are written for cutile 0.2, and the crate can only be of one version."""
REMOVED = (f"{ROOT}/ffi_util.rs",)
"""What only those ports use."""
_OF_FOLDERS = ("/tilegym.py", "/linked.py", "/chosen.py")
"""Modules of the runtime that register the operators of a folder; a checkout's register themselves."""
INTERFACES = ("src/tilegym/ops/moe_interface.py",)
"""Modules of TileGym that choose a configuration by the backend's name."""

_LICENSE = "SPDX-License-Identifier: MIT\n"
_RUST_HEADER = f"// {_LICENSE}//\n"
_PYTHON_HEADER = f"# {_LICENSE}\n"
_CRATE_DOC = """\
//! One library with all cutile-rs kernels; each operator has its kernels and their C interface in
//! ../<op>_kernel. To add one: its two files there, and two lines here."""
_REGISTERED = re.compile(r"^    from \. import (\w+)\b.*\n", re.MULTILINE)
_MODULE = re.compile(r'#\[path = "\.\./\.\./(\w+)_kernel/ffi\.rs"\]')
_PINS = re.compile(r"^(cutile(?:-compiler|-macro)?|cuda-core|cuda-async) = .*\n", re.MULTILINE)


def shared_files() -> dict[str, str]:
    """Return what all operators share, by path: the support module and the runtime package."""
    files = {}
    for path, text in render_crate_files(()).items():
        if path.startswith("src/support/"):
            files[f"{CRATE}/{path}"] = _RUST_HEADER + text
        elif "/_runtime/" in path and not path.endswith(_OF_FOLDERS):
            files[f"{ROOT}/_runtime/{path.rpartition('/')[2]}"] = _PYTHON_HEADER + text
    return files


def operator_files(name: str, files: Mapping[str, str], others: Collection[str]) -> dict[str, str]:
    """Return an operator's own three files from those that transpile writes.

    ``others`` are all operators with a module here: an import of one of them from the reference's package is
    turned to this one.
    """
    kernel, module = f"{ROOT}/{name}_kernel", crate_module(name)
    ffi = files["ffi.rs"].replace("use super::kernel::", f"use crate::{module}_kernel::")
    return {
        f"{kernel}/kernel.rs": _RUST_HEADER + files["kernel.rs"],
        f"{kernel}/ffi.rs": _RUST_HEADER + ffi,
        f"{ROOT}/{name}.py": wrapper(files["host.py"], files["_bindings.py"], others),
    }


def wrapper(host: str, bindings: str, others: Collection[str]) -> str:
    """Join an operator's host module and its kernels in one module."""
    uses, kernels = _kernels(bindings)
    for other in sorted(others):
        host = re.sub(rf"\btilegym\.ops\.cutile\.(?:\w+\.)?{other}\b", f"tilegym.ops.cutile_rs.{other}", host)
    definitions = f'class _kernels:\n    """The Rust kernels of this operator."""\n\n{_indented(kernels)}'
    line = "from . import _bindings as _kernels\n"
    assert line in host, "the host module launches no kernel of ours"
    head, _, rest = host.replace("from .. import _runtime as", "from . import _runtime as").partition(line)
    return f"{head}from ._runtime import {uses}\n\n\n{definitions}\n\n{rest.lstrip(chr(10))}"


def _kernels(bindings: str) -> tuple[str, str]:
    """The names that the definitions of the kernels use, and the definitions."""
    uses = re.search(r"^from \.\._runtime import (.+)$", bindings, re.MULTILINE)
    assert uses is not None
    definitions = bindings[uses.end() :].partition("\n\ndef launch_")[0]
    return uses[1], definitions.strip() + "\n"


def _indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))


# -- Files that are there already ---------------------------------------------------------------------


def cargo_toml(text: str) -> str:
    """Depend on the one crate that the kernels are written for."""
    pinned = _PINS.search(text)
    if pinned is None:
        return text
    return text[: pinned.start()] + f'cutile = "={CUTILE_VERSION}"\n' + _PINS.sub("", text[pinned.start() :])


def lib_rs(text: str, operators: Iterable[str]) -> str:
    """Return the crate's root with the operators, and with those of ours that it has."""
    known = _MODULE.findall(text) if "pub mod support;" in text else []
    header = text[: text.index("\n\n")] if text.startswith("// SPDX") else _RUST_HEADER.rstrip("\n")
    lines = [header, "", _CRATE_DOC, "", "pub mod support;"]
    for name in sorted({*known, *operators}):
        module = crate_module(name)
        for part in ("kernel", "ffi"):
            lines += ["", f'#[path = "../../{name}_kernel/{part}.rs"]', f"pub mod {module}_{part};"]
    return "\n".join(lines) + "\n"


def package_init(text: str, operators: Iterable[str]) -> str:
    """Import the operators where the package imports the others."""
    known = set(_REGISTERED.findall(text))
    rows = sorted({*known, *operators})
    block = "".join(f"    from . import {name}  # noqa: F401  (register dispatch entry)\n" for name in rows)
    first = _REGISTERED.search(text)
    if first is None:
        return text.rstrip("\n") + "\n" + block
    start = first.start()
    return text[:start] + block + _REGISTERED.sub("", text[start:])


def test_files(operator: str, paths: Iterable[str]) -> list[str]:
    """Return the tests of an operator among a checkout's files."""
    wanted = re.compile(rf"tests/ops/(?:\w+/)?test_{operator}\.py")
    return [path for path in paths if wanted.fullmatch(path)]


test_files.__test__ = False  # type: ignore[attr-defined]  # pytest, this is no test
