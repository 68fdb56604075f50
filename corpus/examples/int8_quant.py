"""Symmetric per-row int8 quantization, and the product that undoes it."""

import cuda.tile as ct
import torch


@ct.kernel
def quantize_rows(x, q, scales, TILE_N: ct.Constant[int]):
    row = ct.bid(0)
    v = ct.load(x, (row, 0), (1, TILE_N), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    amax = ct.max(ct.abs(v), axis=1, keepdims=True)
    scale = ct.maximum(amax, 1e-8) / 127.0
    r = v / scale
    rounded = ct.floor(ct.abs(r) + 0.5)
    signed = ct.where(r < 0, -rounded, rounded)
    ct.store(q, (row, 0), ct.minimum(ct.maximum(signed, -127.0), 127.0).astype(ct.int8))
    ct.store(scales, (row,), scale.reshape((1,)))


@ct.kernel
def int8_matmul(a, b, sa, sb, c, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.int32)
    for k in range(ct.num_tiles(a, axis=1, shape=(TM, TK))):
        ta = ct.load(a, (i, k), (TM, TK), padding_mode=ct.PaddingMode.ZERO)
        tb = ct.load(b, (k, j), (TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(ta, tb, acc)
    row_scale = ct.load(sa, (i,), (TM,)).reshape((TM, 1))
    col_scale = ct.load(sb, (j,), (TN,)).reshape((1, TN))
    ct.store(c, (i, j), (acc.astype(ct.float32) * row_scale * col_scale).astype(c.dtype))


def quantize(x):
    q = torch.empty_like(x, dtype=torch.int8)
    s = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    tile = 1 << (x.shape[1] - 1).bit_length()
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), quantize_rows, (x, q, s, tile))
    return q, s


def matmul_int8(qa, qb, sa, sb, dtype=torch.float16):
    m, _ = qa.shape
    n = qb.shape[1]
    c = torch.empty(m, n, dtype=dtype, device=qa.device)
    grid = (ct.cdiv(m, 128), ct.cdiv(n, 128))
    ct.launch(torch.cuda.current_stream(), grid, int8_matmul, (qa, qb, sa, sb, c, 128, 128, 64))
    return c
