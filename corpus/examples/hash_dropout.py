"""Dropout with a counter-based generator of our own: the mask is a hash of (seed, position)."""

import cuda.tile as ct
import torch


def mix(h):
    """MurmurHash3's finalizer."""
    h = h ^ (h >> 16)
    h = h * ct.uint32(0x85EBCA6B)
    h = h ^ (h >> 13)
    h = h * ct.uint32(0xC2B2AE35)
    return h ^ (h >> 16)


def uniform(seed, position):
    h = mix(position.astype(ct.uint32) + seed * ct.uint32(0x9E3779B9))
    return (h >> 8).astype(ct.float32) * (1.0 / 16777216.0)


@ct.kernel
def dropout_kernel(x, y, seed, p: float, N: ct.Constant[int], BLOCK: ct.Constant[int]):
    pid = ct.bid(0)
    offsets = pid * BLOCK + ct.arange(BLOCK, dtype=ct.int32)
    u = uniform(ct.astype(seed, ct.uint32), offsets)
    v = ct.gather(x, offsets, padding_value=0.0)
    kept = ct.where(u >= p, v.astype(ct.float32) / (1.0 - p), 0.0)
    ct.scatter(y, offsets, kept.astype(y.dtype))


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    flat = x.contiguous().view(-1)
    y = torch.empty_like(flat)
    n = flat.numel()
    ct.launch(torch.cuda.current_stream(), (ct.cdiv(n, 1024), 1, 1), dropout_kernel, (flat, y, seed, p, n, 1024))
    return y.view_as(x)
