"""Kernels for the tests of `transpile fill`: each has one construct whose rule is switched off."""

import cuda.tile as ct


@ct.kernel
def call_exp2(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    power = ct.exp2(tile)
    ct.store(y, index=(i,), tile=power)


@ct.kernel
def call_sin(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    wave = ct.sin(tile)
    ct.store(y, index=(i,), tile=wave)


@ct.kernel
def call_isnan(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    missing = ct.isnan(tile)
    ct.store(y, index=(i,), tile=missing.astype(ct.int32))


@ct.kernel
def call_where(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    other = ct.load(y, index=(i,), shape=(N,))
    above = tile > other
    chosen = ct.where(above, tile, other)
    ct.store(y, index=(i,), tile=chosen)


@ct.kernel
def call_sum(x, y, M: ct.Constant[int], N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i, 0), shape=(M, N))
    total = ct.sum(tile, axis=1, keepdims=True)
    ct.store(y, index=(i, 0), tile=total)


@ct.kernel
def call_bitwise_not(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    flipped = ct.bitwise_not(tile)
    ct.store(y, index=(i,), tile=flipped)


@ct.kernel
def operation_minf(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    other = ct.load(y, index=(i,), shape=(N,))
    lower = ct.minimum(tile, other)
    ct.store(y, index=(i,), tile=lower)


@ct.kernel
def operation_fma(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    other = ct.load(y, index=(i,), shape=(N,))
    result = tile * other + tile
    ct.store(y, index=(i,), tile=result)


@ct.kernel
def operation_mma(x, y, N: ct.Constant[int]):
    a = ct.load(x, index=(0, 0), shape=(N, N))
    b = ct.load(y, index=(0, 0), shape=(N, N))
    start = ct.zeros((N, N), ct.float32)
    product = ct.mma(a, b, start)
    ct.store(y, index=(0, 0), tile=product.astype(y.dtype))


@ct.kernel
def operation_scan(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    running = ct.cumsum(tile, axis=0)
    ct.store(y, index=(i,), tile=running)


@ct.kernel
def operation_rsqrt(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    inverse = ct.rsqrt(tile)
    ct.store(y, index=(i,), tile=inverse)


@ct.kernel
def operation_bitcast(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    bits = ct.bitcast(tile, ct.int32)
    ct.store(y, index=(i,), tile=bits)


@ct.kernel
def operation_atomic(x, y, N: ct.Constant[int]):
    i = ct.arange(N, dtype=ct.int32)
    values = ct.gather(x, i, check_bounds=False)
    ct.atomic_add(y, i, values, check_bounds=False)


@ct.kernel
def two_holes(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(N,))
    slope = ct.tan(tile)
    upper = ct.maximum(slope, tile)
    ct.store(y, index=(i,), tile=upper)
