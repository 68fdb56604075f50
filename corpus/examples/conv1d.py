"""Direct 1-D convolution, channels last, stride and dilation, zero padding on both sides."""

import cuda.tile as ct
import torch

Const = ct.Constant[int]


@ct.kernel
def conv1d_kernel(
    x,
    w,
    bias,
    y,
    stride: int,
    dilation: int,
    padding: int,
    C_IN: Const,
    TAPS: Const,
    TILE_T: Const,
    TILE_C: Const,
    TILE_K: Const,
):
    b, t_block, c_block = ct.bid(0), ct.bid(1), ct.bid(2)
    t = t_block * TILE_T + ct.arange(TILE_T, dtype=ct.int32)
    c = c_block * TILE_C + ct.arange(TILE_C, dtype=ct.int32)
    acc = ct.full((TILE_T, TILE_C), 0.0, dtype=ct.float32)
    for tap in range(TAPS):
        src = t * stride + tap * dilation - padding
        for k0 in range(0, C_IN, TILE_K):
            k = k0 + ct.arange(TILE_K, dtype=ct.int32)
            xs = ct.gather(x, (b, src[:, None], k[None, :]), padding_value=0.0)
            ws = ct.gather(w, (tap, k[:, None], c[None, :]), padding_value=0.0)
            acc = ct.mma(xs, ws, acc)
    acc = acc + ct.expand_dims(ct.gather(bias, c), 0)
    ct.scatter(y, (b, t[:, None], c[None, :]), ct.astype(acc, y.dtype))


def conv1d(x, w, bias, stride=1, dilation=1, padding=0):
    batch, length, c_in = x.shape
    taps, _, c_out = w.shape
    out_len = (length + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
    y = x.new_empty(batch, out_len, c_out)
    grid = (batch, ct.cdiv(out_len, 64), ct.cdiv(c_out, 64))
    ct.launch(
        torch.cuda.current_stream(),
        grid,
        conv1d_kernel,
        (x, w, bias, y, stride, dilation, padding, c_in, taps, 64, 64, 32),
    )
    return y
