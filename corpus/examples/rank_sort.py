"""Sorts short rows by counting for each element how many come before it (stable)."""

import cuda.tile as ct
import torch


@ct.kernel
def rank_sort_kernel(x, values, order, N: ct.Constant[int], TILE: ct.Constant[int], DESCENDING: ct.Constant[bool]):
    row = ct.bid(0)
    i = ct.arange(TILE, dtype=ct.int32)
    v = ct.gather(x, (row, i), padding_value=0)
    a, b = v[:, None], v[None, :]
    before = (b > a) if DESCENDING else (b < a)
    tie = (a == b) & (i[None, :] < i[:, None])
    counted = (before | tie) & (i[None, :] < N)
    rank = ct.sum(counted.astype(ct.int32), axis=1)
    rank = ct.where(i < N, rank, -1)
    ct.scatter(values, (row, rank), v)
    ct.scatter(order, (row, rank), i)


def sort_rows(x, descending=False):
    rows, n = x.shape
    assert n <= 256
    values = torch.empty_like(x)
    order = torch.empty(rows, n, dtype=torch.int32, device=x.device)
    ct.launch(
        torch.cuda.current_stream(),
        (rows,),
        rank_sort_kernel,
        (x, values, order, n, 1 << (n - 1).bit_length(), descending),
    )
    return values, order
