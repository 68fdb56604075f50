"""What a form can ask of an operation: the keys that conditions test and the parameters of templates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from transpiler.ir import rust
from transpiler.ir.rust_text import literal
from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import Op
from transpiler.ir.types import DType, PtrTy, Shape, TileTy, TokenTy, Type, ViewTy

ROUNDING = {
    "nearest_even": "NearestEven", "zero": "Zero", "positive_inf": "PositiveInf", "negative_inf": "NegativeInf",
    "approx": "Approx", "full": "Full", "nearest_int_to_zero": "NearestIntToZero", "nearest_away": "NearestAway",
}  # fmt: skip
PREDICATE = {
    "eq": "Equal", "ne": "NotEqual", "lt": "LessThan", "le": "LessThanOrEqual", "gt": "GreaterThan",
    "ge": "GreaterThanOrEqual",
}  # fmt: skip
PADDING = {
    None: "None", "zero": "Zero", "neg_zero": "NegZero", "nan": "Nan", "pos_inf": "PosInf", "neg_inf": "NegInf",
}  # fmt: skip
ORDERING = {"weak": "Weak", "relaxed": "Relaxed", "acquire": "Acquire", "release": "Release", "acq_rel": "AcqRel"}
SCOPE = {None: "TileBlock", "block": "TileBlock", "tile_block": "TileBlock", "device": "Device", "sys": "System",
         "system": "System"}  # fmt: skip
ATOMIC = {
    "add": "Add", "addf": "AddF", "and": "And", "or": "Or", "xor": "Xor", "max": "Max", "min": "Min",
    "umax": "Umax", "umin": "Umin", "xchg": "Xchg",
}  # fmt: skip
COMBINED = {"or": "|", "xor": "^"}
# Opcodes whose floating point rounding defaults to nearest even (a missing attribute means the default).
_ROUNDED = frozenset({"addf", "subf", "mulf", "divf", "fma", "sqrt", "convert", "reduce", "scan"})


class Types(Protocol):
    """How the emitter writes types: it knows the generics of the entry."""

    def is_generic(self, dtype: DType) -> bool:
        """Is the dtype an element parameter of the entry?"""

    def element(self, dtype: DType) -> str:
        """A dtype as Rust text."""

    def dims(self, shape: Shape) -> tuple[str, ...]:
        """A shape's dimensions as Rust text."""

    def dynamic_axis(self, op: Op) -> int:
        """The index of a ``dim`` or ``stride`` among what is read at run time."""

    def const(self, sym: Sym, value: int) -> str:
        """An integer: a const generic where it depends on what the launcher knows, else its digits."""
        ...


def _category(types: Types, dtype: DType) -> str:
    return "generic" if types.is_generic(dtype) else dtype.category


def _tile_dtype(ty: Type) -> DType | None:
    return ty.dtype if isinstance(ty, TileTy) else None


def keys(op: Op, types: Types) -> dict[str, Hashable]:
    """The attributes of an operation with their defaults filled in, and what its types say."""
    out: dict[str, Hashable] = {k: v for k, v in op.attrs.items() if isinstance(v, Hashable)}
    if op.opcode in _ROUNDED:
        out["rounding"] = out.get("rounding") or "nearest_even"
    out.setdefault("rounding", None)
    for name in ("ftz", "nan", "fast"):
        out[name] = bool(out.get(name))
    out["count"] = len([v for v in op.operands if isinstance(v.ty, TileTy)])
    if op.operands:
        _operand_keys(op, types, out)
    if op.results:
        ty = op.results[0].ty
        if isinstance(ty, TileTy | PtrTy):
            out["rank"] = ty.rank
            out["pointer"] = isinstance(ty, PtrTy)
            out["target"] = _category(types, ty.dtype)
        if isinstance(ty, ViewTy):
            out["view"] = "gather" if ty.sparse_dim is not None else "strided" if ty.steps else "partition"
    return out


def _operand_keys(op: Op, types: Types, out: dict[str, Hashable]) -> None:
    source = _tile_dtype(op.operands[0].ty)
    if source is None:
        return
    signed = out.get("signed")
    out["sign"] = "same" if signed is None or signed == _signed(source) else "signed" if signed else "unsigned"
    out["source"] = _category(types, source)
    out["element"] = "generic" if types.is_generic(source) else source.name
    target = _tile_dtype(op.results[0].ty) if op.results else None
    if target is not None:
        out["width"] = "same" if target.bits == source.bits else "wider" if target.bits > source.bits else "narrower"


def _signed(dtype: DType) -> bool:
    return dtype.signed


def parameters(op: Op, types: Types, operands: Sequence[rust.Expr]) -> dict[str, rust.Expr | str]:
    """What a template may refer to; every opcode has ``$0``, ``$1``.. and what its attributes translate to."""
    out: dict[str, rust.Expr | str] = {str(i): e for i, e in enumerate(operands)}
    values = keys(op, types)
    _enumerations(values, out)
    if op.results:
        ty = op.results[0].ty
        if isinstance(ty, TileTy | PtrTy):
            out["shape"] = rust.shape(types.dims(ty.shape))
        if isinstance(ty, ViewTy):
            out["tile"] = rust.shape(types.dims(ty.tile))
            out["padding"] = f"padding::{PADDING[ty.padding]}"
            out["dim_map"] = "dim_map::Identity" if ty.order is None else _const_array(ty.order)
    out["all"] = rust.Seq(tuple(operands))
    builder = _BUILDERS.get(op.opcode)
    if builder is not None:
        builder(op, types, operands, out)
    return out


def _enumerations(values: dict[str, Hashable], out: dict[str, rust.Expr | str]) -> None:
    rounding = values.get("rounding")
    if isinstance(rounding, str):
        out["rounding"] = f"rounding::{ROUNDING[rounding]}"
    for name in ("ftz", "nan"):
        out[name] = f"{name}::{'Enabled' if values[name] else 'Disabled'}"
    predicate = values.get("predicate")
    if isinstance(predicate, str):
        out["predicate"] = f"predicate::{PREDICATE[predicate]}"
    for name in ("axis", "divisor", "lower", "upper"):
        if isinstance(values.get(name), int):
            out[name] = str(values[name])
    out["ordering"] = f"ordering::{ORDERING[str(values.get('ordering') or 'weak')]}"
    out["scope"] = f"scope::{SCOPE[_optional_text(values.get('scope'))]}"
    out["no_scope"] = "None::<scope::TileBlock>"
    out["tma"] = f"tma::{'Disabled' if values.get('tma') is False else 'Enabled'}"
    latency = values.get("latency")
    out["latency"] = f"Some({latency})" if latency is not None else "None"
    out["cycles"] = str(latency or 0)
    if isinstance(values.get("mode"), str):
        out["mode"] = f"atomic::{ATOMIC[str(values['mode'])]}"


def _optional_text(v: Any) -> str | None:
    return None if v is None else str(v)


def _const_array(items: Sequence[int]) -> rust.Expr:
    return rust.shape(tuple(map(str, items)), "const_array")


def _some(e: rust.Expr | None) -> rust.Expr:
    return rust.Text("None") if e is None else rust.call("Some", e)


_Builder = Callable[[Op, Types, Sequence[rust.Expr], dict[str, rust.Expr | str]], None]


def _assume(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
    """A divisor that each specialization gives is a const generic."""
    divisor = op.attrs.get("divisor")
    if isinstance(divisor, Sym):
        out["divisor"] = types.const(divisor, divisor.args[0] if divisor.op == "lit" else 1)


def _load_view(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
    tracked = isinstance(op.operands[-1].ty, TokenTy)
    out["index"] = _indices(op, e[1:-1] if tracked else e[1:])
    out["token"] = _some(e[-1] if tracked else None)
    _inbounds(op, out)


def _store_view(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
    out["index"], out["value"], out["token"] = _indices(op, e[1:-2]), e[-2], e[-1]
    _inbounds(op, out)


def _indices(op: Op, items: Sequence[rust.Expr]) -> rust.Seq:
    """An array of scalars; a tuple where one axis takes a tile of positions."""
    view = op.operands[0].ty
    sparse = isinstance(view, ViewTy) and view.sparse_dim is not None
    return rust.Seq(tuple(items), "(", ")") if sparse else rust.Seq(tuple(items))


def _inbounds(op: Op, out: dict[str, rust.Expr | str]) -> None:
    flags: tuple[bool, ...] = op.attrs.get("inbounds") or (False,) * (len(out["index"].items))  # type: ignore[union-attr]
    out["inbounds"] = rust.Seq(tuple(rust.Text(str(bool(f)).lower()) for f in flags))


def _load_ptr(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
    rest = list(e[1:-1])
    out["mask"] = _some(rest.pop(0) if op.attrs.get("has_mask") else None)
    out["padding"] = _some(rest.pop(0) if op.attrs.get("has_padding") else None)
    out["token"] = e[-1]


def _store_ptr(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
    out["value"], out["token"] = e[1], e[-1]
    out["mask"] = _some(e[-2] if op.attrs.get("has_mask") else None)


def _token_last(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
    out["token"] = e[-1]
    if "format" in op.attrs:
        out["format"] = literal(str(op.attrs["format"]))


def _slice_index(first: int) -> _Builder:
    def build(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
        out["index"] = rust.Seq(tuple(e[first:]))

    return build


def _permute(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
    out["perm"] = _const_array(op.attrs["perm"])


def _mma(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
    for i in range(2):
        dtype = _tile_dtype(op.operands[i].ty)
        out[f"sign{i}"] = f"signedness::{'Signed' if dtype is None or dtype.signed else 'Unsigned'}"


def _scan(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
    ty = op.results[0].ty
    assert isinstance(ty, TileTy)
    out["direction"] = f"reverse::{'Reverse' if op.attrs.get('reverse') else 'Forward'}"
    out["identity"] = "false" if ty.dtype.category == "bool" else f"{types.element(ty.dtype)}::ZERO"
    if (sign := COMBINED.get(str(op.attrs.get("fn")))) is not None:
        out["combine"] = f"|a, b| a {sign} b"


def _metadata(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
    out["dynamic_axis"] = str(types.dynamic_axis(op))
    _tensor(op, types, e, out)


def _tensor(op: Op, types: Types, e: Sequence[rust.Expr], out: dict[str, rust.Expr | str]) -> None:
    """``$tensor`` is a reference to the tensor."""
    out["tensor"] = e[0]


_BUILDERS: dict[str, _Builder] = {
    "load_view": _load_view,
    "store_view": _store_view,
    "atomic_red_view": _store_view,
    "load_ptr": _load_ptr,
    "store_ptr": _store_ptr,
    "atomic_rmw": _store_ptr,
    "atomic_cas": _store_ptr,
    "print": _token_last,
    "gdc_wait": _token_last,
    "gdc_launch": _token_last,
    "extract": _slice_index(1),
    "insert": _slice_index(2),
    "permute": _permute,
    "mma": _mma,
    "scan": _scan,
    "reduce": _scan,
    "dim": _metadata,
    "stride": _metadata,
    "view": _tensor,
    "base": _tensor,
    "assume": _assume,
}
