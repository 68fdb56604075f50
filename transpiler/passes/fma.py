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


def _is_nothing(kernel: Kernel, broadcast: Op) -> bool:
    """Is a broadcast of a product one to the same size? What its sizes are here is a condition of the entry."""
    source, target = broadcast.operands[0].ty, broadcast.result.ty
    assert isinstance(source, TileTy | PtrTy) and isinstance(target, TileTy | PtrTy)
    if broadcast.operands[0].op is None or broadcast.operands[0].op.opcode != "mulf":
        return False
    same = sizes(source.shape) == sizes(target.shape)
    for p, q in zip(source.shape, target.shape, strict=True):
        if p.sym != q.sym and same == (p.value == q.value):
            agree = sy.apply("eq", q.sym, p.sym)
            if sy.leaves_of(agree):
                note(kernel, Condition(agree, same, broadcast.span))
            if not same:
                break
    return same


def _product(kernel: Kernel, v: Value, uses: Counter[Value]) -> Op | None:
    """The multiplication that defines ``v``, through a conversion that is nothing for this dtype."""
    op = v.op
    if op is not None and op.opcode == "broadcast" and uses[v] == 1:
        return _product(kernel, op.operands[0], uses) if _is_nothing(kernel, op) else None
    if op is not None and op.opcode == "convert" and isinstance(v.ty, TileTy):
        source = op.operands[0]
        if isinstance(source.ty, TileTy) and source.op is not None and source.op.opcode == "mulf":
            d = source.ty.dtype if source.ty.dtype.of is not None else v.ty.dtype
            if d.of is not None:
                note(kernel, Condition(sy.apply("eq", Sym("dtype", (d.of,)), sy.lit(d.name)), True, op.span))
            if source.ty.dtype.name == v.ty.dtype.name and uses[v] == 1:
                if d.of is not None:
                    fix_dtype(kernel, d.of)  # its operands get the type of the sum
                return source.op
        return None
    return op if op is not None and op.opcode == "mulf" else None
