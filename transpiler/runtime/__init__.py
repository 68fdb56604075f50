"""What generated Python modules run on: kernels as objects, launches, tuning.

This package is copied into every generated folder; it imports nothing of the transpiler, and neither torch
nor cffi nor the library before the first launch.
"""

from __future__ import annotations

from .decorator import tile_kernel
from .errors import (
    ArgumentError,
    CompileError,
    CutileError,
    DeviceError,
    DriverError,
    DTypeError,
    GridError,
    HintError,
    InternalError,
    LaunchError,
    LayoutError,
    LibraryError,
    NoEntryError,
    RankError,
    UnknownHintError,
)
from .kernel import Array, Constant, Kernel, List, Scalar, launch
from .library import Library, launch_count
from .limits import compiler_timeout
from .tuning import Measurement, TuningResult, exhaustive_search

__all__ = [
    "ArgumentError",
    "Array",
    "CompileError",
    "Constant",
    "CutileError",
    "DTypeError",
    "DeviceError",
    "DriverError",
    "GridError",
    "HintError",
    "InternalError",
    "Kernel",
    "LaunchError",
    "LayoutError",
    "Library",
    "LibraryError",
    "List",
    "Measurement",
    "NoEntryError",
    "RankError",
    "Scalar",
    "TuningResult",
    "UnknownHintError",
    "compiler_timeout",
    "exhaustive_search",
    "launch",
    "launch_count",
    "tile_kernel",
]
