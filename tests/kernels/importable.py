"""A kernel in a module that can be imported: its closure must export like the module itself."""

import cuda.tile as ct

ROWS = 4


def centre(tile, axis):
    return tile - ct.sum(tile, axis, keepdims=True) / tile.shape[axis]


@ct.kernel(occupancy=2)
def normalise(x, y, N: ct.Constant[int]):
    for row in range(ct.bid(0), x.shape[0], ct.num_blocks(0)):
        tile = ct.load(x, index=(row, 0), shape=(ROWS, N), padding_mode=ct.PaddingMode.ZERO)
        ct.store(y, index=(row, 0), tile=ct.astype(centre(ct.astype(tile, ct.float32), 1), y.dtype))
