"""Partial evaluation of one kernel: constants, types and branches in one pass.

Expressions here; statements and control flow are in :mod:`transpiler.specialize.control`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from transpiler.diagnostics import Diagnostic, Span, TranspileError
from transpiler.ir import hir
from transpiler.ir import symbolic as sy
from transpiler.ir.construct import Construct, FilledSite, Filler, Fragments, HoleSite
from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import CallSite, Docs, Op, Value
from transpiler.ir.trace import RuleTrace
from transpiler.ir.types import BOOL, DTYPE_TABLE, DType, PtrTy, TileTy
from transpiler.rules import registry
from transpiler.specialize.blocks import assigned
from transpiler.specialize.builder import Builder
from transpiler.specialize.inline import unmapped
from transpiler.specialize.values import (
    ArrayVal,
    BoundMethod,
    Const,
    DTypeVal,
    Func,
    HoleError,
    HoleVal,
    Ref,
    SliceVal,
    TiledViewVal,
    TupleVal,
    Undefined,
    Unmapped,
    Val,
    const,
    describe,
)

Env = dict[str, Val]
MAX_CALL_DEPTH = 32
_EXTERNAL_CONSTANTS: dict[str, Any] = {
    "math.inf": math.inf, "math.pi": math.pi, "math.e": math.e, "math.nan": math.nan, "math.tau": math.tau,
    "numpy.inf": math.inf, "numpy.nan": math.nan, "numpy.pi": math.pi, "numpy.e": math.e, "numpy.newaxis": None,
    "torch.inf": math.inf, "torch.pi": math.pi,
    "builtins.True": True, "builtins.False": False, "builtins.None": None, "builtins.Ellipsis": ...,
}  # fmt: skip
_DTYPE_ALIASES = {
    "bool": "bool_", "half": "float16", "float": "float32", "double": "float64", "int": "int32", "long": "int64",
    "float8_e8m0fnu": "float8_e8m0fnu",
}  # fmt: skip


def external_dtype(name: str) -> DType | None:
    """The dtype that ``cuda.tile.float32``, ``torch.float32`` or ``numpy.int32`` names."""
    module, _, leaf = name.rpartition(".")
    if module == "cuda.tile":
        return DType(leaf) if leaf in DTYPE_TABLE else None
    if module in ("torch", "numpy"):
        leaf = _DTYPE_ALIASES.get(leaf, leaf) if module == "torch" else {"bool": "bool_"}.get(leaf, leaf)
        return DType(leaf) if leaf in DTYPE_TABLE else None
    return None


_PYTHON = frozenset({"cuda.tile.static_eval"})
"""Functions whose argument is any Python, not that of kernels: what of it has no mapping says nothing."""

Reads = dict[tuple[int, str, int], tuple[Val, Span]]
"""What names of a function were read as, and where first; by its depth, the name and the value's identity."""


class Evaluator(Builder):
    """State of one specialization: the builder, the program, the scopes and the Holes met."""

    def __init__(self, program: hir.Program, table: registry.Table, fragments: Fragments) -> None:
        super().__init__()
        self.program = program
        self.table = table
        self.fragments = fragments
        self.filler: Filler | None = None
        """Fills calls from the reference's Tile IR: then nothing is generic, as that is for one specialization."""
        self.holes: list[Diagnostic] = []
        self.hole_sites: list[HoleSite] = []
        self.filled: list[FilledSite] = []
        self.trace = RuleTrace()
        self.const_names: dict[Sym, str] = {}
        self.metadata: set[tuple[str, str]] = set()  # (array, "dim" or "stride") that the kernel reads
        self.sites = 0
        self.opaque = False  # was a whole statement unmapped?
        self.depth = 0
        self.reads: Reads = {}
        self.arms = 0  # branches of the current function that the current statement is in
        self.function: tuple[str, str] | None = None
        self.once: frozenset[tuple[str, str]] = frozenset()  # functions to specialize as a loop that runs once
        self.helper_returns: dict[int, tuple[Value, ...]] = {}
        self.helper_docs: dict[str, Docs] = {}
        self.helper_args: dict[int, tuple[tuple[str, Any], ...]] = {}
        self.unroll_counter = 0

    def construct(self, name: str) -> None:
        """Record that a construct of Python was translated here (a row of :mod:`transpiler.rules.constructs`)."""
        self.trace.add("construct", name, self.span)

    # -- expressions ------------------------------------------------------------------------------
    def eval(self, e: hir.Expr, env: Env) -> Val:
        """Evaluate an expression."""
        if e.span.line:
            self.span = e.span
        match e:
            case hir.Const(value):
                return const(value)
            case hir.Local(name):
                return self._local(name, env)
            case hir.Global():
                return self._global(e)
            case hir.External(name):
                return self.external(name)
            case hir.Tuple_(items):
                self.construct("tuple")
                return TupleVal(self._items(items, env))
            case hir.Attr(value, name):
                self.construct("attribute")
                return self._attribute(self.eval(value, env), name)
            case hir.IfExp():
                return self._if_expression(e, env)
            case hir.BoolOp():
                return self._bool_op(e, env)
            case hir.Call():
                return self._call(e, env)
            case hir.Unsupported() | hir.Star():  # a star stands in a tuple or a call, where it is looked for
                assert isinstance(e, hir.Unsupported)
                raise HoleError(e.code, f"{e.what} has no mapping", e.span)

    def _local(self, name: str, env: Env) -> Val:
        v = env.get(name, Undefined(f"`{name}` isn't assigned on every path to here"))
        if name not in env and self.opaque:
            v = HoleVal()  # a statement without a mapping (a nested def, say) may have bound it
        if isinstance(v, HoleVal):
            raise HoleError("", "", self.span, silent=True)
        if isinstance(v, Undefined):
            self._usable(v, f"`{name}` can't be used here: ")
            self.refuse(f"`{name}` can't be used here: {v.reason}")
        if not isinstance(v, Value):
            self.reads.setdefault((self.depth, name, id(v)), (v, self.span))
        return v

    def _usable(self, v: Val, what: str = "") -> None:
        """Refuse what can't be a value in cutile, as a Hole where it is used."""
        if isinstance(v, Undefined) and v.code:
            from transpiler.specialize.arrays import HELP

            raise HoleError(v.code, f"{what}{v.reason}", self.span, HELP)

    def _global(self, e: hir.Global) -> Val:
        if (f := self.program.function(e)) is not None:
            return Func(f)
        value = self.program.constant(e)
        if value is None:
            raise HoleError("E0203", f"`{e.name}` isn't defined in {e.module}", e.span)
        self.construct("module-level constant")
        span = self.span
        result = self.eval(value, {})
        self.span = span
        return result

    def external(self, name: str) -> Val:
        """A name from outside the program."""
        if name in _EXTERNAL_CONSTANTS:
            return const(_EXTERNAL_CONSTANTS[name])
        if (d := external_dtype(name)) is not None:
            return DTypeVal(d)
        return Ref(name)

    def _if_expression(self, e: hir.IfExp, env: Env) -> Val:
        cond = self.eval(e.cond, env)
        known = self.known_truth(cond)
        self.construct(f"conditional expression, {_when(known)}")
        if known is not None:
            return self.eval(e.then if known else e.orelse, env)
        from transpiler.specialize.control import if_expression

        return if_expression(self, self.truth(cond), e, env)

    def _bool_op(self, e: hir.BoolOp, env: Env) -> Val:
        left = self.eval(e.left, env)
        known = self.known_truth(left, decide=not _symbolic_bool(left))
        if isinstance(left, Const) and _symbolic_bool(left):
            right = self._try_const_right(e, env, left)
            if right is not None:
                self.construct(f"and/or, {_when(True)}")
                return right
            known = self.decide_truth(left)
        self.construct(f"and/or, {_when(known)}")
        if known is not None:
            return self.as_bool(left if known == (e.op == "or") else self.eval(e.right, env))
        from transpiler.specialize.control import short_circuit

        return short_circuit(self, self.truth(left), e, env)

    def _try_const_right(self, e: hir.BoolOp, env: Env, left: Const) -> Val | None:
        """``a and b`` of two symbolic booleans is one condition when b is safe to evaluate either way."""
        if bool(left.value) == (e.op == "or"):
            return None
        right = self.eval(e.right, env)
        if isinstance(right, Const) and isinstance(right.value, bool) and isinstance(left.value, bool):
            return Const(right.value, sy.apply(e.op, sy.truth(left.sym), sy.truth(right.sym)))
        self.decide_truth(left)
        return right

    def known_truth(self, v: Val, *, decide: bool = True) -> bool | None:
        """The truth value if it is known while specializing, else None."""
        match v:
            case Const():
                return self.decide_truth(v) if decide else bool(v.value)
            case Value() if (c := self.known(v)) is not None:
                return self.decide_truth(c)
            case TupleVal():
                return bool(v.items)
            case HoleVal():
                raise HoleError("", "", self.span, silent=True)
            case Value():
                return None
            case _:
                return True

    def truth(self, v: Val) -> Value:
        """A runtime condition: a 0-d bool tile; a number is true where it isn't 0."""
        t = self.tile(v, "a condition")
        ty = self.type_of(t)
        if ty.rank != 0:
            self.refuse(f"a condition must be a scalar, not {ty}")
        return self.astype(t, BOOL)

    def as_bool(self, v: Val) -> Val:
        """What an operand of ``and`` or ``or`` contributes: its truth value, unlike in Python."""
        if isinstance(v, Const) and isinstance(v.value, (int, float)):
            return Const(bool(v.value), sy.truth(v.sym))
        return self.truth(v) if isinstance(v, Value) else v

    # -- attributes and calls ---------------------------------------------------------------------
    def _attribute(self, v: Val, name: str) -> Val:
        kind = {Value: "Tile", ArrayVal: "Array", TiledViewVal: "TiledView", TupleVal: "Tuple"}.get(type(v))
        if isinstance(v, HoleVal):
            raise HoleError("", "", self.span, silent=True)
        self._usable(v)
        if isinstance(v, Ref):
            return self.external(f"{v.name}.{name}")
        if isinstance(v, Const) and isinstance(v.value, (bool, int, float)):
            kind, v = "Tile", self.tile(v)
        if kind is None:
            self.hole("E0301", f"attribute `{name}` of {describe(v)} has no mapping")
        row = self.table.find(f"{kind}.{name}", (v,))
        if row is None:
            return unmapped(self, "E0301", f"`{kind}.{name}` has no rule", f"{kind}.{name}", (v,), {})
        if row.attribute:
            return self.apply(row, (v,), {})
        return BoundMethod(v, kind, name)

    def _items(
        self, items: Sequence[hir.Expr], env: Env, evaluate: Callable[[hir.Expr, Env], Val] | None = None
    ) -> tuple[Val, ...]:
        """The items of a tuple or a call; a star stands for those of a tuple."""
        out: list[Val] = []
        for item in items:
            if not isinstance(item, hir.Star):
                out.append((evaluate or self.eval)(item, env))
                continue
            self.construct("star")
            value = self.eval(item.value, env)
            if not isinstance(value, TupleVal):
                self.refuse(f"{describe(value)} can't be unpacked")
            out.extend(value.items)
        return tuple(out)

    def _call(self, e: hir.Call, env: Env) -> Val:
        f = self.eval(e.func, env)
        try:
            args = self._items(e.args, env, self._argument)
            kwargs = {k: self._argument(a, env) for k, a in e.kwargs}
        except HoleError:
            if isinstance(f, Ref) and f.name in _PYTHON:
                self.span = e.span
                return self.call_rule(f.name, (), {})
            raise
        self.span = e.span if e.span.line else self.span
        if (given := _unmapped(args, kwargs)) is not None and not isinstance(f, Ref | BoundMethod):
            raise HoleError(given.code, f"{given.what} has no mapping", given.span)
        if kwargs:
            self.construct("keyword argument")
        return self.call(f, args, kwargs)

    def _argument(self, e: hir.Expr, env: Env) -> Val:
        """A lambda makes the call that it is for a Hole, which may be filled, not itself."""
        if isinstance(e, hir.Unsupported) and e.text:
            return Unmapped(e.code, e.what, e.text, e.span)
        return self.eval(e, env)

    def call(self, f: Val, args: tuple[Val, ...], kwargs: dict[str, Val]) -> Val:
        """Call a rule, a method, a dtype constructor or a helper function."""
        match f:
            case Ref(name):
                return self.call_rule(name, args, kwargs)
            case BoundMethod(receiver, kind, name):
                return self.call_rule(f"{kind}.{name}", (receiver, *args), kwargs)
            case DTypeVal(dtype):
                return self.call_rule("cuda.tile.dtype_constructor", (DTypeVal(dtype), *args), kwargs)
            case Func(function):
                return self.call_helper(function, args, kwargs)
            case HoleVal():
                raise HoleError("", "", self.span, silent=True)
            case _:
                self.hole("E0301", f"calling {describe(f)} has no mapping")

    def call_rule(self, name: str, args: tuple[Val, ...], kwargs: dict[str, Val]) -> Val:
        """Find the row and apply it."""
        if any(isinstance(a, HoleVal) for a in (*args, *kwargs.values())):
            raise HoleError("", "", self.span, silent=True)
        for a in (*args, *kwargs.values()):
            self._usable(a)
        row = self.table.find(name, args)
        if (given := _unmapped(args, kwargs)) is not None and (row is None or row.status == "exact"):
            return unmapped(self, given.code, f"{given.what} in a call of `{name}` has no mapping", name, args, kwargs)
        if row is None:
            known = self.table.rows.get(name)
            what = f"`{name}` of {', '.join(map(describe, args))}" if known else f"`{name}`"
            return unmapped(self, "E0301", f"{what} has no rule", name, args, kwargs)
        return self.apply(row, args, kwargs)

    def apply(self, row: registry.Rule, args: tuple[Val, ...], kwargs: dict[str, Val]) -> Val:
        """Apply a row to its operands."""
        self.trace.add("rule", row.key, self.span)
        if row.status == "unsupported":
            return unmapped(self, "E0302", f"`{row.callee}` isn't supported: {row.reason}", row.callee, args, kwargs)
        try:
            bound = self.table.bind(row, args, kwargs)
        except TypeError as e:
            self.refuse(f"`{row.callee}`: {e}")
        outer, self.rule = self.rule, row.key
        try:
            return registry.call(self, row, bound)
        except HoleError as hole:  # the row has nothing for these operands
            if hole.silent or hole.construct is not None:
                raise
            return unmapped(self, hole.code, hole.message, row.callee, args, kwargs, hole.help)
        finally:
            self.rule = outer

    def call_helper(self, f: hir.Function, args: tuple[Val, ...], kwargs: dict[str, Val]) -> Val:
        """Specialize a helper function into the caller, remembering the call site."""
        from transpiler.specialize.control import run_helper
        from transpiler.specialize.returns import may_return_early

        if self.depth >= MAX_CALL_DEPTH:
            self.refuse(f"`{f.name}` calls itself", "cuTile kernels can't recurse")
        if len(f.body) == 1 and isinstance(hole := f.body[0], hir.Hole):  # its parameters can't be bound, say
            raise HoleError(hole.code, f"{hole.what} has no mapping", hole.span)
        self.construct("helper function")
        env = self._bind_helper(f, args, kwargs)
        span, outer, statement = self.span, self.site, self.statement
        self.sites += 1
        trailing, self.pending_trailing = self.pending_trailing, None
        early = may_return_early(f)
        site = CallSite(f.name, self.sites, outer, span, trailing.text if trailing is not None else "", early)
        self.helper_args[site.index] = tuple(env.items())
        self.helper_docs[f.name] = Docs(f.docstring, f.comments)
        self.site = site
        if early:
            env |= {name: self._carried_in(env[name]) for name in assigned(f.body) if name in env}
        self.depth += 1
        try:
            result = run_helper(self, f, env)
        finally:
            self.site, self.span, self.statement = outer, span, statement
            self.depth -= 1
        self.helper_returns[site.index] = tuple(_tiles(result))
        return self._handed_out(result, site) if early else result

    def _carried_in(self, v: Val) -> Val:
        """A parameter that a function assigns which is a loop: what uses it there doesn't see where it is from."""
        return self.value("opaque", (v,), v.ty, parameter=True) if isinstance(v, Value) else v

    def _handed_out(self, v: Val, call: CallSite) -> Val:
        """What a function handed out of a loop: its user needs the loop, and doesn't see a product in it."""
        match v:
            case TupleVal(items=items):
                return TupleVal(tuple(self._handed_out(i, call) for i in items))
            case Const(result_of=Value()):  # that needs more of the function
                return v
            case Const():
                return replace(v, result_of=call)
            case Value(ty=TileTy() | PtrTy(), op=op) if op is None or _seen_through(op, call):
                value = self.value("opaque", (v,), v.ty)
                assert value.op is not None
                value.op.result_of = call
                return value
            case _:
                return v

    def _bind_helper(self, f: hir.Function, args: tuple[Val, ...], kwargs: dict[str, Val]) -> Env:
        names = [p.name for p in f.params]
        if len(args) > len(names):
            self.refuse(f"{f.name}() takes {len(names)} arguments but {len(args)} were given")
        env: Env = dict(zip(names, args, strict=False))
        for k, v in kwargs.items():
            if k not in names or k in env:
                self.refuse(f"{f.name}() got an unexpected or repeated argument '{k}'")
            env[k] = v
        for p in f.params:
            if p.name not in env:
                if p.default is None:
                    self.refuse(f"{f.name}() misses the argument '{p.name}'")
                self.construct("default argument")
                env[p.name] = self.eval(p.default, {})
        return {name: env[name] for name in names}

    # -- holes ------------------------------------------------------------------------------------
    def record_hole(self, hole: HoleError) -> None:
        """Keep the diagnostic and mark the place in the program."""
        if hole.silent:
            return
        span: Span = hole.span
        met = Diagnostic(hole.code, hole.message, hole.help or f"transpile explain {hole.code}", "error", span)
        self.holes.append(met)
        self.hole_sites.append(HoleSite(hole.construct or Construct("other", hole.code), met, hole.inputs))
        self.emit("hole", code=hole.code, message=hole.message)


def _seen_through(op: Op, call: CallSite) -> bool:
    """Would the user of what a call hands out see an operation that it may not see, or not the call?"""
    return op.opcode in ("mulf", "convert") or (op.opcode != "constant" and not op.stands_in(call))


def _unmapped(args: Sequence[Val], kwargs: dict[str, Val]) -> Unmapped | None:
    return next((a for a in (*args, *kwargs.values()) if isinstance(a, Unmapped)), None)


def _when(known: bool | None) -> str:
    return "at run time" if known is None else "when translating"


def _symbolic_bool(v: Val) -> bool:
    return isinstance(v, Const) and isinstance(v.value, bool) and bool(sy.leaves_of(v.sym))


def _tiles(v: Val) -> list[Value]:
    if isinstance(v, Value):
        return [v]
    if isinstance(v, TupleVal):
        return [t for i in v.items for t in _tiles(i)]
    return []


__all__ = ["Env", "Evaluator", "SliceVal", "TranspileError"]
