"""Shape manipulation; pointer tiles need a ``let`` for every step.

Functions rather than methods: cutile 0.5 copies its whole inference state for every method call, which
made compiling some kernels twice as slow.
"""

from __future__ import annotations

from transpiler.select.forms import form, forms, other_than

ROWS = [
    form("iota", "iota($shape)", nest=False),
    *forms("reshape broadcast", "$op($0, $shape)", pointer=False),
    form("reshape", "reshape_ptr($0, $shape)", nest=False, pointer=True),
    form("broadcast", "broadcast_ptr($0, $shape)", nest=False, pointer=True),
    form("permute", "$0.transpose()", perm=((1, 0),)),
    form("permute", "permute($0, $perm)", nest=False, perm=other_than((1, 0))),
    form("cat", "cat($0, $1, $axis)", nest=False),
    form("extract", "extract($0, $index)", nest=False),
    form("insert", "unsafe { insert($0, $1, $index) }", nest=False),
]
