"""Escape times of the Mandelbrot set; a tile stops when all of its points have escaped."""

import cuda.tile as ct
import torch


@ct.kernel
def mandelbrot(image, x0: float, y0: float, step: float, max_iter: int, TH: ct.Constant[int], TW: ct.Constant[int]):
    by, bx = ct.bid(0), ct.bid(1)
    cy = y0 + (by * TH + ct.arange(TH, dtype=ct.int32)).astype(ct.float32)[:, None] * step
    cx = x0 + (bx * TW + ct.arange(TW, dtype=ct.int32)).astype(ct.float32)[None, :] * step
    cy = ct.broadcast_to(cy, (TH, TW))
    cx = ct.broadcast_to(cx, (TH, TW))
    zx = ct.zeros((TH, TW), ct.float32)
    zy = ct.zeros((TH, TW), ct.float32)
    times = ct.zeros((TH, TW), ct.int32)
    for _ in range(max_iter):
        xx, yy = zx * zx, zy * zy
        alive = xx + yy <= 4.0
        if ct.sum(alive.astype(ct.int32)) == 0:
            break
        times = times + alive.astype(ct.int32)
        zy = ct.where(alive, 2.0 * zx * zy + cy, zy)
        zx = ct.where(alive, xx - yy + cx, zx)
    ct.store(image, (by, bx), times)


def render(width, height, center=(-0.75, 0.0), span=3.0, max_iter=1000):
    image = torch.empty(height, width, dtype=torch.int32, device="cuda")
    step = span / width
    grid = (ct.cdiv(height, 16), ct.cdiv(width, 64))
    ct.launch(
        torch.cuda.current_stream(),
        grid,
        mandelbrot,
        (image, center[0] - span / 2, center[1] - step * height / 2, step, max_iter, 16, 64),
    )
    return image
