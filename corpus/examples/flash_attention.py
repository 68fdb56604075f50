"""Causal attention forward with grouped key-value heads; writes the log-sum-exp for the backward pass."""

import math

import cuda.tile as ct
import torch

INT = ct.Constant[int]
LOG2E = math.log2(math.e)


@ct.kernel(occupancy=2)
def attention_kernel(q, k, v, out, lse, sm_scale, D: INT, BM: INT, BN: INT, GROUP: INT, CAUSAL: ct.Constant[bool]):
    i = ct.bid(0)
    b = ct.bid(1)
    h = ct.bid(2)
    kvh = h // GROUP
    seq_k = k.shape[2]
    rows = i * BM + ct.arange(BM, dtype=ct.int32)[:, None]
    qt = ct.load(q, (b, h, i, 0), (1, 1, BM, D), padding_mode=ct.PaddingMode.ZERO).reshape((BM, D))
    m = ct.full((BM, 1), float("-inf"), ct.float32)
    l = ct.zeros((BM, 1), ct.float32)
    acc = ct.zeros((BM, D), ct.float32)
    scale = sm_scale * LOG2E
    hi = min(seq_k, (i + 1) * BM) if CAUSAL else seq_k
    for j in range(ct.cdiv(hi, BN)):
        kt = ct.load(k, (b, kvh, j, 0), (1, 1, BN, D), padding_mode=ct.PaddingMode.ZERO).reshape((BN, D))
        s = ct.mma(qt, kt.transpose(), ct.zeros((BM, BN), ct.float32)) * scale
        cols = j * BN + ct.arange(BN, dtype=ct.int32)[None, :]
        keep = cols < seq_k
        if CAUSAL:
            keep = keep & (cols <= rows)
        s = ct.where(keep, s, -1.0e30)
        m_new = ct.maximum(m, ct.max(s, axis=1, keepdims=True))
        p = ct.exp2(s - m_new)
        alpha = ct.exp2(m - m_new)
        l = l * alpha + ct.sum(p, axis=1, keepdims=True)
        vt = ct.load(v, (b, kvh, j, 0), (1, 1, BN, D), padding_mode=ct.PaddingMode.ZERO).reshape((BN, D))
        acc = ct.mma(p.astype(v.dtype), vt, acc * alpha)
        m = m_new
    ct.store(out, (b, h, i, 0), (acc / l).astype(out.dtype).reshape((1, 1, BM, D)))
    ct.store(lse, (b, h, i), (m + ct.log2(l)).reshape((1, 1, BM)))


def attention(q, k, v, causal=True, scale=None):
    b, h, s, d = q.shape
    group = h // k.shape[1]
    out = torch.empty_like(q)
    lse = torch.empty(b, h, s, device=q.device, dtype=torch.float32)
    scale = scale if scale is not None else 1.0 / math.sqrt(d)
    ct.launch(
        torch.cuda.current_stream(),
        (ct.cdiv(s, 64), b, h),
        attention_kernel,
        (q, k, v, out, lse, scale, d, 64, 64, group, causal),
    )
    return out, lse
