"""An operator for the tests of the C interface and of the host module: rows scaled, and summed in blocks."""

import functools
from math import ceil

import cuda.tile as ct
import torch
from cuda.tile import RoundingMode as RMd
from cuda.tile.tune import exhaustive_search

ConstInt = ct.Constant[int]
BLOCKS = (16, 64)
_tuned: dict = {}


def _half(tile):
    return ct.truediv(tile, 2.0, rounding_mode=RMd.APPROX)


@ct.kernel(occupancy=2)
def _scale_kernel(output, input, factor, BLOCK: ConstInt, HALVE: ct.Constant[bool]):
    """Scale one row a block."""
    row = ct.bid(0)
    tile = ct.load(input, index=(row, 0), shape=(1, BLOCK), padding_mode=ct.PaddingMode.ZERO)
    scaled = ct.astype(tile, ct.float32) * factor
    if HALVE:
        scaled = _half(scaled)
    ct.store(output, index=(row, 0), tile=ct.astype(scaled, output.dtype))


# Sums of blocks, in one element each
@ct.kernel
def _block_sums(x, sums, BLOCK: ConstInt):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(BLOCK,), padding_mode=ct.PaddingMode.ZERO)
    total = ct.sum(ct.astype(tile, ct.float32), 0, keepdims=True)
    ct.store(sums, index=(i,), tile=total)


class Scale(torch.autograd.Function):
    """Scales rows, with a gradient."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        y = torch.empty_like(x)
        block = 1 << (x.shape[1] - 1).bit_length()
        ct.launch(torch.cuda.current_stream(), (x.shape[0],), _scale_kernel, (y, x, factor, block, False))
        return y

    @staticmethod
    def backward(ctx, dy):
        return Scale.apply(dy, ctx.factor), None


@functools.lru_cache
def hinted(occupancy):
    return _scale_kernel.replace_hints(occupancy=occupancy)


def scale(x, factor=1.0):
    """Scale the rows of a matrix."""
    return Scale.apply(x, factor)


def block_sums(x):
    """Sum a vector in blocks of the size that was fastest."""
    stream = torch.cuda.current_stream()
    if x.dtype not in _tuned:
        found = exhaustive_search(
            BLOCKS,
            stream,
            lambda block: (ceil(x.numel() / block),),
            _block_sums,
            lambda block: (x, _out(x, block), block),
        )
        _tuned[x.dtype] = found.best.config
    block = _tuned[x.dtype]
    sums = _out(x, block)
    ct.launch(stream, (ceil(x.numel() / block), 1, 1), _block_sums, (x, sums, block))
    return sums


def _out(x, block):
    return torch.empty(ceil(x.numel() / block), dtype=torch.float32, device=x.device)
