"""Machine code: reading cubins, the cache, and the three outcomes (small kernels only: seconds)."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from transpiler import cubin
from transpiler.diagnostics import TranspileError

BYTECODE = Path(__file__).parent / "tileir_cases"


def bytecode(name: str) -> bytes:
    return (BYTECODE / f"{name}.tileirbc").read_bytes()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cubins"


def test_identical_although_the_symbol_differs(cache: Path) -> None:
    result = cubin.compare_cubins(bytecode("copy"), bytecode("copy_renamed"), arch="sm_90", cache=cache)
    assert result.outcome == "identical", result.reasons
    assert result.reference is not None and result.ours is not None
    assert result.reference.symbol != result.ours.symbol
    assert result.reference.registers > 0
    assert result.reference.properties["threads per block"]


def test_another_cluster_or_code_differs(cache: Path) -> None:
    result = cubin.compare_cubins(bytecode("copy"), bytecode("copy_clustered"), arch="sm_90", cache=cache)
    assert result.outcome == "differs"
    assert any("blocks per cluster: 2x1x1 instead of none" in r for r in result.reasons), result.reasons


def test_refused_by_the_assembler(cache: Path) -> None:
    broken = bytecode("copy")[:40]
    result = cubin.compare_cubins(broken, bytecode("copy"), arch="sm_90", cache=cache)
    assert result.outcome == "refused"
    assert "refuses the kernel" in result.reasons[0]
    assert str(cache) not in result.reasons[0] and "/tmp" not in result.reasons[0]
    result = cubin.compare_cubins(bytecode("copy"), broken, arch="sm_90", cache=cache)
    assert result.outcome == "differs"
    assert result.reasons[0].startswith("ours: ")


def test_cubins_and_refusals_are_cached(cache: Path, tmp_path: Path) -> None:
    first = cubin.assemble(bytecode("copy"), arch="sm_90", cache=cache)
    assert len(list(cache.glob("*.cubin"))) == 1
    kept = next(cache.glob("*.cubin"))
    kept.write_bytes(b"kept")
    assert cubin.assemble(bytecode("copy"), arch="sm_90", cache=cache) == b"kept" != first
    for _ in range(2):
        with pytest.raises(TranspileError) as caught:
            cubin.assemble(b"nothing", arch="sm_90", cache=cache)
        assert caught.value.diagnostic.code == "E0660"
    assert len(list(cache.glob("*.refused"))) == 1
    assert not list(cache.glob(".new-*"))


def test_a_time_limit(cache: Path) -> None:
    with pytest.raises(TranspileError) as caught:
        cubin.assemble(bytecode("copy"), arch="sm_90", cache=cache, timeout=0.001)
    assert caught.value.diagnostic.code == "E0661"
    assert not list(cache.iterdir())


def test_a_missing_section_is_an_error(cache: Path) -> None:
    image = cubin.assemble(bytecode("copy"), arch="sm_90", cache=cache)
    assert cubin.read_cubin(image, "cop").text == cubin.read_cubin(image).text
    for broken, symbol in ((image, "paste"), (image.replace(b".text.copy", b".data.copy"), None), (b"\x7fELF", None)):
        with pytest.raises(TranspileError) as caught:
            cubin.read_cubin(broken, symbol)
        assert caught.value.diagnostic.code == "E0662"


def test_differences_name_what_differs() -> None:
    a = cubin.MachineCode("a", b"x" * 32, {"registers": 10, "shared memory": 0}, {".nv.constant2": b"1"})
    b = cubin.MachineCode("b", b"x" * 16 + b"y" * 16, {"registers": 12, "shared memory": 0}, {})
    assert cubin.differences(a, a) == ()
    assert cubin.differences(a, b) == (
        "code: 1 of 2 instructions differ",
        "registers: 12 instead of 10",
        "section .nv.constant2 differs",
    )


def test_records_of_unknown_format_are_errors() -> None:
    with pytest.raises(TranspileError):
        cubin._records(struct.pack("<BBH", 9, 0x10, 0))


def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cubin.cache_directory() == Path("/somewhere/cutile-transpiler/cubins")
