"""Mish and its gradient, vectorized over a flat buffer with a grid-stride loop."""

import cuda.tile as ct
import torch


def softplus(x):
    return ct.where(x > 20.0, x, ct.log(1.0 + ct.exp(ct.minimum(x, 20.0))))


@ct.kernel
def mish_fwd(x, y, n: int, TILE: ct.Constant[int]):
    for start in range(ct.bid(0) * TILE, n, ct.num_blocks(0) * TILE):
        idx = start + ct.arange(TILE, dtype=ct.int32)
        v = ct.gather(x, idx, padding_value=0).astype(ct.float32)
        ct.scatter(y, idx, (v * ct.tanh(softplus(v))).astype(y.dtype))


@ct.kernel
def mish_bwd(dy, x, dx, n: int, TILE: ct.Constant[int]):
    for start in range(ct.bid(0) * TILE, n, ct.num_blocks(0) * TILE):
        idx = start + ct.arange(TILE, dtype=ct.int32)
        v = ct.gather(x, idx, padding_value=0).astype(ct.float32)
        g = ct.gather(dy, idx, padding_value=0).astype(ct.float32)
        t = ct.tanh(softplus(v))
        sig = 1.0 / (1.0 + ct.exp(-v))
        grad = g * (t + v * sig * (1.0 - t * t))
        ct.scatter(dx, idx, grad.astype(dx.dtype))


class Mish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        blocks = min(1024, ct.cdiv(x.numel(), 1024))
        ct.launch(torch.cuda.current_stream(), (blocks,), mish_fwd, (x.view(-1), y.view(-1), x.numel(), 1024))
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        blocks = min(1024, ct.cdiv(x.numel(), 1024))
        ct.launch(
            torch.cuda.current_stream(),
            (blocks,),
            mish_bwd,
            (dy.contiguous().view(-1), x.view(-1), dx.view(-1), x.numel(), 1024),
        )
        return dx
