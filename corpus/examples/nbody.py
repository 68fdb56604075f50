"""Gravitational acceleration of N bodies, tiled over sources."""

import cuda.tile as ct
import torch


@ct.kernel
def accelerations(pos, mass, acc, softening: ct.Constant[float], TI: ct.Constant[int], TJ: ct.Constant[int]):
    i = ct.bid(0)
    xi = ct.load(pos, (0, i), (1, TI)).reshape((TI, 1))
    yi = ct.load(pos, (1, i), (1, TI)).reshape((TI, 1))
    zi = ct.load(pos, (2, i), (1, TI)).reshape((TI, 1))
    ax = ct.zeros((TI,), ct.float32)
    ay = ct.zeros((TI,), ct.float32)
    az = ct.zeros((TI,), ct.float32)
    for j in range(ct.num_tiles(mass, axis=0, shape=(TJ,))):
        m = ct.load(mass, (j,), (TJ,), padding_mode=ct.PaddingMode.ZERO)[None, :]
        dx = ct.load(pos, (0, j), (1, TJ), padding_mode=ct.PaddingMode.ZERO) - xi
        dy = ct.load(pos, (1, j), (1, TJ), padding_mode=ct.PaddingMode.ZERO) - yi
        dz = ct.load(pos, (2, j), (1, TJ), padding_mode=ct.PaddingMode.ZERO) - zi
        r2 = dx * dx + dy * dy + dz * dz + softening * softening
        inv = ct.rsqrt(r2)
        w = m * inv * inv * inv
        ax, ay, az = ax + ct.sum(w * dx, axis=1), ay + ct.sum(w * dy, axis=1), az + ct.sum(w * dz, axis=1)
    ct.store(acc, (0, i), ax.reshape((1, TI)))
    ct.store(acc, (1, i), ay.reshape((1, TI)))
    ct.store(acc, (2, i), az.reshape((1, TI)))


def gravity(pos: torch.Tensor, mass: torch.Tensor, eps: float = 1e-2) -> torch.Tensor:
    assert pos.dtype == torch.float32 and pos.ndim == 2
    n = pos.shape[1]
    acc = torch.empty_like(pos)
    ct.launch(torch.cuda.current_stream(), (ct.cdiv(n, 64),), accelerations, (pos, mass, acc, eps, 64, 128))
    return acc
