"""Write the corpus entries of tilegym.transformers: ``python -m tools.suite_manifests.transformers``."""

from __future__ import annotations

from typing import Any

from tools.suite_manifests.common import BF16, F16, F32, FLOAT, TAG, Entries, Suite, array, entry, main, pow2

_ROWS = [(BF16, 2048, 4096), (F16, 37, 777), (F32, 129, 1000), (BF16, 1, 256)]


def _rows(two: str, one: str, constants: tuple[str, ...], scalars: str = "eps") -> Entries:
    """Arrays of shape (N, D) and (D,), run-time floats, and the constants D and TILE_D."""
    found = []
    for t, m, d in _ROWS:
        arrays: dict[str, Any] = {name: array(t, m, d) for name in two.split()}
        arrays |= {name: array(t, d) for name in one.split()}
        values = {"D": d, "TILE_D": pow2(d)}
        found.append(entry(f"{TAG[t]}_{m}x{d}", **arrays, **dict.fromkeys(scalars.split(), FLOAT),
                           **{name: values[name] for name in constants}))  # fmt: skip
    return found


_BOTH = ("D", "TILE_D")


def dual_rms_norm(kernel: str) -> dict[str, Entries]:
    """Queries and keys, normalized in place."""
    return {kernel: _rows("q k", "q_weight k_weight", _BOTH)}


def residual_add_rms_norm(kernel: str, scalars: str) -> dict[str, Entries]:
    """The sum and its norm."""
    return {kernel: _rows("residual x sum_out normed_out", "weight", _BOTH, scalars)}


def rms_norm_residual_add() -> dict[str, Entries]:
    """The norm, then the sum."""
    return {"_rms_norm_residual_add_kernel": _rows("x residual out", "weight", _BOTH)}


def rms_norm_gated() -> dict[str, Entries]:
    """A norm times a gate."""
    return {"_rms_norm_gated_silu_kernel": _rows("hidden_states gate output", "weight", _BOTH)}


def sigmoid_mul() -> dict[str, Entries]:
    """A gate."""
    return {"_sigmoid_mul_kernel": _rows("x gate output", "", ("TILE_D",), "")}


def silu_and_mul_separate() -> dict[str, Entries]:
    """A gate on separate arrays."""
    return {"_silu_and_mul_separate_kernel": _rows("gate up output", "", ("TILE_D",), "")}


def gdr_preprocess() -> dict[str, Entries]:
    """Heads; A_log is f32, and so is the gate that comes out."""
    rows = [(BF16, 2048, 32), (F16, 37, 24), (F32, 1, 48)]
    return {"_gdr_preprocess_kernel": [
        entry(f"{TAG[t]}_{n}x{h}", b_in=array(t, n, h), a_in=array(t, n, h), A_log=array(F32, h),
              dt_bias=array(t, h), beta_out=array(t, n, h), g_out=array(F32, n, h), TILE_H=pow2(h))
        for t, n, h in rows
    ]}  # fmt: skip


_CONV = [(BF16, 2048, 512), (F16, 777, 333), (F32, 128, 1)]


def causal_conv1d_prefill() -> dict[str, Entries]:
    """Channels by time, padded on the left by two."""
    return {"_causal_conv1d_prefill_kernel": [
        entry(f"{TAG[t]}_{d}x{length}", x=array(t, d, length + 2), weight=array(t, d, 3),
              output=array(t, d, length), BLOCK_T=256)
        for t, d, length in _CONV
    ]}  # fmt: skip


def causal_conv1d_prefill_silu() -> dict[str, Entries]:
    """Channels by time, padded on the left by three."""
    return {"_causal_conv1d_prefill_silu_kernel": [
        entry(f"{TAG[t]}_{d}x{length}", x=array(t, d, length + 3), weight=array(t, d, 4),
              output=array(t, d, length), T=length, BLOCK_T=256)
        for t, d, length in _CONV
    ]}  # fmt: skip


def causal_conv1d_update(kernel: str, width: int) -> dict[str, Entries]:
    """One step; the state is updated in place."""
    return {kernel: [
        entry(f"{TAG[t]}_{d}", x=array(t, d), conv_state=array(t, d, width),
              weight=array(t, d, width), output=array(t, d), BLOCK_D=256)
        for t, d, _ in _CONV
    ]}  # fmt: skip


SUITE = Suite("transformers", "tilegym.transformers", {
    "lfm2_moe.kernels.causal_conv1d_prefill": causal_conv1d_prefill,
    "lfm2_moe.kernels.causal_conv1d_update": lambda: causal_conv1d_update(
        "_causal_conv1d_update_kernel", 3
    ),
    "olmo3.kernels.dual_rms_norm": lambda: dual_rms_norm("_dual_rms_norm_kernel"),
    "olmo3.kernels.rms_norm_residual_add": rms_norm_residual_add,
    "olmoe.kernels.dual_rms_norm": lambda: dual_rms_norm("_olmoe_dual_rms_norm_kernel"),
    "olmoe.kernels.residual_add_rms_norm": lambda: residual_add_rms_norm(
        "_olmoe_residual_add_rms_norm_kernel", "eps"
    ),
    "qwen3_5.kernels.causal_conv1d_prefill_silu": causal_conv1d_prefill_silu,
    "qwen3_5.kernels.causal_conv1d_update_silu": lambda: causal_conv1d_update(
        "_causal_conv1d_update_silu_kernel", 4
    ),
    "qwen3_5.kernels.gdr_preprocess": gdr_preprocess,
    "qwen3_5.kernels.residual_add_rms_norm": lambda: residual_add_rms_norm(
        "_residual_add_rms_norm_kernel", "eps offset"
    ),
    "qwen3_5.kernels.rms_norm_gated": rms_norm_gated,
    "qwen3_5.kernels.sigmoid_mul": sigmoid_mul,
    "qwen3_5.kernels.silu_and_mul_separate": silu_and_mul_separate,
})  # fmt: skip

if __name__ == "__main__":
    main(SUITE)
