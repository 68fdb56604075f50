"""Matrix times vector for decoding, K split over blocks, partial sums reduced by a second kernel."""

import cuda.tile as ct
import torch
from cuda.tile import Constant, PaddingMode


@ct.kernel
def gemv_partial(w, x, partial, CHUNKS: Constant[int], TN: Constant[int], TK: Constant[int]):
    n, split = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TN, TK), dtype=ct.float32)
    for c in range(CHUNKS):
        k = split * CHUNKS + c
        wt = ct.load(w, (n, k), (TN, TK), padding_mode=PaddingMode.ZERO, latency=4)
        xt = ct.load(x, (k,), (TK,), padding_mode=PaddingMode.ZERO)
        acc = acc + wt.astype(ct.float32) * xt.astype(ct.float32)
    ct.store(partial, (split, n), ct.sum(acc, axis=1, keepdims=False).reshape((1, TN)))


@ct.kernel
def reduce_partial(partial, bias, y, HAS_BIAS: Constant[bool], SPLITS: Constant[int], TN: Constant[int]):
    n = ct.bid(0)
    s = ct.load(partial, (0, n), (SPLITS, TN), padding_mode=PaddingMode.ZERO)
    total = ct.sum(s, axis=0)
    if HAS_BIAS:
        total = total + ct.load(bias, (n,), (TN,), padding_mode=PaddingMode.ZERO).astype(ct.float32)
    ct.store(y, (n,), total.astype(y.dtype))


def gemv(w, x, bias=None, splits=8):
    n, k = w.shape
    tn, tk = 16, 256
    chunks = ct.cdiv(ct.cdiv(k, tk), splits)
    partial = torch.empty(splits, n, dtype=torch.float32, device=w.device)
    y = torch.empty(n, dtype=x.dtype, device=x.device)
    stream = torch.cuda.current_stream()
    ct.launch(stream, (ct.cdiv(n, tn), splits), gemv_partial, (w, x, partial, chunks, tn, tk))
    has_bias = bias is not None
    ct.launch(stream, (ct.cdiv(n, 256),), reduce_partial, (partial, bias if has_bias else y, y, has_bias, splits, 256))
    return y
