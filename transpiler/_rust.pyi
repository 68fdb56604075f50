"""The cuTile Rust compiler in this process (rust_runtime/): text of kernel.rs to Tile IR, no rustc, no GPU."""

from typing import final

version: str
"""Version of the extension itself."""

def versions() -> dict[str, str]:
    """Return the exact versions of cutile, cutile-compiler, cutile-ir and rustc that were built in."""

class CompileError(Exception):
    """Why a text could not be compiled: syntax, compiler error or compiler panic.

    ``line`` and ``column`` count from 1 in the text given to :class:`Module`; 0 means unknown.
    """

    message: str
    line: int
    column: int

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None: ...

@final
class Module:
    """A cuTile Rust module, parsed once and compiled as often as wanted.

    Each module has a thread of its own in which all its calls run, one after the other; several
    modules compile at the same time. Calls release the GIL. A forked child parses again on its first call.
    """

    def __new__(cls, source: str, name: str, file: str = "kernel.rs") -> Module:
        """Parse ``source``, which contains ``pub mod <name> { .. }``; ``file`` is what locations in the Tile IR say.

        Raises :class:`CompileError` when the text is no Rust or has no such module.
        """

    def compile(
        self,
        entry: str,
        *,
        generics: list[str],
        strides: list[tuple[str, list[int]]],
        specs: list[tuple[str, list[int], list[int], int]],
        scalar_hints: list[tuple[str, int]],
        target: str,
        occupancy: int | None = None,
        num_ctas: int | None = None,
        num_worker_warps: int | None = None,
        opt_level: int | None = None,
        grid: tuple[int, int, int] | None = None,
    ) -> bytes:
        """Return the Tile IR bytecode of one specialization of ``entry``.

        ``generics``: values of the generic parameters in order of declaration (``["f16", "1024"]``).
        ``strides``: per tensor parameter one value an axis, -1 for a stride read at run time.
        ``specs``: per tensor parameter (name, divisors of the extents, divisors of the strides, divisor of the
        base address in bytes), one item an axis, static axes included; 1 states nothing.
        ``scalar_hints``: known divisors of integer and pointer parameters (bytes for pointers).
        ``opt_level`` (0 to 3) is for the assembler and does not change the bytecode.
        Hints that are None leave what the entry's ``optimization_hints`` say.

        Raises :class:`CompileError` for everything that goes wrong in the compiler, panics included.
        """

    def ir_text(
        self,
        entry: str,
        *,
        generics: list[str],
        strides: list[tuple[str, list[int]]],
        specs: list[tuple[str, list[int], list[int], int]],
        scalar_hints: list[tuple[str, int]],
        target: str,
        occupancy: int | None = None,
        num_ctas: int | None = None,
        num_worker_warps: int | None = None,
        opt_level: int | None = None,
        grid: tuple[int, int, int] | None = None,
    ) -> str:
        """Return the compiler's own text of the Tile IR, before its verifiers run (to look at; not parsed)."""

def parse_fragment(text: str, declared: list[str] = ...) -> str:
    """Parse statements of the kernel language that end in a value; returns them as JSON.

    Placeholders (``$0``, ``$shape``) stand for operands and their types. ``declared`` are functions that may be called
    besides those of cutile. Everything that isn't part of the kernel language is refused (items, attributes, other
    macros, paths, methods, closures, loops without bounds, ``unsafe`` around anything but one call that needs it).

    Raises :class:`CompileError` with the place in ``text``.
    """

def callables() -> list[tuple[str, str, str, str, list[str], str, int]]:
    """Return the functions that kernels can call, from the source of cutile that was built in.

    Each: name, signature, first line of the documentation, Tile IR operation (or ""), what parameters are chosen from
    (``rounding={NearestEven, Zero}``), file, line.
    """
