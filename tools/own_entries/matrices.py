"""Matrix products with something around them: quantized operands, gates, gradients of experts; quantization."""

from __future__ import annotations

from tools.own_entries.common import BF16, F16, F32, TAG, Entries, entry
from transpiler.recordings import array_for

E4M3 = "float8_e4m3fn"


def w8a8() -> dict[str, Entries]:
    """fp8 with one scale a block of 128 x 128; tiles or gathers, operands swapped or not, three output dtypes."""
    rows = [
        (F16, 1024, 2048, 512, 64, False, True), (BF16, 100, 384, 256, 32, True, False),
        (F32, 77, 1000, 777, 16, False, False), (BF16, 128, 256, 1024, 128, True, True),
        (F32, 333, 129, 65, 64, True, True), (F16, 1, 256, 256, 16, False, False),
    ]  # fmt: skip
    found = []
    for t, m, n, k, block_m, swap, tma in rows:
        groups_n, groups_k = -(-n // 128), -(-k // 128)
        flags = "_swap" * swap + ("_tma" if tma else "_gather")
        found.append(entry(
            f"{TAG[t]}_{m}x{n}x{k}{flags}", {"num_ctas": 1, "occupancy": 2}, A=array_for(E4M3, [m, k]),
            B=array_for(E4M3, [n, k]), C=array_for(t, [m, n]), As=array_for(F32, [m, groups_k]),
            Bs=array_for(F32, [groups_n, groups_k]), M=m, N=n, K=k, GROUP_N=128, GROUP_K=128, STRIDE_AM=k,
            STRIDE_AK=1, STRIDE_BK=1, STRIDE_BN=k, STRIDE_CM=n, STRIDE_CN=1, STRIDE__AS_M=groups_k, STRIDE__AS_K=1,
            STRIDE__BS_K=1, STRIDE__BS_N=groups_k, BLOCK_SIZE_M=block_m, BLOCK_SIZE_N=128, BLOCK_SIZE_K=128,
            GROUP_SIZE_M=16, OUTPUT_DTYPE=(F32, F16, BF16).index(t), SWAP_AB=int(swap), USE_TMA=int(tma),
        ))  # fmt: skip
    return {"_w8a8_block_fp8_matmul_kernel": found}


def linear_gluact() -> dict[str, Entries]:
    """Two products and an activation: SiLU, ReLU and GELU."""
    rows = [(F16, 1024, 2048, 512, 0, (128, 128, 64)), (BF16, 512, 1000, 777, 1, (128, 128, 32)),
            (F16, 77, 333, 129, 2, (64, 64, 64)), (F32, 64, 96, 65, 0, (32, 64, 32)),
            (BF16, 256, 256, 128, 2, (32, 32, 32))]  # fmt: skip
    found = []
    for t, m, n, k, act, (block_m, block_n, block_k) in rows:
        arrays = {name: array_for(t, [m, n]) for name in ("Act_out", "Noact_out", "Mul_out")}
        found.append(entry(
            f"{TAG[t]}_{m}x{n}x{k}_{('silu', 'relu', 'gelu')[act]}", {"num_ctas": 1, "occupancy": 1},
            Input=array_for(t, [m, k]), Weight_act=array_for(t, [n, k]), Weight_noact=array_for(t, [n, k]), **arrays,
            M=m, N1=n, K=k, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8, ACT_TYPE=act,
        ))  # fmt: skip
    return {"_linear_gluact_fwd_kernel": found}


_ACTIVATIONS = ("swiglu", "geglu", "reglu", "silu", "relu", "gelu", "relu_sq")


def moe_actgrad() -> dict[str, Entries]:
    """Every activation; gated ones halve the columns and may be done in strips of 32 columns."""
    rows = [
        (BF16, 1024, 2, 8, 512, 256, 0, 128, 1), (F16, 100, 3, 4, 333, 96, 1, 128, 1),
        (BF16, 512, 2, 8, 4096, 1000, 1, 256, 8), (F16, 256, 4, 16, 128, 128, 2, 128, 4),
        (BF16, 77, 1, 3, 96, 100, 3, 128, 1), (F16, 128, 2, 4, 256, 512, 4, 128, 1),
        (BF16, 256, 2, 4, 256, 512, 5, 128, 1), (F16, 256, 2, 4, 100, 77, 6, 128, 1),
        (F32, 64, 2, 4, 64, 64, 0, 128, 1),
    ]  # fmt: skip
    found = []
    for t, tokens, k, experts, hidden, inner, act, block_n, strips in rows:
        total, wide = tokens * k, inner * (2 if act < 3 else 1)
        index = array_for("int32", [total])
        found.append(entry(
            f"{TAG[t]}_t{tokens}_k{k}_e{experts}_h{hidden}_i{inner}_{_ACTIVATIONS[act]}_nsub{strips}",
            {"num_ctas": 1, "occupancy": 1}, dout_ptr=array_for(t, [tokens, hidden]), x_gather_idx_ptr=index,
            w2_trans_ptr=array_for(t, [experts, inner, hidden]), z_ptr=array_for(t, [total, wide]),
            topk_scores_ptr=array_for(F32, [total]), s_scatter_idx_ptr=index,
            expert_offset_ptr=array_for("int32", [experts + 1]), dz_ptr=array_for(t, [total, wide]),
            y1s_ptr=array_for(t, [total, inner]), ds_ptr=array_for(F32, [total]), hidden_dim=hidden,
            intermediate_dim=inner, BLOCK_M=128 if block_n == 128 else 64, BLOCK_N=block_n, BLOCK_K=64,
            ACTIVATION_TYPE=act, IS_GLU=int(act < 3), EPI_NSUB=strips,
        ))  # fmt: skip
    return {"_moe_actgrad_bwd_kernel": found}


def nvfp4() -> dict[str, Entries]:
    """128 x 64 blocks, with masks when the rows or columns don't fill them; fp4 needs sm_100."""
    found = []
    for t, rows, cols, occupancy in [(BF16, 1024, 2048, 6), (F16, 1000, 144, 6), (F32, 128, 80, 4), (BF16, 77, 64, 6)]:
        blocks_m, blocks_n = -(-rows // 128), -(-cols // 64)
        item = entry(
            f"{TAG[t]}_{rows}x{cols}", {"occupancy": occupancy}, x=array_for(t, [rows, cols]),
            scales_out=array_for("uint8", [blocks_m * blocks_n * 512]),
            packed_out=array_for("uint8", [rows, cols // 2]), s_enc=array_for(F32, [1]),
            NUM_N_BLOCKS=blocks_n, NUM_M_BLOCKS=blocks_m, NUM_COLS=cols, NUM_ROWS=rows,
            USE_COL_MASK=cols % 64 != 0, USE_ROW_MASK=rows % 128 != 0,
        )  # fmt: skip
        found.append(item.model_copy(update={"target": "sm_100"}))
    return {"_nvfp4_quant_kernel": found}


def gelu() -> dict[str, Entries]:
    """Flattened arrays, exact and by tanh."""
    rows = [(BF16, 65536, 0), (F16, 1000003, 1), (F32, 777, 0), (BF16, 4097, 1)]
    kinds = ("exact", "tanh")
    return {
        "_gelu_kernel": [
            entry(f"{TAG[t]}_{n}_{kinds[kind]}", y=array_for(t, [n]), x=array_for(t, [n]), N_ELEMENTS=n,
                  BLOCK_SIZE=1024, APPROXIMATE=kind)
            for t, n, kind in rows
        ],
        "_gelu_kernel_backward": [
            entry(f"{TAG[t]}_{n}_{kinds[kind]}", **{name: array_for(t, [n]) for name in ("dx", "dy", "x")},
                  N_ELEMENTS=n, BLOCK_SIZE=1024, APPROXIMATE=kind)
            for t, n, kind in rows
        ],
    }  # fmt: skip


OPERATORS = {
    "tilegym.ops.cutile.fp8_quantization_matmul": w8a8,
    "tilegym.ops.cutile.linear_gluact_linear": linear_gluact,
    "tilegym.ops.cutile.moe_actgrad_bwd": moe_actgrad,
    "tilegym.ops.cutile.experimental.nvfp4_quantize": nvfp4,
    "tilegym.ops.cutile.activation.gelu": gelu,
}
