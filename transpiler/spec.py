"""Specializations and corpus manifests: the one pydantic schema at the boundary.

SPEC.toml files, corpus manifests and recorded launches are all read into these models;
the rest of the program uses them as plain immutable values.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from transpiler.identifiers import identifier

DTYPES = (
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "tfloat32", "float8_e4m3fn", "float8_e5m2",
    "float8_e8m0fnu", "float4_e2m1fn",
)  # fmt: skip
DType = Literal[DTYPES]  # type: ignore[valid-type]


Name = Annotated[str, AfterValidator(identifier)]
"""A name of Python, as Python reads it."""


def _inside(path: str) -> str:
    """Refuse what could lead out of the folder that a path starts from."""
    if not {"", ".", ".."}.isdisjoint(path.split("/")) or "\0" in path or "\\" in path:
        raise ValueError(f"{path!r} is no path within the folder")
    return path


def _folder_name(name: str) -> str:
    if re.fullmatch(r"\w[\w.-]*", name) is None:
        raise ValueError(f"{name!r} can't be the name of a folder: use letters, digits and `_`")
    return name


InnerPath = Annotated[str, AfterValidator(_inside)]
"""A file's path, relative to the folder that it is in; it never leads out of it."""
FolderName = Annotated[str, AfterValidator(_folder_name)]
"""A name that a folder has too."""


class Model(BaseModel):
    """Immutable, and strict about unknown keys, so that a typing error in a manifest is found."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _axes(value: object, ndim: int) -> object:
    """Spread a single number over all axes, and read "?" (TOML has no null) as None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,) * ndim
    if isinstance(value, list | tuple):
        return tuple(None if item == "?" else item for item in value)
    return value


Axes = Annotated[tuple[int, ...], WithJsonSchema({"anyOf": [
    {"type": "integer", "minimum": 1}, {"type": "array", "items": {"type": "integer", "minimum": 1}}]})]  # fmt: skip
OptionalAxes = Annotated[tuple[int | None, ...], WithJsonSchema({"anyOf": [
    {"type": "integer"}, {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"const": "?"}, {"type": "null"}]}},
]})]  # fmt: skip


class ArraySpec(Model):
    """What is known of one array argument; the lists have one item per axis.

    ``shape_constant``/``stride_constant`` hold the value baked in, or None ("?" in TOML) where it is dynamic;
    ``*_divisible_by`` hold known divisors (in elements; bytes for ``base_addr_divisible_by``).
    One number in the place of a list stands for all axes.  Left out: row-major, nothing baked in, no divisor
    known, and strides that aren't negative.
    """

    kind: Literal["array"] = "array"
    dtype: DType
    ndim: int = Field(ge=0, le=8, strict=True)
    index_dtype: Literal["int32", "int64"] = "int32"
    shape_constant: OptionalAxes = ()
    stride_constant: OptionalAxes = ()
    shape_divisible_by: Axes = ()
    stride_divisible_by: Axes = ()
    stride_lower_bound_incl: OptionalAxes = ()
    base_addr_divisible_by: int = Field(default=1, ge=1)
    alias_groups: tuple[str, ...] = ()
    may_alias_internally: bool = False

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: object) -> object:
        """Default and spread every per-axis list."""
        if not isinstance(data, dict) or type(data.get("ndim")) is not int or data["ndim"] < 0:
            return data
        n: int = data["ndim"]
        given = {k: _axes(v, n) if k in _PER_AXIS else v for k, v in data.items() if k not in _PER_AXIS or _said(v)}
        given.setdefault("stride_constant", (None,) * (n - 1) + (1,) * (n > 0))
        constant = given["stride_constant"]
        bounds = tuple(0 if c is None else None for c in constant) if isinstance(constant, tuple) else (0,) * n
        defaults = {"shape_constant": (None,) * n, "shape_divisible_by": (1,) * n, "stride_divisible_by": (1,) * n,
                    "stride_lower_bound_incl": bounds}  # fmt: skip
        return {**defaults, **given}

    @model_validator(mode="after")
    def _lengths(self) -> ArraySpec:
        for name in _PER_AXIS:
            if len(getattr(self, name)) != self.ndim:
                raise ValueError(f"{name} has {len(getattr(self, name))} items for an array of rank {self.ndim}")
        return self


_PER_AXIS = (
    "shape_constant", "stride_constant", "shape_divisible_by", "stride_divisible_by", "stride_lower_bound_incl",
)  # fmt: skip


def _said(value: object) -> bool:
    """Whether a per-axis entry says anything: an empty list or None is the same as leaving it out."""
    return value not in (None, [], ())


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


def _shorthand(value: object) -> object:
    """Read the short forms of a parameter: 2048 or -inf (a constant), "int32" (a scalar), tables without a kind."""
    if isinstance(value, str) and value in DTYPES:
        return {"kind": "scalar", "dtype": value}
    if isinstance(value, bool | int | float | str):
        return {"kind": "constant", "value": value}
    if isinstance(value, dict) and "kind" not in value:
        kind = "array" if "ndim" in value else "list" if "element" in value else "constant" if "value" in value else ""
        return {"kind": kind or "scalar", **value}
    return value


ParamSpec = Annotated[
    Annotated[ArraySpec | ScalarSpec | ConstantSpec | ListSpec, Field(discriminator="kind")],
    BeforeValidator(
        _shorthand, json_schema_input_type=ArraySpec | ScalarSpec | ConstantSpec | ListSpec | bool | int | float | str
    ),
]
"""A parameter; short forms: a bare number or bool is a constant, a dtype's name a run-time scalar."""


class Hints(Model):
    """Launch-time hints that replace the decorator's (None: as the decorator says)."""

    num_ctas: int | None = None
    occupancy: int | str | None = None
    num_worker_warps: int | None = None
    opt_level: int | None = None

    def resolved(self, name: str, target: str) -> int | None:
        """Return a hint for one architecture; text is a ``ByTarget(sm_80=2, default=4)``."""
        value = getattr(self, name)
        if not isinstance(value, str):
            return value if isinstance(value, int) else None
        values = {key: int(number) for key, number in re.findall(r"(\w+)\s*=\s*(\d+)", value)}
        return values.get(target, values.get("default"))


class Specialization(Model):
    """One way to call a kernel: a description of each parameter.

    ``grid`` is one that it was launched with, where that is known; it decides nothing.
    """

    name: str
    params: dict[Name, ParamSpec]
    hints: Hints = Hints()
    target: str | None = None
    grid: tuple[int, ...] | None = None


class KernelManifest(Model):
    """A kernel and the specializations to check it for."""

    name: Name
    specializations: tuple[Specialization, ...] = ()


class OperatorManifest(Model):
    """An operator: one source module and the kernels of it that count.

    Exactly one of ``module`` (an installed module's dotted name, found without importing it)
    and ``path`` (relative to the manifest) says where the source is. ``host_only``: the module has no
    kernels, but launches those of others, or none; its host code is all that is written.
    """

    name: FolderName
    module: str | None = None
    path: str | None = None
    kernels: tuple[KernelManifest, ...] = ()
    host_only: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> OperatorManifest:
        if (self.module is None) == (self.path is None):
            raise ValueError("give exactly one of module and path")
        if self.host_only and self.kernels:
            raise ValueError("an operator with kernels isn't host_only")
        return self


class Corpus(Model):
    """A named list of operators; ``include`` names manifest files relative to this one."""

    name: str
    target: str = "sm_90"
    include: tuple[str, ...] = ()
    operators: tuple[OperatorManifest, ...] = ()
