"""Backward pass of RMSNorm: dx row by row, dw accumulated over the rows of a persistent block."""

import cuda.tile as ct
import torch

ConstInt = ct.Constant[int]


@ct.kernel
def rmsnorm_bwd(dy, x, w, rstd, dx, dw_partial, N_COLS: ConstInt, BLOCK: ConstInt):
    pid = ct.bid(0)
    rows = x.shape[0]
    cols = ct.arange(BLOCK, dtype=ct.int32)
    weight = ct.gather(w, cols, padding_value=0.0).astype(ct.float32)
    dw = ct.zeros((BLOCK,), dtype=ct.float32)
    for row in range(pid, rows, ct.num_blocks(0)):
        g = ct.gather(dy, (row, cols), padding_value=0.0).astype(ct.float32)
        v = ct.gather(x, (row, cols), padding_value=0.0).astype(ct.float32)
        r = ct.gather(rstd, row)
        normed = v * r
        wg = weight * g
        c = ct.sum(wg * normed) / N_COLS
        ct.scatter(dx, (row, cols), ((wg - normed * c) * r).astype(dx.dtype))
        dw += g * normed
    ct.scatter(dw_partial, (pid, cols), dw)


def rms_norm_backward(dy, x, w, rstd):
    m, n = x.shape
    sms = torch.cuda.get_device_properties(x.device).multi_processor_count
    blocks = min(m, sms * 2)
    dx = torch.empty_like(x)
    partial = torch.empty(blocks, n, dtype=torch.float32, device=x.device)
    ct.launch(
        torch.cuda.current_stream(), (blocks,), rmsnorm_bwd, (dy, x, w, rstd, dx, partial, n, 1 << (n - 1).bit_length())
    )
    return dx, partial.sum(0).to(w.dtype)
