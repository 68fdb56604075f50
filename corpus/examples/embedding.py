"""Embedding lookup with an optional padding index, and its gradient by atomics."""

import cuda.tile as ct
import torch


@ct.kernel
def embedding_fwd(table, ids, out, PAD: ct.Constant[int], D: ct.Constant[int], BLOCK_D: ct.Constant[int]):
    token = ct.bid(0)
    idx = ct.load(ids, (token,), (1,)).item()
    for d in range(0, D, BLOCK_D):
        cols = d + ct.arange(BLOCK_D, dtype=ct.int32)
        row = ct.gather(table, (idx, cols), padding_value=0)
        if PAD >= 0:
            row = ct.where(idx == PAD, 0, row)
        ct.scatter(out, (token, cols), row)


@ct.kernel
def embedding_bwd(grad_out, ids, grad_table, D: ct.Constant[int], BLOCK_D: ct.Constant[int]):
    token, block = ct.bid(0), ct.bid(1)
    cols = block * BLOCK_D + ct.arange(BLOCK_D, dtype=ct.int32)
    idx = ct.gather(ids, token)
    g = ct.gather(grad_out, (token, cols))
    ct.atomic_add(grad_table, (idx, cols), g.astype(ct.float32))


class Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ids, table, padding_idx=None):
        flat = ids.reshape(-1).to(torch.int32)
        n, d = flat.numel(), table.shape[1]
        out = torch.empty(n, d, dtype=table.dtype, device=table.device)
        pad = -1 if padding_idx is None else padding_idx
        ct.launch(torch.cuda.current_stream(), (n, 1, 1), embedding_fwd, (table, flat, out, pad, d, 256))
        ctx.save_for_backward(flat)
        ctx.rows = table.shape[0]
        return out.view(*ids.shape, d)

    @staticmethod
    def backward(ctx, grad):
        (flat,) = ctx.saved_tensors
        d = grad.shape[-1]
        g = grad.reshape(-1, d)
        table = torch.zeros(ctx.rows, d, dtype=torch.float32, device=grad.device)
        ct.launch(torch.cuda.current_stream(), (flat.numel(), ct.cdiv(d, 256)), embedding_bwd, (g, flat, table, d, 256))
        return None, table, None
