"""TileGym's decoding attention with sinks: its repository has no test of it."""

import pytest
import tilegym
import torch

BACKENDS = ("cutile", "cutile-rs")
CASES = [  # (batch, heads of K and V, queries a head, dimension, keys, position, window)
    (1, 8, 8, 64, 1024, 1023, None),
    (4, 8, 8, 64, 4096, 4095, 128),
    (2, 4, 4, 128, 1000, 700, None),
    (1, 8, 8, 64, 8192, 8191, None),
    (8, 2, 16, 64, 513, 512, 100),
    (1, 1, 1, 128, 128, 5, None),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("batch, heads, group, dim, keys, position, window", CASES)
def test_attention_sink_decode(
    batch: int, heads: int, group: int, dim: int, keys: int, position: int, window: int | None,
    dtype: "torch.dtype", backend: str,
) -> None:  # fmt: skip
    tilegym.set_backend(backend)
    torch.manual_seed(0)
    q = torch.randn(batch, 1, heads, group, dim, dtype=dtype, device="cuda")
    k, v = (torch.randn(batch, keys, heads, dim, dtype=dtype, device="cuda") for _ in range(2))
    sinks = torch.randn(heads * group, dtype=dtype, device="cuda")
    start = torch.tensor([position], dtype=torch.int32, device="cuda")
    scale = dim**-0.5
    y = tilegym.ops.attention_sink_decode(q, k, v, sinks, scale, window, start)
    scores = torch.einsum("bhgd,bnhd->bhgn", q[:, 0].float(), k.float()) * scale
    index = torch.arange(keys, device="cuda")
    seen = index <= position
    if window:
        seen &= index > position - window
    scores = scores.masked_fill(~seen, float("-inf"))
    sink = sinks.float().view(1, heads, group, 1).expand(batch, -1, -1, -1)
    weights = torch.cat([scores, sink], dim=-1).softmax(dim=-1)[..., :-1]
    expected = torch.einsum("bhgn,bnhd->bhgd", weights, v.float()).reshape(batch, 1, -1)
    # The kernel rounds the logarithms of its splits to the type of its output.
    assert ((y.float() - expected).norm() / expected.norm()).item() < 5e-2
