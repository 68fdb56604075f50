"""Shape manipulation; pointer tiles need a ``let`` for every step."""

from __future__ import annotations

from transpiler.select.forms import form, forms, other_than

ROWS = [
    form("iota", "iota($shape)", nest=False),
    *forms("reshape broadcast", "$0.$op($shape)", pointer=False),
    *forms("reshape broadcast", "$0.$op($shape)", nest=False, pointer=True),
    form("permute", "$0.transpose()", perm=((1, 0),)),
    form("permute", "permute($0, $perm)", nest=False, perm=other_than((1, 0))),
    form("cat", "cat($0, $1, $axis)", nest=False),
    form("extract", "extract($0, $index)", nest=False),
    form("insert", "unsafe { insert($0, $1, $index) }", nest=False),
]
