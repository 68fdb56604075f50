"""MoE router: softmax over experts, the two best and their renormalized weights, and how many tokens each got."""

import cuda.tile as ct
import torch


def pick(p, experts, E):
    """The largest probability, the first expert that has it, and the rest."""
    best = ct.max(p)
    which = ct.min(ct.where(p == best, experts, E))
    return best, which, ct.where(experts == which, -1.0, p)


@ct.kernel
def gate_kernel(logits, weights, experts_out, load, E: ct.Constant[int], TILE: ct.Constant[int]):
    token = ct.bid(0)
    experts = ct.arange(TILE, dtype=ct.int32)
    x = ct.gather(logits, (token, experts), padding_value=float("-inf")).astype(ct.float32)
    p = ct.exp(x - ct.max(x))
    p = p / ct.sum(p)
    p1, e1, rest = pick(p, experts, E)
    p2, e2, _ = pick(rest, experts, E)
    total = p1 + p2
    ct.scatter(weights, (token, 0), p1 / total)
    ct.scatter(weights, (token, 1), p2 / total)
    ct.scatter(experts_out, (token, 0), e1)
    ct.scatter(experts_out, (token, 1), e2)
    ct.atomic_add(load, e1, 1)
    ct.atomic_add(load, e2, 1)


def gate(logits):
    tokens, experts = logits.shape
    weights = torch.empty(tokens, 2, dtype=torch.float32, device=logits.device)
    chosen = torch.empty(tokens, 2, dtype=torch.int32, device=logits.device)
    load = torch.zeros(experts, dtype=torch.int32, device=logits.device)
    ct.launch(
        torch.cuda.current_stream(),
        (tokens,),
        gate_kernel,
        (logits, weights, chosen, load, experts, 1 << (experts - 1).bit_length()),
    )
    return weights, chosen, load
