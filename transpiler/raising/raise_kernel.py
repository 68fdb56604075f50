"""One kernel for one specialization: the reference's Tile IR to a residual program like that of the specializer."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from transpiler.diagnostics import NO_SPAN, Span
from transpiler.ir import hir
from transpiler.ir.symbolic import Sym, lit
from transpiler.ir.tir import ArrayUse, Condition, Kernel, Value, walk
from transpiler.ir.types import I64, DType
from transpiler.passes.dce import eliminate_dead_code
from transpiler.raising.lift import Lifter, Names
from transpiler.raising.regions import body
from transpiler.raising.values import Values
from transpiler.reference.closure import Closure
from transpiler.rules import table
from transpiler.spec import ArraySpec, ConstantSpec, ListSpec, ScalarSpec, Specialization
from transpiler.specialize.conditions import leaf_values
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.kernel import decorator_hints
from transpiler.tileir.model import Entry


@dataclass(frozen=True)
class About:
    """What the source says of a kernel beside its operations."""

    name: str
    params: tuple[str, ...]
    hints: dict[str, Any] = field(default_factory=dict)
    span: Span = NO_SPAN
    docstring: str = ""
    comments: tuple[str, ...] = ()
    names: Names = field(default_factory=dict)

    @staticmethod
    def of(kernel: Kernel, names: Names) -> About:
        """What is known of a kernel that was specialized, if with Holes."""
        return About(kernel.name, kernel.params, kernel.hints, kernel.span, kernel.docstring, kernel.comments, names)

    @staticmethod
    def read(program: hir.Program, kernel: str, names: Names) -> About:
        """What the source says of a kernel that wasn't specialized: also where it can't be."""
        function = program.modules[program.main].functions[kernel]
        hints = decorator_hints(Evaluator(program, table(), {}), function)
        params = tuple(p.name for p in function.params)
        return About(kernel, params, hints, function.span, function.docstring, function.comments, names)


def raise_kernel(entry: Entry, about: About, spec: Specialization, target: str) -> Kernel:
    """Lift the reference's entry for one specialization; E0610 where cutile 0.5 has no form for an operation."""
    arrays = _arrays(spec)
    values = Values(entry.params, about.params, spec, arrays)
    low = Lifter(entry, values, target, about.names)
    lifted = body(low, entry.body)
    lifted.ops[:0] = values.head.ops
    kernel = Kernel(
        name=about.name,
        span=about.span,
        params=about.params,
        arrays=arrays,
        scalars={n: DType(p.dtype) for n, p in spec.params.items() if isinstance(p, ScalarSpec)},
        constants={n: p.value for n, p in spec.params.items() if isinstance(p, ConstantSpec)},
        body=lifted,
        conditions=tuple(exact_conditions(spec, divisors=bool(low.stated))),
        hints=about.hints,
        dtype_class=dict.fromkeys(arrays, ""),
        docstring=about.docstring,
        comments=about.comments,
        aliases={n: p.alias_groups for n, p in spec.params.items() if isinstance(p, ArraySpec | ListSpec)},
    )
    eliminate_dead_code(kernel)
    _note_uses(kernel)
    return kernel


def _arrays(spec: Specialization) -> dict[str, ArrayUse]:
    out = {}
    for name, p in spec.params.items():
        if isinstance(p, ArraySpec):
            use = ArrayUse(name, DType(p.dtype), p.ndim, p.shape_constant, p.stride_constant, True, True)
            out[name] = replace(use, reads_strides=True)
        elif isinstance(p, ListSpec):
            words = 1 + 2 * p.element.ndim
            item = DType(p.element.dtype), p.element.ndim
            out[name] = ArrayUse(name, I64, 2, (None, words), (words, 1), True, True, items=item)
    return out


def _note_uses(kernel: Kernel) -> None:
    """Say of each array whether it is used and viewed; its type is written out in any case."""
    used: set[Value] = {v for op in walk(kernel.body) for v in op.operands}
    viewed = {op.operands[0] for op in walk(kernel.body) if op.opcode == "view"}
    tensors: dict[str, Value] = {op.attrs["name"]: op.result for op in kernel.body.ops if op.opcode == "tensor"}
    for name, use in kernel.arrays.items():
        v = tensors.get(name)
        kernel.arrays[name] = replace(use, used=v in used, viewed=v in viewed)


def exact_conditions(spec: Specialization, *, divisors: bool) -> Iterable[Condition]:
    """That a launch is this specialization: dtypes, ranks, constants, what is baked in, and the divisors relied on."""
    for leaf, value in leaf_values(spec).items():
        op, *args = leaf
        if op in ("param", "dtype", "rank", "dim", "stride", "overlaps") and value == value:
            yield Condition(Sym(op, tuple(args)), value)
            if op == "param" and value in (0, 1) and isinstance(value, int):
                yield Condition(Sym("is_bool", (Sym(op, tuple(args)),)), isinstance(value, bool))
        elif op == "div" and divisors and (known := value & -value) > 1:
            yield Condition(Sym("ge", (Sym("div", tuple(args)), lit(known))), True)


def author_names(sources: Iterable[tuple[str, int, str]]) -> Names:
    """Where the author assigns an expression to a variable; of each source its path, first line and text."""
    names: Names = {}
    for path, first, text in sources:
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                names[path, node.value.lineno + first - 1, node.value.col_offset] = node.targets[0].id
    return names


def closure_names(closure: Closure) -> Names:
    """The author's names in a kernel's closure."""
    return author_names((m.display, s.line, s.text) for m in closure.modules for s in m.segments)


__all__ = ["About", "author_names", "closure_names", "exact_conditions", "raise_kernel"]
