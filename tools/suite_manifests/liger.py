"""Write the corpus entries of TileGym's suite liger: ``python -m tools.suite_manifests.liger``."""

from __future__ import annotations

from tools.suite_manifests.common import (
    BF16,
    F16,
    F32,
    TAG,
    Entries,
    Suite,
    array,
    entry,
    main,
    pow2,
)


def geglu() -> dict[str, Entries]:
    """Rows in chunks; columns that a chunk divides need no check of the bounds."""
    shapes = [(BF16, 512, 4096), (F16, 37, 1000), (F32, 101, 5001)]
    forward: Entries = []
    backward: Entries = []
    for t, m, n in shapes:
        for found, names, cap in ((forward, "abc", 4096), (backward, ("dc", "a", "b"), 512)):
            block = min(max(pow2(n), 128), cap)
            found.append(entry(f"{TAG[t]}_{m}x{n}", **{name: array(t, m, n) for name in names}, n_cols=n,
                               BLOCK_SIZE=block, CHECK_BOUNDS=n % block != 0))  # fmt: skip
    return {"_geglu_fwd_kernel_ct": forward, "_geglu_bwd_kernel_ct": backward}


SUITE = Suite("liger", "tilegym.suites.liger.cutile", {"geglu": geglu})

if __name__ == "__main__":
    main(SUITE)
