"""Maximum over a sliding window (1-D max pooling with stride 1, same length)."""

import cuda.tile as ct
import torch


@ct.kernel
def sliding_max_kernel(x, y, window: int, N: ct.Constant[int], TILE: ct.Constant[int]):
    row, block = ct.bid(0), ct.bid(1)
    pos = block * TILE + ct.arange(TILE, dtype=ct.int32)
    best = ct.full((TILE,), float("-inf"), dtype=ct.float32)
    w = 0
    while w < window:
        src = pos + w - window // 2
        in_row = (src >= 0) & (src < N)
        v = ct.gather(x, (row, src), mask=in_row, padding_value=float("-inf"))
        best = max(best, ct.astype(v, ct.float32))
        w += 1
    ct.scatter(y, (row, pos), best.astype(y.dtype))


def sliding_max(x, window):
    rows, n = x.shape
    y = torch.empty_like(x)
    tile = 512
    ct.launch(torch.cuda.current_stream(), (rows, (n + tile - 1) // tile), sliding_max_kernel, (x, y, window, n, tile))
    return y
