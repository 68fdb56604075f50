"""Write the corpus entries of our own: corpus/tilegym/own/<operator>.toml, for every kernel of tilegym-core
and for those of tilegym-24 that were never recorded.

    python -m tools.own_manifests [-o corpus/tilegym/own]

They add what the recorded launches lack: at least two dtypes a kernel, sizes that nothing divides, unaligned and
strided arrays, and the two modules that TileGym's tests never launch (layer_norm, transpose).  An entry states
concrete shapes as the operators' host code would pass them; facts follow from them by the JIT's own rules.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tools.own_entries import attention, mamba, matrices
from tools.own_entries.common import BF16, F16, F32, I32, TAG, Entries, entry, pow2
from transpiler.corpora import find_module
from transpiler.manifests import to_toml
from transpiler.recordings import array_for
from transpiler.reference.source import SourceTree
from transpiler.spec import Corpus, KernelManifest, OperatorManifest, ScalarSpec, Specialization

_COMMENT = """Specializations of our own beside the recorded ones.
Written by tools/own_manifests.py; don't edit."""


def in_order(item: Specialization, names: tuple[str, ...]) -> Specialization:
    """Put the parameters into the kernel's order."""
    return item.model_copy(update={"params": {name: item.params[name] for name in names}})


def relu() -> dict[str, Entries]:
    """Flattened arrays; BLOCK_SIZE is fixed by the host."""
    rows = [(BF16, 65536, 16), (F16, 1000003, 16), (F32, 777, 4), (BF16, 1, 16)]
    return {"_relu_fwd_kernel": [
        entry(f"{TAG[t]}_{n}" + ("_unaligned" if base < 16 else ""), x=array_for(t, [n], base=base),
              y=array_for(t, [n]), N_ELEMENTS=n, BLOCK_SIZE=1024)
        for t, n, base in rows
    ]}  # fmt: skip


def softmax() -> dict[str, Entries]:
    """Rows of any length, in each of the four kernels."""

    def pair(t: str, m: int, n: int) -> dict[str, Any]:
        return {"output": array_for(t, [m, n]), "input": array_for(t, [m, n])}

    shapes = [(F16, 1823, 781), (BF16, 4096, 2048), (F32, 33, 1000)]
    return {
        "_softmax_kernel": [
            entry(f"{TAG[t]}_{m}x{n}", **pair(t, m, n), N_ROWS=m, TILE_SIZE=pow2(n), DIM_COLS=n) for t, m, n in shapes
        ] + [entry("f16_warps8", {"num_worker_warps": 8}, **pair(F16, 256, 512), N_ROWS=256, TILE_SIZE=512,
                   DIM_COLS=512)],
        "_softmax_kernel_tma": [
            entry(f"{TAG[t]}_{m}x{n}", **pair(t, m, n), N_ROWS=m, N_COLS=n, TILE_SIZE=pow2(n)) for t, m, n in shapes
        ],
        "_softmax_kernel_chunked": [
            entry(f"{TAG[t]}_{m}x{n}", **pair(t, m, n), N_ROWS=m, N_COLS=n, TILE_SIZE=8192)
            for t, m, n in [(F16, 64, 40000), (BF16, 17, 10001), (F32, 128, 9999)]
        ],
        "_softmax_kernel_multi_wave_full_row_reg_cached_ldg": [
            entry(f"{TAG[t]}_{m}x{n}", **pair(t, m, n), N=n, TILE_SIZE=pow2(n)) for t, m, n in shapes
        ],
    }  # fmt: skip


def silu_and_mul() -> dict[str, Entries]:
    """Rows of two halves; only the halves' width has to fit the tile."""
    shapes = [(BF16, 512, 1024), (F16, 37, 600), (F32, 101, 333)]
    return {
        "_silu_and_mul_kernel_row_wise": [
            entry(f"{TAG[t]}_{m}x{n}", input=array_for(t, [m, 2 * n]), output=array_for(t, [m, n]),
                  TILE_SIZE=pow2(n), TOTAL_HIDDEN_SIZE=n)
            for t, m, n in shapes
        ],
        "_silu_and_mul_backward_kernel_row_wise": [
            entry(f"{TAG[t]}_{m}x{n}", grad_output=array_for(t, [m, n]), input=array_for(t, [m, 2 * n]),
                  grad_a=array_for(t, [m, n]), grad_b=array_for(t, [m, n]), TILE_SIZE=pow2(n), TOTAL_HIDDEN_SIZE=n)
            for t, m, n in shapes
        ],
    }  # fmt: skip


def swiglu() -> dict[str, Entries]:
    """Tiles that fit the row exactly need no check of the bounds."""
    shapes = [(BF16, 256, 1024), (F16, 43, 999), (F32, 700, 1000), (BF16, 3, 257)]
    return {
        "_swiglu_forward_kernel": [
            entry(f"{TAG[t]}_{m}x{n}", a=array_for(t, [m, n]), b=array_for(t, [m, n]), c=array_for(t, [m, n]),
                  TILE_SIZE=pow2(n), check_bounds=pow2(n) != n)
            for t, m, n in shapes
        ],
        "_swiglu_backward_kernel": [
            entry(f"{TAG[t]}_{m}x{n}", **{name: array_for(t, [m, n]) for name in ("dc", "a", "b", "da", "db")},
                  TILE_SIZE=pow2(n))
            for t, m, n in shapes
        ],
    }  # fmt: skip


def rms_norm() -> dict[str, Entries]:
    """The weight has the rows' dtype, the statistics are f32; OFFSET is 1.0 in Gemma."""

    def arrays(t: str, m: int, n: int, names: tuple[str, str, str, str]) -> dict[str, Any]:
        x, w, out, rstd = names
        return {x: array_for(t, [m, n]), w: array_for(t, [n]), out: array_for(t, [m, n]), rstd: array_for(F32, [m])}

    shapes = [(BF16, 4096, 3000), (F16, 31, 777), (F32, 256, 1024)]
    lower = ("x", "w", "out", "Rstd")
    return {
        "_rms_norm_kernel_multi_wave_cached": [
            entry(f"{TAG[t]}_{m}x{n}", **arrays(t, m, n, lower), N=n, eps=1e-6, offset=1.0, TILE_SIZE=pow2(n))
            for t, m, n in shapes
        ],
        "_rms_norm_kernel_gather": [
            entry(f"{TAG[t]}_{m}x{n}", **arrays(t, m, n, lower), N=n, EPS=1e-6, OFFSET=1.0,
                  TILE_SIZE=min(2048 if t != F32 else 1024, pow2(n)))
            for t, m, n in shapes
        ],
        "_rms_norm_kernel_static_persistent": [
            entry(f"{TAG[t]}_{m}x{n}", **arrays(t, m, n, ("X", "W", "Y", "Rstd")), TILE_SIZE_M=4, TILE_SIZE_N=pow2(n),
                  EPS=1e-6, OFFSET=1.0)
            for t, m, n in shapes
        ],
        "_rms_bwd_kernel": [
            entry(f"{TAG[t]}_{m}x{n}", **{name: array_for(t, [m, n]) for name in ("dx", "dy", "x")},
                  weight=array_for(t, [n]), Rstd=array_for(F32, [m]), dw_partial=array_for(F32, [32, pow2(n)]),
                  TILE_M=4 if pow2(n) <= 2048 else 1, TILE_N=pow2(n))
            for t, m, n in shapes
        ],
    }  # fmt: skip


def layer_norm() -> dict[str, Entries]:
    """Arrays of shape (N, C, W): tiles when W is at least 16, else flattened arrays in the gather kernel."""
    tiled = [(F16, 4, 32, 784), (BF16, 2, 3000, 100), (F32, 3, 77, 17), (F32, 8, 64, 1024)]
    gathered = [(F16, 128, 1024, 1), (F32, 37, 999, 1), (BF16, 64, 5000, 1), (F16, 8, 256, 4), (F32, 5, 77, 3),
                (BF16, 16, 96, 8)]  # fmt: skip
    return {
        "_layer_norm_fwd_kernel": [_layer_norm_tiled(*row) for row in tiled],
        "_layer_norm_fwd_kernel_gather": [_layer_norm_gather(*row) for row in gathered],
    }


def _layer_norm_tiled(t: str, n: int, c: int, w: int) -> Specialization:
    block_w = min(1024, pow2(w))
    return entry(
        f"{TAG[t]}_{n}x{c}x{w}", x=array_for(t, [n, c, w]), y=array_for(t, [n, c, w]), w=array_for(t, [c]),
        b=array_for(t, [c]), mean=array_for(F32, [n, w]), rstd=array_for(F32, [n, w]), C=c, W=w, EPS=1e-5,
        WEIGHT_SHIFT=0.0, BLOCK_SIZE_C=min(65536 // block_w // _size(t), pow2(c), 1024), BLOCK_SIZE_W=block_w,
    )  # fmt: skip


def _layer_norm_gather(t: str, n: int, c: int, w: int) -> Specialization:
    block_w = pow2(w)
    return entry(
        f"{TAG[t]}_{n}x{c}x{w}", x=array_for(t, [n * c * w]), y=array_for(t, [n * c * w]), w=array_for(t, [c]),
        b=array_for(t, [c]), mean=array_for(F32, [n * w]), rstd=array_for(F32, [n * w]), STRIDE_N=c * w, STRIDE_C=w,
        STRIDE_W=1, C=c, W=w, EPS=1e-5, WEIGHT_SHIFT=1.0 if w == 1 else 0.0,
        BLOCK_SIZE_C=min(65536 // block_w // _size(t), pow2(c)), BLOCK_SIZE_W=block_w, N_ELEMENTS=n * c * w,
        STAT_N_ELEMENTS=n * w,
    )  # fmt: skip


def _size(dtype: str) -> int:
    return 4 if dtype == F32 else 2


def layer_norm_legacy() -> dict[str, Entries]:
    """Rows of length N (D in the persistent kernel); statistics in f32."""

    def arrays(t: str, m: int, n: int) -> dict[str, Any]:
        return {
            "X": array_for(t, [m, n]),
            "Y": array_for(t, [m, n]),
            "W": array_for(t, [n]),
            "B": array_for(t, [n]),
            "Mean": array_for(F32, [m]),
            "Rstd": array_for(F32, [m]),
        }

    shapes = [(BF16, 1024, 2048), (F16, 1151, 1000), (F32, 37, 777)]
    hints = {"num_ctas": 1, "num_worker_warps": 8}
    persistent = [  # not in f16: the kernel stores bf16 or wider
        entry(
            f"{TAG[t]}_{m}x{n}",
            hints,
            **arrays(t, m, n),
            N=m,
            D=n,
            EPS=1e-6,
            STRIDE_X=n,
            STRIDE_Y=n,
            IS_SWISH=0,
            TRAINING=1,
            BLOCK_N=8,
            BLOCK_D=pow2(n),
            COMPUTE_MEAN_AND_RSTD=1,
            NUM_SMS=132,
        )
        for t, m, n in [(BF16, 1024, 2048), (BF16, 1151, 1000), (F32, 37, 777)]
    ]
    flags = [
        entry(
            f"bf16_256x512_training{training}_stats{stats}_block{block}",
            hints,
            **arrays(BF16, 256, 512),
            N=256,
            D=512,
            EPS=1e-6,
            STRIDE_X=512,
            STRIDE_Y=512,
            IS_SWISH=0,
            TRAINING=training,
            BLOCK_N=block,
            BLOCK_D=512,
            COMPUTE_MEAN_AND_RSTD=stats,
            NUM_SMS=132,
        )
        for training, stats, block in [(0, 1, 4), (1, 0, 1), (0, 0, 16)]
    ]
    plain = [
        entry(
            f"{TAG[t]}_{m}x{n}",
            **arrays(t, m, n),
            N=n,
            EPS=1e-5,
            WEIGHT_SHIFT=1.0,
            BLOCK_SIZE=min(65536 // _size(t), pow2(n)),
        )
        for t, m, n in shapes
    ]
    return {"_layer_norm_fwd_kernel": plain, "_persistent_layer_norm_fwd_kernel": persistent + flags}  # fmt: skip


def dropout() -> dict[str, Entries]:
    """Flattened arrays; a probability of 1 and the inference mode take branches of their own."""
    rows = [(BF16, 4096, 0.5, True), (F16, 1001, 0.1, True), (F32, 333, 1.0, True), (F16, 2048, 0.5, False)]
    return {"_dropout_kernel": [
        entry(f"{TAG[t]}_{n}_p{p}" + ("" if training else "_inference"), x=array_for(t, [n]), output=array_for(t, [n]),
              P=p, SEED=-1640531535, TILE_SIZE=1024, TRAINING=training)
        for t, n, p, training in rows
    ]}  # fmt: skip


def rope() -> dict[str, Entries]:
    """Heads in front of the sequence; k and q may be views with other strides; partial rotation."""
    rows = [(BF16, 2, 32, 8, 100, 128, 128, 1), (F16, 3, 7, 3, 33, 96, 96, 3), (F32, 2, 16, 16, 512, 64, 32, 2)]
    found = []
    for t, b, qh, kh, s, d, rd, cos_b in rows:
        found.append(entry(
            f"{TAG[t]}_b{b}_h{qh}x{kh}_s{s}_d{d}", {"occupancy": 7}, q=array_for(t, [b, qh, s, d]),
            k=array_for(t, [b, kh, s, d], [s * kh * d, d, kh * d, 1]), cos=array_for(t, [cos_b, s, rd]),
            sin=array_for(t, [cos_b, s, rd]), COS_BS=cos_b, SEQ_LEN=s, TILE_QH=pow2(qh), TILE_KH=pow2(kh),
            TILE_RD=pow2(rd // 2),
        ))  # fmt: skip
    return {"_rope_kernel": found}


def splitk_reduce() -> dict[str, Entries]:
    """Split counts that aren't powers of two, with and without the matrix product."""
    rows = [(BF16, 2, 32, 5, 128, False), (F16, 3, 7, 13, 96, False), (F32, 2, 16, 33, 80, True),
            (F16, 4, 8, 16, 64, True)]  # fmt: skip
    return {"_splitk_reduce_kernel": [
        entry(f"{TAG[t]}_b{b}_h{h}_splits{s}_d{d}", attn_splitk_out=array_for(t, [b, h, s, d]),
              lse_splitk_out=array_for(F32, [b, h, s]), attn_out=array_for(t, [b, h, d]), B=b, S_KV=s * 100,
              NUM_HEADS=h, HEAD_DIM=d, NUM_KV_SPLITS=s, NUM_KV_SPLITS_POW2=pow2(s), TILE_D=min(128, pow2(d)),
              USE_DOT=dot)
        for t, b, h, s, d, dot in rows
    ]}  # fmt: skip


def matmul() -> dict[str, Entries]:
    """Both kernels in three dtypes; transposed operands in the persistent one, f32 goes through tf32."""
    plain = [
        entry(
            f"{TAG[t]}_{m}x{n}x{k}",
            {"num_ctas": ctas, "occupancy": 1},
            A=array_for(t, [m, k]),
            B=array_for(t, [k, n]),
            C=array_for(t, [m, n]),
            TILE_SIZE_M=128,
            TILE_SIZE_N=128,
            TILE_SIZE_K=32,
        )
        for t, m, n, k, ctas in [
            (F16, 1024, 2048, 512, 1),
            (F32, 512, 512, 256, 2),
            (F16, 1000, 777, 333, 1),
            (F32, 1, 129, 65, 1),
        ]
    ]
    persistent = [
        entry(
            f"{TAG[t]}_{m}x{n}x{k}" + "_ta" * ta + "_tb" * tb,
            {"num_ctas": 1, "occupancy": 1},
            A=array_for(t, [k, m] if ta else [m, k]),
            B=array_for(t, [n, k] if tb else [k, n]),
            C=array_for(t, [m, n]),
            M=I32,
            N=I32,
            K=I32,
            TILE_SIZE_M=128,
            TILE_SIZE_N=128,
            TILE_SIZE_K=64,
            TRANSPOSE_A=ta,
            TRANSPOSE_B=tb,
            GROUP_SIZE_M=8,
            LOAD_LATENCY=-1,
        )
        for t, m, n, k, ta, tb in [
            (F16, 1024, 2048, 512, False, False),
            (F32, 512, 768, 256, False, True),
            (BF16, 512, 768, 256, True, True),
            (F16, 1000, 777, 333, True, False),
            (F32, 129, 65, 33, False, False),
        ]
    ]
    return {"_matmul_kernel": plain, "_static_persistent_matmul_kernel": persistent}  # fmt: skip


def bmm() -> dict[str, Entries]:
    """Batches, with every combination of transposed operands in the persistent kernel."""
    plain = [
        entry(
            f"{TAG[t]}_{q}x{m}x{n}x{k}",
            A=array_for(t, [q, m, k]),
            B=array_for(t, [q, k, n]),
            C=array_for(t, [q, m, n]),
            TM=128,
            TN=128,
            TK=32,
        )
        for t, q, m, n, k in [(BF16, 8, 512, 256, 128), (F16, 3, 333, 200, 77)]
    ]
    plain.append(
        entry(
            "f16_1x128x128x64",
            A=array_for(F16, [1, 128, 64]),
            B=array_for(F16, [1, 64, 128]),
            C=array_for(F16, [1, 128, 128]),
            TM=64,
            TN=64,
            TK=64,
        )
    )
    persistent = [
        entry(
            f"{TAG[t]}_{q}x{m}x{n}x{k}" + "_ta" * ta + "_tb" * tb,
            {"num_ctas": ctas, "occupancy": 2},
            A=array_for(t, [q, k, m] if ta else [q, m, k]),
            B=array_for(t, [q, n, k] if tb else [q, k, n]),
            C=array_for(t, [q, m, n]),
            Batch=I32,
            M=m,
            N=n,
            K=k,
            TILE_M=64,
            TILE_N=128,
            TILE_K=64,
            GROUP_SIZE_M=8,
            LATENCY=3,
            TRANSPOSE_A=ta,
            TRANSPOSE_B=tb,
        )
        for t, q, m, n, k, ta, tb, ctas in [
            (BF16, 16, 512, 256, 1024, False, False, 2),
            (BF16, 16, 512, 256, 1024, True, False, 1),
            (F16, 3, 333, 200, 77, False, True, 2),
            (BF16, 5, 129, 65, 33, True, True, 2),
        ]
    ]
    return {"_bmm_kernel": plain, "_static_persistent_bmm_kernel": persistent}  # fmt: skip


def transpose() -> dict[str, Entries]:
    """64x64 tiles, 128x128 for large 16-bit matrices."""
    rows = [(F16, 4096, 4096), (BF16, 512, 1024), (F32, 1000, 777), (F32, 256, 256), (F16, 33, 65), ("float64", 96, 48)]
    found = []
    for t, m, n in rows:
        block = 128 if t in (F16, BF16) and min(m, n) >= 4096 else 64
        found.append(entry(f"{TAG[t]}_{m}x{n}", input=array_for(t, [m, n]), output=array_for(t, [n, m]), M=m, N=n,
                           BLOCK_M=block, BLOCK_N=block))  # fmt: skip
    found.append(entry("f16_100x200_strided", input=array_for(F16, [100, 200], [1024, 1], base=2),
                       output=array_for(F16, [200, 100]), M=100, N=200, BLOCK_M=64, BLOCK_N=64))  # fmt: skip
    return {"_transpose_kernel": found}


def attention_sink_decode() -> dict[str, Entries]:
    """One query a sequence against a split key-value cache; heads share keys in groups."""
    rows = [(BF16, 2, 8, 8, 4096, 64, 256, 128, True), (F16, 3, 2, 5, 1000, 128, 128, 0, False),
            (F32, 2, 4, 4, 512, 64, 128, 64, True)]  # fmt: skip
    found = []
    for t, b, kv, group, s, d, split, bandwidth, sinks in rows:
        splits, heads = -(-s // split), kv * group
        mid = ScalarSpec(dtype="int32")
        found.append(entry(
            f"{TAG[t]}_b{b}_h{heads}x{kv}_s{s}_d{d}", Q=array_for(t, [b, kv, group, d]), K=array_for(t, [b, kv, s, d]),
            V=array_for(t, [b, kv, s, d]), Sinks=array_for(t, [heads if sinks else 1]),
            Att_Out=array_for(t, [b, kv, group, splits, d]), LSE_Out=array_for(F32, [b, kv, group, splits]),
            Start_q=array_for("int32", [1]), softmax_scale=ScalarSpec(dtype="float32"), stride_mid_ob=mid,
            stride_mid_oh=mid, stride_mid_os=mid, stride_mid_lseb=mid, stride_mid_lsem=mid, B=mid, H_qo=mid, H_kv=mid,
            S_kv=mid, KV_LEN_PER_SPLIT=split, HEAD_DIM=pow2(d), BLOCK_N=128, NUM_Q_HEAD_PER_KV=group,
            QUERY_GROUP_BLOCK_SIZE=max(8, pow2(group)), NUM_KV_SPLITS=splits, BANDWIDTH=bandwidth, HAS_SINKS=sinks,
        ))  # fmt: skip
    return {"_attention_sink_decode_kernel": found}


def recurrent_gated_delta_rule() -> dict[str, Entries]:
    """The persistent kernel, which the recording lacks."""
    rows = [(BF16, 2, 64, 4, 8, 128, 128, True), (F32, 3, 9, 2, 2, 64, 96, False)]
    found = []
    for t, b, steps, h, hv, k, v, state in rows:
        initial = array_for(F32, [b, hv, k, v] if state else [1, 1, 1, 1])
        found.append(entry(
            f"{TAG[t]}_b{b}_t{steps}_h{h}x{hv}_k{k}_v{v}", Query=array_for(t, [b, steps, h, k]),
            Key=array_for(t, [b, steps, h, k]), Value=array_for(t, [b, steps, hv, v]),
            Gate=array_for(t, [b, steps, hv]), Beta=array_for(t, [b, steps, hv]),
            Output=array_for(t, [b, steps, hv, v]), StateIn=initial, StateOut=initial,
            scale=ScalarSpec(dtype="float32"), HAS_INITIAL_STATE=state, OUTPUT_FINAL_STATE=state,
            USE_QK_L2NORM=not state, BLOCK_K=pow2(k), BLOCK_V=64, SMALL_TILE_USE_TMA=True, LARGE_TILE_USE_TMA=True,
            T=steps,
        ))  # fmt: skip
    return {"_recurrent_gated_delta_rule_fwd_kernel_persistent": found}


OPERATORS = {
    "tilegym.ops.cutile.attention_sink_decode": attention_sink_decode,
    "tilegym.ops.cutile.recurrent_gated_delta_rule": recurrent_gated_delta_rule,
    "tilegym.ops.cutile.transpose": transpose,
    "tilegym.ops.cutile.activation.relu": relu,
    "tilegym.ops.cutile.softmax": softmax,
    "tilegym.ops.cutile.silu_and_mul": silu_and_mul,
    "tilegym.ops.cutile.swiglu": swiglu,
    "tilegym.ops.cutile.rms_norm": rms_norm,
    "tilegym.ops.cutile.layer_norm": layer_norm,
    "tilegym.ops.cutile.layer_norm_legacy": layer_norm_legacy,
    "tilegym.ops.cutile.dropout": dropout,
    "tilegym.ops.cutile.rope": rope,
    "tilegym.ops.cutile.splitk_reduce": splitk_reduce,
    "tilegym.ops.cutile.matmul": matmul,
    "tilegym.ops.cutile.bmm": bmm,
    **attention.OPERATORS,
    **matrices.OPERATORS,
    **mamba.OPERATORS,
}


def main() -> None:
    """Write one manifest an operator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("corpus/tilegym/own"))
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    for module, entries in OPERATORS.items():
        name = module.rpartition(".")[2]
        source = find_module(module)
        order = {info.name: info.params for info in SourceTree(source.path, source.display).kernels()}
        kernels = tuple(
            KernelManifest(name=kernel, specializations=tuple(in_order(item, order[kernel]) for item in items))
            for kernel, items in entries().items()
        )
        operator = OperatorManifest(name=name, module=module, kernels=kernels)
        corpus = Corpus(name=f"tilegym/own/{name}", operators=(operator,))
        (output / f"{name}.toml").write_text(to_toml(corpus, _COMMENT), encoding="utf-8")
    total = sum(len(items) for entries in OPERATORS.values() for items in entries().values())
    print(f"{len(OPERATORS)} manifests, {total} specializations")


if __name__ == "__main__":
    main()
