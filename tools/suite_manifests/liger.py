"""Write the corpus entries of TileGym's suite liger: ``python -m tools.suite_manifests.liger``.

Rows are (dtype, rows, columns, ...); every kernel gets two dtypes and a size that nothing divides where its host
code allows it.
"""

from __future__ import annotations

from typing import Any

from tools.suite_manifests.common import (
    BF16,
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
from transpiler.spec import ArraySpec

NUM_SMS = 132
IGNORE = -100
NONE, LLAMA, GEMMA = -1, 0, 1  # how the norms cast
ROWS = [(BF16, 512, 4096), (F16, 37, 1000), (F32, 101, 5001)]


def like(names: str, dtype: str, *shape: int) -> dict[str, ArraySpec]:
    """Describe arrays of one dtype and shape; ``names`` are separated by spaces."""
    return {name: array(dtype, *shape) for name in names.split()}


def aligned_block(n: int, cap: int) -> int:
    """Return the largest block that divides the columns, if it is at least half of the full one; else the full one."""
    block = max(min(pow2(n), cap), 128)
    fitting = block
    while fitting > 128 and n % fitting:
        fitting //= 2
    return fitting if n % fitting == 0 and fitting >= block // 2 else block


def geglu() -> dict[str, Entries]:
    """Rows in chunks; columns that a chunk divides need no check of the bounds."""

    def entries(names: str, cap: int) -> Entries:
        found = []
        for t, m, n in ROWS:
            block = min(max(pow2(n), 128), cap)
            found.append(entry(f"{TAG[t]}_{m}x{n}", **like(names, t, m, n), n_cols=n, BLOCK_SIZE=block,
                               CHECK_BOUNDS=n % block != 0))  # fmt: skip
        return found

    return {"_geglu_fwd_kernel_ct": entries("a b c", 4096), "_geglu_bwd_kernel_ct": entries("dc a b", 512)}


def relu_squared() -> dict[str, Entries]:
    """A kernel of its own for columns that the block divides."""

    def entries(names: str, shapes: list[tuple[str, int, int]]) -> Entries:
        return [entry(f"{TAG[t]}_{m}x{n}", **like(names, t, m, n), n_cols=n, BLOCK_SIZE=aligned_block(n, 4096))
                for t, m, n in shapes]  # fmt: skip

    whole = [(BF16, 512, 4096), (F16, 37, 128), (F32, 101, 14336)]
    ragged = [(BF16, 512, 11008), (F16, 37, 1000), (F32, 101, 5001)]
    return {
        "_relu_squared_fwd_ct_aligned": entries("X Y", whole),
        "_relu_squared_fwd_ct": entries("X Y", ragged),
        "_relu_squared_bwd_ct_aligned": entries("DY X DX", whole),
        "_relu_squared_bwd_ct": entries("DY X DX", ragged),
    }


def swiglu() -> dict[str, Entries]:
    """The gate's multiplier is a constant of the kernel."""

    def entries(names: str, cap: int, shapes: list[tuple[str, int, int, float]]) -> Entries:
        return [entry(f"{TAG[t]}_{m}x{n}_gate{gate}", **like(names, t, m, n), n_cols=n,
                      BLOCK_SIZE=aligned_block(n, cap), gate_multiplier=gate) for t, m, n, gate in shapes]  # fmt: skip

    whole = [(BF16, 512, 14336, 1.0), (F16, 37, 4096, 0.5), (F32, 101, 128, 1.0)]
    ragged = [(BF16, 512, 11008, 1.0), (F16, 37, 1000, 0.5), (F32, 101, 5001, 1.0)]
    return {
        "_swiglu_fwd_ct_aligned": entries("A B C", 4096, whole),
        "_swiglu_fwd_ct": entries("A B C", 4096, ragged),
        "_swiglu_bwd_ct_aligned": entries("DC A B", 1024, whole),
        "_swiglu_bwd_ct": entries("DC A B", 1024, [(BF16, 512, 11000, 1.0), *ragged[1:]]),
    }


def tvd() -> dict[str, Entries]:
    """Rows that 16 bytes don't divide are gathered; labels and the reduction are constants."""

    def one(t: str, m: int, v: int, block: int, label: int, reduction: int) -> Any:
        loss = array(F32, m, v) if reduction == 0 else array(F32, m)
        return entry(
            f"{TAG[t]}_{m}x{v}_label{label}_reduction{reduction}", **like("P Q GRADS", t, m, v), LOSS=loss,
            LABEL=array("int64", m if label else 1), scale=FLOAT, n_rows=m, n_cols=v, ignore_index=IGNORE,
            BLOCK_SIZE=block, HAS_LABEL=label, reduction=reduction,
        )  # fmt: skip

    whole = [(BF16, 512, 32768, 0, 3), (F32, 100, 4096, 1, 0), (F16, 128, 16384, 1, 2), (BF16, 64, 1024, 0, 0)]
    padded = [(BF16, 512, 32000, 0, 3), (F32, 101, 5004, 1, 0), (F16, 77, 1000, 1, 1)]
    odd = [(BF16, 512, 50257, 0, 3), (F32, 101, 5001, 1, 0), (F16, 77, 999, 1, 2)]
    return {
        "_tv_distance_kernel_ct_aligned": [one(t, m, v, min(8192, pow2(v)), *flags) for t, m, v, *flags in whole],
        "_tv_distance_kernel_ct": [one(t, m, v, min(8192, pow2(v)), *flags) for t, m, v, *flags in padded],
        "_tv_distance_kernel_ct_gather": [one(t, m, v, min(4096, pow2(v)), *flags) for t, m, v, *flags in odd],
    }


def group_norm() -> dict[str, Entries]:
    """Arrays flattened to (batch * channels, hidden); statistics in f32."""
    forward, backward = [], []
    for t, b, c, groups, hidden in [(BF16, 2, 32, 8, 1024), (F16, 3, 6, 3, 100), (F32, 1, 48, 4, 77)]:
        label = f"{TAG[t]}_b{b}_c{c}_g{groups}_h{hidden}"
        common: dict[str, Any] = {
            "x_input": array(t, b * c, hidden), **like("mean_stats rstd_stats", F32, b * groups), "NUM_CHANNELS": c,
            "NUM_GROUPS": groups, "CHANNELS_PER_GROUP": c // groups, "TOTAL_HIDDEN_SIZE": hidden,
            "BLOCK_SIZE": pow2(hidden), "weight": array(t, c),
        }  # fmt: skip
        forward.append(entry(label, **common, y_output=array(t, b * c, hidden), bias=array(t, c), eps=FLOAT))
        backward.append(entry(label, **common, **like("upstream dx_output", t, b * c, hidden),
                              **like("dw_partial db_partial", t, b, c)))  # fmt: skip
    return {"_group_norm_fwd_kernel": forward, "_group_norm_bwd_kernel": backward}


def rms_norm() -> dict[str, Entries]:
    """Three modes of casting, with and without a weight; backward in one block a multiprocessor."""
    forward, backward, weighted = [], [], []
    for t, m, n, mode, affine in [(BF16, 512, 4096, LLAMA, True), (F16, 37, 1000, GEMMA, True),
                                  (F32, 1001, 777, NONE, True), (BF16, 64, 20000, LLAMA, False),
                                  (F16, 33, 999, NONE, False), (F32, 16, 8192, GEMMA, False)]:  # fmt: skip
        label, block = f"{TAG[t]}_{m}x{n}_casting{mode}" + "_affine" * affine, pow2(n)
        rstd = array(t if mode == NONE else F32, m)
        rows = -(-m // NUM_SMS)
        forward.append(entry(
            label, {"num_worker_warps": 8} if block >= 16384 else None, **like("Y X", t, m, n),
            W=array(t, n if affine else 1), RSTD=rstd, n_cols=I32, eps=FLOAT, offset=FLOAT, BLOCK_SIZE=block,
            casting_mode=mode, elementwise_affine=affine,
        ))  # fmt: skip
        hints = {"num_worker_warps": 8} if block >= 8192 else None
        backward.append(entry(label, hints, **like("dY dX X", t, m, n), RSTD=rstd, n_cols=n, rows_per_program=rows,
                              BLOCK_SIZE=block, casting_mode=mode))  # fmt: skip
        weighted.append(entry(label, hints, **like("dY dX X", t, m, n), W=array(t, n), RSTD=rstd,
                              dW_partial=array(F32, NUM_SMS, n), n_cols=n, offset=1.0 if mode == GEMMA else 0.0,
                              rows_per_program=rows, BLOCK_SIZE=block, casting_mode=mode))  # fmt: skip
    return {
        "_rms_norm_fwd_ct": forward,
        "_rms_norm_bwd_large_ct": backward,
        "_rms_norm_bwd_w_large_ct": weighted,
    }


def modulated_rms_norm() -> dict[str, Entries]:
    """Scale (and shift) rows are shared by several rows: by one (stored), by all (added once), by some (added)."""
    forward, backward, weighted = [], [], []
    for t, m, n, mode, affine, shift, mods in [
        (BF16, 512, 4096, LLAMA, True, True, 512), (F16, 36, 1000, GEMMA, True, False, 1),
        (F32, 1001, 777, NONE, True, True, 7), (BF16, 64, 16384, LLAMA, False, True, 1),
        (F16, 33, 999, NONE, False, False, 3), (F32, 16, 512, GEMMA, False, True, 16),
    ]:  # fmt: skip
        label = f"{TAG[t]}_{m}x{n}_mods{mods}_casting{mode}" + "_affine" * affine + "_shift" * shift
        block, rows = pow2(n), -(-m // NUM_SMS)
        common: dict[str, Any] = {
            "X": array(t, m, n), "RSTD": array(t if mode == NONE else F32, m), "Scale": array(t, mods, n),
            "casting_mode": mode, "has_shift": shift, "rows_per_modulation": m // mods, "BLOCK_SIZE": block,
        }  # fmt: skip
        occupancy = 3 if block >= 16384 else 4 if block == 4096 else None
        forward.append(entry(
            label, {"occupancy": occupancy} if occupancy else None, **common, Y=array(t, m, n),
            W=array(t, n if affine else 1), Shift=array(t, mods, n), n_cols=I32, eps=FLOAT, offset=FLOAT,
            elementwise_affine=affine, aligned=block == n,
        ))  # fmt: skip
        gradients: dict[str, Any] = {
            **like("dY dX", t, m, n), **like("dScale dShift", F32, mods, n), "n_cols": n, "rows_per_program": rows,
            "single_mod": mods == 1 and m > 1,
        }  # fmt: skip
        hints = {"num_worker_warps": 8}
        backward.append(entry(label, hints, **common, **gradients))
        weighted.append(entry(label, hints, **common, **gradients, W=array(t, n), dW_partial=array(F32, NUM_SMS, n),
                              offset=1.0 if mode == GEMMA else 0.0))  # fmt: skip
    return {
        "_modulated_rms_norm_fwd_ct": forward,
        "_modulated_rms_norm_bwd_large_ct": backward,
        "_modulated_rms_norm_bwd_w_large_ct": weighted,
    }


def fused_add_rms_norm() -> dict[str, Entries]:
    """Rows of more than 4096 columns come in two chunks."""
    forward: Entries = []
    backward: Entries = []
    halves: Entries = []
    for t, m, n, mode in [(BF16, 512, 4096, LLAMA), (F16, 37, 1000, GEMMA), (F32, 1001, 777, NONE),
                          (BF16, 64, 8192, GEMMA), (F16, 300, 5001, LLAMA), (F32, 101, 6000, NONE)]:  # fmt: skip
        label, block = f"{TAG[t]}_{m}x{n}_casting{mode}", pow2(n)
        chunk = block // 2 if block > 4096 else block
        common: dict[str, Any] = {
            "S": array(t, m, n), "W": array(t, n), "RSTD": array(t if mode == NONE else F32, m), "n_cols": n,
            "offset": 1.0 if mode == GEMMA else 0.0, "casting_mode": mode,
        }  # fmt: skip
        forward.append(entry(label, {"num_worker_warps": 4 if block < 2048 else 8, "occupancy": 4}, **common,
                             **like("Y X R", t, m, n), eps=1e-6, BLOCK_SIZE=chunk))  # fmt: skip
        small = block <= 4096
        blocks = min(2 * NUM_SMS, m) if small else NUM_SMS
        gradients: dict[str, Any] = {**like("dY dS_out dX", t, m, n), "dW_partial": array(F32, blocks, n),
                                     "num_iters": -(-m // blocks), "sm_count": blocks, "n_rows": m}  # fmt: skip
        hints = {"num_worker_warps": 4 if small else 8}
        (backward if small else halves).append(
            entry(label, hints, **common, **gradients, **{"BLOCK_SIZE" if small else "CHUNK_SIZE": chunk})
        )
    return {
        "_fused_add_rms_norm_fwd_ct": forward,
        "_fused_add_rms_norm_bwd_persistent_ct": backward,
        "_fused_add_rms_norm_bwd_persistent_2c_ct": halves,
    }


def layer_norm() -> dict[str, Entries]:
    """Statistics have the rows' dtype; a power of two of columns needs no check of the bounds."""
    forward, dx, combined = [], [], []
    for t, m, n in [(BF16, 512, 4096), (F16, 37, 1000), (F32, 1001, 777)]:
        common: dict[str, Any] = {"x": array(t, m, n), "weight": array(t, n), "n_cols": n, "BLOCK_SIZE": pow2(n),
                                  "ALIGNED": pow2(n) == n}  # fmt: skip
        label = f"{TAG[t]}_{m}x{n}"
        forward.append(entry(label, **common, y=array(t, m, n), bias=array(t, n), **like("mean_out rstd_out", t, m),
                             eps=1e-5))  # fmt: skip
        common |= {**like("mean rstd", t, m), **like("dy dx", t, m, n)}
        dx.append(entry(label, **common))
        combined.append(entry(label, **common, **like("dw_partial db_partial", F32, NUM_SMS, n), n_rows=m,
                              num_programs=NUM_SMS, rows_per_program=-(-m // NUM_SMS)))  # fmt: skip
    return {
        "_layer_norm_fwd_kernel_ct": forward,
        "_layer_norm_bwd_dx_kernel_ct": dx,
        "_layer_norm_bwd_combined_kernel_ct": combined,
    }


def poly_norm() -> dict[str, Entries]:
    """Rows in one chunk, wide ones in several; three weights and a bias of one element."""

    def forward(t: str, m: int, n: int, block: int, occupancy: int) -> Any:
        return entry(
            f"{TAG[t]}_{m}x{n}_block{block}", {"occupancy": occupancy}, **like("x_input y_output", t, m, n),
            weights=array(t, 3), bias=array(t, 1), **like("rstd3 rstd2 rstd1", F32, m), N_COLS=n, eps=FLOAT,
            BLOCK_SIZE=block, ALIGNED=n % block == 0,
        )  # fmt: skip

    backward = []
    for t, m, n in [*ROWS, (F16, 33, 8192)]:
        block = min(4096, pow2(n))
        backward.append(entry(
            f"{TAG[t]}_{m}x{n}", {"occupancy": 4, "num_worker_warps": 8} if n >= 8192 else None,
            **like("dy dx x_input", t, m, n), weights=array(t, 3), **like("rstd3 rstd2 rstd1", F32, m),
            dwdb_output=array(F32, 4), N_COLS=n, BLOCK_SIZE=block, ALIGNED=n % block == 0,
        ))  # fmt: skip
    return {
        "_poly_norm_fwd_kernel": [forward(BF16, 512, 8192, 2048, 4), forward(F16, 37, 10000, 4096, 8),
                                  forward(F32, 101, 9999, 2048, 4)],
        "_poly_norm_fwd_kernel_sc_large": [forward(BF16, 512, 4096, 4096, 4), forward(F16, 37, 1000, 1024, 16),
                                           forward(F32, 101, 5001, 8192, 2)],
        "_poly_norm_bwd_kernel": backward,
    }  # fmt: skip


def dyt() -> dict[str, Entries]:
    """Alpha is one element; backward strides over the rows, one block a multiprocessor and columns' block."""
    forward, backward = [], []
    for t, m, n, beta in [(BF16, 512, 4096, 1), (F16, 37, 1000, 0), (F32, 301, 777, 1)]:
        common: dict[str, Any] = {"x_input": array(t, m, n), "alpha_tensor": array(t, 1), "gamma_tensor": array(t, n),
                                  "HAVE_BETA": beta}  # fmt: skip
        label, block = f"{TAG[t]}_{m}x{n}" + "_beta" * beta, min(pow2(n), 1024)
        forward.append(entry(label, **common, y_output=array(t, m, n), beta_tensor=array(t, n if beta else 1),
                             CHECK_BOUNDS=pow2(n) != n, BLOCK_N=pow2(n)))  # fmt: skip
        backward.append(entry(
            label, {"num_worker_warps": 8}, **common, **like("dy_input dx_output", t, m, n), M=m, BLOCK_N=block,
            da_partial=array(F32, NUM_SMS, -(-n // block)), dg_partial=array(F32, NUM_SMS, n),
            db_partial=array(F32, NUM_SMS, n) if beta else array(F32, 1), NUM_SMS=NUM_SMS,
        ))  # fmt: skip
    return {"_dyt_fwd_kernel": forward, "_dyt_bwd_kernel": backward}


def jsd() -> dict[str, Entries]:
    """Beta 0 and 1 are the two KL divergences; labels may mask rows."""
    found = []
    for t, m, v, beta, label in [(BF16, 512, 32000, 0.5, 0), (F32, 101, 5001, 0.0, 1), (F16, 77, 1000, 1.0, 1),
                                 (F32, 128, 4096, 0.1, 1)]:  # fmt: skip
        found.append(entry(
            f"{TAG[t]}_{m}x{v}_beta{beta}" + "_label" * label, **like("x y dx", t, m, v), loss=array(F32, m, v),
            label=array("int64", m if label else 1), beta=beta, inv_n_non_ignore=FLOAT, ignore_index=IGNORE,
            n_cols=I32, BLOCK_SIZE=min(4096, pow2(v)), HAS_LABEL=label,
        ))  # fmt: skip
    return {"_jsd_kernel": found}


def kl_div() -> dict[str, Entries]:
    """Whole chunks without a check of the bounds, then the rest of the row."""
    elements, sums, backward = [], [], []
    for t, m, v, log in [(BF16, 512, 32768, 0), (F16, 77, 5001, 1), (F32, 101, 1000, 0), (BF16, 64, 32000, 1)]:
        label, block = f"{TAG[t]}_{m}x{v}" + "_log" * log, min(4096, pow2(v))
        common: dict[str, Any] = {"GT": array(t, m, v), "n_cols": v, "BLOCK_SIZE": block, "LOG_TARGET": log,
                                  "N_FULL_CHUNKS": v // block}  # fmt: skip
        elements.append(entry(label, **common, Y=array(t, m, v), LOSS=array(F32, m, v), eps=1e-10))
        sums.append(entry(label, **common, Y=array(t, m, v), LOSS=array(F32, m), eps=1e-10))
        backward.append(entry(label, **common, GRADS=array(t, m, v), scale=FLOAT))
    return {"_kldiv_fwd_none_ct": elements, "_kldiv_fwd_reduce_ct": sums, "_kldiv_bwd_ct": backward}


def sparsemax() -> dict[str, Entries]:
    """The sorted rows are f32; a row fits a tile forward, comes in chunks backward."""
    forward, backward = [], []
    for t, m, n in ROWS:
        hints = {"occupancy": 4, "num_worker_warps": 8 if n > 4096 else 4}
        forward.append(entry(f"{TAG[t]}_{m}x{n}", hints, **like("y_output x_input", t, m, n), x_sorted=array(F32, m, n),
                             N_COLS=n, BLOCK_SIZE=pow2(n)))  # fmt: skip
        backward.append(entry(f"{TAG[t]}_{m}x{n}", hints, **like("grad_input output grad_output", t, m, n), N_COLS=n,
                              BLOCK_SIZE=min(pow2(n), 4096)))  # fmt: skip
    return {"_sparsemax_fwd_kernel": forward, "_sparsemax_bwd_kernel": backward}


def softmax() -> dict[str, Entries]:
    """f32 rows are loaded, others gathered; long rows come in chunks."""
    hints = {"occupancy": 2, "num_worker_warps": 4}
    gathered, backward, fused = [], [], []
    for t, m, n in [(BF16, 512, 4096), (F16, 37, 1000), (BF16, 101, 30001)]:
        gathered.append(entry(f"{TAG[t]}_{m}x{n}", hints, **like("Y X", t, m, n), n_cols=n, BLOCK_SIZE=pow2(n),
                              ALIGNED=pow2(n) == n))  # fmt: skip
    for t, m, n in [(BF16, 64, 32768), (F16, 37, 40000), (F32, 101, 20001)]:
        backward.append(entry(f"{TAG[t]}_{m}x{n}", hints, **like("DX DY Y", t, m, n), n_cols=n, BLOCK_SIZE=8192,
                              ALIGNED=n % 8192 == 0))  # fmt: skip
    for t, m, n in ROWS:
        fused.append(entry(f"{TAG[t]}_{m}x{n}", hints, **like("DX DY Y", t, m, n), n_cols=n, BLOCK_SIZE=pow2(n),
                           ALIGNED=pow2(n) == n))  # fmt: skip
    return {
        "_softmax_single_tma": [entry(f"{TAG[t]}_{m}x{n}", hints, **like("Y X", t, m, n), n_cols=n, BLOCK_SIZE=pow2(n))
                                for t, m, n in [(F32, 512, 4096), (F32, 37, 1000), (F32, 101, 5001), (BF16, 33, 999)]],
        "_softmax_single_gather": gathered,
        "_softmax_fwd_ct": [entry(f"{TAG[t]}_{m}x{n}", hints, **like("Y X", t, m, n), n_cols=n, BLOCK_SIZE=4096)
                            for t, m, n in [(BF16, 64, 65536), (F16, 37, 40000), (F32, 101, 33333)]],
        "_softmax_bwd_ct": backward,
        "_softmax_bwd_fused": fused,
    }  # fmt: skip


def multi_token_attention() -> dict[str, Entries]:
    """Square score matrices, flattened to (batch * length, length)."""

    def entries(names: str) -> Entries:
        return [entry(f"{TAG[t]}_{n}x{length}", **like(names, t, n * length, length), L=length,
                      BLOCK=min(pow2(length), 128))
                for t, n, length in [(BF16, 4, 1024), (F16, 3, 100), (F32, 2, 333)]]  # fmt: skip

    return {
        "_mask_inf_fwd_kernel": entries("scores_2d output_2d"),
        "_mask_zero_fwd_kernel": entries("scores_2d output_2d"),
        "_mask_bwd_kernel": entries("grad_2d output_2d"),
        "_fused_softmax_zeromask_bwd_kernel": entries("probs_2d grad_probs_2d output_2d"),
    }


def cross_entropy() -> dict[str, Entries]:
    """Each optional input and output is a flag; what is off is a dummy of one element."""
    found = []
    for t, m, v, grad, mean, weight, cap, z, accuracy, tokens, smoothing in [
        (BF16, 512, 32000, 1, 1, 0, 0, 0, 0, 0, 0.0), (F32, 101, 5001, 0, 0, 1, 0, 0, 0, 0, 0.1),
        (F16, 77, 1000, 1, 0, 0, 1, 1, 0, 0, 0.1), (BF16, 64, 4096, 1, 1, 1, 1, 1, 1, 1, 0.05),
        (F32, 33, 999, 1, 1, 1, 0, 0, 0, 1, 0.0), (F16, 32, 50257, 0, 1, 0, 0, 0, 1, 0, 0.0),
    ]:  # fmt: skip
        found.append(entry(
            f"{TAG[t]}_{m}x{v}_flags{grad}{mean}{weight}{cap}{z}{accuracy}{tokens}_smoothing{smoothing}",
            {"occupancy": 2, "num_worker_warps": 8}, input=array(t, m, v), target=array("int64", m),
            weight=array(F32, v if weight else 1), loss=array(t, m), z_loss=array(t, m) if z else array(F32, 1),
            token_accuracy=array(F32, m if accuracy else 1), predicted_tokens=array("int64", m if tokens else 1),
            n_cols=I32, inv_n_non_ignore=FLOAT, sum_non_ignore_weight=FLOAT, weight_sum=FLOAT, ignore_index=I32,
            label_smoothing=smoothing, lse_square_scale=1e-4 if z else 0.0, softcap=FLOAT,
            BLOCK_SIZE=min(4096, pow2(v)), HAS_GRADIENTS=grad, REDUCTION_MEAN=mean, HAS_WEIGHT=weight,
            HAS_SOFTCAPPING=cap, RETURN_Z_LOSS=z, RETURN_TOKEN_ACCURACY=accuracy, RETURN_PREDICTED_TOKENS=tokens,
        ))  # fmt: skip
    return {"_liger_cross_entropy_kernel": found}


def grpo_loss() -> dict[str, Entries]:
    """Four losses of a token, or one of a sequence; optional inputs are dummies of one element.

    The ratio is one a sequence: the kernels can't read the host's other form, one a token.
    """
    found: dict[str, Entries] = {"_grpo_loss_fwd_ct": [], "_grpo_loss_bwd_ct": [], "_grpo_loss_fwd_seq_ct": [],
                                 "_grpo_loss_bwd_seq_ct": []}  # fmt: skip
    for t, b, length, v, loss, beta, mask, old, ratio, bias in [  # a row of logits is a power of two or over a block
        (BF16, 4, 128, 32768, 0, 0.04, 1, 1, 0, 0), (F16, 2, 33, 50257, 1, 0.0, 0, 1, 1, 0),
        (F32, 3, 77, 1024, 2, 0.1, 1, 0, 1, 1), (BF16, 8, 64, 8192, 3, 0.0, 1, 0, 0, 0),
        (F32, 5, 31, 16384, 0, 0.0, 0, 0, 0, 0),
    ]:  # fmt: skip
        label = f"{TAG[t]}_b{b}_l{length}_v{v}_loss{loss}_beta{beta}" + "_mask" * mask + "_old" * old + "_ratio" * ratio
        optional = like("old", F32, b, length) if old else like("old", F32, 1)
        common: dict[str, Any] = {
            "logits_input": array(t, b * (length + 1), v), "input_ids": array("int64", b, length),
            "ref_logp_input": array(F32, b, length) if beta else array(F32, 1), "advantages": array(F32, b),
            "completion_mask": array("int32", b, length) if mask else array("int32", 1),
            "lse_cache": array(F32, b, length), "B": b, "L": length, "N": v, "temperature": FLOAT, "beta": beta,
            "use_bias_correction_kl": bias, "HAS_COMPLETION_MASK": mask,
        }  # fmt: skip
        ratios: dict[str, Any] = {"vllm_is_ratio": array(F32, b if ratio else 1),
                                  "HAS_VLLM_IS_RATIO": ratio, "vllm_is_ratio_stride": I32}  # fmt: skip
        clips: dict[str, Any] = {"eps_low": FLOAT, "eps_high": FLOAT, "delta": FLOAT}
        token: dict[str, Any] = {
            **common, **ratios, **clips, "old_logp_input": optional["old"], "HAS_OLD_LOGP": old, "loss_type": loss,
            "phi_seq_input": array(F32, b if loss == 3 else 1), "sapo_temp_pos": FLOAT, "sapo_temp_neg": FLOAT,
        }  # fmt: skip
        outputs: dict[str, Any] = {"kl_output": array(F32, b, length) if beta else array(F32, 1),
                                   **like("loss_output is_clipped_output", F32, b, length)}  # fmt: skip
        gradients: dict[str, Any] = {"dloss_input": array(F32, b, length),
                                     "dlogits_output": array(t, b * (length + 1), v)}  # fmt: skip
        warm = {"occupancy": f"ByTarget(sm_100={4 if b <= 2 else 12}, default={4 if b <= 2 else 12})"}
        forward = {"occupancy": "ByTarget(sm_100=2, default=2)"}
        found["_grpo_loss_fwd_ct"].append(entry(label, forward, **token, **outputs, BLOCK_N=min(8192, v)))
        found["_grpo_loss_bwd_ct"].append(entry(label, warm, **token, **gradients, BLOCK_N=min(4096, v)))
        if loss == 0 or ratio:
            found["_grpo_loss_fwd_seq_ct"].append(entry(
                label, **common, **ratios, **outputs, **like("coef_1 coef_1_raw coef_2 is_clipped_seq", F32, b),
                BLOCK_N=min(4096, v),
            ))  # fmt: skip
            found["_grpo_loss_bwd_seq_ct"].append(entry(
                label, warm, **common, **clips, **gradients, **like("dloss_sum_input coef_1 seq_len", F32, b),
                BLOCK_N=min(4096, v),
            ))  # fmt: skip
    return found


def rope() -> dict[str, Entries]:
    """Powers of two keep the layout; other head counts and sizes are transposed and padded."""
    whole, padded = [], []
    for t, b, s, qh, kh, d, cos_b, sign in [(BF16, 2, 100, 32, 8, 128, 1, 1.0), (F16, 3, 33, 4, 4, 64, 3, -1.0),
                                            (F32, 1, 512, 16, 2, 256, 1, 1.0)]:  # fmt: skip
        whole.append(entry(
            f"{TAG[t]}_b{b}_s{s}_h{qh}x{kh}_d{d}_cos{cos_b}_sign{sign}", Q=array(t, b, qh, s, d),
            K=array(t, b, kh, s, d), **like("COS SIN", F32 if t != F16 else t, cos_b, s, d), cos_bs=cos_b, seq_len=s,
            sin_sign=sign, TILE_QH=qh, TILE_KH=kh, TILE_HD=d // 2,
        ))  # fmt: skip
    for t, b, s, qh, kh, d, cos_b, sign in [(BF16, 2, 100, 28, 7, 128, 1, 1.0), (F16, 3, 33, 5, 3, 96, 3, -1.0),
                                            (F32, 1, 512, 12, 12, 80, 1, 1.0)]:  # fmt: skip
        padded.append(entry(
            f"{TAG[t]}_b{b}_s{s}_h{qh}x{kh}_d{d}_cos{cos_b}_sign{sign}", Q=array(t, b, s, qh, 2, d // 2),
            K=array(t, b, s, kh, 2, d // 2), **like("COS SIN", F32 if t != F16 else t, cos_b, s, 1, d // 2),
            cos_bs=cos_b, seq_len=s, sin_sign=sign, TILE_QH=pow2(qh), TILE_KH=pow2(kh), TILE_HD=pow2(d // 2),
        ))  # fmt: skip
    return {"_rope_4d_ct": whole, "_rope_5d_ct": padded}


def qwen2vl_mrope() -> dict[str, Entries]:
    """Three sections of the head dimension; flattened arrays where a size isn't a power of two."""
    whole, flat = [], []
    for t, b, s, qh, kh, d, sign in [(BF16, 2, 100, 16, 2, 128, 1.0), (F16, 3, 33, 8, 8, 64, -1.0),
                                     (F32, 1, 512, 32, 4, 128, 1.0)]:  # fmt: skip
        whole.append(entry(
            f"{TAG[t]}_b{b}_s{s}_h{qh}x{kh}_d{d}_sign{sign}", Q=array(t, b, qh, s, d), K=array(t, b, kh, s, d),
            **like("COS SIN", F32, 3, b, s, d), seq_len=s, MROPE_SECTION_T=d // 8, MROPE_SECTION_H=3 * d // 16,
            sin_sign=sign, TILE_QH=qh, TILE_KH=kh, TILE_HD=d // 2,
        ))  # fmt: skip
    for t, b, s, qh, kh, d, backward in [(BF16, 2, 100, 28, 4, 128, False), (F16, 3, 33, 5, 3, 96, True),
                                         (F32, 1, 512, 2, 3, 80, True)]:  # fmt: skip
        flat.append(entry(
            f"{TAG[t]}_b{b}_s{s}_h{qh}x{kh}_d{d}" + "_backward" * backward, query=array(t, b * s * qh * d),
            key=array(t, b * s * kh * d), **like("cos sin", F32, 3 * b * s * d), sl=I32, BS_SL=I32, N_QH=qh, N_KH=kh,
            MROPE_SECTION_T=d // 8, MROPE_SECTION_H=3 * d // 16, BACKWARD=backward, HEAD_DIM=d, HEAD_DIM_HALF=d // 2,
            TILE_HD=pow2(d // 2), TILE_QH=pow2(qh), TILE_KH=pow2(kh), HD_POW2=pow2(d // 2) == d // 2,
        ))  # fmt: skip
    return {"_qwen2vl_mrope_4d_ct": whole, "_qwen2vl_mrope_kernel": flat}


def llama4_rope() -> dict[str, Entries]:
    """Real and imaginary parts alternate; the frequencies are f32."""
    found = []
    for t, b, s, qh, kh, d, block in [(BF16, 2, 100, 40, 8, 128, 64), (F16, 3, 33, 5, 3, 96, 64),
                                      (F32, 1, 512, 16, 16, 256, 128)]:  # fmt: skip
        found.append(entry(
            f"{TAG[t]}_b{b}_s{s}_h{qh}x{kh}_d{d}", query=array(t, b * s * qh, d), key=array(t, b * s * kh, d),
            freqs=array(F32, s, d), seq_len=I32, HEAD_DIM_HALF=d // 2, N_Q_HEADS=qh, N_K_HEADS=kh, imag_sign=FLOAT,
            BLOCK_SIZE=block,
        ))  # fmt: skip
    return {"_llama4_rope_kernel": found}


def fused_neighborhood_attention() -> dict[str, Entries]:
    """A window of keys around each query; the log-sum-exp is padded to whole tiles."""
    found: dict[str, Entries] = {"_fna_fused_forward_kernel": [], "_fna_bwd_preprocess_kernel": [],
                                 "_fna_bwd_dkdv_kernel": [], "_fna_bwd_dq_kernel": []}  # fmt: skip
    for t, b, h, s, d, window, dilation, block_m, block_n in [
        (BF16, 2, 8, 1024, 64, 7, 1, 64, 32), (F16, 1, 3, 333, 128, 5, 2, 128, 64), (F32, 2, 2, 500, 32, 9, 3, 64, 128),
    ]:  # fmt: skip
        label = f"{TAG[t]}_b{b}_h{h}_s{s}_d{d}_window{window}_dilation{dilation}"
        padded = -(-s // block_m) * block_m
        common: dict[str, Any] = {"NUM_HEADS": I32, "SEQ_LEN": I32, "HEAD_DIM": d, "BLOCK_M": block_m,
                                  "LSE_STRIDE": I32}  # fmt: skip
        window_params: dict[str, Any] = {**common, **like("query key value", t, b, h, s, d), "qk_scale": FLOAT,
                                         "KERNEL_SIZE": window, "DILATION": dilation, "BLOCK_N": block_n,
                                         "lse_cache": array(F32, b * h * padded)}  # fmt: skip
        found["_fna_fused_forward_kernel"].append(
            entry(label, {"occupancy": 2}, **window_params, output=array(t, b, h, s, d))
        )
        delta = array(F32, b * h * padded)
        found["_fna_bwd_preprocess_kernel"].append(
            entry(label, **common, **like("output grad_output", t, b, h, s, d), delta_cache=delta)
        )
        window_params |= {"delta_cache": delta, "grad_output": array(t, b, h, s, d)}
        found["_fna_bwd_dkdv_kernel"].append(
            entry(label, **window_params, **like("grad_key grad_value", t, b, h, s, d))
        )
        found["_fna_bwd_dq_kernel"].append(entry(label, **window_params, grad_query=array(t, b, h, s, d)))
    return found


SUITE = Suite(
    "liger",
    "tilegym.suites.liger.cutile",
    {
        operator.__name__: operator
        for operator in (
            cross_entropy, dyt, fused_add_rms_norm, fused_neighborhood_attention, geglu, group_norm, grpo_loss, jsd,
            kl_div, layer_norm, llama4_rope, modulated_rms_norm, multi_token_attention, poly_norm, qwen2vl_mrope,
            relu_squared, rms_norm, rope, softmax, sparsemax, swiglu, tvd,
        )
    },
    host_only=("fused_linear_cross_entropy", "fused_linear_jsd", "tiled_mlp"),
)  # fmt: skip

if __name__ == "__main__":
    main(SUITE)
