"""Softmax of rows too long for one tile: one pass for max and sum, one to write."""

import math

import cuda.tile as ct
import torch

LOG2E = 1.4426950408889634


@ct.kernel
def online_softmax(x, y, scale, COLS: ct.Constant[int], BLOCK: ct.Constant[int]):
    row = ct.bid(0)
    m = ct.full((1,), -math.inf, dtype=ct.float32)
    s = ct.zeros((1,), dtype=ct.float32)
    steps = ct.num_tiles(x, axis=1, shape=(1, BLOCK))
    for j in range(steps):
        v = ct.load(x, index=(row, j), shape=(1, BLOCK), padding_mode=ct.PaddingMode.NEG_INF)
        v = ct.reshape(v.astype(ct.float32) * (scale * LOG2E), (BLOCK,))
        m_new = ct.maximum(m, ct.max(v, axis=0, keepdims=True))
        s = s * ct.exp2(m - m_new) + ct.sum(ct.exp2(v - m_new), axis=0, keepdims=True)
        m = m_new
    inv = 1.0 / s
    for j in range(steps):
        v = ct.load(x, index=(row, j), shape=(1, BLOCK), padding_mode=ct.PaddingMode.NEG_INF)
        p = ct.exp2(v.astype(ct.float32) * (scale * LOG2E) - m[None, :]) * inv[None, :]
        ct.store(y, index=(row, j), tile=p.astype(y.dtype))


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        shape = x.shape
        x2d = x.reshape(-1, shape[-1])
        y = torch.empty_like(x2d)
        block = min(4096, 1 << (x2d.shape[1] - 1).bit_length())
        ct.launch(
            torch.cuda.current_stream(),
            (x2d.shape[0], 1, 1),
            online_softmax,
            (x2d, y, float(scale), x2d.shape[1], block),
        )
        ctx.save_for_backward(y)
        return y.view(shape)
