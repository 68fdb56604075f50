"""Machine code as evidence: assemble both sides' Tile IR with tileiras and compare what the GPU would run.

The assembler is deterministic, and a kernel's ``.text`` doesn't depend on its symbol, so byte equality
of the sections makes equal speed a fact.  Registers, shared memory, stack, block and cluster shape are
compared too: they are part of what is launched, and stand outside ``.text``.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import re
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Literal

from transpiler.diagnostics import TranspileError, error
from transpiler.temporary import signals_held, temporary_folder
from transpiler.toolkit import TILEIRAS, locate, tool_environment

Outcome = Literal["identical", "differs", "refused"]
TIMEOUT = 600.0
"""Seconds after which the assembler is stopped; most kernels take from 0.3 to 10."""

_ATTRIBUTES = {
    0x10: "threads per block",
    0x11: "frame size",
    0x12: "stack size",
    0x1B: "register limit",
    0x2F: "registers",
    0x38: "mbarriers",
    0x3D: "blocks per cluster",
    0x4C: "barriers",
}
"""Numbers of the .nv.info records that are compared, and what they say."""
_DATA = re.compile(r"\.nv\.(constant[1-9]\d*|global\.init)")


@dataclass(frozen=True)
class MachineCode:
    """A kernel's machine code and what stands beside it in the cubin."""

    symbol: str
    text: bytes
    properties: dict[str, int | tuple[int, ...]] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)
    """Other code and constants: section name without the symbol -> contents."""

    @property
    def registers(self) -> int:
        """Registers per thread."""
        value = self.properties.get("registers", 0)
        return value if isinstance(value, int) else value[0]

    @property
    def shared_memory(self) -> int:
        """Bytes of statically allocated shared memory."""
        value = self.properties.get("shared memory", 0)
        return value if isinstance(value, int) else value[0]


@dataclass(frozen=True)
class CubinComparison:
    """The outcome, why, and both sides' code where there is any."""

    outcome: Outcome
    reasons: tuple[str, ...] = ()
    reference: MachineCode | None = None
    ours: MachineCode | None = None


def compare_cubins(
    reference: bytes,
    ours: bytes,
    *,
    arch: str,
    symbols: tuple[str | None, str | None] = (None, None),
    cache: Path | None = None,
    timeout: float = TIMEOUT,
    tileiras: Path | None = None,
) -> CubinComparison:
    """Assemble both sides' bytecode for ``arch`` and compare the machine code.

    ``symbols`` names the kernel on each side (None: the file's only one).  ``refused`` means that the
    assembler refuses the reference (its message is the reason); if it refuses only ours, they differ.
    Raises E0662 when a cubin lacks the kernel's code, and the toolkit's codes when there is no assembler.
    """
    codes: list[MachineCode] = []
    for side, bytecode, symbol in (("reference", reference, symbols[0]), ("ours", ours, symbols[1])):
        try:
            cubin = assemble(bytecode, arch=arch, cache=cache, timeout=timeout, tileiras=tileiras)
        except TranspileError as exc:
            if exc.diagnostic.code not in ("E0660", "E0661"):
                raise
            outcome: Outcome = "refused" if side == "reference" else "differs"
            reason = exc.diagnostic.message if side == "reference" else f"ours: {exc.diagnostic.message}"
            return CubinComparison(outcome, (reason,), *codes)
        codes.append(read_cubin(cubin, symbol))
    reasons = differences(*codes)
    return CubinComparison("differs" if reasons else "identical", reasons, *codes)


def differences(reference: MachineCode, ours: MachineCode) -> tuple[str, ...]:
    """Say in what two kernels' machine code differs; empty when it is identical."""
    found: list[str] = []
    if reference.text != ours.text:
        found.append(_text_difference(reference.text, ours.text))
    for name in sorted({*reference.properties, *ours.properties}):
        theirs, mine = reference.properties.get(name), ours.properties.get(name)
        if theirs != mine:
            found.append(f"{name}: {_show(mine)} instead of {_show(theirs)}")
    for name in sorted({*reference.data, *ours.data}):
        if reference.data.get(name) != ours.data.get(name):
            found.append(f"section {name} differs")
    return tuple(found)


def _text_difference(reference: bytes, ours: bytes) -> str:
    if len(reference) != len(ours):
        return f"code: {len(ours)} bytes instead of {len(reference)}"
    count = sum(reference[i : i + 16] != ours[i : i + 16] for i in range(0, len(ours), 16))
    return f"code: {count} of {len(ours) // 16} instructions differ"


def _show(value: int | tuple[int, ...] | None) -> str:
    if value is None:
        return "none"
    return str(value) if isinstance(value, int) else "x".join(map(str, value))


def assemble(
    bytecode: bytes,
    *,
    arch: str,
    cache: Path | None = None,
    timeout: float = TIMEOUT,
    tileiras: Path | None = None,
) -> bytes:
    """Return the cubin for Tile IR bytecode, from the cache when it was assembled before.

    ``cache`` is a directory (default: :func:`cache_directory`).  Raises E0660 with the assembler's
    message when it refuses the bytecode (remembered too), E0661 when it doesn't end in time.
    """
    directory = cache or cache_directory()
    tool = tileiras or locate(TILEIRAS)
    key = hashlib.sha256(b"\0".join((bytecode, arch.encode(), assembler_version(tool).encode()))).hexdigest()
    kept, refusal = directory / f"{key}.cubin", directory / f"{key}.refused"
    if kept.is_file():
        return kept.read_bytes()
    if refusal.is_file():
        raise error("E0660", refusal.read_text())
    directory.mkdir(parents=True, exist_ok=True)
    try:
        cubin = _run(tool, bytecode, arch, timeout)
    except TranspileError as exc:
        if exc.diagnostic.code == "E0660":
            _write(refusal, exc.diagnostic.message.encode())
        raise
    _write(kept, cubin)
    return cubin


def cache_directory() -> Path:
    """Return where cubins are kept: ``$XDG_CACHE_HOME/cutile-transpiler/cubins``."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "cutile-transpiler" / "cubins"


@functools.cache
def assembler_version(tool: Path) -> str:
    """Return what a cubin depends on beside its bytecode: the versions of the assembler and its parts."""
    try:
        done = subprocess.run([str(tool), "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise error("E0652", f"`{tool.name}` does not run: {exc}") from None
    parts = [done.stdout.strip()]
    for package in ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm"):
        try:
            parts.append(metadata.version(package))
        except metadata.PackageNotFoundError:
            parts.append("none")
    return "\n".join(parts)


def _run(tool: Path, bytecode: bytes, arch: str, timeout: float) -> bytes:
    """Run the assembler on a file of its own; E0660 when it fails, E0661 when it is too slow."""
    with temporary_folder("cubin-") as folder:
        source, result = folder / "kernel.tileirbc", folder / "kernel.cubin"
        source.write_bytes(bytecode)
        command = [str(tool), "--gpu-name", arch, str(source), "-o", str(result)]
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=timeout, env=tool_environment(), check=False, cwd=folder
            )
        except OSError as exc:
            raise error("E0652", f"`{tool.name}` does not run: {exc.strerror}") from None
        except subprocess.TimeoutExpired:
            raise error("E0661", f"the assembler did not end within {timeout:g} seconds for {arch}") from None
        if done.returncode or not result.is_file():
            said = done.stderr.decode(errors="replace").replace(str(source), "kernel").strip()
            first = said.splitlines()[0] if said else f"exit status {done.returncode}"
            raise error("E0660", f"the assembler refuses the kernel for {arch}: {first}")
        return result.read_bytes()


def _write(path: Path, content: bytes) -> None:
    """Write a cache file so that readers see all of it or nothing."""
    with signals_held():
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def read_cubin(cubin: bytes, symbol: str | None = None) -> MachineCode:
    """Read a kernel's machine code; ``symbol`` may be a prefix of its name, None means the only kernel.

    Raises E0662 when the file is no cubin or has no code for the kernel.
    """
    sections = _sections(cubin)
    entries = [name[6:] for name in sections if name.startswith(".text.")]
    chosen = [s for s in entries if s == symbol] or [s for s in entries if symbol is None or s.startswith(symbol)]
    if len(chosen) != 1:
        wanted = f"`.text.{symbol}`" if symbol else "one kernel"
        raise error("E0662", f"the cubin has code for {', '.join(entries) or 'nothing'}; wanted {wanted}")
    name = chosen[0]
    text, _ = sections[f".text.{name}"]
    if not text or f".nv.info.{name}" not in sections:
        raise error("E0662", f"the cubin's sections for `{name}` are incomplete")
    shared = sections.get(f".nv.shared.{name}", (b"", 0))[1]
    properties: dict[str, int | tuple[int, ...]] = {"shared memory": shared}
    for info in (".nv.info", f".nv.info.{name}"):
        properties.update(_records(sections.get(info, (b"", 0))[0]))
    if "registers" not in properties:
        raise error("E0662", f"the cubin doesn't say how many registers `{name}` uses")
    data = {
        section.replace(f".{name}", ""): content
        for section, (content, _) in sections.items()
        if _DATA.match(section) or (section.startswith(".text.") and section != f".text.{name}")
    }
    return MachineCode(name, text, properties, data)


def _sections(cubin: bytes) -> dict[str, tuple[bytes, int]]:
    """Return each section's contents and size (a section without bits has contents of no length)."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file = ELFFile(io.BytesIO(cubin))
        return {
            section.name: (b"" if section["sh_type"] == "SHT_NOBITS" else section.data(), section["sh_size"])
            for section in file.iter_sections()
        }
    except (ELFError, UnicodeDecodeError, ValueError) as exc:
        raise error("E0662", f"not a cubin: {exc}") from None


def _records(info: bytes) -> dict[str, int | tuple[int, ...]]:
    """Decode the records of an ``.nv.info`` section that are compared.

    A record is a format byte, a number, and for format 4 a 16-bit length and as many bytes, else two bytes.
    """
    found: dict[str, int | tuple[int, ...]] = {}
    at = 0
    while at + 4 <= len(info):
        form, number, short = struct.unpack_from("<BBH", info, at)
        at += 4
        value: int | tuple[int, ...] = short
        if form == 4:
            words = struct.unpack_from(f"<{short // 4}I", info, at)
            at += short
            value = words[1] if number in (0x11, 0x12, 0x2F) and len(words) == 2 else tuple(words)
        elif form not in (1, 2, 3):
            raise error("E0662", f"the cubin has an information record of unknown format {form}")
        if number in _ATTRIBUTES:
            found[_ATTRIBUTES[number]] = value
    return found
