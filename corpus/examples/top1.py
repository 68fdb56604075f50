"""Top-1 of each row of logits: the value and where it is."""

import cuda.tile as ct
import torch
from cuda.tile import Constant


@ct.kernel
def top1_kernel(logits, values, indices, ROWS: Constant[int], N: Constant[int]):
    r = ct.bid(0)
    tile = ct.load(logits, (r, 0), (ROWS, N), padding_mode=ct.PaddingMode.NEG_INF)
    best = ct.argmax(tile, axis=1)
    value = ct.max(tile, axis=1)
    ct.store(values, (r,), value)
    ct.store(indices, (r,), best)


def next_pow2(n):
    return 1 << (n - 1).bit_length()


def top1(logits: torch.Tensor):
    rows, n = logits.shape
    values = torch.empty(rows, dtype=logits.dtype, device=logits.device)
    indices = torch.empty(rows, dtype=torch.int32, device=logits.device)
    block = 4
    ct.launch(
        torch.cuda.current_stream(),
        (ct.cdiv(rows, block),),
        top1_kernel,
        (logits, values, indices, block, next_pow2(n)),
    )
    return values, indices


def greedy_decode(logits):
    return top1(logits.float())[1]
