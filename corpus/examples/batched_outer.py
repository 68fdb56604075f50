"""Batched outer product with a running decay: state = decay * state + k v^T."""

import cuda.tile as ct
import torch


@ct.kernel
def outer_update(state, k, v, decay, TK: ct.Constant[int], TV: ct.Constant[int]):
    b = ct.bid(0)
    i = ct.bid(1)
    j = ct.bid(2)
    kt = ct.load(k, index=(b, i), shape=(1, TK)).reshape((TK, 1)).astype(ct.float32)
    vt = ct.load(v, index=(b, j), shape=(1, TV)).astype(ct.float32)
    d = ct.load(decay, index=b, shape=()).astype(ct.float32)
    s = ct.load(state, index=(b, i, j), shape=(1, TK, TV))
    new = ct.exp(-d) * s + (kt * vt).reshape((1, TK, TV))
    ct.store(state, index=(b, i, j), tile=new.astype(state.dtype))


def update_state(state, k, v, decay):
    batch, dk, dv = state.shape
    grid = (batch, dk // 32, dv // 64)
    ct.launch(torch.cuda.current_stream(), grid, outer_update, (state, k, v, decay, 32, 64))


if __name__ == "__main__":
    state = torch.zeros(8, 128, 256, device="cuda")
    k = torch.randn(8, 128, device="cuda", dtype=torch.half)
    v = torch.randn(8, 256, device="cuda", dtype=torch.half)
    update_state(state, k, v, torch.rand(8, device="cuda"))
