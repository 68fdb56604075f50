"""Lift the reference's Tile IR to TIR, operation by operation, for one specialization.

Nothing is translated here: every operation becomes the one of TIR that stands for it (``table``), so that what comes
out compiles to the operations that went in, or is refused with the operation's name.  The judge decides as for any
other kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from transpiler.diagnostics import NO_SPAN, Span, TranspileError
from transpiler.ir.symbolic import lit
from transpiler.ir.tir import Block, Op, Value
from transpiler.ir.types import BOOL, I32, DType, TensorTy, TileTy, Type, ViewTy
from transpiler.raising.refusal import CODE, refused
from transpiler.raising.table import ATTRIBUTES, ORDERS, TABLE, UNRAISABLE, Row
from transpiler.raising.types import constant_value, type_of
from transpiler.raising.values import Values
from transpiler.tileir.hints import resolve
from transpiler.tileir.model import Entry
from transpiler.tileir.model import Op as TileOp

Names = dict[tuple[str, int, int], str]
"""File, line and column of an expression -> the variable that the author assigned it to."""


class Lifter:
    """Lifts the operations of one entry; E0610 says which of them has no form."""

    def __init__(self, entry: Entry, values: Values, target: str, names: Names) -> None:
        self.entry, self.values, self.target, self.names = entry, values, target, names
        self.block = Block()
        self.span: Span = NO_SPAN
        self.once = False  # is the whole kernel a loop that runs once?
        self.named: dict[tuple[str, int, int], Value] = {}
        self.loops: list[list[Type]] = []  # what each loop around carries
        self.yields: list[Type] = []  # what the innermost branch hands over
        self.stated: set[str] = set()
        """The arrays whose known divisors the body states again, on values that it computes."""

    # -- operations -------------------------------------------------------------------------------
    def op(self, op: TileOp) -> None:
        """Lift one operation; whatever is refused names it."""
        from transpiler.raising import accesses, reductions, regions

        place = self.entry.location(op)
        self.span = place.in_python if place is not None else NO_SPAN
        handlers = SPECIAL | accesses.HANDLERS | regions.HANDLERS | reductions.HANDLERS
        handler = handlers.get(op.name)
        try:
            if handler is not None:
                handler(self, op)
            elif op.name in TABLE:
                self.regular(op, TABLE[op.name])
            else:
                self.refuse(UNRAISABLE.get(op.name, "there is no row for it"))
        except TranspileError as refusal:
            raise self._named(op, refusal) from None

    def _named(self, op: TileOp, refusal: TranspileError) -> TranspileError:
        d = refusal.diagnostic
        if d.code != CODE or d.message.startswith("`"):
            return refusal
        return refused(f"`{op.name}` can't be raised: {d.message}", self.span)

    def refuse(self, why: str) -> NoReturn:
        """Say why the operation at hand has no form."""
        raise refused(why, self.span)

    def regular(self, op: TileOp, row: Row) -> None:
        """An operation with a row in the table."""
        attrs, signs = self._attributes(op, row.attributes)
        signed = signs[0] if signs else None
        operands = [self.values[i] for i in op.operands]
        free = row.sign == "free" or (row.sign == "compared" and signed is False)
        if free and operands:
            like = next((dtype for v in (operands[row.like], *operands) if (dtype := integer(v)) is not None), None)
            operands = [self.coerced(v, like) for v in operands]
        elif row.sign in ("stated", "compared"):
            operands = [self.signed(v, signed is True) for v in operands]
        ordered = [operands[i] for i in ORDERS.get(op.name, range(len(operands)))]
        if row.sign != "result" and row.opcode != "convert" and signed is not None:
            attrs["signed"] = signed
        ty = self._result_type(op, row, operands, signed if row.sign == "result" else None)
        self.define(op, row.opcode, ordered, (ty,), **attrs)

    def _attributes(self, op: TileOp, allowed: frozenset[str]) -> tuple[dict[str, Any], list[bool]]:
        """The operation's attributes as TIR has them, and its signs."""
        attrs: dict[str, Any] = {}
        signs: list[bool] = []
        for key, text in op.form.attributes:
            if key not in allowed:
                self.refuse(f"the attribute {key} ({text}) has no form in cutile 0.5")
            elif key == "signedness":
                signs.append(text == "signed")
            else:
                name, read = ATTRIBUTES[key]
                attrs[name] = read(text)
                if attrs[name] is None:
                    self.refuse(f"{key} {text} has no form in cutile 0.5")
        return attrs, signs

    def _result_type(self, op: TileOp, row: Row, operands: Sequence[Value], signed: bool | None) -> Type:
        if row.result == "operand":
            return operands[row.like].ty
        if row.result == "bool":
            ty = operands[0].ty
            assert isinstance(ty, TileTy)
            return TileTy(BOOL, ty.shape)
        like = getattr(operands[row.like].ty, "dtype", None) if operands else None
        return type_of(self.printed(op.results[0]), like, signed)

    def printed(self, index: int) -> str:
        """A value's type as it was printed."""
        return self.entry.values[index].type

    def define(self, op: TileOp, opcode: str, operands: Sequence[Value], types: Sequence[Type], **attrs: Any) -> Op:
        """Append the operation that ``op`` becomes, with its results."""
        made = self.emit(opcode, operands, types, **attrs)
        for index, value in zip(op.results, made.results, strict=True):
            self.values[index] = value
        if made.results and not isinstance(made.results[0].ty, TensorTy | ViewTy):
            self.names_result(made.results[0])
        return made

    def names_result(self, value: Value) -> None:
        """Give a value the author's name, if it is the last one made where an assignment's expression stands."""
        place = self.span.file, self.span.line, self.span.column - 1
        if place in self.names:
            if (before := self.named.get(place)) is not None:
                before.hint = ""
            value.hint, self.named[place] = self.names[place], value

    def emit(self, opcode: str, operands: Sequence[Value], types: Sequence[Type], **attrs: Any) -> Op:
        """Append an operation of TIR."""
        op = Op(opcode, tuple(operands), attrs, span=self.span)
        op.results = tuple(Value(t, op=op) for t in types)
        self.block.ops.append(op)
        return op

    # -- signs ------------------------------------------------------------------------------------
    def coerced(self, v: Value, dtype: DType | None) -> Value:
        """The value with another integer dtype of the same width (no operation in Tile IR); others as they are."""
        own = integer(v)
        if own is None or dtype is None or own == dtype or own.bits != dtype.bits:
            return v
        assert isinstance(v.ty, TileTy)
        return self.emit("convert", (v,), (TileTy(dtype, v.ty.shape),)).result

    def signed(self, v: Value, signed: bool) -> Value:
        """The value as a signed or unsigned integer."""
        own = integer(v)
        if own is None:
            if isinstance(v.ty, TileTy) and v.ty.dtype == BOOL and signed:
                self.refuse("truth values are unsigned in cutile 0.5")
            return v
        return self.coerced(v, DType(f"{'' if signed else 'u'}int{own.bits}"))

    def hints(self, op: TileOp) -> dict[str, Any]:
        """The hints of a memory operation for the check's target."""
        found = dict(resolve(op.form.hints, self.target))
        out: dict[str, Any] = {}
        if (latency := found.pop("latency", None)) is not None:
            out["latency"] = int(latency)
        if (tma := found.pop("allow_tma", None)) is not None:
            out["tma"] = tma == "true"
        if found:
            self.refuse(f"the hint {', '.join(sorted(found))} has no form in cutile 0.5")
        return out


def integer(v: Value) -> DType | None:
    """The dtype of a tile of integers."""
    return v.ty.dtype if isinstance(v.ty, TileTy) and v.ty.dtype.is_int else None


# -- operations that aren't regular -------------------------------------------------------------------


def _constant(low: Lifter, op: TileOp) -> None:
    text = op.form.get("value") or ""
    ty = type_of(low.printed(op.results[0]))
    if not isinstance(ty, TileTy):
        low.refuse("a constant pointer has no form in cutile 0.5")
    value = constant_value(text, ty.dtype)
    low.define(op, "constant", (), (ty,), value=value, sym=lit(value))


def _assume(low: Lifter, op: TileOp) -> None:
    """What ours states by itself of an array's parameters, from the same specialization, is left out."""
    (source,) = op.operands
    text = op.form.get("assumption") or ""
    flat = low.values.role(source)
    if flat is not None and low.values.states(flat, text):
        low.values.roles[op.results[0]] = flat
        return
    attrs = _assumption(text)
    if attrs is None:
        low.refuse(f"the assumption {text} has no form")
    v = low.values[source]
    low.stated |= set(low.values.arrays) if "divisor" in attrs else set()
    low.define(op, "assume", (v,), (v.ty,), **attrs)


def _assumption(text: str) -> dict[str, Any] | None:
    kind, _, rest = text.rstrip(">").partition("<")
    parts = [p.strip() for p in rest.split(",")]
    if kind == "div_by" and len(parts) == 1 and parts[0].isdecimal():
        return {"divisor": int(parts[0])}
    if kind == "bounded" and len(parts) == 2:
        bounds = [None if p == "?" else int(p) for p in parts]
        if bounds != [None, None] and all(b is None or abs(b) < 1 << 31 for b in bounds):
            return {"lower": bounds[0], "upper": bounds[1]}
    return None


def _grid(opcode: str) -> Callable[[Lifter, TileOp], None]:
    def lift(low: Lifter, op: TileOp) -> None:
        for axis, index in enumerate(op.results):
            low.values[index] = low.emit(opcode, (), (TileTy(I32),), axis=axis).result
            low.names_result(low.values[index])

    return lift


def _mmai(low: Lifter, op: TileOp) -> None:
    signs = [text == "signed" for key, text in op.form.attributes if key == "signedness"]
    a, b, acc = (low.values[i] for i in op.operands)
    operands = (low.signed(a, signs[0]), low.signed(b, signs[1]), low.signed(acc, True))
    low.define(op, "mma", operands, (operands[2].ty,))


def _print(low: Lifter, op: TileOp) -> None:
    if len(op.operands) != 2:
        low.refuse("cutile 0.5 prints exactly one tile a statement in order with memory")
    text = _text(op)
    low.define(op, "print", [low.values[i] for i in op.operands], type_list(low, op), format=text)


def _assert(low: Lifter, op: TileOp) -> None:
    low.define(op, "assert", [low.values[i] for i in op.operands], (), message=_text(op))


def _text(op: TileOp) -> str:
    """The text as it is: printed, a backslash or the two digits of a byte follow a backslash."""
    quoted = op.form.get("text") or '""'
    plain = re.sub(rb"\\(\\|[0-9A-Fa-f]{2})", lambda m: _escaped(m[1]), quoted[1:-1].encode())
    return plain.decode("utf-8", "replace")


def _escaped(code: bytes) -> bytes:
    return code if code == b"\\" else bytes([int(code, 16)])


def _gdc(opcode: str) -> Callable[[Lifter, TileOp], None]:
    def lift(low: Lifter, op: TileOp) -> None:
        low.define(op, opcode, [low.values[i] for i in op.operands], type_list(low, op))

    return lift


def type_list(low: Lifter, op: TileOp) -> list[Type]:
    """The types of an operation's results, as printed."""
    return [type_of(low.printed(i)) for i in op.results]


SPECIAL: dict[str, Callable[[Lifter, TileOp], None]] = {
    "constant": _constant,
    "assume": _assume,
    "get_tile_block_id": _grid("block_id"),
    "get_num_tile_blocks": _grid("num_blocks"),
    "mmai": _mmai,
    "print_tko": _print,
    "assert": _assert,
    "gdc_wait_tko": _gdc("gdc_wait"),
    "gdc_launch_dependents_tko": _gdc("gdc_launch"),
}
__all__ = ["Lifter", "Names", "integer"]
