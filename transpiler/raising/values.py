"""Values while lifting: which TIR value each value of Tile IR is, and what the flat parameters are.

An array arrives as a pointer, its sizes and its strides.  cutile makes the same of ``&Tensor``, so that a flat
parameter is no value here until an operation reads it: the tensor view of an array is the parameter itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from transpiler.diagnostics import NO_SPAN, Span
from transpiler.ir.symbolic import lit
from transpiler.ir.tir import ArrayUse, Block, Op, Value
from transpiler.ir.types import I32, DType, PtrTy, TensorTy, TileTy, Type
from transpiler.raising.refusal import refused
from transpiler.spec import ArraySpec, ListSpec, ScalarSpec, Specialization


@dataclass(frozen=True)
class Flat:
    """One flat parameter: what it is of which Python parameter."""

    kind: Literal["base", "dim", "stride", "scalar"]
    name: str
    axis: int = 0


def flat_parameters(order: Sequence[str], spec: Specialization) -> list[Flat]:
    """The reference's parameters in its calling convention; a list of arrays is a table's pointer and length."""
    out: list[Flat] = []
    for name in order:
        match spec.params[name]:
            case ArraySpec(ndim=rank):
                out.append(Flat("base", name))
                out += [Flat("dim", name, axis) for axis in range(rank)]
                out += [Flat("stride", name, axis) for axis in range(rank)]
            case ListSpec():
                out += [Flat("base", name), Flat("dim", name)]
            case ScalarSpec():
                out.append(Flat("scalar", name))
    return out


class Values:
    """What is known of each value of an entry; parameters that are read become operations of ``head``."""

    def __init__(
        self, params: tuple[int, ...], order: Sequence[str], spec: Specialization, arrays: dict[str, ArrayUse]
    ) -> None:
        flat = flat_parameters(order, spec)
        if len(flat) != len(params):
            message = (
                f"the reference's entry has {len(params)} flat parameters, the specialization describes {len(flat)}"
            )
            raise refused(message)
        for name, p in spec.params.items():
            described = p.element if isinstance(p, ListSpec) else p
            if isinstance(described, ArraySpec) and described.index_dtype != "int32":
                raise refused(f"`{name}` counts in {described.index_dtype}; cutile 0.5 counts in i32 in its tensors")
        self.spec, self.arrays = spec, arrays
        self.roles: dict[int, Flat] = dict(zip(params, flat, strict=True))
        self.head = Block()
        self._known: dict[int, Value] = {}
        self._read: dict[Flat, Value] = {}
        self.tensors = {name: self._tensor(use) for name, use in arrays.items()}

    def _tensor(self, use: ArrayUse) -> Value:
        v = self._emit("tensor", (), TensorTy(use.dtype, use.rank), name=use.name)
        v.hint = use.name
        return v

    def _emit(self, opcode: str, operands: tuple[Value, ...], ty: Type, **attrs: object) -> Value:
        op = Op(opcode, operands, dict(attrs))
        op.results = (Value(ty, op=op),)
        self.head.ops.append(op)
        return op.result

    def __getitem__(self, index: int) -> Value:
        """The TIR value; a flat parameter is read when it is first asked for."""
        if index in self._known:
            return self._known[index]
        flat = self.roles.get(index)
        if flat is None:
            raise refused("a value is used that no operation before it made")
        if flat not in self._read:
            self._read[flat] = self._parameter(flat)
        return self._read[flat]

    def __setitem__(self, index: int, value: Value) -> None:
        self._known[index] = value

    def role(self, index: int) -> Flat | None:
        """Which flat parameter a value is, None when it is computed."""
        return None if index in self._known else self.roles.get(index)

    def _parameter(self, flat: Flat) -> Value:
        if flat.kind == "scalar":
            p = self.spec.params[flat.name]
            assert isinstance(p, ScalarSpec)
            v = self._emit("scalar", (), TileTy(DType(p.dtype)), name=flat.name)
            v.hint = flat.name
            return v
        tensor, use = self.tensors[flat.name], self.arrays[flat.name]
        if flat.kind == "base":
            return self._emit("base", (tensor,), PtrTy(use.dtype), array=flat.name)
        static = self.static(flat)
        if static is not None:
            return self._emit("constant", (), TileTy(I32), value=static, sym=lit(static))
        return self._emit(flat.kind, (tensor,), TileTy(I32), axis=flat.axis)

    def static(self, flat: Flat) -> int | None:
        """The value that is baked in for a size or stride."""
        use = self.arrays[flat.name]
        return (use.dims if flat.kind == "dim" else use.strides)[flat.axis]

    def states(self, flat: Flat, assumption: str) -> bool:
        """Whether ours states an assumption on a parameter of an array by itself, from the same specialization."""
        p = self.spec.params[flat.name]
        if isinstance(p, ListSpec):
            return True
        if not isinstance(p, ArraySpec):
            return False
        if assumption.startswith("bounded<0,"):
            return flat.kind != "base"
        known = {"base": (p.base_addr_divisible_by,), "dim": p.shape_divisible_by, "stride": p.stride_divisible_by}
        divisor = assumption.removeprefix("div_by<").rstrip(">")
        return divisor.isdecimal() and known[flat.kind][flat.axis] % int(divisor) == 0


def literal(block: Block, value: int, dtype: DType, span: Span = NO_SPAN) -> Value:
    """Append an integer constant of rank 0."""
    op = Op("constant", (), {"value": value, "sym": lit(value)}, span=span)
    op.results = (Value(TileTy(dtype), op=op),)
    block.ops.append(op)
    return op.result
