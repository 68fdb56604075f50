"""Write the corpus entries of TileGym's suite unsloth: ``python -m tools.suite_manifests.unsloth``.

Blocks follow the host: 1024 elements for the flattened activations, the next power of two for rows, and the
heuristics of the grouped products.  Occupancies are those that the tuning of the forward kernels tries.
"""

from __future__ import annotations

from typing import Any

from tools.suite_manifests.common import (
    BF16,
    E4M3,
    F16,
    F32,
    I32,
    I64,
    TAG,
    Entries,
    Suite,
    array,
    entry,
    main,
    pow2,
)
from transpiler.spec import Specialization

Flat = tuple[str, int, int, int]
_FLAT: list[Flat] = [  # dtype, elements, LONG_INDEXING, occupancy
    (BF16, 2 * 2048 * 14336, 0, 4), (F16, 3 * 37 * 1001, 0, 2), (F32, 1 << 20, 0, 1),
    (BF16, (1 << 31) - 1024, 1, 8), (F16, (1 << 31) - 1000, 1, 1),
]  # fmt: skip


def _flat(names: str, tuned: bool) -> Entries:
    """Flattened arrays; sizes close to 2^31 take the 64-bit offsets."""
    found = []
    for t, n, long, occupancy in _FLAT:
        arrays = {name: array(t, n) for name in names.split()}
        hints = {"occupancy": occupancy} if tuned else {}
        tag = f"{TAG[t]}_{n}" + "_long" * long
        found.append(entry(tag, hints, **arrays, n_elements=n, BLOCK_SIZE=1024, LONG_INDEXING=long))
    return found


def geglu() -> dict[str, Entries]:
    """The exact and the approximate gate; the backward kernels write over their arguments."""
    return {
        "_exact_forward_ct": _flat("e g h", tuned=True),
        "_exact_backward_ct": _flat("DW e g", tuned=False),
        "_approx_forward_ct": _flat("e g h", tuned=True),
        "_approx_backward_ct": _flat("DW e g", tuned=False),
    }


def swiglu() -> dict[str, Entries]:
    """Forward (tuned) and backward."""
    return {"_fg_kernel_ct": _flat("e g h", tuned=True), "_DWf_DW_dfg_kernel_ct": _flat("DW e g", tuned=False)}


_ROWS = [(BF16, 4096, 4096, 4), (F16, 37, 777, 1), (F32, 1000, 2560, 2), (F32, 129, 1024, 8)]


def layernorm() -> dict[str, Entries]:
    """Rows of n_cols; a row that fills its tile needs no check of the bounds.  The statistics are f32."""
    forward = [
        entry(f"{TAG[t]}_{m}x{n}", {"occupancy": occupancy}, Y=array(t, m, n), X=array(t, m, n),
              W=array(t, n), b=array(t, n), r=array(F32, m), mu=array(F32, m), n_cols=n,
              eps=1e-6, TILE_N=pow2(n))
        for t, m, n, occupancy in _ROWS
    ]  # fmt: skip
    backward = [
        entry(f"{TAG[t]}_{m}x{n}", {"occupancy": occupancy}, dX=array(t, m, n), dY=array(t, m, n),
              X=array(t, m, n), W=array(t, n), r=array(F32, m), mu=array(F32, m), n_cols=n,
              TILE_N=pow2(n))
        for t, m, n, occupancy in _ROWS
    ]  # fmt: skip
    return {"_layernorm_forward_ct_1d": forward, "_layernorm_backward_ct_1d": backward}


def rms_layernorm() -> dict[str, Entries]:
    """Rows of n_cols; OFFSET is 1.0 for Gemma."""
    rows = [(t, m, n, occupancy, offset) for t, m, n, occupancy in _ROWS for offset in (0.0, 1.0)]

    def tag(t: str, m: int, n: int, offset: float) -> str:
        return f"{TAG[t]}_{m}x{n}" + ("_gemma" if offset else "")

    forward = [
        entry(tag(t, m, n, offset), {"occupancy": occupancy}, Y=array(t, m, n), X=array(t, m, n),
              W=array(t, n), r=array(F32, m), n_cols=n, eps=1e-6, OFFSET=offset, TILE_N=pow2(n))
        for t, m, n, occupancy, offset in rows
    ]  # fmt: skip
    backward = [
        entry(tag(t, m, n, offset), {"occupancy": occupancy}, dX=array(t, m, n), dY=array(t, m, n),
              X=array(t, m, n), W=array(t, n), r=array(F32, m), n_cols=n, OFFSET=offset,
              TILE_N=pow2(n))
        for t, m, n, occupancy, offset in rows
    ]  # fmt: skip
    return {"_rms_layernorm_forward_ct_1d": forward, "_rms_layernorm_backward_ct_1d": backward}


def rope_embedding() -> dict[str, Entries]:
    """Flattened heads; cos and sin may be f32 beside half-precision heads; rows of cos have a stride of their own."""
    rows = [  # dtype, dtype of cos, batch, heads of Q and K, sequence, head size, stride of cos, backward, indices
        (BF16, BF16, 2, 32, 8, 512, 128, 128, 0, 0), (F16, F16, 3, 7, 7, 33, 96, 96, 1, 0),
        (BF16, F32, 1, 8, 4, 100, 256, 256, 0, 1), (F32, F32, 2, 16, 2, 77, 160, 80, 1, 1),
    ]  # fmt: skip
    single, joint = [], []
    for t, cs, b, qh, kh, s, d, stride, backward, indexed in rows:
        half = d // 2
        tag = f"{TAG[t]}_cos_{TAG[cs]}_b{b}_h{qh}x{kh}_s{s}_d{d}" + "_backward" * backward
        hints = {} if backward else {"occupancy": 4}
        angles = {name: array(cs, s * stride) for name in ("cos", "sin")}
        tile = {"TILE_HD": pow2(half), "NO_PADDING": int(pow2(half) == half)}
        q = {name: array(t, b * s * qh * d) for name in ("Q_in", "Q_out")}
        k = {name: array(t, b * s * kh * d) for name in ("K_in", "K_out")}
        single.append(entry(tag, hints, **q, **angles, seqlen=s, n_heads=qh, head_dim=d, cos_row_stride=stride,
                            BACKWARD_PASS=backward, **tile))  # fmt: skip
        indices = array(I32.dtype, b * s if indexed else 1)
        joint.append(entry(tag + "_indices" * indexed, hints, **q, **k, **angles, rope_embedding_indices=indices,
                           seqlen=s, head_dim=d, n_heads_Q=qh, n_heads_K=kh, cos_row_stride=stride,
                           BACKWARD_PASS=backward, HAS_ROPE_INDICES=indexed, **tile))  # fmt: skip
    return {"_rope_embedding_ct": single, "_rope_embedding_QK_ct": joint}


_LOSSES = [  # dtype, rows, vocabulary, softcap, logit scale
    (BF16, 2048, 32000, 0.0, 0.0), (F16, 37, 50257, 0.0, 0.0), (F32, 64, 32768, 30.0, 0.0), (BF16, 33, 1000, 0.0, 0.25),
    (F32, 128, 4096, 30.0, 0.0625),
]  # fmt: skip


def _transforms(cap: float, scale: float) -> dict[str, Any]:
    return {"DO_SOFTCAPPING": int(cap != 0), "SOFTCAP": cap, "DO_LOGIT_SCALING": int(scale != 0), "LOGIT_SCALE": scale}


def _loss_tag(t: str, m: int, v: int, cap: float, scale: float) -> str:
    return f"{TAG[t]}_{m}x{v}" + "_softcap" * bool(cap) + "_scaled" * bool(scale)


def cross_entropy_loss() -> dict[str, Entries]:
    """Vocabularies up to 65536 in one piece, larger ones in chunks of 4096; labels are int64."""
    large = [(BF16, 512, 256000, 30.0, 0.0), (F16, 37, 128256, 0.0, 0.0), (F32, 65, 151669, 0.0, 0.0625)]
    backward = []
    for index, (t, m, v, cap, scale) in enumerate([*_LOSSES, *large]):
        dloss = array(F32, m, strides=[0] if index % 2 else None)  # the gradient of a sum is expanded from one number
        backward.append(entry(
            _loss_tag(t, m, v, cap, scale), logits=array(t, m, v), grad_logits=array(t, m, v), dloss=dloss,
            logsumexp_in=array(F32, m), labels=array(I64.dtype, m), VOCAB_SIZE=v,
            BLOCK_SIZE=8192 if 8192 < v <= 65536 else 4096, **_transforms(cap, scale),
        ))  # fmt: skip
    return {
        "_cross_entropy_forward_ct": [
            entry(_loss_tag(t, m, v, cap, scale), logits=array(t, m, v), loss=array(F32, m),
                  logsumexp_out=array(F32, m), labels=array(I64.dtype, m), VOCAB_SIZE=v,
                  BLOCK_SIZE=pow2(v), **_transforms(cap, scale))
            for t, m, v, cap, scale in _LOSSES
        ],
        "_chunked_cross_entropy_forward_ct": [
            entry(_loss_tag(t, m, v, cap, scale), logits=array(t, m, v), loss=array(F32, m),
                  logsumexp_out=array(F32, m, -(-v // 4096)), labels=array(I64.dtype, m), VOCAB_SIZE=v,
                  N_CHUNKS=-(-v // 4096), BLOCK_SIZE=4096, **_transforms(cap, scale))
            for t, m, v, cap, scale in large
        ],
        "_cross_entropy_backward_ct": backward,
    }  # fmt: skip


_OUTPUT = {F32: 0, F16: 1, BF16: 2}


def _blockwise(out: str, m: int, n: int, k: int) -> dict[str, Any]:
    block_m = min(128, pow2(m))
    return {
        "A": array(E4M3, m, k), "B": array(E4M3, n, k), "C": array(out, m, n),
        "As": array(F32, m, -(-k // 128)), "Bs": array(F32, -(-n // 128), -(-k // 128)), "M": m, "N": n, "K": k,
        "group_n": 128, "group_k": 128, "BLOCK_SIZE_M": block_m, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128,
        "GROUP_SIZE_M": 8, "OUTPUT_DTYPE": _OUTPUT[out],
    }  # fmt: skip


def fp8() -> dict[str, Entries]:
    """Blocks of 128 by 128 with one scale each; activations in groups of 128."""
    products = [(BF16, 512, 4096, 4096), (F16, 100, 576, 1536), (F32, 1, 1000, 896)]
    tma: Entries = []
    for out, m, n, k in products:
        for swap in (0, 1):
            tag = f"{TAG[out]}_{m}x{n}x{k}" + "_swap" * swap
            tma.append(entry(tag, **_blockwise(out, m, n, k), swap_ab=swap))
    return {
        "weight_dequant_kernel_ct": [
            entry(f"{TAG[out]}_{m}x{n}_{TAG[s]}", x=array(E4M3, m, n),
                  s=array(s, -(-m // 128), -(-n // 128)), y=array(out, m, n), M=m, N=n, BLOCK_SIZE=128)
            for out, s, m, n in [(BF16, F32, 4096, 4096), (F16, F32, 576, 1000), (F32, BF16, 129, 333)]
        ],
        "act_quant_kernel_ct": [
            entry(f"{TAG[t]}_{n}", x=array(t, n), y=array(E4M3, n), s=array(F32, n // 128),
                  BLOCK_SIZE=128)
            for t, n in [(BF16, 2048 * 4096), (F16, 37 * 640), (F32, 7 * 128)]
        ],
        "w8a8_block_fp8_matmul_kernel_ct": [
            entry(f"{TAG[out]}_{m}x{n}x{k}", **_blockwise(out, m, n, k)) for out, m, n, k in products
        ],
        "w8a8_block_fp8_matmul_kernel_ct_tma": tma,
    }  # fmt: skip


_SMS = 132
_GROUPED = [  # dtype, tokens, experts, N, K, topk, permute_x, permute_y
    (BF16, 4096, 8, 1024, 2048, 2, 0, 0), (F16, 999, 6, 777, 333, 1, 0, 0), (BF16, 4096, 32, 768, 2048, 8, 1, 0),
    (F32, 333, 5, 96, 100, 2, 0, 1), (F16, 1000, 16, 512, 1000, 4, 1, 0), (BF16, 512, 64, 2048, 768, 8, 0, 1),
]  # fmt: skip


def _grouped(row: tuple[str, int, int, int, int, int, int, int]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the name, the arrays and the constants that the three grouped products have in common."""
    t, tokens, experts, n, k, topk, px, py = row
    total = tokens * topk if px or py else tokens
    block = {
        "BLOCK_M": min(128, max(64, pow2(max(1, total // experts)))),
        "BLOCK_N": min(128, max(64, pow2(n))),
        "BLOCK_K": min(128, max(64, pow2(k))),
    }
    arrays = {
        "X": array(t, tokens if px else total, k), "W_flat": array(t, experts * n, k),
        "Y": array(t, total, n), "dX": array(t, total, k), "dW": array(t, experts * n, k),
        "m_sizes": array(I32.dtype, experts), "gather_indices": array(I32.dtype, total),
    }  # fmt: skip
    arrays["dY"] = arrays["Y"]
    constants = {"N": n, "K": k, "TOTAL_TOKENS": total, "NUM_EXPERTS": experts, "NUM_SMS": _SMS, **block,
                 "PERMUTE_X": px, "PERMUTE_Y": py, "TOPK": topk}  # fmt: skip
    return f"{TAG[t]}_t{tokens}_e{experts}_{n}x{k}" + "_px" * px + "_py" * py, arrays, constants


def grouped_gemm() -> dict[str, Entries]:
    """Tokens sorted by expert; the first product may gather its input, the second scatter its output."""
    wanted = {
        "_grouped_gemm_fwd_kernel_ct": ("X W_flat Y m_sizes gather_indices", ()),
        "_grouped_gemm_dX_kernel_ct": ("dY W_flat dX m_sizes gather_indices", ("TOPK",)),
        "_grouped_gemm_dW_kernel_ct": ("X dY dW m_sizes gather_indices", ("NUM_SMS",)),
    }
    found: dict[str, Entries] = {}
    for index, (kernel, (names, without)) in enumerate(wanted.items()):
        items: list[Specialization] = []
        for row in _GROUPED:
            tag, arrays, constants = _grouped(row)
            kept = {name: value for name, value in constants.items() if name not in without}
            items.append(entry(tag, {"occupancy": 1 << index}, **{a: arrays[a] for a in names.split()}, **kept))
        found[kernel] = items
    return found


_OPERATORS = (geglu, swiglu, layernorm, rms_layernorm, rope_embedding, cross_entropy_loss, fp8, grouped_gemm)
SUITE = Suite("unsloth", "tilegym.suites.unsloth.cutile", {operator.__name__: operator for operator in _OPERATORS})

if __name__ == "__main__":
    main(SUITE)
