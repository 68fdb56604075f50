"""Row-wise mean and variance in one pass (Welford / Chan update over column blocks)."""

import cuda.tile as ct
import torch


def combine(count_a, mean_a, m2_a, count_b, mean_b, m2_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    mean = mean_a + delta * (count_b / count)
    m2 = m2_a + m2_b + delta * delta * (count_a * count_b / count)
    return count, mean, m2


@ct.kernel(occupancy=2)
def welford_kernel(x, mean_out, var_out, n_cols: int, BLOCK: ct.Constant[int]):
    row = ct.bid(0)
    cols = ct.arange(BLOCK, dtype=ct.int32)
    count = ct.astile(0.0, dtype=ct.float32)
    mean = ct.astile(0.0, dtype=ct.float32)
    m2 = ct.astile(0.0, dtype=ct.float32)
    for j in range(ct.cdiv(n_cols, BLOCK)):
        offs = j * BLOCK + cols
        valid = offs < n_cols
        v = ct.gather(x, (row, offs), padding_value=0.0).astype(ct.float32)
        block_count = ct.sum(ct.where(valid, 1.0, 0.0))
        block_mean = ct.sum(v) / block_count
        diff = ct.where(valid, v - block_mean, 0.0)
        block_m2 = ct.sum(diff * diff)
        count, mean, m2 = combine(count, mean, m2, block_count, block_mean, block_m2)
    ct.scatter(mean_out, row, mean)
    ct.scatter(var_out, row, m2 / count)


def row_mean_var(x):
    rows, cols = x.shape
    mean = torch.empty(rows, device=x.device, dtype=torch.float32)
    var = torch.empty_like(mean)
    ct.launch(torch.cuda.current_stream(), (rows,), welford_kernel, (x, mean, var, cols, 1024))
    return mean, var
