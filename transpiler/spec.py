"""Specializations and corpus manifests: the one pydantic schema at the boundary.

SPEC.toml files, corpus manifests and recorded launches are all read into these models;
the rest of the program uses them as plain immutable values.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

DTYPES = (
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "tfloat32", "float8_e4m3fn", "float8_e5m2",
    "float8_e8m0fnu", "float4_e2m1fn",
)  # fmt: skip
DType = Literal[DTYPES]  # type: ignore[valid-type]


class Model(BaseModel):
    """Immutable, and strict about unknown keys, so that a typing error in a manifest is found."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ArraySpec(Model):
    """What is known of one array argument; the lists have one item per axis.

    ``shape_constant``/``stride_constant`` hold the value baked in, or None where it is dynamic;
    ``*_divisible_by`` hold known divisors (in elements; bytes for ``base_addr_divisible_by``).
    """

    kind: Literal["array"] = "array"
    dtype: DType
    ndim: int = Field(ge=0, le=8)
    index_dtype: Literal["int32", "int64"] = "int32"
    shape_constant: tuple[int | None, ...] = ()
    stride_constant: tuple[int | None, ...] = ()
    shape_divisible_by: tuple[int, ...] = ()
    stride_divisible_by: tuple[int, ...] = ()
    stride_lower_bound_incl: tuple[int | None, ...] = ()
    base_addr_divisible_by: int = 1
    alias_groups: tuple[str, ...] = ()
    may_alias_internally: bool = False

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: object) -> object:
        """Default every per-axis list: row-major, nothing baked in, stride lower bound 0."""
        if not isinstance(data, dict) or not isinstance(data.get("ndim"), int):
            return data
        n: int = data["ndim"]
        defaults: dict[str, tuple[object, ...]] = {
            "shape_constant": (None,) * n,
            "stride_constant": (None,) * (n - 1) + (1,) * (n > 0),
            "shape_divisible_by": (1,) * n,
            "stride_divisible_by": (1,) * n,
            "stride_lower_bound_incl": (0,) * (n - 1) + (None,) * (n > 0),
        }
        return {**{k: v for k, v in defaults.items() if not data.get(k)}, **{k: v for k, v in data.items() if v != []}}

    @model_validator(mode="after")
    def _lengths(self) -> ArraySpec:
        for name in ("shape_constant", "stride_constant", "shape_divisible_by", "stride_divisible_by",
                     "stride_lower_bound_incl"):  # fmt: skip
            if len(getattr(self, name)) != self.ndim:
                raise ValueError(f"{name} has {len(getattr(self, name))} items for an array of rank {self.ndim}")
        return self


class ScalarSpec(Model):
    """A scalar passed at run time."""

    kind: Literal["scalar"] = "scalar"
    dtype: DType


class ConstantSpec(Model):
    """A compile-time constant; floats may be given as "inf", "-inf" or "nan"."""

    kind: Literal["constant"] = "constant"
    value: bool | int | float | str | None


class ListSpec(Model):
    """A list of arrays that share one description."""

    kind: Literal["list"] = "list"
    element: ArraySpec
    alias_groups: tuple[str, ...] = ()
    elements_may_alias: bool = True


ParamSpec = Annotated[ArraySpec | ScalarSpec | ConstantSpec | ListSpec, Field(discriminator="kind")]


class Hints(Model):
    """Launch-time hints that replace the decorator's (None: as the decorator says)."""

    num_ctas: int | None = None
    occupancy: int | str | None = None
    num_worker_warps: int | None = None
    opt_level: int | None = None


class Specialization(Model):
    """One way to call a kernel: a description of each parameter, in the kernel's order."""

    name: str
    params: dict[str, ParamSpec]
    hints: Hints = Hints()
    target: str | None = None


class KernelManifest(Model):
    """A kernel and the specializations to check it for."""

    name: str
    specializations: tuple[Specialization, ...] = ()


class OperatorManifest(Model):
    """An operator: one source module and the kernels of it that count.

    Exactly one of ``module`` (an installed module's dotted name, found without importing it)
    and ``path`` (relative to the manifest) says where the source is.
    """

    name: str
    module: str | None = None
    path: str | None = None
    kernels: tuple[KernelManifest, ...] = ()

    @model_validator(mode="after")
    def _one_source(self) -> OperatorManifest:
        if (self.module is None) == (self.path is None):
            raise ValueError("give exactly one of module and path")
        return self


class Corpus(Model):
    """A named list of operators; ``include`` names manifest files relative to this one."""

    name: str
    target: str = "sm_90"
    include: tuple[str, ...] = ()
    operators: tuple[OperatorManifest, ...] = ()
