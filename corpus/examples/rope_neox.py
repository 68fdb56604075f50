"""Rotary embedding in the NeoX layout, in place, angles computed on the fly."""

import math

import cuda.tile as ct
import torch


@ct.function
def angle(position, lane, half, base_log2):
    frequency = ct.exp2(lane.astype(ct.float32) * (-base_log2 / half))
    return position.astype(ct.float32) * frequency


@ct.kernel
def rope_kernel(
    x, positions, base_log2: ct.Constant[float], HALF: ct.Constant[int], INVERSE: ct.Constant[bool] = False
):
    token, head = ct.bid(0), ct.bid(1)
    lane = ct.arange(HALF, dtype=ct.int32)
    a = angle(ct.gather(positions, token), lane, HALF, base_log2)
    cos, sin = ct.cos(a), ct.sin(a)
    if INVERSE:
        sin = -sin
    lo = ct.load(x, (token, head, 0), (1, 1, HALF)).reshape((HALF,)).astype(ct.float32)
    hi = ct.load(x, (token, head, 1), (1, 1, HALF)).reshape((HALF,)).astype(ct.float32)
    ct.store(x, (token, head, 0), (lo * cos - hi * sin).reshape((1, 1, HALF)).astype(x.dtype))
    ct.store(x, (token, head, 1), (hi * cos + lo * sin).reshape((1, 1, HALF)).astype(x.dtype))


def apply_rope(x, positions, base=10000.0, inverse=False):
    tokens, heads, dim = x.shape
    ct.launch(
        torch.cuda.current_stream(),
        (tokens, heads),
        rope_kernel,
        (x, positions.int(), math.log2(base), dim // 2, inverse),
    )
    return x
