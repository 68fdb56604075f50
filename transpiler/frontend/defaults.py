"""Specializations to check when neither a manifest nor a recording gives any: plausible ones, from the source alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transpiler.diagnostics import Diagnostic, Span
from transpiler.frontend.callsites import Argument, CallSites, read_call_sites
from transpiler.frontend.params import ParamUse, kernel_params
from transpiler.frontend.program import load_program
from transpiler.ir import hir
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ParamSpec, ScalarSpec, Specialization

_FLOATS = (("f16", "float16"), ("bf16", "bfloat16"), ("f32", "float32"))
_INTEGER_WORDS = ("idx", "index", "indices", "ids", "offset", "offsets", "lens", "seqlens", "mask")
_TILE_WORDS = ("tile", "block", "pow2", "chunk")
_ALIGNED, _RAGGED = 1024, 1000
_TILE = 64
_BYTES = 16
_LATENCY = 2
_MAX_VARIANTS = 4
_FLAG_KEYWORDS = frozenset({"check_bounds", "allow_tma", "flush_to_zero", "keepdims", "propagate_nan"})


@dataclass(frozen=True)
class Defaults:
    """The specializations of one kernel, and what had to be assumed for them."""

    specializations: tuple[Specialization, ...]
    diagnostics: tuple[Diagnostic, ...]


def default_specializations(source: Path, kernel: str, *, display: str | None = None) -> Defaults:
    """Derive specializations of a kernel from its annotations, its body and its launches in the same file.

    Two or three float dtypes with sizes that 16 divides, one with ragged sizes, and one for each value that a
    constant is compared with; sizes and flags that no call site states are assumed, which is a warning (W0273).
    """
    program = load_program(source, display=display)
    arity = {name: len(program.modules[program.main].functions[name].params) for name in program.kernels}
    sites = read_call_sites(source, arity, display=display)
    return _Deriver(program, kernel, sites).derive()


class _Deriver:
    def __init__(self, program: hir.Program, kernel: str, sites: CallSites) -> None:
        self._file = program.modules[program.main].path
        self._kernel = kernel
        self._uses = kernel_params(program, kernel)
        site = next((s for s in sites.of(kernel) if s.arguments and len(s.arguments) == len(self._uses)), None)
        arguments = site.arguments if site is not None and site.arguments is not None else ()
        self._arguments = dict(zip((use.name for use in self._uses), arguments, strict=False))
        self._assumed: dict[str, int] = {}
        self._diagnostics = [d for d in sites.diagnostics if d.code == "W0270" and f"`{kernel}`" in d.message]

    def derive(self) -> Defaults:
        """Build the specializations, the plain ones first."""
        found = [self._one(tag, dtype, ragged=False) for tag, dtype in _FLOATS]
        found.append(self._one("f16_ragged", "float16", ragged=True))
        for use, value in self._alternatives():
            found.append(
                self._one(f"f16_{use.name}{_text(value)}", "float16", ragged=False, override={use.name: value})
            )
        unique: list[Specialization] = []
        for item in found:
            if all(item.params != other.params for other in unique):
                unique.append(item)
        for name, line in self._assumed.items():
            span = Span(self._file, line, 1)
            self._diagnostics.append(Diagnostic(
                "W0273", f"what `{self._kernel}` gets for `{name}` is not known from this file: a value was assumed",
                "give a SPEC.toml, or record real launches with `transpile record`", "warning", span))  # fmt: skip
        return Defaults(tuple(unique), tuple(self._diagnostics))

    def _alternatives(self) -> Iterator[tuple[ParamUse, bool | int]]:
        """Values that constants are compared with, and both values of flags, beside the ones assumed already."""
        count = 0
        for use in self._uses:
            if use.role != "constant" or self._argument(use).value is not None:
                continue
            values: list[bool | int] = [True] if self._is_flag(use) else []
            values += [v for v in sorted(use.compared_with) if v != self._constant(use, ragged=False)]
            for value in values:
                count += 1
                if count <= _MAX_VARIANTS:
                    yield use, value

    def _one(self, name: str, dtype: str, *, ragged: bool, override: dict[str, bool | int] | None = None
             ) -> Specialization:  # fmt: skip
        params: dict[str, ParamSpec] = {}
        for use in self._uses:
            if override and use.name in override:
                params[use.name] = ConstantSpec(value=override[use.name])
            else:
                params[use.name] = self._param(use, dtype, ragged)
        return Specialization(name=name, params=params)

    def _argument(self, use: ParamUse) -> Argument:
        return self._arguments.get(use.name, Argument("", use.line))

    def _param(self, use: ParamUse, dtype: str, ragged: bool) -> ParamSpec:
        argument = self._argument(use)
        role = use.role
        if role == "unknown":
            role = "scalar" if argument.kind in ("int", "float", "bool") else "array"
        if role == "constant":
            return ConstantSpec(value=self._constant(use, ragged))
        if role == "scalar":
            return ScalarSpec(dtype=self._scalar_dtype(use, argument))
        array = self._array(use, argument, dtype, ragged)
        return ListSpec(element=array) if role == "list" else array

    def _scalar_dtype(self, use: ParamUse, argument: Argument) -> str:
        kind = use.kind if use.kind != "unknown" else argument.kind
        return {"float": "float32", "bool": "bool_"}.get(kind, "int32")

    def _array(self, use: ParamUse, argument: Argument, dtype: str, ragged: bool) -> ArraySpec:
        rank = use.rank or argument.rank
        if rank is None:
            rank = 1
            self._assumed[use.name] = use.line
        elif argument.rank is not None and not use.ranks and argument.rank >= use.min_rank:
            rank = argument.rank
        own = self._array_dtype(use, argument, dtype)
        stride = _BYTES // _item_size(own)
        return ArraySpec(
            dtype=own, ndim=rank, shape_divisible_by=(1 if ragged else 16,) * rank,
            stride_divisible_by=(1 if ragged else stride,) * (rank - 1) + (1,), base_addr_divisible_by=_BYTES,
        )  # fmt: skip

    def _array_dtype(self, use: ParamUse, argument: Argument, dtype: str) -> str:
        if argument.dtype is not None and argument.dtype in _SIZES:
            return argument.dtype
        if use.stored_as:
            return max(use.stored_as)
        words = use.name.lower().strip("_").split("_")
        return "int32" if use.holds_indices or any(word in _INTEGER_WORDS for word in words) else dtype

    def _is_flag(self, use: ParamUse) -> bool:
        if use.keywords & _FLAG_KEYWORDS:
            return True
        return use.kind == "bool" or (use.kind == "unknown" and self._argument(use).kind == "bool")

    def _constant(self, use: ParamUse, ragged: bool) -> bool | int | float:
        """The value that the call site states, or a plausible one."""
        argument = self._argument(use)
        if argument.value is not None:
            return _converted(argument.value, use.kind)
        if argument.kind == "unknown" or use.kind == "bool":
            self._assumed[use.name] = use.line
        if self._is_flag(use):
            return False
        if use.kind == "float" or (use.kind == "unknown" and argument.kind == "float"):
            return 0.5
        if "latency" in use.keywords:
            return _LATENCY
        words = use.name.lower()
        if use.sizes_tile or argument.power_of_two or any(word in words for word in _TILE_WORDS):
            return _TILE
        if use.compared_with:
            return min(use.compared_with)
        return _RAGGED if ragged else _ALIGNED


_SIZES = {
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int16": 2, "int32": 4,
    "uint32": 4, "int64": 8, "uint64": 8, "bool_": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


def _item_size(dtype: str) -> int:
    return _SIZES[dtype]


def _converted(value: bool | int | float, kind: str) -> bool | int | float:
    if kind == "float":
        return float(value)
    return bool(value) if kind == "bool" else value


def _text(value: bool | int) -> str:
    return "" if value is True else str(value)
