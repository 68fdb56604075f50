"""The library of kernels: found and loaded at the first launch, called through cffi."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .build import ensure
from .errors import DriverError, LibraryError, from_code
from .fast import FastLaunches, Launch
from .needs import name_assembler

ABI_VERSION = 2
OVERRIDE = "CUTILE_KERNELS_LIBRARY"
"""Environment variable that names the library to load."""

CDEF = """
typedef struct {
    uint64_t data;
    int64_t shape[8];
    int64_t strides[8];
    int32_t ndim;
    int32_t dtype;
    int32_t device;
    int32_t form;
} cutile_tensor;

typedef struct {
    int32_t kind;
    int32_t reserved;
    union { int64_t integer; double number; const char *text; } payload;
} cutile_value;

typedef struct {
    uint32_t size;
    uint32_t flags;
    uint32_t grid[3];
    int32_t device;
    int32_t occupancy;
    int32_t num_ctas;
    int32_t num_worker_warps;
    int32_t opt_level_plus_one;
    uint64_t stream;
} cutile_launch;

typedef int32_t cutile_kernel(
    const cutile_tensor *arrays, size_t n_arrays,
    const cutile_value *scalars, size_t n_scalars,
    const cutile_value *constants, size_t n_constants,
    const cutile_launch *launch);

uint64_t cutile_kernels_launches(void);
const char *cutile_kernels_last_error(void);
const char *cutile_kernels_last_plan(void);
const char *cutile_kernels_status_name(int32_t code);
const char *cutile_kernels_target(int32_t device);
int32_t cutile_kernels_abi_version(void);
"""


class Library:
    """The library under a folder; nothing is loaded before :meth:`open`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._symbols: dict[str, None] = {}
        self._ffi: Any = None
        self._lib: Any = None
        self._targets: dict[int, str] = {}
        self._fast: FastLaunches | None = None

    def declare(self, symbols: Iterable[str]) -> None:
        """Make the C functions of kernels known."""
        with self._lock:
            new = [symbol for symbol in symbols if symbol not in self._symbols]
            self._symbols.update(dict.fromkeys(new))
            if self._ffi is not None and new:
                self._ffi.cdef(_prototypes(new))

    def open(self) -> tuple[Any, Any]:
        """Return cffi's ``ffi`` and the library; loads it the first time. Raises LibraryError."""
        if self._lib is None:
            with self._lock:
                if self._lib is None:
                    self._load()
        return self._ffi, self._lib

    def path(self) -> Path:
        """Return where the library is, built if need be; raises LibraryError when there is none."""
        given = os.environ.get(OVERRIDE)
        if not given:
            return ensure(self._root)
        if not Path(given).is_file():
            raise LibraryError(f"the library of kernels is not there ({OVERRIDE} names {given})")
        return Path(given)

    def _load(self) -> None:
        path = self.path()
        try:
            cffi: Any = importlib.import_module("cffi")
        except ImportError:
            raise LibraryError("launching kernels needs cffi: run `pip install cffi`") from None
        name_assembler()
        ffi = cffi.FFI()
        ffi.cdef(CDEF + _prototypes(self._symbols))
        try:
            lib = ffi.dlopen(str(path))
            version = int(lib.cutile_kernels_abi_version())
        except (OSError, AttributeError) as exc:
            raise LibraryError(f"can't load {path}: {exc}") from None
        if version != ABI_VERSION:
            raise LibraryError(f"{path} has version {version} of the interface, not {ABI_VERSION}: build it again")
        self._fast = FastLaunches(str(path))
        self._ffi, self._lib = ffi, lib
        _loaded.append(self)

    def function(self, symbol: str) -> Any:
        """Return a kernel's C function; raises LibraryError when the library doesn't have it."""
        _, lib = self.open()
        try:
            return getattr(lib, symbol)
        except AttributeError:
            raise LibraryError(f"{self.path()} has no kernel {symbol}: build it again") from None

    def fast(self, symbol: str, roles: str, hints: Sequence[int], device: int) -> Launch | None:
        """Return a kernel's launch function that needs no packing in Python, if there can be one."""
        function = self.function(symbol)
        address = int(self._ffi.cast("uintptr_t", function))
        return self._fast.make(address, roles, hints, device) if self._fast is not None else None

    def launches(self) -> int:
        """Return how many launches went through the library since it was loaded; loads nothing."""
        return int(self._lib.cutile_kernels_launches()) if self._lib is not None else 0

    def check(self, status: int) -> None:
        """Raise the exception for a code that isn't 0."""
        if status:
            ffi, lib = self.open()
            name = lib.cutile_kernels_status_name(status)
            code = ffi.string(name).decode() if name else str(status)
            raise from_code(code, ffi.string(lib.cutile_kernels_last_error()).decode())

    def last_plan(self) -> str:
        """Return what the last dry run of this thread found, as JSON."""
        ffi, lib = self.open()
        return str(ffi.string(lib.cutile_kernels_last_plan()).decode())

    def target(self, device: int) -> str:
        """Return a device's architecture, ``sm_90`` for instance."""
        known = self._targets.get(device)
        if known is None:
            ffi, lib = self.open()
            name = lib.cutile_kernels_target(device)
            if not name:
                raise DriverError(ffi.string(lib.cutile_kernels_last_error()).decode())
            known = self._targets[device] = ffi.string(name).decode()
        return known


_loaded: list[Library] = []


def launch_count() -> int:
    """Return how many launches of this process went through libraries of kernels."""
    return sum(library.launches() for library in _loaded)


def _prototypes(symbols: Iterable[str]) -> str:
    return "".join(f"cutile_kernel {symbol};\n" for symbol in symbols)


def _root(package: Path) -> Path:
    """Return the folder with the crate: two above this package, or ``cutile_kernels`` beside it (as TileGym has it)."""
    beside = package.parent / "cutile_kernels"
    return beside if (beside / "Cargo.toml").is_file() else package.parent.parent


DEFAULT = Library(_root(Path(__file__).resolve().parent))
"""The library of the folder that this package was copied into."""
