"""Specializations to check when neither a manifest nor a recording gives any: plausible ones, from the source alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

from transpiler.diagnostics import Diagnostic, Span
from transpiler.frontend.callsites import NO_LAUNCH_HELP, Argument, CallSite, CallSites, Constant, read_call_sites
from transpiler.frontend.params import ParamUse, kernel_params
from transpiler.frontend.program import load_program
from transpiler.inputs import Lookups
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
_MAX_LAUNCHES = 16
_FLAG_KEYWORDS = frozenset({"check_bounds", "allow_tma", "flush_to_zero", "keepdims", "propagate_nan"})


@dataclass(frozen=True)
class Defaults:
    """The specializations of one kernel, what had to be assumed for them, and what was read."""

    specializations: tuple[Specialization, ...]
    diagnostics: tuple[Diagnostic, ...]
    lookups: Lookups = field(default_factory=Lookups, compare=False)


def default_specializations(source: Path, kernel: str, *, display: str | None = None) -> Defaults:
    """Derive specializations of a kernel from its annotations, its body and its launches in the same file.

    Two or three float dtypes with sizes that 16 divides, one with ragged sizes, one for each further launch, and one
    for each value that a constant is compared with or may have; values that no call site states are assumed, which
    is a warning (W0273).
    """
    program = load_program(source, display=display)
    arity = {name: len(program.modules[program.main].functions[name].params) for name in program.kernels}
    sites = read_call_sites(source, arity, display=display)
    return _Deriver(program, kernel, sites).derive()


class _Deriver:
    """The specializations of all launches of a kernel: in full for the first, one for each other."""

    def __init__(self, program: hir.Program, kernel: str, sites: CallSites) -> None:
        module = program.modules[program.main]
        self._file = module.path
        self._kernel = kernel
        self._spans = {param.name: param.span for param in module.functions[kernel].params}
        self._uses = kernel_params(program, kernel)
        self._sites = sites
        self._assumed: set[str] = set()
        self._found: list[Specialization] = []

    def derive(self) -> Defaults:
        """Build the specializations, the plain ones first."""
        sites = [s for s in self._sites.of(self._kernel) if s.arguments and len(s.arguments) == len(self._uses)]
        first = self._launch(sites[0] if sites else None)
        for tag, dtype in _FLOATS:
            self._add(first.specialization(tag, dtype))
        plain = self._found[0]
        self._add(first.specialization("f16_ragged", "float16", ragged=True))
        left_out = self._others(plain, sites[1:])
        for use, value in first.alternatives():
            name = f"f16_{use.name}{_text(value)}"
            self._add(first.specialization(name, "float16", override={use.name: value}))
        diagnostics = (*self._site_warnings(sites), *left_out, *self._assumptions())
        return Defaults(tuple(self._found), diagnostics, self._sites.lookups)

    def _launch(self, site: CallSite | None) -> _Launch:
        arguments = site.arguments if site is not None and site.arguments is not None else ()
        return _Launch(self._uses, arguments, self._assumed)

    def _others(self, plain: Specialization, sites: list[CallSite]) -> list[Diagnostic]:
        """Add one specialization for each further launch that differs; a warning says how many were left out."""
        launches, left_out = [plain.params], []
        for site in sites:
            found = self._launch(site).specialization("", "float16")
            if found.params in launches:
                continue
            launches.append(found.params)
            if len(launches) > _MAX_LAUNCHES:
                left_out.append(site)
            else:
                self._add(found.model_copy(update={"name": _launch_name(plain, found)}))
        if not left_out:
            return []
        message = f"`{self._kernel}` has {len(launches)} different launches: {len(left_out)} of them were left out"
        return [Diagnostic("W0274", message, NO_LAUNCH_HELP, "warning", Span(self._file, left_out[0].line, 1))]

    def _add(self, item: Specialization) -> None:
        """Keep a specialization that isn't there yet, under a name of its own."""
        if any(item.params == other.params for other in self._found):
            return
        names = {other.name for other in self._found}
        name = next(n for n in chain([item.name], (f"{item.name}_{i}" for i in count(2))) if n not in names)
        self._found.append(item.model_copy(update={"name": name}))

    def _site_warnings(self, readable: list[CallSite]) -> Iterator[Diagnostic]:
        """That there is no launch, or that some launches can't be read while others can."""
        unread = {s.line for s in self._sites.of(self._kernel) if s.arguments is None} if readable else set()
        for item in dict.fromkeys(self._sites.diagnostics):
            no_launch = item.code == "W0270" and f"`{self._kernel}`" in item.message
            if no_launch or (item.code == "W0272" and item.span.line in unread):
                yield item

    def _assumptions(self) -> Iterator[Diagnostic]:
        names = [use.name for use in self._uses if use.name in self._assumed]
        if names:
            shown = ", ".join(f"`{name}`" for name in names)
            message = f"what `{self._kernel}` gets for {shown} is not known from this file"
            result = "a value was assumed" if len(names) == 1 else "values were assumed"
            yield Diagnostic("W0273", f"{message}: {result}", NO_LAUNCH_HELP, "warning", self._spans[names[0]])


class _Launch:
    """The specializations of one launch; the names of parameters whose values it has to assume go to ``assumed``."""

    def __init__(self, uses: tuple[ParamUse, ...], arguments: tuple[Argument, ...], assumed: set[str]) -> None:
        self._uses = uses
        self._arguments = dict(zip((use.name for use in uses), arguments, strict=False))
        self._assumed = assumed

    def alternatives(self) -> Iterator[tuple[ParamUse, Constant]]:
        """Values that constants may have or are compared with, and both values of flags, beside those assumed."""
        found = 0
        for use in self._uses:
            if use.role != "constant" or self._argument(use).value is not None:
                continue
            values: list[Constant] = [True] if self._is_flag(use) else []
            values += [_converted(value, use.kind) for value in self._argument(use).choices]
            values += sorted(use.compared_with, key=lambda v: (isinstance(v, str), v))
            for value in dict.fromkeys(v for v in values if v != self._constant(use, ragged=False)):
                found += 1
                if found <= _MAX_VARIANTS:
                    yield use, value

    def specialization(self, name: str, dtype: str, *, ragged: bool = False,
                       override: dict[str, Constant] | None = None) -> Specialization:  # fmt: skip
        """Make one specialization; ``override`` gives constants other values than the launch does."""
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
        if role == "scalar" and use.kind == "unknown" and argument.kind == "tensor":
            role = "array"
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
            self._assumed.add(use.name)
        elif argument.rank is not None and not use.ranks and argument.rank >= use.min_rank:
            rank = argument.rank
        own = self._array_dtype(use, argument, dtype)
        stride = _BYTES // _item_size(own)
        return ArraySpec(
            dtype=own, ndim=rank, shape_divisible_by=(1 if ragged else 16,) * rank,
            stride_divisible_by=(1 if ragged else stride,) * (rank - 1) + (1,), base_addr_divisible_by=_BYTES,
        )  # fmt: skip

    def _array_dtype(self, use: ParamUse, argument: Argument, dtype: str, seen: tuple[str, ...] = ()) -> str:
        """What the host code or the kernel demands, else what its name suggests, else ``dtype``."""
        if argument.dtype is not None and argument.dtype in _SIZES:
            return argument.dtype
        if use.multiplied_as:
            return use.multiplied_as
        if use.stored_as:
            return max(use.stored_as, key=lambda name: (name.startswith(("float", "bfloat")), _item_size(name)))
        if use.holds_indices or use.has_bits:
            return "int32"
        for other in self._alike(use, argument):
            if other.name not in seen:
                return self._array_dtype(other, self._argument(other), dtype, (*seen, use.name))
        words = use.name.lower().strip("_").split("_")
        return "int32" if any(word in _INTEGER_WORDS for word in words) else dtype

    def _alike(self, use: ParamUse, argument: Argument) -> Iterator[ParamUse]:
        """Arrays with the same dtype: that it was made like, or whose items are stored into it."""
        for other in self._uses:
            made_like = argument.like != "" and self._argument(other).text == argument.like
            if other is not use and other.role == "array" and (made_like or other.name in use.stored_from):
                yield other

    def _is_flag(self, use: ParamUse) -> bool:
        if use.keywords & _FLAG_KEYWORDS:
            return True
        return use.kind == "bool" or (use.kind == "unknown" and self._argument(use).kind == "bool")

    def _constant(self, use: ParamUse, ragged: bool) -> Constant:
        """The value that the call site states, or a plausible one."""
        argument = self._argument(use)
        if argument.value is not None:
            return _converted(argument.value, use.kind)
        if argument.kind == "unknown" or (argument.choices and not argument.complete):
            self._assumed.add(use.name)
        if argument.choices:
            return _converted(argument.choices[0], use.kind)
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
            return min(use.compared_with, key=lambda v: (isinstance(v, str), v))
        return _RAGGED if ragged else _ALIGNED


_SIZES = {
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int16": 2, "int32": 4,
    "uint32": 4, "int64": 8, "uint64": 8, "bool_": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


def _item_size(dtype: str) -> int:
    return _SIZES[dtype]


def _converted(value: Constant, kind: str) -> Constant:
    if kind == "float" and not isinstance(value, str):
        return float(value)
    return bool(value) if kind == "bool" else value


def _text(value: Constant | str | None) -> str:
    return "" if value is True else str(value).replace("-", "m").replace(".", "p").replace("+", "")


def _launch_name(plain: Specialization, found: Specialization) -> str:
    """Name a launch after the constants that the first launch has other values for."""
    parts = ["f16"]
    for name, param in found.params.items():
        if isinstance(param, ConstantSpec) and param != plain.params[name]:
            parts.append(f"{name}{_text(param.value)}")
    return "_".join(parts)
