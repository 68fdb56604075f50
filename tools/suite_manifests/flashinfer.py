"""Write the corpus entries of TileGym's suite flashinfer: ``python -m tools.suite_manifests.flashinfer``.

Blocks, splits and flags follow the host functions: the tuning spaces and defaults of sm_90, KV splits by the number
of sequences, and the swizzle of the LPT schedule by the size of a head's cache.
"""

from __future__ import annotations

import math
from typing import Any

from tools.suite_manifests.common import (
    BF16,
    E4M3,
    E5M2,
    F16,
    F32,
    FLOAT,
    I32,
    TAG,
    Entries,
    Suite,
    array,
    entry,
    main,
    pow2,
)

INT = I32.dtype
SMS = 132


def _decode_arrays(t: str, b: int, heads: int, d: int, splits: int) -> dict[str, Any]:
    """The output of the splits and its logarithms; a dummy of one element without splits."""
    lse = array(F32, b, heads, splits) if splits > 1 else array(F32, 1)
    return {"output": array(t, splits, b, heads, d), "lse_out": lse}


def _paged_decode() -> Entries:
    rows = [  # dtype, batch, query heads, kv heads, head size, page, pages a sequence, BLOCK_H, BLOCK_N, splits
        (BF16, 4, 32, 8, 128, 64, 128, 4, 64, 4), (F16, 7, 128, 1, 64, 16, 33, 64, 64, 1),
        (BF16, 256, 32, 4, 128, 128, 20, 8, 64, 1), (F16, 3, 64, 8, 128, 32, 257, 8, 64, 4),
        (BF16, 5, 64, 1, 64, 16, 100, 32, 128, 7), (F16, 33, 16, 1, 128, 64, 40, 16, 32, 9),
    ]  # fmt: skip
    found = []
    for index, (t, b, heads, kv, d, page, pages, block_h, block_n, splits) in enumerate(rows):
        group = heads // kv
        gather = index != 3  # false on parts without an efficient gather, as A100: pages are concatenated there
        tag = f"{TAG[t]}_b{b}_h{heads}x{kv}_d{d}_page{page}_n{block_n}"
        found.append(entry(
            tag + "_splits" * (splits > 1) + "_cat" * (not gather), {"occupancy": 1 + index % 2},
            q=array(t, b, heads, d), k_cache=array(t, b * pages, page, kv, d),
            v_cache=array(t, b * pages, page, kv, d), actual_seq_lens=array(INT, b),
            block_tables=array(INT, b * pages), **_decode_arrays(t, b, heads, d, splits), K_SCALE=1 / math.sqrt(d),
            V_SCALE=1.0, N_KV_HEADS=kv, PAGE_SIZE=page, BLOCK_H=block_h, BLOCK_N=block_n, BLOCK_D=d,
            QUERY_GROUP_SIZE=group, NUM_KV_SPLITS=splits,
            KV_LEN_PER_SPLIT=max(128, pow2(-(-pages * page // splits))) if splits > 1 else -1, HAS_LSE_OUT=splits > 1,
            stride_block_table=I32, NUM_HEAD_BLOCKS=max(group // block_h, 1), TRANS_QK=group < 64,
            LOAD_BLOCK_N=min(block_n, page), NUM_PAGES_PER_BLOCK=max(block_n // page, 1), USE_GATHER_PAGE_LOAD=gather,
        ))  # fmt: skip
    return found


def _mla_decode() -> Entries:
    rows = [  # dtype, batch, heads, page, pages a sequence, BLOCK_H, BLOCK_N, splits, DV_SPLITS, gathered pages
        (BF16, 8, 128, 64, 64, 16, 64, 16, 1, True), (F16, 3, 16, 32, 33, 16, 128, 9, 4, True),
        (BF16, 64, 128, 64, 9, 32, 32, 1, 1, False), (F16, 2, 32, 16, 100, 32, 64, 7, 2, True),
        (BF16, 5, 64, 32, 40, 16, 64, 5, 1, False), (F16, 130, 16, 128, 7, 16, 64, 1, 1, True),
    ]  # fmt: skip
    d, rope = 512, 64
    found = []
    for index, (t, b, heads, page, pages, block_h, block_n, splits, dv, gather) in enumerate(rows):
        wide = pow2(splits)  # the scratch has the width that the reduction loads
        trans = heads < 64 and gather
        found.append(entry(
            f"{TAG[t]}_b{b}_h{heads}_page{page}_n{block_n}_splits{splits}_dv{dv}" + "_cat" * (not gather),
            {"occupancy": 1 + index % 2}, q_nope=array(t, b, heads, d), q_rope=array(t, b, heads, rope),
            k_cache=array(t, b * pages, page, d), v_cache=array(t, b * pages, page, d),
            k_rope=array(t, b * pages, page, rope), actual_seq_lens=array(INT, b), block_tables=array(INT, b * pages),
            **_decode_arrays(t, b, heads, d, wide), K_SCALE=1 / math.sqrt(d + rope), V_SCALE=1.0, PAGE_SIZE=page,
            BLOCK_H=block_h, BLOCK_N=block_n, BLOCK_D=d, BLOCK_R=rope, QUERY_GROUP_SIZE=heads, NUM_KV_SPLITS=splits,
            KV_LEN_PER_SPLIT=max(128, pow2(-(-pages * page // splits))) if splits > 1 else -1, HAS_LSE_OUT=splits > 1,
            stride_block_table=I32, LOAD_BLOCK_N=min(block_n, page), NUM_PAGES_PER_BLOCK=max(block_n // page, 1),
            TRANS_QK=trans, USE_GATHER_PAGE_LOAD=gather, DV_SPLITS=dv,
        ))  # fmt: skip
    return found


def fmha_decode_bsr() -> dict[str, Entries]:
    """One query a sequence against a paged cache, and the reduction of its splits (four heads a block, or one)."""
    one, four = [], []
    for t, b, heads, splits, d, length in [
        (BF16, 4, 33, 4, 128, 2048),
        (F16, 7, 7, 9, 64, 128),
        (F32, 3, 17, 5, 96, 256),
    ]:
        wide = pow2(splits)
        one.append(entry(
            f"{TAG[t]}_b{b}_h{heads}_splits{splits}_d{d}", attn_splitk_out=array(t, splits, b, heads, d),
            lse_splitk_out=array(F32, b, heads, wide), attn_out=array(t, b, heads, d), actual_seq_lens=array(INT, b),
            NUM_HEADS=heads, NUM_KV_LEN_PER_SPLIT=length, NUM_KV_SPLITS=splits, NUM_KV_SPLITS_POW2=wide,
            BLOCK_D=pow2(d),
        ))  # fmt: skip
        heads = 4 * heads
        four.append(entry(
            f"{TAG[t]}_b{b}_h{heads}_splits{splits}_d{d}", attn_splitk_out=array(t, wide, b, heads, d),
            lse_splitk_out=array(F32, b, heads, wide), attn_out=array(t, b, heads, d), actual_seq_lens=array(INT, b),
            NUM_KV_LEN_PER_SPLIT=length, NUM_KV_SPLITS=splits, NUM_KV_SPLITS_POW2=wide, BLOCK_H=4, BLOCK_D=pow2(d),
        ))  # fmt: skip
    return {
        "_splitk_reduce_kernel": one,
        "_splitk_reduce_kernel_htile": four,
        "_decode_attention_kv_paged_kernel": _paged_decode(),
        "_decode_mla_kv_paged_kernel": _mla_decode(),
    }


Row = tuple[str, int, int, int, int, int, int, bool, int, int]
_PREFILL: list[Row] = [  # dtype, sequences, query and kv heads, head size, rope, longest, causal, BLOCK_N, page
    (BF16, 4, 32, 8, 128, 0, 1024, True, 64, 64), (F16, 3, 7, 7, 64, 0, 333, False, 128, 32),
    (BF16, 2, 16, 16, 128, 64, 500, True, 128, 16), (F16, 5, 8, 2, 128, 0, 2048, True, 32, 128),
]  # fmt: skip


def _prefill(row: Row, paged: bool, lpt: bool) -> dict[str, Any]:
    t, b, heads, kv, d, rope, longest, causal, block_n, page = row
    tokens, pages = b * longest - b, -(-longest // page)
    shapes = (b * pages, page, kv) if paged else (tokens, kv)
    arrays = {
        "query": array(t, tokens, heads, d + rope), "key_cache": array(t, *shapes, d + rope),
        "value_cache": array(t, *shapes, d), "actual_seq_lens_q": array(INT, b),
        "actual_seq_lens_kv": array(INT, b), "batch_offsets": array(INT, b + 1),
        "output": array(t, tokens, heads, d), "lse_output": array(F32, tokens, heads),
    }  # fmt: skip
    constants: dict[str, Any] = {
        "K_SCALE": 1 / math.sqrt(d + rope), "V_SCALE": 1.0, "N_KV_HEADS": kv, "BLOCK_M": 128, "BLOCK_N": block_n,
        "BLOCK_D": d, "BLOCK_R": rope, "QUERY_GROUP_SIZE": heads // kv, "IS_CAUSAL": causal,
    }  # fmt: skip
    if paged:
        arrays["block_tables"] = array(INT, b * pages)
        constants |= {"PAGE_SIZE": page, "LOAD_BLOCK_N": min(block_n, page), "stride_block_table": I32}
    if lpt:
        one_head = longest * (2 * d + rope) * 2
        swizzle = 1 << max(0, (50 * 1024 * 1024 // one_head).bit_length() - 1)
        quotient, remainder = divmod(heads * b, swizzle)
        constants |= {"NUM_HEADS": heads, "NUM_BATCH": b, "MAX_SEQ_LEN": longest, "SWIZZLE": swizzle,
                      "NUM_HB_QUOTIENT": quotient, "NUM_HB_REMAINDER": max(remainder, 1)}  # fmt: skip
    return arrays | constants


def fmha_prefill_bsr() -> dict[str, Entries]:
    """Sequences of any length in one array; the cache is paged or contiguous, blocks in order or longest first."""

    def name(row: Row) -> str:
        t, b, heads, kv, d, rope, longest, causal = row[:8]
        return f"{TAG[t]}_b{b}_h{heads}x{kv}_d{d}" + f"_rope{rope}" * bool(rope) + f"_s{longest}" + "_causal" * causal

    hints = {"occupancy": 1}
    found: dict[str, Entries] = {}
    for lpt in (False, True):
        tag = "_lpt" * lpt
        found[f"_prefill_attention_paged{tag}_kernel"] = [
            entry(f"{name(row)}_page{row[-1]}", hints, **_prefill(row, True, lpt)) for row in _PREFILL
        ]
        found[f"_prefill_attention_ragged{tag}_kernel"] = [
            entry(f"{name(row)}_loops{2 if two else 1}", hints, **_prefill(row, False, lpt), USE_TWO_LOOP=two)
            for row in _PREFILL
            for two in (True, False)
        ]
    return found


def gemm_alpha_beta() -> dict[str, Entries]:
    """C is read and written; the epilogue in two halves is what sm_100 tunes."""
    rows = [  # dtype, M, N, K, A and B transposed, BLOCK_M, BLOCK_N, occupancy, CTAs, halves
        (BF16, 1024, 2048, 512, 0, 1, 128, 128, 1, 1, 0), (F16, 1000, 777, 333, 1, 0, 128, 256, 2, 1, 0),
        (F16, 64, 129, 65, 0, 0, 64, 128, 4, 1, 0), (BF16, 512, 512, 256, 1, 1, 256, 128, 2, 2, 1),
    ]  # fmt: skip
    return {"_gemm_alpha_beta_kernel": [
        entry(f"{TAG[t]}_{m}x{n}x{k}" + "_ta" * ta + "_tb" * tb + "_halves" * halves,
              {"num_ctas": ctas, "occupancy": occupancy}, a=array(t, k, m) if ta else array(t, m, k),
              b=array(t, n, k) if tb else array(t, k, n), c=array(t, m, n), alpha=FLOAT, beta=FLOAT, TRANSPOSE_A=ta,
              TRANSPOSE_B=tb, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=64, GROUP_SIZE_M=8, EPILOGUE_SUBTILE=halves)
        for t, m, n, k, ta, tb, bm, bn, occupancy, ctas, halves in rows
    ]}  # fmt: skip


def masked_bmm() -> dict[str, Entries]:
    """A batch of products of which only the first rows count."""
    rows = [(BF16, 8, 512, 1024, 512, 0, 1, 128, 1), (F16, 3, 333, 200, 77, 1, 0, 256, 2),
            (BF16, 5, 129, 65, 33, 1, 1, 128, 4), (F16, 16, 64, 256, 128, 0, 0, 128, 1)]  # fmt: skip
    return {"_masked_bmm_kernel": [
        entry(f"{TAG[t]}_{q}x{m}x{n}x{k}" + "_ta" * ta + "_tb" * tb, {"num_ctas": 1 + q % 2, "occupancy": occupancy},
              a=array(t, q, k, m) if ta else array(t, q, m, k), b=array(t, q, n, k) if tb else array(t, q, k, n),
              c=array(t, q, m, n), masked_m=array(INT, q), TRANSPOSE_A=ta, TRANSPOSE_B=tb, BLOCK_M=128, BLOCK_N=bn,
              BLOCK_K=64, GROUP_SIZE_M=8)
        for t, q, m, n, k, ta, tb, bn, occupancy in rows
    ]}  # fmt: skip


def ragged_bmm() -> dict[str, Entries]:
    """Segments of rows, one product each; a fourth dimension decides whether operands are swapped."""
    rows = [(BF16, 8, 4096, 1024, 512, 0, 1, 2), (F16, 3, 1000, 777, 333, 0, 0, 1), (BF16, 5, 640, 129, 65, 1, 1, 4),
            (F16, 16, 512, 256, 128, 1, 0, 2)]  # fmt: skip
    blocks = {"_ragged_bmm_kernel": (128, 128), "_ragged_bmm_swap_ab_kernel": (32, 128)}
    return {kernel: [
        entry(f"{TAG[t]}_{q}x{m}x{n}x{k}" + "_ta" * ta + "_tb" * tb, {"num_ctas": 1, "occupancy": occupancy},
              a=array(t, k, m) if ta else array(t, m, k), b=array(t, q, n, k) if tb else array(t, q, k, n),
              c=array(t, m, n), m_indptr=array(INT, q + 1), q=I32, max_m=I32, max_m_device=array(INT, 1), n=I32,
              TRANSPOSE_A=ta, TRANSPOSE_B=tb, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=64, GROUP_SIZE_M=8)
        for t, q, m, n, k, ta, tb, occupancy in rows
    ] for kernel, (bm, bn) in blocks.items()}  # fmt: skip


def ragged_block_scaled_bmm() -> dict[str, Entries]:
    """8-bit operands with a scale for each block of 128; without scales of A, a dummy of one element."""
    rows = [(BF16, 8, 4096, 1024, 512, 1), (F16, 3, 1000, 768, 384, 1), (F32, 5, 640, 256, 128, 0),
            (BF16, 32, 777, 200, 1000, 1)]  # fmt: skip
    blocks = {  # BLOCK_M, BLOCK_N, GROUP_SIZE_M
        "_ragged_block_scaled_bmm_kernel": (128, 128, 8), "_ragged_block_scaled_bmm_uniform_kernel": (256, 128, 8),
        "_ragged_block_scaled_bmm_swap_ab_kernel": (32, 256, 4),
    }  # fmt: skip
    return {kernel: [
        entry(f"{TAG[out]}_{q}x{m}x{n}x{k}" + "" * scaled, {"num_ctas": 2 if bm == 256 else 1, "occupancy": 1 + q % 2},
              a=array(E4M3, m, k), b=array(E4M3, q, n, k),
              a_scale=array(F32, m, -(-k // 128)) if scaled else array(F32, 1),
              b_scale=array(F32, q, -(-n // 128), -(-k // 128)), c=array(out, m, n), m_indptr=array(INT, q + 1), q=I32,
              max_m=I32, max_m_device=array(INT, 1), n=I32, HAS_A_SCALE=scaled, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=128,
              GROUP_SIZE_M=gm)
        for out, q, m, n, k, scaled in rows
    ] for kernel, (bm, bn, gm) in blocks.items()}  # fmt: skip


def per_token_group_quant_8bit() -> dict[str, Entries]:
    """Groups of 128 (or what divides a row) to 8-bit floats or integers; scales row-major or column-major."""
    rows = [
        (BF16, E4M3, 2048, 4096, 128),
        (F16, "int8", 37, 640, 64),
        (F32, E4M3, 7, 300, 100),
        (BF16, "int8", 1, 96, 96),
    ]
    row_major, column_major = [], []
    for t, out, m, n, group in rows:
        groups = m * n // group
        tag = f"{TAG[t]}_{TAG.get(out, 'i8')}_{m}x{n}_g{group}"
        common = {"y_input": array(t, m * n), "y_quantized": array(out, m * n), "y_scale": array(F32, groups),
                  "eps": FLOAT, "bit8_min": FLOAT, "bit8_max": FLOAT, "BLOCK": pow2(group), "y_array_size": I32,
                  "y_q_array_size": I32, "y_s_array_size": I32}  # fmt: skip
        row_major.append(entry(tag, **common, y_stride=I32, n=I32))
        column_major.append(entry(tag, **common, group_size=I32, y_num_columns=I32, y_row_stride=I32,
                                  y_s_col_stride=I32, scale_ue8m0=I32))  # fmt: skip
    return {
        "_per_token_group_quant_8bit_kernel": row_major,
        "_per_token_group_quant_8bit_colmajor_kernel": column_major,
    }


def rope_quantize_fp8() -> dict[str, Entries]:
    """DeepSeek's latent attention: one key head without rank, a rotated part and a plain part."""
    rows = [  # dtype, output, tokens, query heads, size of the rotated and of the plain part, tokens a block
        (BF16, E4M3, 2048, 128, 64, 512, 32), (F16, E4M3, 37, 16, 64, 512, 8), (BF16, E5M2, 333, 7, 128, 96, 16),
        (F16, E4M3, 3, 32, 64, 128, 1),
    ]  # fmt: skip
    found = []
    for index, (t, out, tokens, heads, rope, plain, block) in enumerate(rows):
        arrays: dict[str, Any] = {}
        for suffix, dtype in (("", t), ("_out", out)):
            arrays |= {f"q_rope{suffix}": array(dtype, tokens, heads, rope),
                       f"k_rope{suffix}": array(dtype, tokens, rope),
                       f"q_nope{suffix}": array(dtype, tokens, heads, plain),
                       f"k_nope{suffix}": array(dtype, tokens, plain)}  # fmt: skip
        tag = f"{TAG[t]}_{TAG[out]}_t{tokens}_h{heads}_{rope}x{plain}_block{block}"
        found.append(entry(
            tag, {"occupancy": 1 << index % 3}, **arrays,
            cos_sin_cache=array(F32, 4096, rope), pos_ids=array(INT, tokens), quant_scale_q=FLOAT, quant_scale_kv=FLOAT,
            NUM_TOKENS=tokens, NUM_QO_HEADS=heads, NUM_KV_HEADS=1, ROPE_DIM=rope, NO_ROPE_DIM=plain,
            TOKENS_PER_BLOCK=block, NOPE_BLOCK=max(1, min(pow2(plain), 128)),
        ))  # fmt: skip
    return {"_rope_quantize_fp8_kernel": found}


SUITE = Suite("flashinfer", "tilegym.suites.flashinfer.cutile", {
    "fmha_decode_bsr": fmha_decode_bsr,
    "fmha_prefill_bsr": fmha_prefill_bsr,
    "gemm.gemm_alpha_beta": gemm_alpha_beta,
    "gemm.masked_bmm": masked_bmm,
    "gemm.ragged_bmm": ragged_bmm,
    "gemm.ragged_block_scaled_bmm": ragged_block_scaled_bmm,
    "per_token_group_quant_8bit": per_token_group_quant_8bit,
    "rope_quantize_fp8": rope_quantize_fp8,
})  # fmt: skip

if __name__ == "__main__":
    main(SUITE)
