"""The generics of an entry, and how its types are written with them."""

from __future__ import annotations

from itertools import count

from transpiler.emit.abi import Generic
from transpiler.emit.naming import describe, unique, upper
from transpiler.ir.symbolic import Sym, leaves_of
from transpiler.ir.tir import Kernel, Op, Value
from transpiler.ir.types import DType, PtrTy, Shape, TensorTy, TileTy, TokenTy, Type, ViewTy

_CONST_LEAVES = ("param", "div", "itemsize")  # what a launcher computes const generics from


class Generics:
    """Element parameters and const generics; const generics are collected as they are used."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._same = _equalities(kernel)
        self._consts: dict[Sym, str] = {}
        self._dims: dict[tuple[str, int], str] = {}
        self._sizes: set[Sym] = set()
        self._params = {upper(n): n for n in reversed(kernel.constants)}
        self._elements = _element_names(kernel, {upper(n) for n in kernel.constants})

    # -- element types ----------------------------------------------------------------------------
    def is_generic(self, dtype: DType) -> bool:
        """Is the dtype an element parameter of the entry?"""
        return dtype.of is not None and self.kernel.dtype_class.get(dtype.of, "") != ""

    def element(self, dtype: DType) -> str:
        """A dtype as Rust text."""
        if dtype.of is not None and self.is_generic(dtype):
            return self._elements[self.kernel.dtype_class[dtype.of]]
        return dtype.rust

    # -- dimensions -------------------------------------------------------------------------------
    def canonical(self, sym: Sym) -> Sym:
        """The expression that stands for all that the entry's conditions make equal to ``sym``."""
        while (up := self._same.get(sym)) is not None:
            sym = up
        return sym

    def const(self, sym: Sym, value: int) -> str:
        """An integer: a const generic where it depends on parameters, else its digits."""
        sym = self.canonical(sym)
        if not any(leaf.op in _CONST_LEAVES for leaf in leaves_of(sym)):
            return str(value)
        if sym not in self._consts:
            self._consts[sym] = self._name(sym)
        return self._consts[sym]

    def is_symbolic(self, sym: Sym) -> bool:
        """Does :meth:`const` give a const generic?"""
        return any(leaf.op in _CONST_LEAVES for leaf in leaves_of(self.canonical(sym)))

    def _name(self, sym: Sym) -> str:
        if sym.op == "param":
            base = upper(str(sym.args[0]))
            taken = set(self._consts.values()) | set(self._elements.values())
        else:
            base = self.derived_name(sym)
            taken = set(self._consts.values()) | set(self._elements.values()) | set(self._params)
        # cutile 0.5 mistakes a size called E for the element type of its own pointer functions
        return unique(base, taken | set(self._dims.values()) | {"E"})

    def derived_name(self, sym: Sym) -> str:
        """The author's name of what is computed from constants, else what it is."""
        if sym.op == "f32_bits":
            inner = self.derived_name(self.canonical(sym.args[0]))
            return f"{inner}_BITS"
        if sym.op == "round_to":
            return self.derived_name(self.canonical(sym.args[0]))
        return upper(self.kernel.const_names[sym]) if sym in self.kernel.const_names else describe(sym)

    def dims(self, shape: Shape) -> tuple[str, ...]:
        """A shape's dimensions as Rust text."""
        self._note_sizes(shape)
        return tuple(self.const(d.sym, d.value) for d in shape)

    def _note_sizes(self, shape: Shape) -> None:
        """Remember what are sizes of tiles, which no bool can be."""
        self._sizes |= {self.canonical(d.sym) for d in shape}

    def array_dims(self, name: str) -> tuple[str, ...]:
        """The dimensions of an array parameter's type."""
        use = self.kernel.arrays[name]
        some_static = any(d is not None for a in self.kernel.arrays.values() for d in a.dims)
        if use.metadata or not some_static:
            return tuple("-1" if d is None else str(d) for d in use.dims)
        for axis in range(use.rank):
            if (name, axis) not in self._dims:
                taken = set(self._consts.values()) | set(self._elements.values()) | set(self._params)
                self._dims[name, axis] = unique(f"{upper(name)}_D{axis}", taken | set(self._dims.values()))
        return tuple(self._dims[name, axis] for axis in range(use.rank))

    # -- types ------------------------------------------------------------------------------------
    def type(self, ty: Type) -> str:
        """A TIR type as Rust text."""
        match ty:
            case TileTy():
                return f"Tile<{self.element(ty.dtype)}, {self.shape(ty.shape)}>"
            case PtrTy():
                return f"PointerTile<*mut {self.element(ty.dtype)}, {self.shape(ty.shape)}>"
            case ViewTy(steps=None, sparse_dim=None):
                return f"Partition<{self.element(ty.dtype)}, {self.shape(ty.tile)}>"
            case ViewTy(sparse_dim=None, steps=steps) if steps is not None:
                order = ", ".join(map(str, ty.order or range(len(ty.tile))))
                sizes = f"{self.shape(ty.tile)}, {self.shape(steps)}"
                return f"StridedView<{self.element(ty.dtype)}, {sizes}, {{ [{order}] }}>"
            case ViewTy():
                return f"GatherScatterView<{self.element(ty.dtype)}, {self.shape(ty.tile)}, {ty.sparse_dim}>"
            case TensorTy():
                return f"Tensor<{self.element(ty.dtype)}, {{ [{', '.join(['-1'] * ty.rank)}] }}>"
            case TokenTy():
                return "Token"

    def tensor_dims(self, tensor: Value) -> tuple[str, ...]:
        """The dimensions of a tensor: an array parameter's, or those of one made in the kernel."""
        ty = tensor.ty
        assert isinstance(ty, TensorTy) and tensor.op is not None
        if tensor.op.opcode == "tensor":
            return self.array_dims(tensor.op.attrs["name"])
        static = tensor.op.attrs.get("static") or (None,) * ty.rank
        return tuple("-1" if s is None else str(s) for s in static[: ty.rank])

    def value_type(self, v: Value) -> str:
        """The type of a value as Rust text (a tensor's without the reference)."""
        if not isinstance(v.ty, TensorTy):
            return self.type(v.ty)
        return f"Tensor<{self.element(v.ty.dtype)}, {{ [{', '.join(self.tensor_dims(v))}] }}>"

    def depends(self, ty: Type) -> bool:
        """Does the type mention a generic?"""
        dtype, shape = getattr(ty, "dtype", None), getattr(ty, "shape", ())
        return (dtype is not None and self.is_generic(dtype)) or any(self.is_symbolic(d.sym) for d in shape)

    def shape(self, shape: Shape) -> str:
        """A shape as a const argument: ``{ [M, N] }``."""
        return f"{{ [{', '.join(self.dims(shape))}] }}"

    def tensor_type(self, name: str) -> str:
        """The type of an array parameter."""
        dims = ", ".join(self.array_dims(name))
        return f"&Tensor<{self.element(self.kernel.arrays[name].dtype)}, {{ [{dims}] }}>"

    def dynamic_axis(self, op: Op) -> int:
        """The position of a ``dim`` or ``stride`` among those that are read at run time."""
        tensor: Value = op.operands[0]
        axis = int(op.attrs["axis"])
        assert isinstance(tensor.ty, TensorTy) and tensor.op is not None
        if tensor.op.opcode == "tensor":
            use = self.kernel.arrays[tensor.op.attrs["name"]]
            dims, strides = use.dims, use.strides
        else:
            static = tuple(tensor.op.attrs["static"])
            dims, strides = static[: tensor.ty.rank], static[tensor.ty.rank :]
        return sum(s is None for s in (dims if op.opcode == "dim" else strides)[:axis])

    # -- the result -------------------------------------------------------------------------------
    def names(self) -> set[str] | None:
        """Names that a generic of the entry has or may get."""
        return {*self._params, *self._elements.values(), *self._dims.values(), *self._consts.values()}

    def collected(self) -> tuple[Generic, ...]:
        """The generics in order: element types, static dims, author's constants, derived ones."""
        used = {self.kernel.dtype_class[a] for a in self.kernel.arrays if self.kernel.dtype_class.get(a)}
        out = [Generic(name, "type", Sym("dtype", (rep,))) for rep, name in self._elements.items() if rep in used]
        out += [Generic(name, "i32", Sym("dim", key)) for key, name in self._dims.items()]
        order = {name: i for i, name in enumerate(self.kernel.constants)}
        plain = [(s, n) for s, n in self._consts.items() if s.op == "param"]
        derived = [(s, n) for s, n in self._consts.items() if s.op != "param"]
        plain.sort(key=lambda item: order.get(str(item[0].args[0]), len(order)))
        return (*out, *(Generic(name, "i32", sym, sym in self._sizes) for sym, name in plain + derived))


class FunctionGenerics(Generics):
    """The generics of a function that an entry calls: names of its own for those of the entry that it needs.

    ``preferred`` names constants that the author passes; other sizes are D0, D1.., element types T, T2..:
    a function reads the same wherever it is called from, and its names seldom are the caller's.
    With ``same`` all names are the caller's: what a tuple holds keeps its type as the callee writes it in
    cutile 0.5, so the names must mean the same there.
    """

    def __init__(self, outer: Generics, preferred: dict[Sym, str], same: bool) -> None:
        self.kernel, self.outer, self.same = outer.kernel, outer, same
        self._same = outer._same
        self._preferred = {self.canonical(s): n for s, n in preferred.items()}
        self._consts: dict[Sym, str] = {}
        self._dims: dict[tuple[str, int], str] = {}
        self._elements: dict[str, str] = {}
        self.needs_turbofish = False

    def element(self, dtype: DType) -> str:
        """A dtype as Rust text."""
        if dtype.of is None or not self.is_generic(dtype):
            return dtype.rust
        rep = self.kernel.dtype_class[dtype.of]
        if rep not in self._elements:
            own = "T" if not self._elements else f"T{len(self._elements) + 1}"
            self._elements[rep] = self.outer.element(dtype) if self.same else own
        return self._elements[rep]

    def _name(self, sym: Sym) -> str:
        if self.same:
            return self.outer.const(sym, 0)
        taken = {*self._consts.values(), *self._dims.values()}
        if sym in self._preferred:
            return unique(upper(self._preferred[sym]), taken)
        if sym.op == "pow2_divisor":
            return unique("DIVISOR", taken)
        return next(name for i in count() if (name := f"D{i}") not in taken)

    def array_dims(self, name: str) -> tuple[str, ...]:
        """The dimensions of an array parameter's type."""
        out = []
        for axis, text in enumerate(self.outer.array_dims(name)):
            if text.lstrip("-").isdigit():
                out.append(text)
                continue
            self.needs_turbofish = True  # cutile can't infer a dynamic dimension
            taken = {*self._consts.values(), *self._dims.values()}
            self._dims.setdefault((name, axis), text if self.same else unique(f"A{axis}", taken))
            out.append(self._dims[name, axis])
        return tuple(out)

    def _note_sizes(self, shape: Shape) -> None:
        self.outer._note_sizes(shape)

    def local(self) -> tuple[Generic, ...]:
        """The function's own generics in order of declaration."""
        out = [Generic(n, "type", Sym("dtype", (rep,))) for rep, n in self._elements.items()]
        out += [Generic(n, "i32", Sym("dim", key)) for key, n in self._dims.items()]
        return (*out, *(Generic(n, "i32", s) for s, n in self._consts.items()))

    def clashes(self) -> bool:
        """Does a name of the function mean something else in the caller?

        In cutile 0.5 the type that an argument is expected to have, and the type of a nested call, then go wrong.
        """
        caller = self.outer.names()
        pairs = zip(self.local(), self.arguments(), strict=True)
        return any(g.name != a and (caller is None or g.name in caller) for g, a in pairs)

    def names(self) -> set[str] | None:
        """All names of generics; None while a function may still get more."""
        return None

    def arguments(self) -> tuple[str, ...]:
        """What the caller passes for each of them."""
        out = [self.outer.element(DType("float32", rep)) for rep in self._elements]
        out += [self.outer.array_dims(name)[axis] for name, axis in self._dims]
        return (*out, *(self.outer.const(s, 0) for s in self._consts))


def declared(generics: tuple[Generic, ...]) -> tuple[str, ...]:
    """Generics as they are declared."""
    return tuple(f"{g.name}: ElementType" if g.kind == "type" else f"const {g.name}: {g.kind}" for g in generics)


def _element_names(kernel: Kernel, taken: set[str]) -> dict[str, str]:
    """Representative array -> the name of its element parameter."""
    reps = list(dict.fromkeys(r for a in kernel.arrays if (r := kernel.dtype_class.get(a, ""))))
    out: dict[str, str] = {}
    for i, rep in enumerate(reps):
        name = "E" if i == 0 else f"E{i + 1}"
        out[rep] = name if name not in taken else f"{name}T"
    return out


def _equalities(kernel: Kernel) -> dict[Sym, Sym]:
    """Union-find over expressions that the entry's conditions make equal; literals and parameters lead."""
    parent: dict[Sym, Sym] = {}

    def find(s: Sym) -> Sym:
        while s in parent:
            s = parent[s]
        return s

    for c in kernel.conditions:
        if c.sym.op != "eq" or c.outcome is not True:
            continue
        a, b = (find(s) for s in c.sym.args)
        if a == b or any(s.op in ("dtype", "stride", "rank") for s in (a, b)):
            continue
        if _rank(b) < _rank(a):
            a, b = b, a
        parent[b] = a
    return parent


def _rank(s: Sym) -> int:
    return 0 if s.op == "lit" else 1 if s.op == "param" else 2


__all__ = ["FunctionGenerics", "Generics", "declared"]
