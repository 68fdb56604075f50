"""Loads and stores of tiles as functions: the view, the access and its options in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transpiler.emit.functions import FunctionParts, add_function
from transpiler.ir import rust
from transpiler.ir.tir import Op
from transpiler.ir.types import TokenTy, ViewTy
from transpiler.select.forms import parse
from transpiler.select.params import ORDERING, PADDING, SCOPE

if TYPE_CHECKING:
    from transpiler.emit.lower import Lowering

_READS_AS = {
    "zero": "zero", "neg_zero": "negative zero", "nan": "NaN", "pos_inf": "infinity",
    "neg_inf": "negative infinity",
}  # fmt: skip


def tile_access(low: Lowering, op: Op) -> rust.Expr:
    """The call of a load (array, *index, token) or store (array, *index, tile, token)."""
    access = _Access(low, op)
    rank = access.rank
    operands = low.as_variables(op) if access.clashes() else low.take(op.operands)
    array, index = operands[0], rust.Seq(tuple(operands[1 : 1 + rank]))
    id = add_function(low.functions, access.name(), access.function())
    what = rust.shape(access.sizes) if access.load else operands[1 + rank]
    token = operands[-1:] if access.tracked else ()
    return rust.Call(f"{id}{access.turbofish()}", (array, index, what, *token))


class _Access:
    """One load or store; its function's generics are T and D0, D1.., or the caller's where a tuple is returned."""

    def __init__(self, low: Lowering, op: Op) -> None:
        view = op.attrs["view"]
        assert isinstance(view, ViewTy)
        self.op, self.view, self.rank = op, view, len(view.tile)
        self.load = op.attrs["access"] == "load_view"
        self.tracked = isinstance(op.operands[-1].ty, TokenTy)
        self.with_token = self.load and low.uses.count(op.results[1]) > 0
        self.sizes = low.generics.dims(view.tile)
        self.dims = low.generics.tensor_dims(op.operands[0])
        self.element = low.generics.element(view.dtype)
        generic = low.generics.is_generic(view.dtype)
        same = self.with_token
        letters = [f"D{i}" for i in range(self.rank)]
        self.own_sizes = list(self.sizes) if same else letters
        self.own_dims = [t if _digits(t) or same else f"A{i}" for i, t in enumerate(self.dims)]
        self.own_element = self.element if same else "T"
        self.caller = low.generics.names()
        self.types = [] if same and not generic else [self.own_element]
        self.consts = list(dict.fromkeys(t for t in (*self.own_dims, *self.own_sizes) if not _digits(t)))

    def clashes(self) -> bool:
        """See :meth:`transpiler.emit.generics.FunctionGenerics.clashes`."""
        pairs = [(self.own_element, self.element), *zip(self.own_sizes, self.sizes, strict=True)]
        return any(own != a and (self.caller is None or own in self.caller) for own, a in pairs)

    def turbofish(self) -> str:
        """Explicit generics where an array's dynamic dimension is one: cutile can't infer it."""
        if all(_digits(t) for t in self.dims):
            return ""
        outer = dict(zip((*self.own_dims, *self.own_sizes), (*self.dims, *self.sizes), strict=True))
        return f"::<{', '.join([*([self.element] if self.types else []), *(outer[c] for c in self.consts)])}>"

    def name(self) -> str:
        """What the function would like to be called."""
        base = f"{'load' if self.load else 'store'}_{self.rank}d"
        if self.view.padding is not None:
            base += f"_{self.view.padding}"
        if self.view.order is not None:
            base += "_permuted"
        if any(self.op.attrs.get("inbounds") or ()):
            base += "_unchecked"
        if not self.tracked:
            base += "_untracked"
        return base + "_with_token" if self.with_token else base

    def _options(self) -> str:
        attrs = self.op.attrs
        latency = attrs.get("latency")
        inbounds = attrs.get("inbounds") or (False,) * self.rank
        return ", ".join(
            [
                "Some(token)" if self.tracked else "None",
                f"ordering::{ORDERING[attrs.get('ordering') or 'weak']}",
                f"scope::{SCOPE[attrs.get('scope')]}",
                f"tma::{'Disabled' if attrs.get('tma') is False else 'Enabled'}",
                "None" if latency is None else f"Some({latency})",
                f"[{', '.join(str(bool(b)).lower() for b in inbounds)}]",
            ]
        )

    def function(self) -> FunctionParts:
        """The function that is called."""
        e, sizes = self.own_element, ", ".join(self.own_sizes)
        tile = f"Tile<{e}, {{ [{sizes}] }}>"
        order = self.view.order
        dim_map = "dim_map::Identity" if order is None else f"const_array![{', '.join(map(str, order))}]"
        shape = "shape" if self.load else f"shape![{sizes}]"
        token = "token" if self.tracked else "array.token()"
        options = f"padding::{PADDING[self.view.padding]}, {dim_map}, {token}"
        made = f"unsafe {{ make_partition_view(array, {shape}, {options}) }}"
        body: list[rust.Stmt] = [rust.Let(("view",), (f"Partition<{e}, {{ [{sizes}] }}>",), parse(made))]
        if not self.load:
            body.append(rust.Tail(parse(f"unsafe {{ store_view_raw(&view, tile, index, {self._options()}) }}")))
        else:
            keys = ("tile", "loaded") if self.with_token else ("tile", None)
            loaded = parse(f"unsafe {{ load_view_raw(&view, index, {self._options()}, shape) }}")
            body.append(rust.Let(keys, (tile, "Token"), loaded))
            body.append(rust.Tail(parse("(tile, loaded)") if self.with_token else rust.Text("tile")))
        return FunctionParts(
            (*(f"{t}: ElementType" for t in self.types), *(f"const {c}: i32" for c in self.consts)),
            (
                f"array: &Tensor<{e}, {{ [{', '.join(self.own_dims)}] }}>",
                f"index: [Tile<i32, {{ [] }}>; {self.rank}]",
                f"shape: Shape<{{ [{sizes}] }}>" if self.load else f"tile: {tile}",
                *(["token: Token"] if self.tracked else []),
            ),
            ("Token" if not self.load else f"({tile}, Token)" if self.with_token else tile),
            tuple(body),
            {"view": "view", "tile": "tile", "loaded": "loaded"},
            (self._doc(),),
        )

    def _doc(self) -> str:
        if not self.load:
            return "Stores a tile at `index`; what lies outside of the array is left out."
        padding = self.view.padding
        outside = f"; what lies outside of the array reads as {_READS_AS[padding]}" if padding else ""
        return f"Loads the tile at `index`{outside}."


def _digits(text: str) -> bool:
    return text.lstrip("-").isdigit()
