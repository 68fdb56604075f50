"""TileGym's layer norm over channels: its repository has no test of it for this backend."""

import pytest
import tilegym
import torch

BACKENDS = ("cutile", "cutile-rs")
SHAPES = [  # (sizes, first normalized axis, axis after the last): tiles of W, or gathered when W is below 16
    ((8, 32, 4096), 1, 2),
    ((4, 2048, 64), 1, 2),
    ((2, 96, 33, 31), 1, 2),
    ((4096, 1024), 1, 2),
    ((1000, 3000), 1, 2),
    ((64, 512, 7), 1, 2),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("shape, start, end", SHAPES)
def test_layer_norm(shape: tuple[int, ...], start: int, end: int, dtype: "torch.dtype", backend: str) -> None:
    tilegym.set_backend(backend)
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=dtype, device="cuda") * 2 + 1
    weight, bias = (torch.rand(shape[start:end], dtype=dtype, device="cuda") for _ in range(2))
    if end == len(shape):  # the operator wants an axis after the normalized ones
        x = x.unsqueeze(-1)
    y = tilegym.ops.layer_norm(x, start, end, weight, bias, 1e-5, weight_shift=0.5)
    wide = x.float()
    mean = wide.mean(dim=tuple(range(start, end)), keepdim=True)
    deviation = (wide.var(dim=tuple(range(start, end)), keepdim=True, unbiased=False) + 1e-5).rsqrt()
    channels = (*shape[start:end], *(1,) * (x.ndim - end))
    expected = (wide - mean) * deviation * (weight.float().view(channels) + 0.5) + bias.float().view(channels)
    torch.testing.assert_close(y.float(), expected, rtol=2e-2, atol=2e-2)
