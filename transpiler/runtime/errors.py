"""What can go wrong: one exception class for each kind of mistake, and the codes of the C interface."""

from __future__ import annotations

from typing import ClassVar


class CutileError(Exception):
    """A call of a kernel that failed; ``code`` is the name of the C interface's code."""

    code: ClassVar[str] = ""


class LibraryError(CutileError, OSError):
    """The library of kernels is missing, can't be loaded, or belongs to another version."""

    code = "ABI_MISMATCH"


class BuildError(LibraryError):
    """The library could not be built; the one that was there before, if any, is still there."""


class MissingToolError(BuildError):
    """What cargo needs isn't here, so it was not started; ``diagnostic`` is the transpiler's code for that."""

    def __init__(self, message: str, help: str, diagnostic: str = "E0650") -> None:
        super().__init__(f"{message} [{diagnostic}]: {help}")
        self.message, self.help, self.diagnostic = message, help, diagnostic


class ArgumentError(CutileError, TypeError):
    """Too many or too few arguments, or one that is no array, number or constant."""

    code = "ARGUMENT_COUNT"


class DTypeError(CutileError, TypeError):
    """An array whose elements have a type that the kernel was not translated for."""

    code = "DTYPE"


class RankError(CutileError, ValueError):
    """An array of a rank that the kernel was not translated for."""

    code = "RANK"


class DeviceError(CutileError, ValueError):
    """An array that isn't on the GPU, or not on the same one as the others."""

    code = "DEVICE"


class LayoutError(CutileError, ValueError):
    """A shape or stride that kernels can't work with: negative, too large, or no whole number of elements."""

    code = "STRIDE"


class GridError(CutileError, ValueError):
    """A grid without blocks, or one that is too large."""

    code = "GRID"


class HintError(CutileError, ValueError):
    """A hint out of range, or one that is unknown."""

    code = "HINT"


class UnknownHintError(HintError, TypeError):
    """A hint that there isn't: a keyword that cuda.tile refuses, too."""


class NoEntryError(CutileError, LookupError):
    """The kernel was not translated for these constants."""

    code = "NO_ENTRY"


class DriverError(CutileError, RuntimeError):
    """There is no CUDA driver, or it does not work."""

    code = "NO_DRIVER"


class CompileError(CutileError, RuntimeError):
    """The kernel doesn't compile for this device."""

    code = "COMPILE"


class LaunchError(CutileError, RuntimeError):
    """The driver refused the launch."""

    code = "LAUNCH"


class InternalError(CutileError, RuntimeError):
    """A mistake in the library."""

    code = "PANIC"


_BY_CODE: dict[str, type[CutileError]] = {
    "NULL_POINTER": LayoutError,
    "ABI_MISMATCH": LibraryError,
    "ARGUMENT_COUNT": ArgumentError,
    "RANK": RankError,
    "DTYPE": DTypeError,
    "SHAPE": LayoutError,
    "STRIDE": LayoutError,
    "INDEX_OVERFLOW": LayoutError,
    "DEVICE": DeviceError,
    "VALUE": ArgumentError,
    "GRID": GridError,
    "HINT": HintError,
    "NO_ENTRY": NoEntryError,
    "NO_DRIVER": DriverError,
    "COMPILE": CompileError,
    "LAUNCH": LaunchError,
    "PANIC": InternalError,
}


_NO_ASSEMBLER = "failed to launch tileiras"
_GET_ASSEMBLER = (
    "; run `pip install 'cuda-tile[tileiras]'`, or name a CUDA toolkit (13.2 or newer) in CUDA_TOOLKIT_PATH"
)


def from_code(name: str, message: str) -> CutileError:
    """Return the exception for a code of the C interface."""
    hint = _GET_ASSEMBLER if _NO_ASSEMBLER in message else ""
    return _BY_CODE.get(name, InternalError)(f"{message} [{name}]{hint}")
