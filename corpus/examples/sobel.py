"""Sobel edge magnitude of 8-bit images."""

import cuda.tile as ct
import torch


@ct.kernel
def sobel_kernel(image, edges, TH: ct.Constant[int], TW: ct.Constant[int]):
    n = ct.bid(0)
    y = (ct.bid(1) * TH + ct.arange(TH, dtype=ct.int32)).reshape((TH, 1))
    x = (ct.bid(2) * TW + ct.arange(TW, dtype=ct.int32)).reshape((1, TW))
    gx = ct.zeros((TH, TW), dtype=ct.int32)
    gy = ct.zeros((TH, TW), dtype=ct.int32)
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            p = ct.gather(image, (n, y + dy, x + dx), padding_value=0).astype(ct.int32)
            gx += p * dx * (2 - dy * dy)
            gy += p * dy * (2 - dx * dx)
    magnitude = ct.sqrt((gx * gx + gy * gy).astype(ct.float32))
    ct.scatter(edges, (n, y, x), ct.minimum(magnitude, 255.0).astype(ct.uint8))


def sobel(image):
    assert image.dtype == torch.uint8 and image.dim() == 3
    n, h, w = image.shape
    edges = torch.empty_like(image)
    ct.launch(torch.cuda.current_stream(), (n, ct.cdiv(h, 16), ct.cdiv(w, 64)), sobel_kernel, (image, edges, 16, 64))
    return edges
