"""2-D average pooling, count_include_pad=False."""

import cuda.tile as ct
import torch

C = ct.Constant[int]


@ct.kernel
def avg_pool_kernel(x, y, H: C, W: C, OUT_W: C, KH: C, KW: C, STRIDE: C, PAD: C, TILE: C):
    plane = ct.bid(0)
    oh = ct.bid(1)
    ow = ct.arange(TILE, dtype=ct.int32)
    total = ct.zeros((TILE,), dtype=ct.float32)
    count = ct.zeros((TILE,), dtype=ct.float32)
    for kh in range(KH):
        h = oh * STRIDE + kh - PAD
        if 0 <= h < H:
            for kw in range(KW):
                w = ow * STRIDE + kw - PAD
                ok = (w >= 0) & (w < W) & (ow < OUT_W)
                total += ct.gather(x, (plane, h, w), mask=ok, padding_value=0).astype(ct.float32)
                count += ok.astype(ct.float32)
    ct.scatter(y, (plane, oh, ow), (total / ct.maximum(count, 1.0)).astype(y.dtype))


def avg_pool2d(x, kernel=3, stride=2, padding=1):
    n, c, h, w = x.shape
    oh = (h + 2 * padding - kernel) // stride + 1
    ow = (w + 2 * padding - kernel) // stride + 1
    y = torch.empty((n * c, oh, ow), dtype=x.dtype, device=x.device)
    tile = 1 << (ow - 1).bit_length()
    ct.launch(
        torch.cuda.current_stream(),
        (n * c, oh, 1),
        avg_pool_kernel,
        (x.view(n * c, h, w), y, h, w, ow, kernel, kernel, stride, padding, tile),
    )
    return y.view(n, c, oh, ow)
