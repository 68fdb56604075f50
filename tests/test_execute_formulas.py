"""The interpreter against plain NumPy: TileGym's kernels on natural inputs compute what their formulas say.

The reference's Tile IR is executed; that ours is the same is what the judge proves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from transpiler import toolkit
from transpiler.corpora import find_module
from transpiler.execute.inputs import dtype_named
from transpiler.reference.closure import extract_closure
from transpiler.reference.export import ReferenceExporter
from transpiler.reference.source import SourceTree
from transpiler.spec import ArraySpec, ConstantSpec, ParamSpec, ScalarSpec, Specialization
from transpiler.tileir import parse_entry
from transpiler.tileir.interpret import interpret
from transpiler.tileir.memory import Memory

Array = Any


@pytest.fixture(scope="module")
def exporter() -> Iterator[ReferenceExporter]:
    with ReferenceExporter(time_limit=60) as shared:
        yield shared


def run(
    exporter: ReferenceExporter, module: str, kernel: str, grid: tuple[int, ...], /, **arguments: Any
) -> dict[str, Array]:
    """Call a kernel: arrays and NumPy scalars are passed, Python numbers are constants; returns the arrays."""
    params: dict[str, ParamSpec] = {}
    memory, flat = Memory(), []
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            dtype = value.dtype.name
            assert dtype_named(dtype) == value.dtype
            params[name] = ArraySpec(dtype=dtype, ndim=value.ndim)
            strides = [s // value.itemsize for s in value.strides]
            flat += [memory.allocate(name, value), *value.shape, *strides]
        elif isinstance(value, np.generic):
            params[name] = ScalarSpec(dtype=value.dtype.name)
            flat.append(value)
        else:
            params[name] = ConstantSpec(value=value)
    closure = extract_closure(SourceTree(find_module(f"tilegym.ops.cutile.{module}").path), kernel)
    bytecode = exporter.export(closure, Specialization(name="formula", params=params), "sm_90").bytecode
    outcome = interpret(parse_entry(toolkit.disassemble(bytecode)), flat, grid, memory)
    assert not outcome.stopped and not outcome.findings, outcome.findings
    return {name: outcome.memory[name] for name in arguments if isinstance(arguments[name], np.ndarray)}


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def close(got: Array, expected: Array, tolerance: float) -> None:
    """Differences relative to the largest expected value, in f64."""
    assert got.shape == expected.shape
    error = np.abs(got.astype(np.float64) - expected).max() / np.abs(expected).max()
    assert error <= tolerance, error


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("columns", [9, 16])
def test_softmax(exporter: ReferenceExporter, columns: int) -> None:
    x = normal(7, columns)
    out = run(exporter, "softmax", "_softmax_kernel", (3,), output=np.zeros_like(x), input=x, N_ROWS=7, TILE_SIZE=16,
              DIM_COLS=columns)  # fmt: skip
    close(out["output"], softmax(x.astype(np.float64)), 4 * 2.0**-23)


def test_softmax_in_chunks(exporter: ReferenceExporter) -> None:
    """Two passes over a row that doesn't fit a tile."""
    x = normal(5, 150)
    out = run(exporter, "softmax", "_softmax_kernel_chunked", (2,), output=np.zeros_like(x), input=x, N_ROWS=5,
              N_COLS=150, TILE_SIZE=64)  # fmt: skip
    close(out["output"], softmax(x.astype(np.float64)), 16 * 2.0**-23)


def test_layer_norm(exporter: ReferenceExporter) -> None:
    """Rows in blocks, more columns in the tile than there are; the kernel writes bfloat16."""
    x, w, b = normal(13, 77), normal(77, seed=1), normal(77, seed=2)
    out = run(exporter, "layer_norm_legacy", "_persistent_layer_norm_fwd_kernel", (2,), X=x,
              Y=np.zeros(x.shape, ml_dtypes.bfloat16), W=w, B=b, Mean=np.zeros(13, np.float32),
              Rstd=np.zeros(13, np.float32), N=13, D=77, EPS=1e-6, STRIDE_X=77, STRIDE_Y=77, IS_SWISH=0, TRAINING=1,
              BLOCK_N=4, BLOCK_D=128, COMPUTE_MEAN_AND_RSTD=1, NUM_SMS=2)  # fmt: skip
    wide = x.astype(np.float64)
    mean, variance = wide.mean(-1, keepdims=True), wide.var(-1, keepdims=True)
    close(out["Mean"], mean[:, 0], 1e-6)
    close(out["Rstd"], 1 / np.sqrt(variance[:, 0] + 1e-6), 1e-6)
    close(out["Y"], (wide - mean) / np.sqrt(variance + 1e-6) * w + b, 2.0**-8)


def test_rms_norm(exporter: ReferenceExporter) -> None:
    x, w = normal(6, 100), normal(100, seed=1)
    out = run(exporter, "rms_norm", "_rms_norm_kernel_gather", (6,), x=x, w=w, out=np.zeros_like(x),
              Rstd=np.zeros(6, np.float32), N=100, EPS=1e-6, OFFSET=1.0, TILE_SIZE=32)  # fmt: skip
    wide = x.astype(np.float64)
    rstd = 1 / np.sqrt((wide**2).mean(-1) + 1e-6)
    close(out["Rstd"], rstd, 1e-6)
    close(out["out"], wide * rstd[:, None] * (1 + w), 1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_matmul(exporter: ReferenceExporter, dtype: str) -> None:
    """float32 is multiplied as tf32: 11 bits of each factor."""
    kind = dtype_named(dtype)
    a, b = normal(50, 70, dtype=kind), normal(70, 40, dtype=kind, seed=1)
    out = run(exporter, "matmul", "_matmul_kernel", (6,), A=a, B=b, C=np.zeros((50, 40), kind), TILE_SIZE_M=32,
              TILE_SIZE_N=16, TILE_SIZE_K=16)  # fmt: skip
    bits = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-10}
    close(out["C"], a.astype(np.float64) @ b.astype(np.float64), bits[dtype])


@pytest.mark.parametrize("causal", [True, False])
def test_attention(exporter: ReferenceExporter, causal: bool) -> None:
    """Two heads of queries for each head of keys; lengths that don't fit the tiles."""
    q, k, v = (normal(2, heads, 40, 16, dtype=np.float16, seed=heads + s) for s, heads in ((0, 4), (1, 2), (2, 2)))
    scale = np.float32(0.25)
    out = run(exporter, "attention", "_fmha_kernel", (3, 8), Q=q, K=k, V=v, Out=np.zeros_like(q), qk_scale=scale,
              input_pos=np.int32(0), TILE_D=16, H=4, TILE_M=16, TILE_N=16, QUERY_GROUP_SIZE=2, CAUSAL=causal,
              EVEN_K=False)  # fmt: skip
    wide = [np.repeat(t.astype(np.float64), 4 // t.shape[1], axis=1) for t in (q, k, v)]
    scores = wide[0] @ wide[1].swapaxes(-1, -2) * float(scale)
    if causal:
        scores = np.where(np.tri(40, dtype=bool), scores, -np.inf)
    close(out["Out"], softmax(scores) @ wide[2], 2.0**-10)


def test_rope(exporter: ReferenceExporter) -> None:
    """Halves of a head rotated by the position's angles, in place; what lies beyond stays."""
    q, k = normal(2, 4, 5, 40), normal(2, 2, 5, 40, seed=1)
    angles = np.concatenate([np.outer(np.arange(5), 0.1 ** np.arange(16))] * 2, axis=-1)[None]
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    out = run(exporter, "rope", "_rope_kernel", (10,), q=q, k=k, cos=cos, sin=sin, COS_BS=1, SEQ_LEN=5, TILE_QH=4,
              TILE_KH=2, TILE_RD=16)  # fmt: skip
    for name, x in (("q", q), ("k", k)):
        wide = x.astype(np.float64)
        one, two = wide[..., :16], wide[..., 16:32]
        turned = np.concatenate([-two, one], -1)
        expected = np.concatenate([wide[..., :32] * cos[:, None] + turned * sin[:, None], wide[..., 32:]], -1)
        close(out[name], expected, 2 * 2.0**-23)


def test_silu_and_mul(exporter: ReferenceExporter) -> None:
    x = normal(4, 2 * 48)
    out = run(exporter, "silu_and_mul", "_silu_and_mul_kernel_row_wise", (4,), input=x,
              output=np.zeros((4, 48), np.float32), TILE_SIZE=64, TOTAL_HIDDEN_SIZE=48)  # fmt: skip
    a, b = x[:, :48].astype(np.float64), x[:, 48:].astype(np.float64)
    close(out["output"], a / (1 + np.exp(-a)) * b, 4 * 2.0**-23)
