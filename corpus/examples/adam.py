"""Fused AdamW step over flat buffers; half-precision parameters keep an f32 master copy."""

from dataclasses import dataclass

import cuda.tile as ct
import torch


@ct.kernel
def adamw_kernel(
    param,
    master,
    grad,
    exp_avg,
    exp_avg_sq,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    bias1: float,
    bias2: float,
    BLOCK: ct.Constant[int],
):
    i = ct.bid(0)
    g = ct.load(grad, (i,), (BLOCK,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    p = ct.load(master, (i,), (BLOCK,))
    m = ct.load(exp_avg, (i,), (BLOCK,))
    v = ct.load(exp_avg_sq, (i,), (BLOCK,))
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    update = (m / bias1) / (ct.sqrt(v / bias2) + eps)
    p = p - lr * (update + weight_decay * p)
    ct.store(exp_avg, (i,), m)
    ct.store(exp_avg_sq, (i,), v)
    ct.store(master, (i,), p)
    ct.store(param, (i,), p.astype(param.dtype))


@dataclass
class AdamW:
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    step_count: int = 0

    def step(self, params, masters, grads, m, v):
        self.step_count += 1
        b1, b2 = self.betas
        c1, c2 = 1 - b1**self.step_count, 1 - b2**self.step_count
        for p, w, g, mi, vi in zip(params, masters, grads, m, v):
            n = p.numel()
            ct.launch(
                torch.cuda.current_stream(),
                (ct.cdiv(n, 2048),),
                adamw_kernel,
                (
                    p.view(-1),
                    w.view(-1),
                    g.view(-1),
                    mi.view(-1),
                    vi.view(-1),
                    self.lr,
                    b1,
                    b2,
                    self.eps,
                    self.weight_decay,
                    c1,
                    c2,
                    2048,
                ),
            )
