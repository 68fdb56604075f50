"""Weight-only int4 GEMM: two weights a byte along K, scales by groups of K, dequantized in registers."""

import cuda.tile as ct
import torch


@ct.kernel(num_ctas=1)
def w4a16(
    x, packed, scales, out, GROUP: ct.Constant[int], TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]
):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    cols = j * TN + ct.arange(TN, dtype=ct.int32)
    for t in range(ct.num_tiles(x, axis=1, shape=(TM, TK))):
        k = t * TK + ct.arange(TK, dtype=ct.int32)
        byte = ct.gather(packed, ((k // 2)[:, None], cols[None, :]), padding_value=0).astype(ct.int32)
        shift = (k % 2 * 4)[:, None]
        q = ((byte >> shift) & 0xF) - 8
        s = ct.gather(scales, ((k // GROUP)[:, None], cols[None, :]), padding_value=0)
        w = q.astype(x.dtype) * s.astype(x.dtype)
        a = ct.load(x, (i, t), (TM, TK), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, w, acc)
    ct.store(out, (i, j), acc.astype(out.dtype))


def linear_w4(x, packed, scales, group=128):
    if packed.dtype != torch.uint8:
        raise TypeError("weights must be packed into uint8")
    m, _ = x.shape
    n = packed.shape[1]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    ct.launch(
        torch.cuda.current_stream(),
        (ct.cdiv(m, 64), ct.cdiv(n, 128)),
        w4a16,
        (x, packed, scales, out, group, 64, 128, 64),
    )
    return out
