"""Which dtypes, ranks and constants default specializations have: what host code and kernel bodies demand."""

from __future__ import annotations

from pathlib import Path

import pytest

from transpiler.frontend.defaults import default_specializations
from transpiler.spec import ArraySpec, ConstantSpec

HEAD = "import cuda.tile as ct\nimport torch\n\n\n"


def first(tmp_path: Path, kernel: str, host: str = "") -> dict[str, object]:
    """The parameters of the first specialization of ``kernel``: dtype and rank, or a constant's value."""
    path = tmp_path / "k.py"
    path.write_text(f"{HEAD}@ct.kernel\ndef k{kernel}\n\n\n{host}\n", encoding="utf-8")
    found: dict[str, object] = {}
    for name, param in default_specializations(path, "k").specializations[0].params.items():
        match param:
            case ArraySpec(dtype=dtype, ndim=ndim):
                found[name] = (dtype, ndim)
            case ConstantSpec(value=value):
                found[name] = value
            case other:
                found[name] = other
    return found


LAUNCH = "    ct.launch(torch.cuda.current_stream(), (1,), k, (x, y, 64))"
COPY = "(x, y, T: ct.Constant[int]):\n    ct.store(y, (0,), ct.load(x, (0,), (T,)))"


@pytest.mark.parametrize("demand", [
    "    assert x.dtype == torch.int32 and x.ndim == 1",
    "    assert x.dtype in (torch.int32, torch.int64)",
    "    if x.dtype != torch.int32:\n        raise TypeError(x.dtype)",
    "    if x.dtype not in [torch.int32]:\n        raise TypeError",
])  # fmt: skip
def test_a_dtype_that_the_host_code_demands(tmp_path: Path, demand: str) -> None:
    found = first(tmp_path, COPY, f"def run(x):\n{demand}\n    y = torch.empty_like(x)\n{LAUNCH}")
    assert found["x"] == ("int32", 1)
    assert found["y"] == ("int32", 1)


def test_a_rank_that_the_host_code_demands(tmp_path: Path) -> None:
    kernel = "(x, y, T: ct.Constant[int]):\n    ct.store(y, (0,), ct.zeros((T,), dtype=x.dtype))"
    assert first(tmp_path, kernel, f"def run(x, y):\n    assert x.dim() == 3\n{LAUNCH}")["x"] == ("float16", 3)


def test_an_assertion_on_another_tensor_says_nothing(tmp_path: Path) -> None:
    found = first(tmp_path, COPY, f"def run(x, y, z):\n    assert z.dtype == torch.int32\n{LAUNCH}")
    assert found["x"] == ("float16", 1)


def test_what_is_stored_into_an_array_has_its_dtype(tmp_path: Path) -> None:
    kernel = """(sums, offsets, N: ct.Constant[int]):
    v = ct.load(sums, (0,), (N,))
    ct.store(offsets, (0,), ct.cumsum(v) - v)"""
    assert first(tmp_path, kernel) == {"sums": ("float16", 1), "offsets": ("float16", 1), "N": 64}


def test_indices_through_arithmetic_and_selection_are_integers(tmp_path: Path) -> None:
    kernel = """(values, counts, lo, T: ct.Constant[int]):
    v = ct.gather(values, ct.arange(T, dtype=ct.int32))
    at = ct.where(v >= lo, v - lo, -1)
    ct.atomic_add(counts, at, 1)"""
    found = first(tmp_path, kernel)
    assert found["values"] == ("int32", 1)
    assert found["counts"] == ("float16", 1)


def test_an_integer_product_has_integer_factors(tmp_path: Path) -> None:
    kernel = """(a, b, scale, c, T: ct.Constant[int]):
    acc = ct.zeros((T, T), dtype=ct.int32)
    for i in range(ct.num_tiles(a, axis=1, shape=(T, T))):
        x = ct.load(a, (0, i), (T, T))
        acc = ct.mma(x, ct.load(b, (i, 0), (T, T)), acc=acc)
    ct.store(c, (0, 0), acc.astype(ct.float32) * ct.load(scale, (0,), (T,)))"""
    found = first(tmp_path, kernel)
    assert found["a"] == found["b"] == ("int8", 2)
    assert found["scale"] == ("float16", 1)
    assert found["c"] == ("float32", 2)


def test_dtypes_of_what_is_stored(tmp_path: Path) -> None:
    kernel = """(x, q, best, m, T: ct.Constant[int]):
    v = ct.load(x, (0, 0), (T, T))
    wide = v.astype(ct.float32)
    ct.store(q, (0, 0), v.astype(ct.int8))
    ct.store(best, (0,), ct.argmax(v, axis=1))
    ct.store(m, (0, 0), 0.1 * ct.load(m, (0, 0), (T, T)) + wide**2)"""
    found = first(tmp_path, kernel)
    assert [found[name] for name in ("q", "best", "m")] == [("int8", 2), ("int32", 1), ("float32", 2)]


def test_floats_at_run_time_and_what_helpers_return_are_wide(tmp_path: Path) -> None:
    kernel = """(x, y, z, total, scale: float, T: ct.Constant[int]):
    v = ct.load(x, (0,), (T,))
    a, b = widen(v), v * scale
    ct.store(y, (0,), a)
    ct.store(z, (0,), b)
    ct.atomic_add(total, 0, ct.sum(a))


def widen(v):
    w = v.astype(ct.float32)
    return 1 / (1 + ct.exp(-w))"""
    found = first(tmp_path, kernel)
    assert found["x"] == ("float16", 1)
    assert found["y"] == found["z"] == found["total"] == ("float32", 1)


def test_ranks_of_slices_and_tiled_views(tmp_path: Path) -> None:
    kernel = """(x, y, z, T: ct.Constant[int]):
    part = x.slice(axis=0, start=0, stop=T)
    ct.store(y.tiled_view((T, T, T)), (0, 0, 0), ct.load(part, (0, 0), (T, T)))
    ct.store(z, (0,), ct.zeros((T,), dtype=ct.float32))"""
    found = first(tmp_path, kernel)
    assert (found["x"], found["y"]) == (("float16", 2), ("float16", 3))


def test_a_string_is_a_constant_as_it_stands(tmp_path: Path) -> None:
    kernel = "(x, y, T: ct.Constant[int], MODE: ct.Constant[str]):\n    ct.store(y, (0,), ct.load(x, (0,), (T,)))"
    host = 'def run(x, y):\n    ct.launch(torch.cuda.current_stream(), (1,), k, (x, y, 64, "mean"))'
    assert first(tmp_path, kernel, host)["MODE"] == "mean"
