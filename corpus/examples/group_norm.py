"""Group norm for NCHW activations: one block a (sample, group)."""

import cuda.tile as ct
import torch

ConstInt = ct.Constant[int]


@ct.kernel
def group_norm_kernel(
    x,  # (N, G, L) with L = C // G * H * W
    weight,  # (C,)
    bias,  # (C,)
    y,  # (N, G, L)
    eps: float,
    L: ConstInt,
    SPATIAL: ConstInt,
    CHANNELS_PER_GROUP: ConstInt,
    BLOCK: ConstInt,
):
    n = ct.bid(0)
    g = ct.bid(1)
    offsets = ct.arange(BLOCK, dtype=ct.int32)

    total = ct.zeros((BLOCK,), dtype=ct.float32)
    total_sq = ct.zeros((BLOCK,), dtype=ct.float32)
    for start in range(0, L, BLOCK):
        v = ct.gather(x, (n, g, start + offsets), padding_value=0.0).astype(ct.float32)
        total += v
        total_sq += v * v
    mean = ct.sum(total) / L
    var = ct.sum(total_sq) / L - mean * mean
    rstd = ct.rsqrt(var + eps)

    for start in range(0, L, BLOCK):
        idx = start + offsets
        v = ct.gather(x, (n, g, idx), padding_value=0.0).astype(ct.float32)
        channel = g * CHANNELS_PER_GROUP + idx // SPATIAL
        w = ct.gather(weight, channel).astype(ct.float32)
        b = ct.gather(bias, channel).astype(ct.float32)
        out = (v - mean) * rstd * w + b
        ct.scatter(y, (n, g, idx), out.astype(y.dtype))


class GroupNorm(torch.nn.Module):
    def __init__(self, groups, channels, eps=1e-5):
        super().__init__()
        self.groups, self.eps = groups, eps
        self.weight = torch.nn.Parameter(torch.ones(channels))
        self.bias = torch.nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        n, c, h, w = x.shape
        cpg = c // self.groups
        length = cpg * h * w
        flat = x.contiguous().view(n, self.groups, length)
        y = torch.empty_like(flat)
        ct.launch(
            torch.cuda.current_stream(),
            (n, self.groups, 1),
            group_norm_kernel,
            (flat, self.weight, self.bias, y, self.eps, length, h * w, cpg, 1024),
        )
        return y.view_as(x)
