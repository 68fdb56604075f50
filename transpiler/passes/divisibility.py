"""State the divisibility that follows from the arguments' where addresses are made in the kernel.

A forward dataflow analysis: products multiply divisors, sums and joins of control flow take the
greatest common divisor (Granger, Static analysis of arithmetical congruences, 1989, for the
simplest of its domains).  The reference compiler states what it finds on the operands of tensor
views, gathers and scatters; the known divisors of arguments differ from one specialization to the
next, so a divisor stays an expression and becomes a const generic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from transpiler.ir import symbolic as sy
from transpiler.ir.symbolic import Sym, lit
from transpiler.ir.tir import Block, Condition, Kernel, Op, Value, note, walk
from transpiler.ir.types import PtrTy, Shape, TileTy

ONE = lit(1)
_CONSUMERS = ("make_tensor", "load_ptr", "store_ptr")
_SAME = ("reshape", "broadcast", "permute")


def state_divisors(kernel: Kernel) -> None:
    """Insert ``assume`` operations after values that tensor views, gathers and scatters use."""
    wanted = {_unbounded(v) for op in walk(kernel.body) if op.opcode in _CONSUMERS for v in op.operands}
    analysis = _Analysis(kernel)
    analysis.run()
    _insert(kernel, kernel.body, wanted, analysis)


def _unbounded(v: Value) -> Value:
    """The value of which only a bound is stated; its divisor is stated beside that."""
    while v.op is not None and v.op.opcode == "assume" and v.op.attrs.get("divisor") is None:
        v = v.op.operands[0]
    return v


class _Analysis:
    """Divisors of values, to a fixed point over loops."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.of: dict[Value, Sym] = {}
        self.changed = True

    def run(self) -> None:
        while self.changed:
            self.changed = False
            self._block(self.kernel.body, None)

    def __getitem__(self, v: Value) -> Sym:
        return self.of.get(v, ONE)

    def _set(self, v: Value, d: Sym) -> None:
        old = self.of.get(v)
        new = d if old is None else _gcd(old, d)
        if new != old:
            self.of[v], self.changed = new, True

    def _block(self, block: Block, loop: Op | None) -> None:
        for op in block.ops:
            if op.opcode in ("for", "loop"):
                self._loop(op)
            elif op.opcode == "if":
                for region in op.regions:
                    self._block(region, loop)
                    if region.ops[-1].opcode == "yield":
                        for r, v in zip(op.results, region.ops[-1].operands, strict=True):
                            self._set(r, self[v])
            elif op.opcode in ("continue", "break") and loop is not None:
                self._jump(op, loop)
            else:
                for r in op.results:
                    self._set(r, self._result(op))

    def _loop(self, op: Op) -> None:
        first, lead = (3, 1) if op.opcode == "for" else (0, 0)
        body = op.regions[0]
        for p, init, r in zip(body.params[lead:], op.operands[first:], op.results, strict=True):
            self._set(p, self[init])
            if first:
                self._set(r, self[init])
        self._block(body, op)

    def _jump(self, op: Op, loop: Op) -> None:
        lead = 1 if loop.opcode == "for" else 0
        for p, r, v in zip(loop.regions[0].params[lead:], loop.results, op.operands, strict=True):
            if op.opcode == "continue":
                self._set(p, self[v])
            if op.opcode == "break" or loop.opcode == "for":
                self._set(r, self[v])

    def _result(self, op: Op) -> Sym:
        match op.opcode:
            case "base":
                return Sym("div", (op.attrs["array"], "ptr", 0))
            case "dim" | "stride":
                return self._metadata(op)
            case "constant" if op.attrs.get("undefined"):
                return ONE
            case "constant":
                value = op.attrs["value"]
                symbolic = sy.leaves_of(op.attrs["sym"]) and type(value) is int
                return op.attrs["sym"] if symbolic else lit(abs(value)) if isinstance(value, int) else ONE
            case "addi" | "subi":
                return _gcd(self[op.operands[0]], self[op.operands[1]])
            case "muli":
                return sy.apply("mul", self[op.operands[0]], self[op.operands[1]])
            case "negi" | "absi":
                return self[op.operands[0]]
            case "convert":
                return self._convert(op)
            case "offset":
                return self._offset(op)
            case "assume":
                return _stated(op.attrs["divisor"]) if op.attrs.get("divisor") is not None else self[op.operands[0]]
            case name if name in _SAME:
                return self[op.operands[0]]
            case _:
                return ONE

    def _metadata(self, op: Op) -> Sym:
        tensor = op.operands[0].op
        if tensor is None or tensor.opcode != "tensor":
            return ONE
        return Sym("div", (tensor.attrs["name"], op.opcode, op.attrs["axis"]))

    def _convert(self, op: Op) -> Sym:
        source, target = op.operands[0].ty, op.results[0].ty
        if isinstance(source, TileTy) and isinstance(target, TileTy) and source.dtype.is_int and target.dtype.is_int:
            return _gcd(self[op.operands[0]], lit(1 << target.dtype.bits))
        return ONE

    def _is_one(self, shape: Shape, op: Op) -> bool:
        """Whether a tile has one element; decided by its first dimension that has more, or else by all."""
        large = sorted((d for d in shape if d.value != 1), key=lambda d: bool(sy.leaves_of(d.sym)))[:1]
        for d in large or shape:
            if sy.leaves_of(d.sym):
                note(self.kernel, Condition(sy.apply("eq", d.sym, ONE), d.value == 1, op.span))
        return not large

    def _offset(self, op: Op) -> Sym:
        """Only scalars and tiles of one pointer: the assembler sees through larger tiles by itself."""
        pointer, by = op.operands
        assert isinstance(pointer.ty, PtrTy)
        if not self._is_one(pointer.ty.shape, op):
            return ONE
        d = pointer.ty.dtype
        size = Sym("itemsize", (op.attrs["array"],)) if d.of is not None else lit(d.bits // 8 or 1)
        return _gcd(self[pointer], sy.apply("mul", self[by], size))


def _stated(divisor: Sym | int) -> Sym:
    return divisor if isinstance(divisor, Sym) else lit(divisor)


def _gcd(a: Sym, b: Sym) -> Sym:
    """The greatest common divisor, without parts that others divide: around a loop it has to stay the same."""
    parts: list[Sym] = []
    for part in (*_parts(a), *_parts(b)):
        if part != lit(0) and not _divides(parts, part):
            parts = [p for p in parts if not _divides([part], p)] + [part]
    known = [p for p in parts if p.op == "lit"]
    if len(known) > 1:
        parts = [p for p in parts if p.op != "lit"] + [lit(math.gcd(*(p.args[0] for p in known)))]
    if not parts or ONE in parts:
        return ONE if parts else lit(0)
    out = parts[0]
    for part in parts[1:]:
        out = sy.apply("gcd", out, part)
    return out


def _parts(a: Sym) -> tuple[Sym, ...]:
    return (*_parts(a.args[0]), *_parts(a.args[1])) if a.op == "gcd" else (a,)


def _divides(parts: Sequence[Sym], a: Sym) -> bool:
    """Whether the greatest common divisor of some parts surely divides an expression."""
    if a in parts:
        return True
    if a.op == "lit":
        return any(p.op == "lit" and p.args[0] and a.args[0] % p.args[0] == 0 for p in parts)
    if a.op == "mul":
        return any(_divides(parts, factor) for factor in a.args)
    return a.op == "gcd" and all(_divides(parts, part) for part in a.args)


def _insert(kernel: Kernel, block: Block, wanted: set[Value], analysis: _Analysis, owner_op: Op | None = None) -> None:
    owner = owner_op.opcode if owner_op is not None else ""
    out: list[Op] = []
    replaced: dict[Value, Value] = {}
    for op in block.ops:
        out.append(op)
        for r in op.results:
            stated = _assume(kernel, op, r, analysis[r]) if r in wanted else None
            if stated is not None:
                out.append(stated)
                replaced[r] = stated.result
        for region in op.regions:
            _insert(kernel, region, wanted, analysis, op)
    for p in block.params[1:] if owner == "for" else block.params:
        stated = _assume_parameter(kernel, p, analysis[p], owner_op)
        if stated is not None:
            out.insert(0, stated)
            replaced[p] = stated.result
    block.ops = out
    stated_by = {a.op for a in replaced.values()}
    for op in walk(block):
        if op not in stated_by:
            op.operands = tuple(replaced.get(v, v) for v in op.operands)


def _assume_parameter(kernel: Kernel, p: Value, divisor: Sym, loop: Op | None) -> Op | None:
    """A loop-carried value's divisor is stated at the start of the body."""
    known = sy.apply("pow2_divisor", divisor)
    if loop is None or known in (ONE, lit(0)) or not isinstance(p.ty, (TileTy, PtrTy)):
        return None
    if sy.leaves_of(known):
        kernel.const_names.setdefault(known, f"{p.hint or 'value'}_div")
    made = Op("assume", (p,), {"divisor": known}, span=loop.span, site=loop.site, rule=loop.rule)
    made.results = (Value(p.ty, p.hint, made, p.names),)
    return made


def _assume(kernel: Kernel, op: Op, v: Value, divisor: Sym) -> Op | None:
    """An ``assume`` for a divisor that may exceed 1; not for scalar constants and what states it already."""
    known = sy.apply("pow2_divisor", divisor)
    scalar_constant = op.opcode == "constant" and isinstance(v.ty, TileTy) and not v.ty.shape
    if known in (ONE, lit(0)) or scalar_constant or op.opcode in ("assume", "base", "dim", "stride"):
        return None
    if not isinstance(v.ty, (TileTy, PtrTy)):
        return None
    if sy.leaves_of(known):
        kernel.const_names.setdefault(known, f"{op.attrs.get('array', v.hint or 'value')}_div")
    made = Op("assume", (v,), {"divisor": known}, span=op.span, site=op.site, rule=op.rule, statement=op.statement)
    made.results = (Value(v.ty, v.hint, made, v.names),)
    return made
