"""Sparse matrix times vector, CSR, one block a row."""

import cuda.tile as ct
import torch


@ct.kernel
def spmv(indptr, indices, data, x, y, alpha: float, beta: float, BLOCK: ct.Constant[int]):
    row = ct.bid(0)
    lo = ct.gather(indptr, row).item()
    hi = ct.gather(indptr, row + 1).item()
    acc = ct.zeros((BLOCK,), dtype=ct.float32)
    pos = lo
    while pos < hi:
        k = pos + ct.arange(BLOCK, dtype=ct.int32)
        inside = k < hi
        col = ct.gather(indices, k, mask=inside, padding_value=0)
        a = ct.gather(data, k, mask=inside, padding_value=0.0)
        acc = acc + a * ct.gather(x, col)
        pos = pos + BLOCK
    old = ct.gather(y, row)
    ct.scatter(y, row, alpha * ct.sum(acc) + beta * old)


def csr_matvec(indptr, indices, data, x, y, alpha=1.0, beta=0.0):
    rows = indptr.numel() - 1
    ct.launch(torch.cuda.current_stream(), (rows, 1, 1), spmv, (indptr, indices, data, x, y, alpha, beta, 128))
    return y
