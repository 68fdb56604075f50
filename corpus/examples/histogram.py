"""Histogram of integer values with atomics; out-of-range values are dropped."""

import cuda.tile as ct
import torch


@ct.kernel
def histogram_kernel(values, counts, lo, hi, TILE: ct.Constant[int], BINS: ct.Constant[int]):
    start = ct.bid(0) * TILE
    offsets = start + ct.arange(TILE, dtype=ct.int32)
    v = ct.gather(values, offsets, padding_value=-1)
    inside = (v >= lo) & (v < hi)
    bucket = (v - lo) * BINS // (hi - lo)
    bucket = ct.where(inside, bucket, -1)  # negative: out of bounds, ignored
    ct.atomic_add(counts, bucket, 1, memory_order=ct.MemoryOrder.RELAXED)


def histogram(values: torch.Tensor, bins: int, lo: int, hi: int) -> torch.Tensor:
    assert values.dtype == torch.int32 and values.ndim == 1
    counts = torch.zeros(bins, dtype=torch.int32, device=values.device)
    tile = 1024
    grid = ((values.numel() + tile - 1) // tile, 1, 1)
    ct.launch(torch.cuda.current_stream(), grid, histogram_kernel, (values, counts, lo, hi, tile, bins))
    return counts


if __name__ == "__main__":
    data = torch.randint(0, 1000, (1_000_003,), dtype=torch.int32, device="cuda")
    print(histogram(data, 64, 0, 1000))
