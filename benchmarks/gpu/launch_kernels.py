"""Kernels with 1, 3 and 8 tensors whose work on the device is nothing: what is left is the launch."""

import cuda.tile as ct

ConstInt = ct.Constant[int]


@ct.kernel
def one(x, N: ConstInt):
    ct.store(x, (ct.bid(0),), ct.load(x, (ct.bid(0),), (N,)) + 1.0)


@ct.kernel
def three(x, y, out, N: ConstInt):
    i = ct.bid(0)
    ct.store(out, (i,), ct.load(x, (i,), (N,)) + ct.load(y, (i,), (N,)))


@ct.kernel
def eight(a, b, c, d, e, f, g, out, N: ConstInt):
    i = ct.bid(0)
    low = ct.load(a, (i,), (N,)) + ct.load(b, (i,), (N,)) + ct.load(c, (i,), (N,)) + ct.load(d, (i,), (N,))
    high = ct.load(e, (i,), (N,)) + ct.load(f, (i,), (N,)) + ct.load(g, (i,), (N,))
    ct.store(out, (i,), low + high)


@ct.kernel
def lists(xs, ys, outs, N: ConstInt):
    i = ct.bid(0)
    for index in range(len(outs)):
        x = ct.load(xs[index], (i,), (N,))
        ct.store(outs[index], (i,), x + ct.load(ys[index], (i,), (N,)))
