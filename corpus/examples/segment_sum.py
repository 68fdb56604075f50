"""Sums of segments of rows given by offsets (CSR style), mean and max as options."""

import cuda.tile as ct
import torch

SUM, MEAN, MAX = 0, 1, 2


@ct.kernel
def segment_reduce(x, offsets, out, MODE: ct.Constant[int], D: ct.Constant[int], ROWS: ct.Constant[int]):
    seg = ct.bid(0)
    begin = ct.load(offsets, (seg,), (1,)).item()
    end = ct.load(offsets, (seg + 1,), (1,)).item()
    part = x.slice(axis=0, start=begin, stop=end)
    init = float("-inf") if MODE == MAX else 0.0
    acc = ct.full((D,), init, dtype=ct.float32)
    pad = ct.PaddingMode.NEG_INF if MODE == MAX else ct.PaddingMode.ZERO
    for i in range(ct.cdiv(end - begin, ROWS)):
        v = ct.load(part, (i, 0), (ROWS, D), padding_mode=pad).astype(ct.float32)
        if MODE == MAX:
            acc = ct.maximum(acc, ct.max(v, axis=0))
        else:
            acc = acc + ct.sum(v, axis=0)
    if MODE == MEAN:
        acc = acc / ct.maximum(end - begin, 1)
    ct.store(out, (seg, 0), acc.reshape((1, D)).astype(out.dtype))


def segment_sum(x, offsets):
    segments = offsets.numel() - 1
    out = torch.empty(segments, x.shape[1], dtype=x.dtype, device=x.device)
    ct.launch(torch.cuda.current_stream(), (segments,), segment_reduce, (x, offsets, out, SUM, x.shape[1], 16))
    return out


def segment_mean(x, offsets):
    segments = offsets.numel() - 1
    out = torch.empty(segments, x.shape[1], dtype=x.dtype, device=x.device)
    ct.launch(torch.cuda.current_stream(), (segments,), segment_reduce, (x, offsets, out, MEAN, x.shape[1], 16))
    return out
