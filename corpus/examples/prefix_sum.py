"""Inclusive prefix sum of a long vector: sums of blocks, their exclusive scan, then the result."""

import cuda.tile as ct
import torch


@ct.kernel
def block_sums(x, sums, BLOCK: ct.Constant[int]):
    i = ct.bid(0)
    v = ct.load(x, (i,), (BLOCK,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(sums, (i,), ct.sum(v, axis=0, keepdims=True))


@ct.kernel
def add_offsets(x, offsets, y, BLOCK: ct.Constant[int], EXCLUSIVE: ct.Constant[bool]):
    i = ct.bid(0)
    v = ct.load(x, (i,), (BLOCK,), padding_mode=ct.PaddingMode.ZERO)
    base = ct.load(offsets, (i,), (1,)).item()
    scanned = ct.cumsum(v, axis=0) + base
    if EXCLUSIVE:
        scanned = scanned - v
    ct.store(y, (i,), scanned)


@ct.kernel
def scan_sums(sums, offsets, N: ct.Constant[int]):
    v = ct.load(sums, (0,), (N,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(offsets, (0,), ct.cumsum(v) - v)


def prefix_sum(x, exclusive=False):
    n = x.numel()
    block = 2048
    blocks = (n + block - 1) // block
    sums = torch.empty(blocks, dtype=x.dtype, device=x.device)
    offsets = torch.empty_like(sums)
    y = torch.empty_like(x)
    stream = torch.cuda.current_stream()
    ct.launch(stream, (blocks,), block_sums, (x, sums, block))
    ct.launch(stream, (1,), scan_sums, (sums, offsets, 1 << (blocks - 1).bit_length()))
    ct.launch(stream, (blocks,), add_offsets, (x, offsets, y, block, exclusive))
    return y
