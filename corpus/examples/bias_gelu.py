"""Fused bias + GELU (tanh approximation) over a 2-D activation."""

import math

import cuda.tile as ct
import torch

SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)


def gelu_tanh(x):
    inner = SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1.0 + ct.tanh(inner))


@ct.kernel
def bias_gelu_kernel(x, bias, out, BLOCK_M: ct.Constant[int], BLOCK_N: ct.Constant[int]):
    m, n = ct.bid(0), ct.bid(1)
    tile = ct.load(x, index=(m, n), shape=(BLOCK_M, BLOCK_N), padding_mode=ct.PaddingMode.ZERO)
    b = ct.load(bias, index=(n,), shape=(BLOCK_N,), padding_mode=ct.PaddingMode.ZERO)
    y = gelu_tanh(ct.astype(tile, ct.float32) + ct.astype(b, ct.float32)[None, :])
    ct.store(out, index=(m, n), tile=y.astype(out.dtype))


def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    rows, cols = x.shape
    out = torch.empty_like(x)
    block_m, block_n = 32, 128
    grid = (ct.cdiv(rows, block_m), ct.cdiv(cols, block_n), 1)
    ct.launch(torch.cuda.current_stream(), grid, bias_gelu_kernel, (x, bias, out, block_m, block_n))
    return out


if __name__ == "__main__":
    x = torch.randn(4096, 3072, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(3072, device="cuda", dtype=torch.bfloat16)
    ref = torch.nn.functional.gelu(x.float() + b.float(), approximate="tanh")
    torch.testing.assert_close(bias_gelu(x, b).float(), ref, atol=2e-2, rtol=2e-2)
