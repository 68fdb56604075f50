"""y = act(x @ w.T + b), w in (out, in) layout; the activation is chosen at compile time."""

from enum import IntEnum

import cuda.tile as ct
import torch

ConstInt = ct.Constant[int]


class Act(IntEnum):
    NONE = 0
    RELU = 1
    SILU = 2


NONE, RELU, SILU = 0, 1, 2
GROUP = 8


def swizzle(pid, m_tiles, n_tiles):
    width = GROUP * n_tiles
    group = pid // width
    first = group * GROUP
    size = min(m_tiles - first, GROUP)
    return first + (pid % width) % size, (pid % width) // size


def activate(x, act):
    if act == RELU:
        return ct.maximum(x, 0.0)
    elif act == SILU:
        return x / (1.0 + ct.exp(-x))
    else:
        return x


@ct.kernel(num_ctas=ct.ByTarget(sm_100=2, default=1))
def linear_act_kernel(
    x,
    w,
    b,
    y,
    M: ConstInt,
    N: ConstInt,
    HAS_BIAS: ct.Constant[bool],
    ACT: ConstInt,
    TM: ConstInt,
    TN: ConstInt,
    TK: ConstInt,
):
    m, n = swizzle(ct.bid(0), ct.cdiv(M, TM), ct.cdiv(N, TN))
    acc = ct.zeros((TM, TN), ct.float32)
    dtype = ct.tfloat32 if x.dtype == ct.float32 else x.dtype
    for k in range(ct.num_tiles(x, axis=1, shape=(TM, TK))):
        a = ct.load(x, (m, k), (TM, TK), padding_mode=ct.PaddingMode.ZERO).astype(dtype)
        wt = ct.load(w, (k, n), (TK, TN), order="F", padding_mode=ct.PaddingMode.ZERO).astype(dtype)
        acc = ct.mma(a, wt, acc)
    if HAS_BIAS:
        acc = acc + ct.load(b, (n,), (TN,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(y, (m, n), activate(acc, ACT).astype(y.dtype))


def linear(x, w, b=None, act=Act.NONE):
    m, _ = x.shape
    n = w.shape[0]
    y = torch.empty(m, n, dtype=x.dtype, device=x.device)
    tiles = ct.cdiv(m, 128) * ct.cdiv(n, 128)
    ct.launch(
        torch.cuda.current_stream(),
        (tiles, 1, 1),
        linear_act_kernel,
        (x, w, b if b is not None else y.new_empty(1), y, m, n, b is not None, int(act), 128, 128, 64),
    )
    return y
