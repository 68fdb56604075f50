"""Kernels whose control flow and names are hard on emission, with the arguments they are specialized for."""

from __future__ import annotations

HEAD = "import cuda.tile as ct\n\n\n"
X = 'x = {dtype = "float32", ndim = 2, base_addr_divisible_by = 16}\n'

KERNELS: dict[str, tuple[str, str]] = {
    "helper_comments": (
        """
# Above the helper.
def scale(t, factor):
    \"\"\"Never negative.\"\"\"
    # multiply
    y = t * factor
    # clamp
    return ct.maximum(y, 0.0)  # at zero


def twice(t):
    # once
    y = scale(t, 2.0)
    # and again
    return scale(y, 2.0)


@ct.kernel
def kernel(x, n):
    t = ct.load(x, (0, 0), (4, 4))
    # in a loop
    for i in range(n):
        # the call
        t = twice(t)  # here
    ct.store(x, (0, 0), t)
""",
        X + 'n = "int32"\n',
    ),
    "swap": (
        """
@ct.kernel
def kernel(x, n):
    a = ct.bid(0)
    b = ct.num_blocks(0)
    for i in range(n):
        a, b = b, a + b
    t = ct.full((4, 4), 1.0, ct.float32) * a
    ct.store(x, (b, 0), t)
""",
        X + 'n = "int32"\n',
    ),
    "swap_tiles": (
        """
@ct.kernel
def kernel(x, n):
    a = ct.load(x, (0, 0), (4, 4))
    b = ct.load(x, (1, 0), (4, 4))
    for i in range(0, n, 2):
        a, b = b, a
    ct.store(x, (0, 0), a)
    ct.store(x, (1, 0), b)
""",
        X + 'n = "int32"\n',
    ),
    "nested": (
        """
@ct.kernel
def kernel(x, n, N: ct.Constant[int]):
    acc = ct.zeros((N, N), ct.float32)
    for i in range(n):
        row = ct.zeros((N, N), ct.float32)
        for j in range(i, n, 3):
            tile = ct.load(x, (i, j), (N, N))
            row = row + tile
            acc += tile * 2.0
        acc = ct.maximum(acc, row)
    ct.store(x, (0, 0), acc)
""",
        X + 'n = "int32"\nN = 16\n',
    ),
    "while": (
        """
@ct.kernel
def kernel(x, n):
    i = ct.bid(0)
    total = ct.zeros((4, 4), ct.float32)
    while i < n:
        total = total + ct.load(x, (i, 0), (4, 4))
        i = i + 2
    ct.store(x, (0, 0), total)
""",
        X + 'n = "int32"\n',
    ),
    "while_break": (
        """
@ct.kernel
def kernel(x, n):
    i = ct.bid(0)
    best = i
    while True:
        if i >= n:
            break
        best = best + i
        i = i * 2 + 1
    ct.store(x, (best, 0), ct.ones((4, 4), ct.float32))
""",
        X + 'n = "int32"\n',
    ),
    "if_results": (
        """
@ct.kernel
def kernel(x, n):
    i = ct.bid(0)
    a = i
    b = i + 1
    if i < n:
        a = b * 3
        b = a - i
    else:
        a = i * i
        b = a + 7
    c = a + b
    if c > n:
        c = c - n
    ct.store(x, (c, b), ct.ones((4, 4), ct.float32))
""",
        X + 'n = "int32"\n',
    ),
    "if_in_loop": (
        """
@ct.kernel
def kernel(x, n):
    acc = ct.zeros((4, 4), ct.float32)
    last = ct.bid(0)
    for i in range(n):
        t = ct.load(x, (i, 0), (4, 4))
        if i % 2 == 0:
            acc = acc + t
            last = i
        else:
            acc = acc - t
        ct.store(x, (i, 1), acc)
    ct.store(x, (last, 0), acc)
""",
        X + 'n = "int32"\n',
    ),
    "unused_results": (
        """
@ct.kernel
def kernel(x):
    ct.atomic_add(x, (ct.bid(0), ct.arange(16, dtype=ct.int32)), 1.0)
    ct.atomic_cas(x, (0, 0), 1.0, 2.0)
""",
        X,
    ),
    "early_return": (
        """
@ct.kernel
def kernel(x, n):
    i = ct.bid(0)
    if i >= n:
        return
    t = ct.load(x, (i, 0), (4, 4))
    if i == 0:
        ct.store(x, (0, 0), t + 1.0)
        return
    ct.store(x, (i, 0), t)
""",
        X + 'n = "int32"\n',
    ),
    "loop_continue": (
        """
@ct.kernel
def kernel(x, n):
    acc = ct.zeros((4, 4), ct.float32)
    for i in range(n):
        if i == 3:
            continue
        acc = acc + ct.load(x, (i, 0), (4, 4))
    ct.store(x, (0, 0), acc)
""",
        X + 'n = "int32"\n',
    ),
    "names": (
        """
def exp(match, N_ROWS):
    type = ct.exp(match)
    return type * 2.0, match + N_ROWS


@ct.kernel
def kernel(A, max, N: ct.Constant[int]):
    a = ct.load(A, (0, 0), (N, 4))
    loop, yield_ = exp(a, 1.0)
    tile_block_id = ct.bid(0)
    const_i32 = tile_block_id + max
    ct.store(A, (const_i32, 0), loop + yield_)
    A_ = ct.load(A, (1, 0), (N, 4))
    ct.store(A, (2, 0), A_)
""",
        'A = {dtype = "float16", ndim = 2}\nmax = "int32"\nN = 8\n',
    ),
    "helpers": (
        """
def relu(x):
    return ct.maximum(x, 0.0)


def stats(x, axis):
    total = ct.sum(x, axis, keepdims=True)
    return total, ct.max(x, axis, keepdims=True)


def twice(x):
    return relu(x) + relu(-x)


@ct.kernel
def kernel(x, y, M: ct.Constant[int], N: ct.Constant[int]):
    # load both
    a = ct.load(x, (0, 0), (M, N))
    b = ct.load(y, (0, 0), (N, M))
    s, m = stats(a, 1)  # along rows
    t, _ = stats(b, 0)
    ct.store(x, (0, 0), twice(a) * s + m)
    ct.store(y, (0, 0), twice(b) * t)
""",
        X + 'y = {dtype = "float32", ndim = 2}\nM = 16\nN = 8\n',
    ),
    "gathers": (
        """
@ct.kernel
def kernel(x, y, i, N: ct.Constant[int]):
    cols = ct.arange(N, dtype=ct.int32)
    a = ct.gather(x, (i, cols))
    b = ct.gather(x, (i + 1, cols), padding_value=1.0)
    c = ct.gather(y, (i, cols), check_bounds=False)
    ct.scatter(x, (i, cols), a + b)
    ct.scatter(y, (i, cols), c, mask=cols < 3)
""",
        X + 'y = {dtype = "bfloat16", ndim = 2}\ni = "int32"\nN = 32\n',
    ),
    "wide_loop": (
        """
@ct.kernel
def kernel(x, n):
    acc = ct.zeros((4, 4), ct.float32)
    for i in range(0, n, 2):
        acc = acc + ct.load(x, (ct.astype(i, ct.int32), 0), (4, 4))
    ct.store(x, (0, 0), acc)
""",
        X + 'n = "int64"\n',
    ),
    "scan_axis": (
        """
@ct.kernel
def kernel(x):
    t = ct.load(x, (0, 0), (4, 8))
    ct.store(x, (0, 0), ct.cumsum(t, 1) + ct.cumsum(t, 0, reverse=True))
""",
        X,
    ),
}
