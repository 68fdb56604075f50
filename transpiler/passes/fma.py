"""Fuse a float multiplication into the only addition or subtraction that uses it.

The reference compiler does this, and it changes bits (one rounding instead of two), so the
translation has to make the same choice: the left operand first, equal rounding and flush-to-zero
modes, no other use of the product.
"""

from __future__ import annotations

from collections import Counter

from transpiler.ir import symbolic as sy
from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import Block, Condition, Kernel, Op, Value, fix_dtype, note, walk
from transpiler.ir.types import PtrTy, TileTy, sizes


def fuse_multiply_add(kernel: Kernel) -> None:
    """Rewrite a*b+c, c+a*b, a*b-c and c-a*b in place."""
    uses = Counter(v for op in walk(kernel.body) for v in op.operands)
    fused: set[Op] = set()
    for block in _blocks(kernel.body):
        for op in list(block.ops):
            if op.opcode in ("addf", "subf") and op not in fused:
                _try(kernel, block, op, uses, fused)
    if fused:
        for block in _blocks(kernel.body):
            block.ops = [op for op in block.ops if op not in fused]


def _blocks(block: Block) -> list[Block]:
    out = [block]
    for op in block.ops:
        for region in op.regions:
            out.extend(_blocks(region))
    return out


def _try(kernel: Kernel, block: Block, op: Op, uses: Counter[Value], fused: set[Op]) -> None:
    left, right = op.operands
    mul, on_right = _product(kernel, left, uses), False
    if mul is None:
        mul, on_right = _product(kernel, right, uses), True
    if mul is None or mul in fused or left is right:
        return
    if any(mul.attrs[k] != op.attrs[k] for k in ("rounding", "ftz")) or uses[mul.result] != 1:
        return
    a, b = mul.operands
    c = left if on_right else right
    at = block.ops.index(op)
    if op.opcode == "subf":
        target = a if on_right else c
        neg = Op("negf", (target,), {}, span=op.span, site=op.site, rule=op.rule, statement=op.statement)
        neg.results = (Value(target.ty, op=neg),)
        block.ops.insert(at, neg)
        if on_right:
            a = neg.result
        else:
            c = neg.result
    op.opcode, op.operands = "fma", (a, b, c)
    fused.add(mul)


_TRANSPARENT = ("broadcast", "convert", "reshape")
"""Operations that are nothing for some sizes or dtypes: the reference compiler doesn't make them then."""


def _over_product(v: Value) -> bool:
    """Is there a product, below operations that may be nothing?"""
    op = v.op
    while op is not None and op.opcode in _TRANSPARENT:
        op = op.operands[0].op
    return op is not None and op.opcode == "mulf"


def _same_shape(kernel: Kernel, op: Op) -> bool:
    """Are the sizes here those of the operand? That is a condition of the entry."""
    source, target = op.operands[0].ty, op.result.ty
    assert isinstance(source, TileTy | PtrTy) and isinstance(target, TileTy | PtrTy)
    if len(source.shape) != len(target.shape):
        return False
    same = sizes(source.shape) == sizes(target.shape)
    for p, q in zip(source.shape, target.shape, strict=True):
        if p.sym != q.sym and same == (p.value == q.value):
            agree = sy.apply("eq", q.sym, p.sym)
            if sy.leaves_of(agree):
                note(kernel, Condition(agree, same, op.span))
            if not same:
                break
    return same


def _product(kernel: Kernel, v: Value, uses: Counter[Value]) -> Op | None:
    """The multiplication that defines ``v``, through operations that are nothing for these sizes and dtypes."""
    op = v.op
    if op is None or not _over_product(v) or op.opcode == "mulf":
        return op if op is not None and op.opcode == "mulf" else None
    if uses[v] != 1:
        return None
    if op.opcode != "convert":
        return _product(kernel, op.operands[0], uses) if _same_shape(kernel, op) else None
    return _unconverted(kernel, op, uses)


def _unconverted(kernel: Kernel, convert: Op, uses: Counter[Value]) -> Op | None:
    """The multiplication below a conversion, if it is one to the same dtype here."""
    source, target = convert.operands[0].ty, convert.result.ty
    if not isinstance(source, TileTy) or not isinstance(target, TileTy):
        return None
    d = source.dtype if source.dtype.of is not None else target.dtype
    if d.of is not None:
        note(kernel, Condition(sy.apply("eq", Sym("dtype", (d.of,)), sy.lit(d.name)), True, convert.span))
    if source.dtype.name != target.dtype.name:
        return None
    product = _product(kernel, convert.operands[0], uses)
    if product is not None and d.of is not None:
        fix_dtype(kernel, d.of)  # its operands get the type of the sum
    return product
