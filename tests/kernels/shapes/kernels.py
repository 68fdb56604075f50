"""Kernels that reach helpers by relative and absolute imports, by module aliases and by re-export."""

import cuda.tile as ct

from shapes import helpers
from shapes.helpers import double

from . import exported_double

raise RuntimeError("the module must not be imported")


@ct.kernel
def by_name(x, SIZE: ct.Constant[int]):
    ct.store(x, index=(ct.bid(0),), tile=double(ct.load(x, index=(ct.bid(0),), shape=(SIZE,))))


@ct.kernel
def by_module(x, SIZE: ct.Constant[int]):
    tile = ct.load(x, index=(ct.bid(0),), shape=(SIZE,))
    ct.store(x, index=(ct.bid(0),), tile=helpers.double(tile) + helpers.zero_like(tile, SIZE))


@ct.kernel
def by_reexport(x, SIZE: ct.Constant[int]):
    ct.store(x, index=(ct.bid(0),), tile=exported_double(ct.load(x, index=(ct.bid(0),), shape=(SIZE,))))
