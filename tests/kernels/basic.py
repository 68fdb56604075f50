"""Kernels for the tests of the reference export.  Importing this file fails: only closures of it are ever run."""

import functools
import math
from enum import IntEnum

import cuda.tile as ct
import torch
from cuda.tile import RoundingMode as RMd

from somewhere.unknown import traced

raise_at_import = traced.no_such_thing

ConstInt = ct.Constant[int]
PAD = ct.PaddingMode.ZERO
_OCCUPANCY = 2
SCALE = 1.0 / math.log(2.0)
LOW, HIGH = -1.0, 1.0


class Mode(IntEnum):
    """Branches of `pick`."""

    DOUBLE = 0
    NEGATE = 1


def _scaled(tile, factor=SCALE):
    return tile * factor


@traced
@ct.kernel(occupancy=_OCCUPANCY)
def scale_rows(x, y, TILE: ConstInt):
    # one row a block
    row = ct.bid(0)
    tile = ct.load(x, index=(row, 0), shape=(1, TILE), padding_mode=PAD)
    tile = _scaled(ct.astype(tile, torch.float32))
    tile = ct.truediv(tile, 3.0, rounding_mode=RMd.APPROX)
    tile = ct.minimum(ct.maximum(tile, LOW), HIGH)
    ct.store(y, index=(row, 0), tile=ct.astype(tile, y.dtype))


@ct.kernel(occupancy=ct.ByTarget(sm_80=2, default=4))
def pick(x: torch.Tensor, y: torch.Tensor, MODE: ConstInt):
    tile = ct.load(x, index=(ct.bid(0),), shape=(16,))
    if MODE == Mode.DOUBLE:
        tile = tile + tile
    elif MODE == Mode.NEGATE:
        tile = -tile
    ct.store(y, index=(ct.bid(0),), tile=tile)


@functools.lru_cache
def make_kernel(occupancy, width: int = 32):
    half = width // 2

    @ct.kernel(occupancy=occupancy)
    def made(x, y):
        tile = ct.load(x, index=(ct.bid(0),), shape=(half,))
        ct.store(y, index=(ct.bid(0),), tile=tile)

    return made


def plain(x, SIZE: ConstInt):
    ct.store(x, index=(ct.bid(0),), tile=ct.full((SIZE,), HIGH, dtype=x.dtype))


def other(x):
    ct.store(x, index=(ct.bid(0),), tile=ct.zeros((16,), dtype=x.dtype))


made_here = ct.kernel(plain, occupancy=_OCCUPANCY)
made_there = ct.kernel(occupancy=8)(plain)


def host():
    return ct.kernel(other, occupancy=1)


@ct.kernel
def refused(x, y):
    tile = ct.load(x, index=(ct.bid(0),), shape=(16,))
    ct.store(y, index=(ct.bid(0),), tile=ct.astype(tile, ct.float32))


HUGE = 9**9**9


@ct.kernel
def slow(x, N: ConstInt):
    ct.store(x, index=(0,), tile=ct.full((N,), HUGE % 7, dtype=x.dtype))


TUNED = traced.best(x=1)


@ct.kernel
def computed_constant(x):
    ct.store(x, index=(0,), tile=ct.full((TUNED,), 1, dtype=x.dtype))


@ct.kernel
def missing_symbol(x):
    ct.store(x, index=(0,), tile=no_such_helper(x))  # noqa: F821


@ct.kernel
def foreign_helper(x):
    ct.store(x, index=(0,), tile=traced(x))


if HUGE:
    BRANCH = 1
else:
    BRANCH = 2


@ct.kernel
def ambiguous(x):
    ct.store(x, index=(0,), tile=ct.full((16,), BRANCH, dtype=x.dtype))


def not_a_kernel(x):
    return x
