"""The library of kernels: found and loaded at the first launch, called through cffi."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import DriverError, LibraryError, from_code

ABI_VERSION = 1
NAME = "libcutile_kernels.so"
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
    int32_t reserved;
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
        """Return where the library is; raises LibraryError when it is nowhere."""
        given = os.environ.get(OVERRIDE)
        places = [Path(given)] if given else [self._root / NAME, self._root / "target" / "release" / NAME]
        for place in places:
            if place.is_file():
                return place
        where = f"{OVERRIDE} names {given}" if given else f"looked for {' and '.join(map(str, places))}"
        raise LibraryError(f"the library of kernels is not there ({where}); `transpile build {self._root}` makes it")

    def _load(self) -> None:
        path = self.path()
        try:
            cffi: Any = importlib.import_module("cffi")
        except ImportError:
            raise LibraryError("launching kernels needs cffi: run `pip install cffi`") from None
        ffi = cffi.FFI()
        ffi.cdef(CDEF + _prototypes(self._symbols))
        try:
            lib = ffi.dlopen(str(path))
            version = int(lib.cutile_kernels_abi_version())
        except (OSError, AttributeError) as exc:
            raise LibraryError(f"can't load {path}: {exc}") from None
        if version != ABI_VERSION:
            raise LibraryError(f"{path} has version {version} of the interface, not {ABI_VERSION}: build it again")
        self._ffi, self._lib = ffi, lib

    def function(self, symbol: str) -> Any:
        """Return a kernel's C function; raises LibraryError when the library doesn't have it."""
        _, lib = self.open()
        try:
            return getattr(lib, symbol)
        except AttributeError:
            raise LibraryError(f"{self.path()} has no kernel {symbol}: build it again") from None

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


def _prototypes(symbols: Iterable[str]) -> str:
    return "".join(f"cutile_kernel {symbol};\n" for symbol in symbols)


DEFAULT = Library(Path(__file__).resolve().parents[2])
"""The library of the folder that this package was copied into."""
