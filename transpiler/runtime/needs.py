"""What building and launching need of NVIDIA and LLVM: named by the environment, in packages, where toolkits lie."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from .errors import MissingToolError

TOOLKIT = "CUDA_TOOLKIT_PATH"
"""Environment variable of cutile: the toolkit whose headers are read, and whose assembler is run."""
ASSEMBLER = "CUTILE_TILEIRAS_PATH"
"""Environment variable of cutile: the assembler that launches run."""
OLDEST = 13000
"""What cutile asks of ``CUDA_VERSION`` in cuda.h."""

_PLACES = ("/usr/local/cuda-13*", "/usr/local/cuda", "/opt/cuda")
_HEADERS = ("cuda.h", "curand.h", "crt/host_config.h")
_CLANG_PLACES = ("usr/local/lib*", "usr/lib*", "usr/lib*/*", "usr/lib*/*/*", "usr/local/llvm*/lib*", "usr/local/lib*/*")
_CLANG_FILES = ("libclang.so", "libclang-*.so", "libclang.so.*", "libclang-*.so.*")
_VERSION = re.compile(r"^#define\s+CUDA_VERSION\s+(\d+)", re.MULTILINE)


def cargo_environment() -> dict[str, str]:
    """Return what is added to the environment of cargo; raises MissingToolError with all that is missing.

    The first that will do: the toolkit that CUDA_TOOLKIT_PATH names, the transpiler's packages, the toolkit that
    CUDA_HOME names, one where toolkits are installed.
    """
    root = _toolkit(os.environ.get(TOOLKIT))
    packages = None if root is not None else _packages()
    if isinstance(packages, dict):
        return packages
    root = root or next(filter(None, map(_toolkit, (os.environ.get("CUDA_HOME"), *_installed()))), None)
    clang = _clang()
    if root is not None and clang is not None:
        return {TOOLKIT: str(root), **clang}
    raise packages or _missing(root is None, clang is None)


def name_assembler() -> None:
    """Name the assembler of an installed package to cutile, which looks everywhere else by itself."""
    named = (Path(os.environ.get(name) or os.devnull) / "bin/tileiras" for name in (TOOLKIT, "CUDA_HOME"))
    if os.environ.get(ASSEMBLER) or any(path.is_file() for path in named):
        return
    found = _packaged("nvidia-cuda-tileiras", "bin/tileiras")
    if found is not None:
        os.environ[ASSEMBLER] = str(found)


def _packages() -> dict[str, str] | MissingToolError | None:
    """What the transpiler says: the environment, or what it misses; None where it isn't installed."""
    try:
        toolkit: Any = importlib.import_module("transpiler.toolkit")
    except ImportError:
        return None
    try:
        found: dict[str, str] = toolkit.build_environment()
        return found
    except Exception as exc:
        said: Any = getattr(exc, "diagnostic", None)
        return None if said is None else MissingToolError(said.message, said.help, said.code)


def _missing(headers: bool, clang: bool) -> MissingToolError:
    what = [name for name, missing in (("CUDA's headers", headers), ("`libclang.so`", clang)) if missing]
    return MissingToolError(
        f"building the library needs {' and '.join(what)}, not found here",
        "run `transpile build` on this folder where the transpiler is installed with "
        "`pip install 'cutile-transpiler[build]'`, and copy the library that it makes; or install a CUDA toolkit "
        f"(13.0 or newer), name it in {TOOLKIT}, and `pip install libclang`",
    )


def _installed() -> Iterator[str]:
    for pattern in _PLACES:
        yield from map(str, sorted(Path("/").glob(pattern.lstrip("/")), reverse=True))


def _toolkit(name: str | None) -> Path | None:
    """Return a toolkit's folder if it has all headers and is new enough."""
    if not name:
        return None
    root = Path(name)
    for include in (root / "include", *sorted(root.glob("targets/*/include"))):
        if all((include / header).is_file() for header in _HEADERS):
            version = _VERSION.search((include / "cuda.h").read_text(encoding="utf-8", errors="replace"))
            return root if version is not None and int(version[1]) >= OLDEST else None
    return None


def _clang() -> dict[str, str] | None:
    """Return how bindgen is told of libclang, nothing where it finds it by itself; None if there is none."""
    if os.environ.get("LIBCLANG_PATH") or os.environ.get("LLVM_CONFIG_PATH") or shutil.which("llvm-config"):
        return {}
    packaged = _packaged("libclang", "clang/native/libclang.so")
    if packaged is not None:
        return {"LIBCLANG_PATH": str(packaged.parent), **_compiler_headers()}
    folders = [Path("/").glob(pattern) for pattern in _CLANG_PLACES]
    named = [Path(name) for name in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if name]
    there = (path for folder in (*named, *(one for some in folders for one in some)) for path in _libraries(folder))
    return None if next(there, None) is None else {}


def _libraries(folder: Path) -> Iterator[Path]:
    for pattern in _CLANG_FILES:
        yield from (path for path in folder.glob(pattern) if not path.name.startswith("libclang-cpp"))


def _compiler_headers() -> dict[str, str]:
    """Where the C compiler's own headers are: the package of libclang has none."""
    command = [os.environ.get("CC", "gcc"), "-print-file-name=include"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise MissingToolError(f"`{command[0]}` does not run", "install gcc, or name a C compiler in CC") from None
    return {"BINDGEN_EXTRA_CLANG_ARGS": f"-isystem {found}"}


def _packaged(package: str, path: str) -> Path | None:
    """Return a file of an installed package."""
    try:
        files = metadata.files(package) or ()
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if str(file).endswith(path):
            found = Path(os.path.normpath(str(file.locate())))
            return found if found.is_file() else None
    return None
