"""Writes new keys and values into a paged cache at the slots that a block table gives."""

import cuda.tile as ct
import torch

ConstInt = ct.Constant[int]


@ct.kernel
def append_kernel(k_new, v_new, k_cache, v_cache, block_table, seq_lens, PAGE: ConstInt, HEADS: ConstInt, D: ConstInt):
    seq = ct.bid(0)
    head = ct.bid(1)
    if head >= HEADS:
        return
    length = ct.gather(seq_lens, seq).item()
    page = ct.gather(block_table, (seq, length // PAGE)).item()
    slot = length % PAGE
    if page >= 0:
        k = ct.load(k_new, (seq, head, 0), (1, 1, D))
        v = ct.load(v_new, (seq, head, 0), (1, 1, D))
        ct.store(k_cache, (page, slot, head, 0), k.reshape((1, 1, 1, D)).astype(k_cache.dtype))
        ct.store(v_cache, (page, slot, head, 0), v.reshape((1, 1, 1, D)).astype(v_cache.dtype))


def append(k_new, v_new, k_cache, v_cache, block_table, seq_lens):
    batch, heads, d = k_new.shape
    page = k_cache.shape[1]
    assert block_table.dtype == torch.int32 and seq_lens.dtype == torch.int32
    ct.launch(
        torch.cuda.current_stream(),
        (batch, heads),
        append_kernel,
        (k_new, v_new, k_cache, v_cache, block_table, seq_lens, page, heads, d),
    )
