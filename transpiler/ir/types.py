"""Types of TIR values: tiles, pointer tiles, views and tokens, concrete and symbolic at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from transpiler.ir.symbolic import Sym, lit

Category = Literal["float", "int", "bool", "restricted_float"]

# name in cuda.tile -> (Rust name in cutile, bits, category, signed)
DTYPE_TABLE: dict[str, tuple[str, int, Category, bool]] = {
    "bool_": ("bool", 1, "bool", False),
    "int8": ("i8", 8, "int", True),
    "int16": ("i16", 16, "int", True),
    "int32": ("i32", 32, "int", True),
    "int64": ("i64", 64, "int", True),
    "uint8": ("u8", 8, "int", False),
    "uint16": ("u16", 16, "int", False),
    "uint32": ("u32", 32, "int", False),
    "uint64": ("u64", 64, "int", False),
    "float16": ("f16", 16, "float", True),
    "bfloat16": ("bf16", 16, "float", True),
    "float32": ("f32", 32, "float", True),
    "float64": ("f64", 64, "float", True),
    "tfloat32": ("tf32", 32, "restricted_float", True),
    "float8_e4m3fn": ("f8e4m3fn", 8, "restricted_float", True),
    "float8_e5m2": ("f8e5m2", 8, "restricted_float", True),
    "float8_e8m0fnu": ("f8e8m0fnu", 8, "restricted_float", True),
    "float4_e2m1fn": ("f4e2m1fn", 4, "restricted_float", True),
}
# The dtypes that one generic entry `E: ElementType` serves.
GENERIC_CLASS = ("float16", "bfloat16", "float32")


@dataclass(frozen=True)
class DType:
    """A dtype: its concrete name, and the array parameter it is generic in (None: fixed)."""

    name: str
    of: str | None = None

    @property
    def rust(self) -> str:
        """The concrete Rust name."""
        return DTYPE_TABLE[self.name][0]

    @property
    def bits(self) -> int:
        """Width in bits."""
        return DTYPE_TABLE[self.name][1]

    @property
    def category(self) -> Category:
        """float, int, bool or restricted_float (tf32, fp8, fp4: no arithmetic)."""
        return DTYPE_TABLE[self.name][2]

    @property
    def is_float(self) -> bool:
        """Any floating point, restricted ones included."""
        return self.category in ("float", "restricted_float")

    @property
    def is_int(self) -> bool:
        """An integer, not bool."""
        return self.category == "int"

    @property
    def signed(self) -> bool:
        """Signed integers and floats."""
        return DTYPE_TABLE[self.name][3]

    def __str__(self) -> str:
        return self.rust if self.of is None else f"{self.rust}'{self.of}"


I32, I64, BOOL, F32 = DType("int32"), DType("int64"), DType("bool_"), DType("float32")


@dataclass(frozen=True)
class Dim:
    """A tile dimension: its size in this specialization and the expression it came from."""

    value: int
    sym: Sym

    def __str__(self) -> str:
        return str(self.sym) if self.sym.op == "param" else str(self.value)


def dim(value: int) -> Dim:
    """A literal dimension."""
    return Dim(value, lit(value))


Shape = tuple[Dim, ...]


def sizes(shape: Shape) -> tuple[int, ...]:
    """The concrete sizes."""
    return tuple(d.value for d in shape)


@dataclass(frozen=True)
class TileTy:
    """A tile; rank 0 is a scalar."""

    dtype: DType
    shape: Shape = ()

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"tile<{'x'.join([*map(str, self.shape), str(self.dtype)])}>"


@dataclass(frozen=True)
class PtrTy:
    """A tile of pointers to elements of ``dtype``."""

    dtype: DType
    shape: Shape = ()

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"tile<{'x'.join([*map(str, self.shape), f'ptr<{self.dtype}>'])}>"


@dataclass(frozen=True)
class TensorTy:
    """A tensor view: an array parameter, or one made in the kernel (``Array.slice``)."""

    dtype: DType
    rank: int

    def __str__(self) -> str:
        return f"tensor<{self.rank}d {self.dtype}>"


@dataclass(frozen=True)
class ViewTy:
    """A partition (or strided, or gather/scatter) view of a tensor.

    ``padding`` is None, "zero", "neg_zero", "nan", "pos_inf" or "neg_inf"; ``order`` is the dim map
    or None for the identity; ``steps`` are the traversal steps of a strided view, else None.
    """

    dtype: DType
    tile: Shape
    padding: str | None = None
    order: tuple[int, ...] | None = None
    steps: Shape | None = None
    sparse_dim: int | None = None

    def __str__(self) -> str:
        said = (("padding", self.padding), ("order", self.order), ("sparse_dim", self.sparse_dim))
        extra = "".join(f", {k}={v}" for k, v in said if v is not None)
        return f"view<{'x'.join(map(str, self.tile))}x{self.dtype}{extra}>"


@dataclass(frozen=True)
class TokenTy:
    """A memory ordering token."""

    def __str__(self) -> str:
        return "token"


Type = TileTy | PtrTy | TensorTy | ViewTy | TokenTy
TOKEN = TokenTy()
