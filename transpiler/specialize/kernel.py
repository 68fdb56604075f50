"""Specialization: one kernel and one description of its arguments -> a residual TIR program."""

from __future__ import annotations

import math
from typing import Any

from transpiler.diagnostics import error
from transpiler.ir import hir
from transpiler.ir import symbolic as sy
from transpiler.ir.construct import Filler, Fragments
from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import ArrayUse, Condition, Kernel, Op, Value, walk
from transpiler.ir.types import GENERIC_CLASS, I64, DType, TensorTy, TileTy
from transpiler.rules.registry import Table
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ParamSpec, ScalarSpec, Specialization
from transpiler.specialize.control import NeedsLoopError, run_function
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import ArrayVal, Const, HoleError, HoleVal, ListVal, TupleVal, Val

_FLOAT_TEXT = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_KERNEL_DECORATOR = "cuda.tile.kernel"
_ENCLOSING = "E0231"  # a variable of an enclosing function


def specialize(
    program: hir.Program, name: str, spec: Specialization, table: Table, fragments: Fragments | None = None,
    filler: Filler | None = None,
) -> Kernel:  # fmt: skip
    """Partially evaluate kernel ``name`` of ``program`` for ``spec``; with a ``filler`` nothing of it stays generic.

    Unmapped constructs become ``hole`` operations and ``Kernel.holes``, those that ``fragments`` has Rust for
    ``rust`` operations and ``Kernel.filled``.  Raises TranspileError
    (E0201 unknown kernel, E0212 wrong specialization, E04xx the program is ill-typed).
    """
    function = program.modules[program.main].functions.get(name)
    if function is None:
        known = ", ".join(program.kernels)
        raise error("E0201", f"there is no kernel `{name}`", help=f"the kernels are: {known}")
    _check_parameters(function, spec)
    once: frozenset[tuple[str, str]] = frozenset()
    while True:
        ev = Evaluator(program, table, fragments or {})
        ev.span, ev.once, ev.filler = function.span, once, filler
        env = _bind(ev, function, spec)
        try:
            run_function(ev, function, env)
        except NeedsLoopError as found:
            once |= {found.function}
            continue
        ev.block.ops.append(
            Op("return", span=function.span, comments=tuple(c for c in ev.pending_comments if c.site is None))
        )
        return _finish(ev, function, spec)


def _check_parameters(function: hir.Function, spec: Specialization) -> None:
    names = [p.name for p in function.params]
    missing = [n for n in names if n not in spec.params]
    extra = [n for n in spec.params if n not in names]
    if missing or extra:
        parts = [f"misses {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(extra)}"] * bool(extra)
        raise error(
            "E0212", f"specialization `{spec.name}` of `{function.name}` {' and '.join(parts)}", function.span,
            help=f"the parameters are: {', '.join(names)}",
        )  # fmt: skip


def _bind(ev: Evaluator, function: hir.Function, spec: Specialization) -> dict[str, Val]:
    env: dict[str, Val] = {}
    ev.int_params = frozenset(n for n, p in spec.params.items() if isinstance(p, ConstantSpec) and type(p.value) is int)
    for p in function.params:
        ev.span = p.span
        try:
            env[p.name] = _argument(ev, p, spec.params[p.name])
        except HoleError as hole:
            ev.record_hole(hole)
            env[p.name] = HoleVal()
    return env


def _argument(ev: Evaluator, param: hir.Param, p: ParamSpec) -> Val:
    name = param.name
    match p:
        case ArraySpec():
            return _array(ev, name, p, _compile_time_axes(ev, param, p))
        case ScalarSpec():
            return _named(ev.emit("scalar", (), (TileTy(DType(p.dtype)),), name=name), name)
        case ConstantSpec():
            value = _FLOAT_TEXT.get(p.value, p.value) if isinstance(p.value, str) else p.value
            return Const(value, sy.param(name) if ev.filler is None else sy.lit(value))
        case _:
            return _list(ev, name, p)


def _named(op: Op, name: str) -> Value:
    op.result.hint = name
    return op.result


def _compile_time_axes(ev: Evaluator, param: hir.Param, p: ArraySpec) -> frozenset[tuple[str, int]]:
    """The sizes and strides that ``ArrayAnnotation(static_shape_dims=.., static_stride_dims=..)`` makes constants."""
    annotation = param.annotation
    found = set()
    for e in _metadata_of(annotation) if annotation is not None else ():
        if not (isinstance(e, hir.Call) and e.func == hir.External("cuda.tile.ArrayAnnotation")):
            continue
        for key, axes in e.kwargs:
            what = {"static_shape_dims": "dim", "static_stride_dims": "stride"}.get(key)
            value = ev.eval(axes, {}) if what is not None else None
            items = value.items if isinstance(value, TupleVal) else ()
            found |= {(what or "", int(ev.decided(i, key)) % max(1, p.ndim)) for i in items}
    for what, axis in sorted(found):
        if (p.shape_constant if what == "dim" else p.stride_constant)[axis] is None:
            ev.refuse(f"`{param.name}`: the {what} of axis {axis} is annotated as static, but has no constant value",
                      "state it in the specialization")  # fmt: skip
    return frozenset(found)


def _metadata_of(annotation: hir.Expr) -> tuple[hir.Expr, ...]:
    """What ``Annotated[type, metadata..]`` holds beside the type."""
    if not isinstance(annotation, hir.Call) or annotation.func != hir.External("operator.getitem"):
        return ()
    of, key = annotation.args
    name = of.name.rpartition(".")[2] if isinstance(of, hir.External) else ""
    return key.items[1:] if name == "Annotated" and isinstance(key, hir.Tuple_) else ()


def _array(ev: Evaluator, name: str, p: ArraySpec, compile_time: frozenset[tuple[str, int]]) -> ArrayVal:
    if p.index_dtype != "int32":
        ev.hole("E0304", f"`{name}` is indexed with {p.index_dtype}, which isn't built yet")
    generic = p.dtype in GENERIC_CLASS
    dtype = DType(p.dtype, name if generic else None)
    if not generic:
        ev.decide_equal(Sym("dtype", (name,)), sy.lit(p.dtype), True)
    elif ev.filler is not None:
        dtype = ev.fix(dtype)
    tensor = _named(ev.emit("tensor", (), (TensorTy(dtype, p.ndim),), name=name), name)
    return ArrayVal(tensor, dtype, p.ndim, name, p.shape_constant, p.stride_constant, may_alias=p.may_alias_internally,
                    compile_time=compile_time)  # fmt: skip


def _list(ev: Evaluator, name: str, p: ListSpec) -> ListVal:
    """A list of arrays arrives as a table of i64 words, one row an array."""
    e = p.element
    if e.index_dtype != "int32":
        ev.hole("E0304", f"`{name}` is indexed with {e.index_dtype}, which isn't built yet")
    generic = e.dtype in GENERIC_CLASS
    dtype = DType(e.dtype, name if generic else None)
    if not generic:
        ev.decide_equal(Sym("dtype", (name,)), sy.lit(e.dtype), True)
    elif ev.filler is not None:
        dtype = ev.fix(dtype)
    table = _named(ev.emit("tensor", (), (TensorTy(I64, 2),), name=name), name)
    return ListVal(table, dtype, e.ndim, name, e.shape_constant, e.stride_constant, e.may_alias_internally)


def _table_use(name: str, p: ListSpec, used: bool, element: DType) -> ArrayUse:
    words = 1 + 2 * p.element.ndim
    return ArrayUse(name, I64, 2, (None, words), (words, 1), True, used, items=(element, p.element.ndim))


def _finish(ev: Evaluator, function: hir.Function, spec: Specialization) -> Kernel:
    used = {v for op in walk(ev.block) for v in op.operands}
    viewed = {op.operands[0] for op in walk(ev.block) if op.opcode == "view"}
    tensors = {op.attrs["name"]: op.result for op in ev.block.ops if op.opcode == "tensor"}
    arrays, classes = {}, {}
    for name, p in spec.params.items():
        if isinstance(p, ListSpec) and name in tensors:
            d = ev.resolve(DType(p.element.dtype, name if p.element.dtype in GENERIC_CLASS else None))
            arrays[name] = _table_use(name, p, tensors[name] in used, d)
            classes[name] = d.of or ""
        if not isinstance(p, ArraySpec) or name not in tensors:
            continue
        d = ev.resolve(DType(p.dtype, name if p.dtype in GENERIC_CLASS else None))
        classes[name] = d.of or ""
        arrays[name] = ArrayUse(
            name,
            d,
            p.ndim,
            p.shape_constant,
            p.stride_constant,
            _reads(ev, name),
            tensors[name] in used,
            tensors[name] in viewed,
            reads_strides=(name, "stride") in ev.metadata,
        )
    _resolve_types(ev)
    return Kernel(
        name=function.name,
        span=function.span,
        params=tuple(p.name for p in function.params),
        arrays=arrays,
        scalars={n: DType(p.dtype) for n, p in spec.params.items() if isinstance(p, ScalarSpec)},
        constants={n: p.value for n, p in spec.params.items() if isinstance(p, ConstantSpec)},
        body=ev.block,
        conditions=_conditions(ev, spec, arrays),
        hints=decorator_hints(ev, function),
        dtype_class=classes,
        holes=tuple(ev.holes),
        sites=tuple(ev.hole_sites),
        filled=tuple(ev.filled),
        docstring=function.docstring,
        comments=function.comments,
        helper_returns=ev.helper_returns,
        helper_args=ev.helper_args,
        const_names=ev.const_names,
        param_comments={p.name: p.comment for p in function.params if p.comment},
        helper_docs=ev.helper_docs,
        aliases={n: p.alias_groups for n, p in spec.params.items() if isinstance(p, (ArraySpec, ListSpec))},
        trace=ev.trace,
    )


def _reads(ev: Evaluator, array: str) -> bool:
    return (array, "dim") in ev.metadata or (array, "stride") in ev.metadata


def _conditions(ev: Evaluator, spec: Specialization, arrays: dict[str, ArrayUse]) -> tuple[Condition, ...]:
    """The decisions taken, and the static sizes and strides that the text relies on."""
    out = list(ev.conditions.values())
    for a in arrays.values():
        if a.metadata and not isinstance(spec.params[a.name], ListSpec):
            out += [Condition(Sym("dim", (a.name, i)), d) for i, d in enumerate(a.dims) if d is not None]
        if (a.name, "stride") in ev.metadata:
            out += [Condition(Sym("stride", (a.name, i)), s) for i, s in enumerate(a.strides) if s is not None]
    return tuple(out)


def _resolve_types(ev: Evaluator) -> None:
    """Give every value the dtype that unification ended with."""
    import dataclasses

    def resolved(v: Value) -> None:
        d = getattr(v.ty, "dtype", None)
        if d is not None and d.of is not None and (r := ev.resolve(d)) != d:
            v.ty = dataclasses.replace(v.ty, dtype=r)  # type: ignore[arg-type]

    for op in walk(ev.block):
        for v in op.results:
            resolved(v)
        for region in op.regions:
            for v in region.params:
                resolved(v)


def decorator_hints(ev: Evaluator, function: hir.Function) -> dict[str, Any]:
    """The hints of ``@ct.kernel(...)``: name -> int, or {target or "default": int} for ByTarget."""
    hints: dict[str, Any] = {}
    for d in function.decorators:
        if isinstance(d, hir.Call) and isinstance(d.func, hir.External) and d.func.name == _KERNEL_DECORATOR:
            for key, e in d.kwargs:
                value = _hint_value(ev, e)
                if value is not None:
                    hints[key] = value
    return hints


def _hint_value(ev: Evaluator, e: hir.Expr) -> Any:
    if isinstance(e, hir.Call) and isinstance(e.func, hir.External) and e.func.name == "cuda.tile.ByTarget":
        return {k: v for k, a in e.kwargs if (v := _hint_value(ev, a)) is not None}
    if isinstance(e, hir.Unsupported) and e.code == _ENCLOSING:
        return None  # an argument of the function that makes the kernel: each specialization states the hint
    try:
        v = ev.eval(e, {})
    except HoleError as hole:
        ev.record_hole(hole)
        return None
    return v.value if isinstance(v, Const) else None


__all__ = ["decorator_hints", "specialize"]
