"""LayerNorm backward: dx per row, dgamma and dbeta through f32 atomics."""

import cuda.tile as ct
import torch


@ct.kernel
def ln_bwd(dy, x, gamma, mean, rstd, dx, dgamma, dbeta, N: ct.Constant[int], TILE: ct.Constant[int]):
    row = ct.bid(0)
    cols = ct.arange(TILE, dtype=ct.int32)
    mask = cols < N
    xv = ct.gather(x, (row, cols), mask=mask, padding_value=0).astype(ct.float32)
    dyv = ct.gather(dy, (row, cols), mask=mask, padding_value=0).astype(ct.float32)
    g = ct.gather(gamma, cols, mask=mask, padding_value=0).astype(ct.float32)
    mu, rs = ct.gather(mean, row), ct.gather(rstd, row)
    xhat = ct.where(mask, (xv - mu) * rs, 0.0)
    wdy = dyv * g
    c1 = ct.sum(xhat * wdy) / N
    c2 = ct.sum(wdy) / N
    ct.scatter(dx, (row, cols), ((wdy - (xhat * c1 + c2)) * rs).astype(dx.dtype), mask=mask)
    ct.atomic_add(dgamma, cols, dyv * xhat)
    ct.atomic_add(dbeta, cols, dyv)


def layer_norm_backward(dy, x, gamma, mean, rstd):
    m, n = x.shape
    dx = torch.empty_like(x)
    dgamma = torch.zeros(n, dtype=torch.float32, device=x.device)
    dbeta = torch.zeros_like(dgamma)
    tile = 1 << (n - 1).bit_length()
    ct.launch(torch.cuda.current_stream(), (m,), ln_bwd, (dy, x, gamma, mean, rstd, dx, dgamma, dbeta, n, tile))
    return dx, dgamma.to(gamma.dtype), dbeta.to(gamma.dtype)
