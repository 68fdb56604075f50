"""Monte Carlo estimate of pi with xorshift streams of our own."""

import cuda.tile as ct
import torch


def xorshift(state):
    state = state ^ (state << 13)
    state = state ^ (state >> 17)
    return state ^ (state << 5)


def to_unit(state):
    return (state >> 8).astype(ct.float32) / 16777216.0


@ct.kernel
def pi_kernel(hits, seed, ROUNDS: ct.Constant[int], LANES: ct.Constant[int]):
    lane = ct.bid(0) * LANES + ct.arange(LANES, dtype=ct.int32)
    state = (lane * 747796405 + seed).astype(ct.uint32) | ct.uint32(1)
    inside = ct.zeros((LANES,), dtype=ct.int32)
    for _ in range(ROUNDS):
        state = xorshift(state)
        x = to_unit(state)
        state = xorshift(state)
        y = to_unit(state)
        inside += (x * x + y * y < 1.0).astype(ct.int32)
    ct.atomic_add(hits, 0, ct.sum(inside).astype(ct.int64))


def estimate(blocks=1024, rounds=1000, lanes=256, seed=1):
    hits = torch.zeros(1, dtype=torch.int64, device="cuda")
    ct.launch(torch.cuda.current_stream(), (blocks, 1, 1), pi_kernel, (hits, seed, rounds, lanes))
    return 4.0 * hits.item() / (blocks * rounds * lanes)
