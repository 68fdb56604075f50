"""Bilinear upsampling, align_corners=False."""

import cuda.tile as ct
import torch


def source(index, ratio, limit):
    """Where an output pixel reads: the lower neighbour, the upper one, and the weight of the upper."""
    at = ct.maximum((index.astype(ct.float32) + 0.5) * ratio - 0.5, 0.0)
    low = ct.floor(at).astype(ct.int32)
    high = ct.minimum(low + 1, limit - 1)
    return low, high, at - low.astype(ct.float32)


@ct.kernel
def bilinear_kernel(x, y, ratio_h, ratio_w, TH: ct.Constant[int], TW: ct.Constant[int]):
    plane, bh, bw = ct.bid(0), ct.bid(1), ct.bid(2)
    h = bh * TH + ct.arange(TH, dtype=ct.int32)
    w = bw * TW + ct.arange(TW, dtype=ct.int32)
    h0, h1, fh = source(h, ratio_h, x.shape[1])
    w0, w1, fw = source(w, ratio_w, x.shape[2])
    h0, h1, fh = h0[:, None], h1[:, None], fh[:, None]
    w0, w1, fw = w0[None, :], w1[None, :], fw[None, :]
    top = ct.gather(x, (plane, h0, w0)) * (1.0 - fw) + ct.gather(x, (plane, h0, w1)) * fw
    bottom = ct.gather(x, (plane, h1, w0)) * (1.0 - fw) + ct.gather(x, (plane, h1, w1)) * fw
    ct.scatter(y, (plane, h[:, None], w[None, :]), (top * (1.0 - fh) + bottom * fh).astype(y.dtype))


def upsample(x, size):
    n, c, h, w = x.shape
    oh, ow = size
    y = x.new_empty(n * c, oh, ow)
    grid = (n * c, (oh + 15) // 16, (ow + 63) // 64)
    ct.launch(torch.cuda.current_stream(), grid, bilinear_kernel, (x.reshape(n * c, h, w), y, h / oh, w / ow, 16, 64))
    return y.view(n, c, oh, ow)
