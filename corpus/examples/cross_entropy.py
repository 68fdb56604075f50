"""Cross entropy with ignore_index and label smoothing; loss and gradient in one kernel."""

import cuda.tile as ct
import torch


@ct.kernel
def cross_entropy_kernel(
    logits,
    targets,
    losses,
    grads,
    ignore_index: int,
    smoothing: float,
    inv_count: float,
    VOCAB: ct.Constant[int],
    BLOCK: ct.Constant[int],
    NEED_GRAD: ct.Constant[bool],
):
    row = ct.bid(0)
    target = ct.gather(targets, row)
    cols = ct.arange(BLOCK, dtype=ct.int32)
    if target == ignore_index:
        ct.scatter(losses, row, 0.0)
        if NEED_GRAD:
            ct.scatter(grads, (row, cols), ct.zeros((BLOCK,), dtype=grads.dtype))
        return
    x = ct.gather(logits, (row, cols), padding_value=-float("inf")).astype(ct.float32)
    m = ct.max(x)
    e = ct.exp(x - m)
    z = ct.sum(e)
    lse = m + ct.log(z)
    picked = ct.gather(logits, (row, target)).astype(ct.float32)
    in_vocab = cols < VOCAB
    mean = ct.sum(ct.where(in_vocab, x, 0.0)) / VOCAB
    loss = (1.0 - smoothing) * (lse - picked) + smoothing * (lse - mean)
    ct.scatter(losses, row, loss)
    if NEED_GRAD:
        hot = ct.where(cols == target, 1.0 - smoothing, 0.0) + smoothing / VOCAB
        g = (e / z - hot) * inv_count
        ct.scatter(grads, (row, cols), g.astype(grads.dtype))


def cross_entropy(logits, targets, ignore_index=-100, smoothing=0.0):
    rows, vocab = logits.shape
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    grads = torch.empty_like(logits)
    count = int((targets != ignore_index).sum())
    block = 1 << (vocab - 1).bit_length()
    ct.launch(
        torch.cuda.current_stream(),
        (rows, 1, 1),
        cross_entropy_kernel,
        (
            logits,
            targets.to(torch.int32),
            losses,
            grads,
            ignore_index,
            smoothing,
            1.0 / max(count, 1),
            vocab,
            block,
            logits.requires_grad,
        ),
    )
    return losses.sum() / max(count, 1), grads
