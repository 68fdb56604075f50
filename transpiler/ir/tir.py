"""TIR: the typed tile program of one specialization, in structured SSA.

Operations mirror Tile IR.  Control flow is nested: ``for`` has operands (lower, upper, step,
*inits), one region whose parameters are (induction, *carried) and which ends in ``continue``;
``loop`` has operands (*inits), one region with parameters (*carried) ending in ``continue`` or
``break``; ``if`` has operands (condition,) and two regions without parameters ending in ``yield``
(or ``continue``/``break``/``return``).  A kernel's body ends in ``return``.

Opcodes and their attributes (``*`` marks optional ones):
  constant            value, sym, baked*, undefined*  a scalar or splat; sym: its Sym; baked: the kernel sees a run-time
                                                      value, which the launch makes a number; undefined: what a
                                                      loop carries before it is assigned
  tensor              name                            the tensor view of an array parameter
  scalar              name                            a runtime scalar parameter (0-d tile)
  block_id, num_blocks  axis                          0-d i32
  dim, stride         axis   (tensor)                 0-d i32 (only dynamic ones; static ones are constants)
  base                       (tensor)                 0-d pointer tile
  make_tensor         (base, *dims, *strides)         static: tuple of (int|None) for dims then strides
  addi subi muli      (a, b)
  divi                (a, b)  rounding: zero|negative_inf|positive_inf, signed
  remi mini maxi shri (a, b)  signed;   shli andi ori xori (a, b);  negi absi (a)
  addf subf mulf divf (a, b)  rounding (nearest_even|zero|..|approx|full), ftz;   fma (a, b, c) rounding, ftz
  minf maxf           (a, b)  nan, ftz;  remf pow atan2 fpowi (a, b)
  negf absf floor ceil sin cos tan sinh cosh log log2 (a);  exp tanh (a) rounding
  exp2 rsqrt (a) ftz;  sqrt (a) rounding, ftz
  cmpi                (a, b)  predicate: eq|ne|lt|le|gt|ge, signed
  cmpf                (a, b)  predicate, ordered
  select              (c, a, b)
  convert             (a)     rounding*               from the operand's dtype to the result's
  bitcast pack unpack (a)
  iota                ();  reshape broadcast (a);  permute (a) perm;  cat (a, b) axis
  extract             (a, *index);  insert (value, dst, *index)
  offset              (ptr, off)
  view                (tensor)                        the result type says everything
  num_tiles           (view)  axis
  load_view           (view, *index, token)  latency*, tma*: bool, ordering, scope*, inbounds -> tile, token
                                             untracked*: reads a table that nothing writes, has no token
  store_view          (view, *index, value, token)  the same -> token
  load_ptr            (ptr, mask*, padding*, token)  has_mask, has_padding, latency* -> tile, token
  store_ptr           (ptr, value, mask*, token)     has_mask, latency* -> token
  atomic_rmw          (ptr, value, mask*, token)     has_mask, mode, ordering, scope -> tile, token
  atomic_cas          (ptr, expected, desired, mask*, token)  has_mask, ordering, scope -> tile, token
  atomic_red_view     (view, *index, value, token)   mode, ordering, scope -> token
  make_token ();  join_tokens (*tokens)
  mma                 (a, b, acc) fast*;  mma_scaled (a, sa, b, sb, acc)
  reduce scan         (a)  fn: add|mul|min|max|or|xor, axis, reverse (scan), ftz*, rounding*, nan*
  for loop if continue break yield return
  assume              (a)  divisor: int, or the Sym of a list element's known divisor | lower, upper
  int_to_ptr          (a)                             an i64 scalar as a pointer
  print (*args, token) format -> token;   assert (cond) message
  refused             (*operands) message             what the reference compiler refuses unless it is dead code (pure)
  hole                (*uses) code, message           an unmapped construct; results may have any type
  rust                (*operands) fragment            an unmapped construct that an override filled with Rust (pure)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from transpiler.diagnostics import NO_SPAN, Diagnostic, Span
from transpiler.ir.construct import FilledSite, HoleSite
from transpiler.ir.symbolic import Sym, identical
from transpiler.ir.trace import RuleTrace
from transpiler.ir.types import DType, Type

LOADS = frozenset({"load_view", "load_ptr"})
EFFECTS = frozenset(
    {"store_view", "store_ptr", "atomic_rmw", "atomic_cas", "atomic_red_view", "print", "assert", "gdc_wait",
     "gdc_launch", "hole"}
)  # fmt: skip
RAISED = "raised"
"""The rule of operations that no rule made: they were lifted from the reference's Tile IR."""
TERMINATORS = frozenset({"continue", "break", "yield", "return"})


@dataclass(eq=False)
class Value:
    """An SSA value. ``hint`` is the author's name for it where it is made, or a suggestion ("" for a temporary)."""

    ty: Type
    hint: str = ""
    op: Op | None = None  # the defining operation; None for a region parameter
    names: dict[CallSite | None, str] = field(default_factory=dict)
    """What callers named a helper's result, by the call that the caller is itself (None: the kernel)."""

    def name_in(self, site: CallSite | None) -> str:
        """The author's name for the value in one of the functions that it passes through."""
        return self.names.get(site) or self.hint

    @property
    def constant(self) -> Any:
        """The value of a ``constant`` operation, else None."""
        return self.op.attrs["value"] if self.op is not None and self.op.opcode == "constant" else None


@dataclass(frozen=True)
class CallSite:
    """One call of a helper function that was specialized into the caller."""

    function: str
    index: int  # unique in the kernel
    parent: CallSite | None
    span: Span
    trailing: str = ""  # the comment at the end of the caller's line
    once: bool = False  # the function may return early: to the reference compiler its body is a loop that runs once

    def within(self, site: CallSite | None) -> bool:
        """Is this call ``site``, or part of what ``site`` called? (None: the kernel itself.)"""
        return site is None or self == site or (self.parent is not None and self.parent.within(site))

    def calls(self) -> Iterator[CallSite]:
        """This call and those around it."""
        yield self
        if self.parent is not None:
            yield from self.parent.calls()


Origin = CallSite | Value
"""What hands out a value, which its user needs: a helper function's call out of the loop that the function is to the
reference compiler, or the result of an ``if`` or a loop that is the same constant on every way."""


@dataclass(frozen=True)
class Docs:
    """What the author says of a function: its docstring and the comments above it."""

    docstring: str = ""
    comments: tuple[str, ...] = ()


NO_DOCS = Docs()


@dataclass(frozen=True)
class Comment:
    """A comment of the author and the function that it stands in (None: the kernel itself)."""

    text: str
    site: CallSite | None = None


@dataclass(eq=False)
class Op:
    """An operation."""

    opcode: str
    operands: tuple[Value, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    results: tuple[Value, ...] = ()
    regions: tuple[Block, ...] = ()
    span: Span = NO_SPAN
    comments: tuple[Comment, ...] = ()  # those above the statement (on its first operation)
    trailing: Comment | None = None
    site: CallSite | None = None  # the helper call that this operation came from
    rule: str = ""  # the rule that made it
    statement: int = 0  # operations of one Python statement share a number
    follows_return: CallSite | None = None  # it stands in a branch because the other one returns from this call
    returns: bool = False  # a branch in which a helper function returns
    result_of: Origin | None = None
    is_body: bool = False  # a loop that is the kernel's body, because a branch in a branch leaves it
    carried_by: frozenset[CallSite] = frozenset()  # the calls whose loops carry a token that it waits for

    def within(self) -> Iterator[Op]:
        """The operation, and every one in it."""
        yield self
        for region in self.regions:
            yield from walk(region)

    def sites(self) -> tuple[CallSite, ...]:
        """The helper calls that the operation is part of, the innermost one first."""
        return tuple(self.site.calls()) if self.site is not None else ()

    def calls(self) -> Iterator[CallSite]:
        """The helper calls that the operation belongs to, or whose results it hands on."""
        for call in (self.site, self.result_of):
            if isinstance(call, CallSite):
                yield from call.calls()

    def stands_in(self, site: CallSite | None) -> bool:
        """Did the operation come from that call (None: any), directly or through others?"""
        return site is None or (self.site is not None and self.site.within(site))

    def runs_once_in(self, outer: Op) -> bool:
        """Does the reference compiler have a loop that runs once between ``outer`` and this operation in it?"""
        around = outer.sites()
        return any(call.once and call not in around for call in self.sites())

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value


@dataclass(eq=False)
class Block:
    """Operations in order; the last one is a terminator."""

    params: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Condition:
    """A decision taken on the way: ``sym`` evaluated to ``outcome`` (printed as a path condition).

    An outcome is a value: 0.0 and -0.0 are two, True and 1 are one (``is_bool`` tells them apart where that counts).
    """

    sym: Sym
    outcome: Any
    span: Span = field(default=NO_SPAN, compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and self.sym == other.sym and self.agrees(other.outcome)

    def __hash__(self) -> int:
        return hash(self.sym)

    def agrees(self, outcome: Any) -> bool:
        """Whether another outcome is this one."""
        if isinstance(self.outcome, int) and isinstance(outcome, int):
            return self.outcome == outcome
        return identical(self.outcome, outcome)


@dataclass(frozen=True)
class ArrayUse:
    """How the kernel uses an array parameter: its dtype and what of it is static in this entry.

    ``dims``/``strides``: per axis, an int where the text fixes it, None where it is dynamic;
    ``metadata`` is true if the kernel reads dims or strides, so that their pattern is part of the text;
    ``reads_strides`` if it reads strides.
    """

    name: str
    dtype: DType
    rank: int
    dims: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    metadata: bool
    used: bool
    viewed: bool = True  # tiles are loaded or stored through views of it
    items: tuple[DType, int] | None = None  # of a list, which is a table of words: element type and rank of its arrays
    reads_strides: bool = False


@dataclass(eq=False)
class Kernel:
    """The residual program of one kernel for one specialization."""

    name: str
    span: Span
    params: tuple[str, ...]  # all Python parameters, in order
    arrays: dict[str, ArrayUse]
    scalars: dict[str, DType]
    constants: dict[str, Any]  # concrete values of constant parameters
    body: Block
    conditions: tuple[Condition, ...]
    hints: dict[str, Any]  # the decorator's: occupancy, num_ctas, num_worker_warps -> int or {target: int}
    dtype_class: dict[str, str]  # array -> representative array of its unified dtype, or "" when fixed
    holes: tuple[Diagnostic, ...] = ()
    sites: tuple[HoleSite, ...] = ()  # the same, with what an override is told by
    filled: tuple[FilledSite, ...] = ()  # what would be Holes without overrides
    docstring: str = ""
    comments: tuple[str, ...] = ()
    helper_returns: dict[int, tuple[Value, ...]] = field(default_factory=dict)  # call site index -> returned values
    helper_args: dict[int, tuple[tuple[str, Any], ...]] = field(default_factory=dict)  # index -> (name, Value|const)
    const_names: dict[Sym, str] = field(default_factory=dict)  # author's names for derived constants
    param_comments: dict[str, str] = field(default_factory=dict)
    helper_docs: dict[str, Docs] = field(default_factory=dict)  # by the helper's name
    aliases: dict[str, tuple[str, ...]] = field(default_factory=dict)  # array -> its alias groups
    trace: RuleTrace = field(default_factory=RuleTrace)  # the rules and constructs that it was made by


def note(kernel: Kernel, condition: Condition) -> None:
    """Record a decision that a pass took, unless the kernel has it already."""
    if condition.sym not in {c.sym for c in kernel.conditions}:
        kernel.conditions += (condition,)


def walk(block: Block) -> Iterator[Op]:
    """Every operation, a region's operations after their parent."""
    for op in block.ops:
        yield op
        for region in op.regions:
            yield from walk(region)


def parents_of(block: Block) -> dict[Op, Op]:
    """The operation that each one in another stands in."""
    return {inner: op for op in walk(block) for region in op.regions for inner in region.ops}


def fix_dtype(kernel: Kernel, array: str) -> None:
    """Make the dtype class of ``array`` concrete: the program holds for the dtype of this specialization only."""

    def fix(v: Value) -> None:
        d = getattr(v.ty, "dtype", None)
        if d is not None and d.of == array:
            v.ty = replace(v.ty, dtype=DType(d.name))  # type: ignore[arg-type]

    for op in walk(kernel.body):
        for v in (*op.results, *(p for region in op.regions for p in region.params)):
            fix(v)
    for name, use in kernel.arrays.items():
        if use.dtype.of == array:
            kernel.arrays[name] = replace(use, dtype=DType(use.dtype.name))
    for name, root in kernel.dtype_class.items():
        if root == array:
            kernel.dtype_class[name] = ""


def dump(kernel: Kernel) -> str:
    """Pretty-print (the language of the tests)."""
    names: dict[Value, str] = {}

    def name(v: Value) -> str:
        if v not in names:
            names[v] = f"%{len(names)}" + (f".{name}" if (name := v.hint or next(iter(v.names.values()), "")) else "")
        return names[v]

    lines = [f"kernel {kernel.name}({', '.join(kernel.params)})"]
    lines += [f"  where {c.sym} is {c.outcome!r}" for c in kernel.conditions]

    def emit(block: Block, pad: str) -> None:
        for op in block.ops:
            attrs = ", ".join(f"{k}={v}" for k, v in op.attrs.items() if v is not None and k != "sym")
            head = f"{', '.join(map(name, op.results))} = " if op.results else ""
            types = f" : {', '.join(str(r.ty) for r in op.results)}" if op.results else ""
            args = f"({', '.join(map(name, op.operands))})" if op.operands else ""
            lines.append(f"{pad}{head}{op.opcode}{args}{' {' + attrs + '}' if attrs else ''}{types}")
            for region in op.regions:
                lines.append(f"{pad}  [{', '.join(f'{name(p)}: {p.ty}' for p in region.params)}] {{")
                emit(region, pad + "    ")
                lines.append(f"{pad}  }}")

    emit(kernel.body, "  ")
    return "\n".join(lines) + "\n"
