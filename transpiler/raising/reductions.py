"""Reductions and scans: their bodies are recognized, as TIR and cutile name what is combined."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from transpiler.ir.types import DType, TileTy
from transpiler.raising.refusal import refused
from transpiler.raising.types import constant_value, type_of
from transpiler.tileir.model import Op as TileOp

if TYPE_CHECKING:
    from transpiler.raising.lift import Lifter

_FUNCTIONS = ("add", "mul", "max", "min")
_BITWISE = {"ori": "or", "xori": "xor"}  # as functions of their own: from 0, along dimension 0
_TUPLES = "cutile 0.5 has no reduction or scan of several tiles (its `reduce` and `scan` take one operand)"
_CLOSURES = (
    "with a function of its own, a reduction or scan of cutile 0.5 goes along dimension 0 from 0, whatever it is told; "
    "only sums, products, minima and maxima of the plain kind keep theirs (scans: sums)"
)

_SCANS = "cutile 0.5 scans start from 0, whatever identity they are given"


def _combine(name: str) -> Callable[[Lifter, TileOp], None]:
    def lift(low: Lifter, op: TileOp) -> None:
        if len(op.operands) != 1:
            raise refused(f"{len(op.operands)} tiles at once: {_TUPLES}", low.span)
        fn, signed, attrs = _body(low, op)
        source = low.values[op.operands[0]]
        assert isinstance(source.ty, TileTy)
        dtype = source.ty.dtype
        if dtype.is_int:
            source = low.signed(source, dtype.signed if signed is None else signed)
            assert isinstance(source.ty, TileTy)
            dtype = source.ty.dtype
        if name == "scan" and fn not in ("add", *_BITWISE.values()):
            raise refused(f"a scan that combines with `{fn}`: {_SCANS}", low.span)
        _identity(op, fn, dtype)
        if name == "scan":
            attrs["reverse"] = op.form.get("reverse") == "true"
        attrs |= {"fn": fn, "axis": int(op.form.get("dim") or 0)}
        ty = type_of(low.printed(op.results[0]), dtype)
        if name == "reduce" and fn in _BITWISE.values():
            assert isinstance(source.ty, TileTy)
            if source.ty.rank != 1:
                raise refused(f"a tile of rank {source.ty.rank} with `{fn}`: {_CLOSURES}", low.span)
            source = low.emit("reduce", (source,), (source.ty,), **attrs).result  # that is the type it has in Rust
            low.define(op, "reshape", (source,), (ty,))
            return
        low.define(op, name, (source,), (ty,), **attrs)

    return lift


def _body(low: Lifter, op: TileOp) -> tuple[str, bool | None, dict[str, Any]]:
    """What a body of one operation on its two arguments combines, its sign and its attributes."""
    region = op.regions[0]
    *work, end = region.ops
    if len(work) != 1 or end.operands != work[0].results or work[0].operands != region.args:
        raise refused(f"its body is none of those that cutile names: {_CLOSURES}", low.span)
    inner = work[0]
    fn = _BITWISE.get(inner.name, inner.name.rstrip("fi"))
    if fn not in (*_FUNCTIONS, *_BITWISE.values()):
        raise refused(f"it combines with `{inner.name}`: {_CLOSURES}", low.span)
    attrs: dict[str, Any] = {}
    signed: bool | None = None
    for key, value in inner.form.attributes:
        if key == "signedness":
            signed = value == "signed"
        else:
            attrs[{"flush_to_zero": "ftz", "propagate_nan": "nan"}.get(key, key)] = (
                value if key in ("rounding", "overflow") else True
            )
    if attrs:
        raise refused(f"its `{inner.name}` has {', '.join(sorted(attrs))}: {_CLOSURES}", low.span)
    return fn, signed, attrs


def _identity(op: TileOp, fn: str, dtype: DType) -> None:
    """cutile's named reductions have an identity each: the reference's must be the same."""
    text = op.form.get("identities") or ""
    value, _, element = text.rpartition(":")
    found = constant_value(f"{element}:{value}" if value else f"i1:{text}", dtype)
    wanted = _identity_of(fn, dtype)
    if dtype.is_int:
        mask = (1 << dtype.bits) - 1
        same = int(found) & mask == int(wanted) & mask
    else:
        same = found == wanted and math.copysign(1, found) == math.copysign(1, wanted)
    if not same:
        raise refused(f"cutile 0.5 gives {fn} of {dtype} the identity {wanted}, the reference has {found}")


def _identity_of(fn: str, dtype: DType) -> float | int:
    if fn in ("add", "mul", *_BITWISE.values()):
        return int(fn == "mul")
    sign = 1 if fn == "min" else -1
    if dtype.is_float:
        return sign * math.inf
    high = (1 << (dtype.bits - dtype.signed)) - 1
    return high if fn == "min" else (-high - 1 if dtype.signed else 0)


HANDLERS: dict[str, Callable[[Lifter, TileOp], None]] = {"reduce": _combine("reduce"), "scan": _combine("scan")}
