"""All-pairs cosine similarity between two sets of vectors."""

import cuda.tile as ct
import torch


@ct.kernel(num_ctas=1, occupancy=2)
def cosine_kernel(a, b, out, eps, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i = ct.bid(0)
    j = ct.bid(1)
    dot = ct.full((TM, TN), 0, ct.float32)
    na = ct.full((TM, 1), 0, ct.float32)
    nb = ct.full((1, TN), 0, ct.float32)
    for k in range(ct.num_tiles(a, 1, (TM, TK))):
        ta = ct.load(a, (i, k), (TM, TK), padding_mode=ct.PaddingMode.ZERO)
        tb = ct.load(b, (j, k), (TN, TK), padding_mode=ct.PaddingMode.ZERO)
        dot = ct.mma(ta, ct.transpose(tb), dot)
        fa, fb = ta.astype(ct.float32), tb.astype(ct.float32)
        na = na + ct.sum(fa * fa, axis=1, keepdims=True)
        nb = nb + ct.sum(fb * fb, axis=1)[None, :]
    norm = ct.sqrt(na) * ct.sqrt(nb)
    ct.store(out, (i, j), dot / ct.maximum(norm, eps))


def cosine_similarity(a, b, eps=1e-8):
    m, _ = a.shape
    n, _ = b.shape
    out = torch.empty((m, n), dtype=torch.float32, device=a.device)
    ct.launch(
        torch.cuda.current_stream(), (ct.cdiv(m, 64), ct.cdiv(n, 64)), cosine_kernel, (a, b, out, eps, 64, 64, 64)
    )
    return out
