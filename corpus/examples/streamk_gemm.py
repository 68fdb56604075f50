"""Stream-K GEMM: every block gets the same number of K iterations; partial tiles are added with atomics."""

import cuda.tile as ct
import torch


@ct.kernel
def streamk_kernel(
    a,
    b,
    c,
    total_iters,
    iters_per_tile,
    iters_per_block,
    TM: ct.Constant[int],
    TN: ct.Constant[int],
    TK: ct.Constant[int],
):
    block = ct.bid(0)
    tiles_n = ct.num_tiles(b, axis=1, shape=(TK, TN))
    rows = ct.arange(TM, dtype=ct.int32)
    cols = ct.arange(TN, dtype=ct.int32)
    it = block * iters_per_block
    end = min(it + iters_per_block, total_iters)
    while it < end:
        tile = it // iters_per_tile
        k_first = it % iters_per_tile
        k_last = min(iters_per_tile, k_first + end - it)
        i = tile // tiles_n
        j = tile % tiles_n
        acc = ct.zeros((TM, TN), dtype=ct.float32)
        for k in range(k_first, k_last):
            ta = ct.load(a, (i, k), (TM, TK), padding_mode=ct.PaddingMode.ZERO)
            tb = ct.load(b, (k, j), (TK, TN), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(ta, tb, acc)
        ri = i * TM + rows
        cj = j * TN + cols
        if k_first == 0 and k_last == iters_per_tile:
            ct.store(c, (i, j), acc)
        else:
            ct.atomic_add(c, (ri[:, None], cj[None, :]), acc, memory_order=ct.MemoryOrder.RELAXED)
        it = it + (k_last - k_first)


def streamk_gemm(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.zeros(m, n, dtype=torch.float32, device=a.device)
    tm, tn, tk = 128, 128, 32
    per_tile = ct.cdiv(k, tk)
    total = ct.cdiv(m, tm) * ct.cdiv(n, tn) * per_tile
    blocks = min(132, total)
    per_block = ct.cdiv(total, blocks)
    ct.launch(torch.cuda.current_stream(), (blocks,), streamk_kernel, (a, b, c, total, per_tile, per_block, tm, tn, tk))
    return c
