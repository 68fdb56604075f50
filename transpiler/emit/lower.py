"""TIR operations to Rust statements: what becomes a variable, and what stays inside an expression.

Operations keep their order: an unnamed, pure value that is used once is held back and written into
the expression of its user, but only when that doesn't move it past another operation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

from transpiler.diagnostics import Diagnostic
from transpiler.emit import constants
from transpiler.emit.functions import Functions
from transpiler.emit.generics import Generics
from transpiler.emit.outline import Group
from transpiler.emit.uses import Uses
from transpiler.ir import rust
from transpiler.ir.construct import Construct, FilledSite, HoleSite
from transpiler.ir.rust_text import literal
from transpiler.ir.symbolic import Sym, lit
from transpiler.ir.tir import EFFECTS, RAISED, Block, CallSite, Condition, Kernel, Op, Value
from transpiler.ir.types import PtrTy, TensorTy, TileTy, Type
from transpiler.select.forms import instantiate
from transpiler.select.params import keys, parameters

Key = Hashable
MAX_NODES = 14  # of an expression that is held back
_ARITHMETIC = frozenset({"addf", "subf", "mulf", "divf", "fma", "addi", "subi", "muli"})
# Operands inside `Some(..)` must be variables: the compiler can't infer the type of anything else there.
# Those of `mma` are declared with generics M, N and K, which the author's may be called too.
_VARIABLES_ONLY = frozenset({"load_ptr", "store_ptr", "atomic_rmw", "atomic_cas", "print", "mma", "mma_scaled"})
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_REDUCTIONS = {"add": "sum", "mul": "product"}
_DEFAULT_HINTS = {
    "load_view": "tile", "load_ptr": "values", "base": "pointer", "offset": "pointer", "cmpi": "mask", "cmpf": "mask",
    "andi": "mask", "iota": "lane", "mma": "product", "constant": "constant", "muli": "scaled", "addi": "total",
    "num_tiles": "tiles", "dim": "size", "stride": "stride", "block_id": "block", "num_blocks": "blocks",
    "make_token": "token", "join_tokens": "token", "scan": "running", "select": "chosen",
}  # fmt: skip


@dataclass
class Variable:
    """A Rust variable: the author's name for it, its type, and the TIR values that it holds in turn."""

    hint: str
    type: str
    values: list[Value] = field(default_factory=list)
    mutable: bool = False
    depth: int = 0  # how many loops it is declared in


@dataclass
class _Pending:
    """A value held back for its user."""

    value: Value
    expr: rust.Expr
    op: Op


class Lowering:
    """Builds the body of one entry."""

    def __init__(self, kernel: Kernel, generics: Generics, body: Block, functions: Functions, canonical: bool,
                 site: CallSite | None = None) -> None:  # fmt: skip
        """``canonical``: names don't come from the author, so that equal functions read the same.

        ``site`` is the call whose function this is (None: the entry, or none of the author's).
        """
        self.site = site
        self.kernel, self.generics, self.body, self.functions = kernel, generics, body, functions
        self.canonical = canonical
        self.uses = Uses(body)
        self.bound: dict[Value, rust.Expr] = {}
        self.variables: dict[Key, Variable] = {}
        self.targets: dict[Value, Key] = {}  # values to be assigned to an existing variable
        self.block: list[rust.Stmt] = []
        self.pending: list[_Pending] = []
        self.comments: list[str] = []
        self.trailing = ""
        self.line = 0  # the last Python line that was written
        self.loops: list[LoopState] = []
        self.diagnostics: list[Diagnostic] = []
        self.literals: dict[Sym, Condition] = {}
        self.dummies = False
        self.tails: set[Value] = set()  # values of branches, which need no name
        self.frozen: list[frozenset[Key]] = []  # variables that a branch with a jump in it must not assign
        self.values = 0  # how many branches that are values stand around this place, each in the one before

    def run(self) -> tuple[rust.Stmt, ...]:
        """The statements of the kernel."""
        self.ops(self.body)
        self.flush()
        return tuple(self.block)

    # -- variables --------------------------------------------------------------------------------
    def variable(self, key: Key, hint: str, type_text: str, *values: Value) -> rust.Var:
        """Introduce a variable that holds ``values``."""
        self.variables[key] = Variable(hint, type_text, list(values), depth=len(self.loops))
        for v in values:
            self.bound[v] = rust.Var(key)
        return rust.Var(key)

    def author(self, v: Value) -> str:
        """The author's name for a value in this function."""
        return "" if self.canonical else v.name_in(self.site)

    def define(self, v: Value, op: Op | None) -> Key:
        """A variable of its own for a value."""
        author = self.author(v)
        hint = author or (self.default_hint(op) if op is not None else "value")
        self.variable(v, hint, self.generics.value_type(v), v)
        return v

    def default_hint(self, op: Op) -> str:
        """A variable's name for a value without one."""
        table = _DEFAULT_HINTS.get(op.opcode)
        if op.opcode == "reduce":
            return _REDUCTIONS.get(str(op.attrs["fn"]), str(op.attrs["fn"]))
        if op.opcode == "view":
            return "view" if self.canonical else f"{op.attrs.get('array', '')}_view".strip("_")
        if op.opcode in ("dim", "stride"):
            return (
                f"{table}_{op.attrs['axis']}" if self.canonical else f"{op.operands[0].hint}_{table}_{op.attrs['axis']}"
            )
        if op.opcode == "make_tensor":
            return f"{op.attrs.get('array') or 'made'}_tensor"
        if op.opcode == "access_tile":
            return f"{op.operands[0].hint}_tile"
        if op.opcode == "call":
            name: str = op.attrs["group"].name
            return {"gather": "values", "floor": "remainder"}.get(name.split("_")[0], name)
        if op.opcode in ("addi", "muli") and self.canonical:
            return "offset"
        if op.opcode in ("reshape", "broadcast", "offset") and isinstance(op.result.ty, PtrTy):
            return "pointer"
        if op.opcode == "constant" and self.canonical and isinstance(op.attrs["value"], float):
            return "padding"
        if table is not None:
            return table
        return next(
            (hint for v in op.operands if isinstance(v.ty, TileTy | PtrTy) and (hint := self.hint_of(v))), "value"
        )

    def hint_of(self, v: Value) -> str:
        """The name that a value goes by, if it has one."""
        e = self.bound.get(v)
        if v.op is not None and v.op.opcode == "constant" and self.generics.is_symbolic(v.op.attrs["sym"]):
            return constants.generic_name(v.op, self.generics)
        held = next((p for p in self.pending if p.value is v), None)
        if held is not None and held.op.opcode in ("reshape", "broadcast", "convert"):
            return self.default_hint(held.op)
        if isinstance(e, rust.Var) and e.key in self.variables:
            return self.variables[e.key].hint
        return self.author(v)

    def hold(self, v: Value, key: Key) -> None:
        """From here on, variable ``key`` holds ``v``."""
        self.variables[key].values.append(v)
        self.bound[v] = rust.Var(key)

    def live(self, key: Key, op: Op, besides: Value | None = None) -> bool:
        """Is a value of the variable needed after ``op``?"""
        return any(v is not besides and self.uses.used_after(v, op) for v in self.variables[key].values)

    def assignable(self, key: Key) -> bool:
        """May the variable be assigned here?

        In cutile 0.5 a jump hands over what its branches assign, and not only what its loop carries.
        """
        return not any(key in keys for keys in self.frozen)

    # -- statements -------------------------------------------------------------------------------
    def note(self, op: Op) -> rust.Note:
        """What the next statement carries over from the source; takes the waiting comments."""
        comments, self.comments = tuple(self.comments), []
        trailing, self.trailing = self.trailing, ""
        blank = False
        if op.site is None and op.span.line:
            blank = self.line > 0 and op.span.line - len(comments) > self.line + 1
            self.line = max(self.line, op.span.end_line or op.span.line)
        return rust.Note(op.span, comments, trailing, blank)

    def emit(self, stmt: rust.Stmt) -> None:
        """Append a statement after everything that was held back."""
        self.flush()
        self.block.append(stmt)

    def flush(self) -> None:
        """Give every value that is held back a variable."""
        pending, self.pending = self.pending, []
        for p in pending:
            key = self.define(p.value, p.op)
            self.block.append(rust.Let((key,), (self.variables[key].type,), p.expr, note=self.note(p.op)))

    def take(self, values: Sequence[Value]) -> list[rust.Expr]:
        """The operands of an operation as expressions."""
        held = {p.value: p for p in self.pending}
        wanted = [v for v in values if v in held]
        if wanted:
            if [p.value for p in self.pending[-len(wanted) :]] == wanted:
                del self.pending[-len(wanted) :]
                return [held[v].expr if v in held and v in wanted else self.refer(v) for v in values]
            self.flush()
        return [self.refer(v) for v in values]

    def is_held(self, v: Value) -> bool:
        """Is the value held back for its user?"""
        return any(p.value is v for p in self.pending)

    def as_variables(self, op: Op) -> list[rust.Expr]:
        """The operands of an operation, each with a variable of its own."""
        self.flush()
        out = []
        for v in op.operands:
            e = self.refer(v)
            plain = e.expr if isinstance(e, rust.Ref) else e
            out.append(e if isinstance(plain, rust.Var) else temporary(self, op, v.ty, e, self.hint_of(v) or "value"))
        return out

    def refer(self, v: Value) -> rust.Expr:
        """How a value that isn't held back is written; a tensor or view made in the kernel by reference."""
        e = self.bound[v]
        if isinstance(v.ty, TensorTy) and (v.op is None or v.op.opcode != "tensor"):
            return rust.Ref(e)
        return e

    # -- operations -------------------------------------------------------------------------------
    def ops(self, block: Block) -> None:
        """All operations of a block."""
        from transpiler.emit import control

        for op in block.ops:
            self.comments.extend(c.text for c in op.comments)
            self.trailing = self.trailing or (op.trailing.text if op.trailing is not None else "")
            if op.opcode in control.HANDLERS:
                self.written(op)
                control.HANDLERS[op.opcode](self, op)
            else:
                self.plain(op)

    def plain(self, op: Op) -> None:
        """An operation without regions."""
        special = SPECIAL.get(op.opcode, Lowering.form)
        self.written(op)
        special(self, op)

    def written(self, op: Op) -> None:
        """Record an operation that is written without a row of the table of forms."""
        key = f"{op.attrs['access']}, as a function" if op.opcode == "access_tile" else op.opcode
        if key in WRITTEN and op.rule != RAISED:
            self.functions.trace.add("form", key, op.span, op.rule)

    def form(self, op: Op) -> None:
        """An operation that has a row in the table of forms."""
        row = self.functions.forms.find(op.opcode, keys(op, self.generics))
        if row is None:
            self.unmapped(op, "E0601", f"`{op.opcode}` has no Rust form with these attributes: {_attributes(op)}")
            return
        if op.rule != RAISED:
            self.functions.trace.add("form", row.key, op.span, op.rule)
        if row.body:
            from transpiler.emit.inline import write_body

            write_body(self, op, row.body)
            return
        if op.opcode == "xori" and self.is_held(op.operands[0]) and not self.is_held(op.operands[1]):
            self.flush()  # cutile 0.5 takes `a < b` in front of `^` for a bool, a variable behind it for a tile
        operands = self.take(op.operands)
        self.results(op, instantiate(row.expr, parameters(op, self.generics, operands)), row.nest)

    def results(self, op: Op, e: rust.Expr, nest: bool, values: tuple[Value, ...] | None = None) -> None:
        """Bind the results of an operation (``values``: those that ``e`` yields) to ``e``."""
        values = op.results if values is None else values
        if self.is_tail(op):
            self.emit(rust.Tail(e, self.note(op)))
        elif all(self.uses.count(r) == 0 for r in values) and (len(values) <= 1 or op.opcode == "call"):
            self.emit(rust.Do(e, self.note(op)))
        elif len(values) > 1:  # cutile 0.5 needs the type of several results, unused ones too
            self.flush()
            names = tuple(self.define(r, op) if self.uses.count(r) else None for r in values)
            types = tuple(self.generics.value_type(r) for r in values)
            self.emit(rust.Let(names, types, e, note=self.note(op)))
        elif not self.assign_target(op, e, values[0]):
            if nest and self.holdable(op, e):
                self.pending.append(_Pending(values[0], e, op))
            else:
                self.let(values[0], e, op)

    def let(self, v: Value, e: rust.Expr, op: Op) -> None:
        """``let v: T = e;``."""
        self.flush()
        key = self.define(v, op)
        self.emit(rust.Let((key,), (self.variables[key].type,), e, note=self.note(op)))

    def assign_target(self, op: Op, e: rust.Expr, v: Value) -> bool:
        """Assign to the variable that the value is meant for, if what that holds isn't needed any more."""
        key = self.targets.get(v)
        if key is None or not self.assignable(key) or self.live(key, op, v):
            return False
        self.emit(rust.Assign(key, e, self.note(op)))
        self.hold(v, key)
        return True

    def is_tail(self, op: Op) -> bool:
        """Are the results of the operation just what the function returns?

        Only where the type mentions no generic: cutile 0.5 compiles a function's last expression for the
        type that the caller expects, in the caller's words.
        """
        end = self.body.ops[-1]
        return (
            end.opcode == "give"
            and end.operands == op.results
            and self.body.ops[-2] is op
            and not any(self.generics.depends(v.ty) for v in op.results)
        )

    def holdable(self, op: Op, e: rust.Expr) -> bool:
        """May the value be written inside its user's expression?"""
        v = op.result
        if (self.author(v) and v not in self.tails) or self.uses.count(v) != 1 or op.opcode in EFFECTS:
            return False
        user = self.uses.users[v][0]
        if user.opcode in _VARIABLES_ONLY or (user.opcode in ("access_tile", "call", "cmpi", "cmpf") and _compares(e)):
            return False
        return (
            self.uses.block_of[user] is self.uses.block_of[op] and sum(1 for _ in rust.subexpressions(e)) <= MAX_NODES
        )

    # -- special operations -----------------------------------------------------------------------
    def unmapped(self, op: Op, code: str, message: str) -> None:
        """An operation that the tables have nothing for: what an override says, else a Hole."""
        from transpiler.emit.inline import construct_of, write

        construct = construct_of(op, self.generics)
        fragment = self.functions.fragments.get(construct.digest)
        if fragment is None:
            self.hole(op, code, message, construct=construct)
            return
        self.functions.filled.append(FilledSite(construct, fragment.key, fragment.model, op.span.file, op.span.line))
        self.functions.trace.add("override", fragment.key, op.span, op.rule)
        write(self, op, fragment)

    def hole(self, op: Op, code: str, message: str, help: str = "", construct: Construct | None = None) -> None:
        """An operation without a Rust form: a diagnostic, and an error in the emitted text."""
        self.take(op.operands)
        met = Diagnostic(code, message, help or f"transpile explain {code}", "error", op.span)
        self.diagnostics.append(met)
        inputs = tuple((self.author(v), str(v.ty)) for v in op.operands)
        results = tuple((self.author(v), str(v.ty)) for v in op.results)
        self.functions.sites.append(HoleSite(construct or Construct("other", op.opcode), met, inputs, results))
        self.error(op, code, message)

    def error(self, op: Op, code: str, message: str) -> None:
        """``compile_error!`` in the emitted text."""
        text = rust.Text(literal(f"{code}: {message}"))
        e = rust.call("compile_error!", text)
        if not op.results:
            self.emit(rust.Do(e, self.note(op)))
            return
        self.flush()
        names = tuple(self.define(r, op) for r in op.results)
        self.emit(rust.Let(names, tuple(self.generics.type(r.ty) for r in op.results), e, note=self.note(op)))


def _compares(e: rust.Expr) -> bool:
    """Is it an expression of comparisons? cutile 0.5 takes such an argument for one of the operands' type."""
    return any(isinstance(part, rust.Call) and part.func.endswith("_tile") and part.func[:2] in _COMPARISONS
               for part in rust.subexpressions(e))  # fmt: skip


@dataclass
class LoopState:
    """The loop being written: the variable of each carried value (None: it never changes)."""

    op: Op
    keys: list[Key | None]
    hoisted: list[rust.Stmt] = field(default_factory=list)  # variables that branches with jumps assign


def _attributes(op: Op) -> str:
    return ", ".join(f"{k}={v}" for k, v in op.attrs.items() if v is not None and k not in ("sym", "array")) or "none"


def _constant(self: Lowering, op: Op) -> None:
    c = constants.constant(op, self.generics)
    v = op.result
    if c is None:
        self.unmapped(op, "E0602", f"the constant {op.attrs['value']} of type {v.ty} can't be written in cutile 0.5")
        return
    if constants.literalized(op, self.generics):
        sym: Sym = op.attrs["sym"]
        self.literals.setdefault(sym, Condition(sym, op.attrs["value"], op.span))
    users = self.uses.users.get(v, [])
    arithmetic = bool(users) and all(_is_operator(self, u, v) and _has_other_operand(u) for u in users)
    optional = any(u.opcode in _VARIABLES_ONLY for u in users)
    if not self.author(v) and (c.nest or arithmetic) and not optional and v not in self.targets:
        self.bound[v] = c.expr
    elif not self.assign_target(op, c.expr, v):
        self.let(v, c.expr, op)


def _is_operator(self: Lowering, op: Op, v: Value) -> bool:
    """Is the operation written with an operator whose other side, or whose `let`, gives a constant its type?"""
    row = self.functions.forms.find(op.opcode, keys(op, self.generics)) if op.opcode in _ARITHMETIC else None
    if row is None or not isinstance(row.expr, rust.Binary):
        return False
    return op.operands[0] is not v or not self.holdable(op, row.expr)


def _has_other_operand(op: Op) -> bool:
    return any(v.constant is None for v in op.operands)


def _tensor(self: Lowering, op: Op) -> None:
    self.bound[op.result] = rust.Var(("param", op.attrs["name"]))


def _scalar(self: Lowering, op: Op) -> None:
    if self.uses.count(op.result):
        e = rust.call("scalar_to_tile", rust.Var(("param", op.attrs["name"])))
        self.let(op.result, e, op)


def _hole(self: Lowering, op: Op) -> None:
    self.take(op.operands)
    self.error(op, str(op.attrs["code"]), str(op.attrs["message"]))


def _rust(self: Lowering, op: Op) -> None:
    """What an override fills a construct with."""
    from transpiler.emit.inline import write

    write(self, op, op.attrs["fragment"])


def _assert(self: Lowering, op: Op) -> None:
    (cond,) = self.take(op.operands)
    if not isinstance(cond, rust.Var):
        cond = temporary(self, op, op.operands[0].ty, cond, "holds")
    text = literal(str(op.attrs.get("message") or ""))
    self.emit(rust.Do(rust.Call("cuda_tile_assert!", (cond, rust.Text(text))), self.note(op)))


def _convert(self: Lowering, op: Op) -> None:
    """Nothing between equal types; an integer as a truth value is a comparison with zero; the rest are forms."""
    source, target = op.operands[0].ty, op.result.ty
    assert isinstance(source, TileTy) and isinstance(target, TileTy)
    if self.generics.type(source) == self.generics.type(target):
        _same(self, op)
        return
    if not (source.dtype.is_int and target.dtype.category == "bool"):
        self.form(op)
        return
    zero = Op("constant", (), {"value": 0, "sym": lit(0)})
    zero.results = (Value(source, op=zero),)
    c = constants.constant(zero, self.generics)
    assert c is not None
    (x,) = self.take(op.operands)
    other = c.expr if c.nest else temporary(self, op, source, c.expr, "zero")
    compared = replace(op, opcode="cmpi", operands=(*op.operands, zero.result),
                       attrs={"predicate": "ne", "signed": source.dtype.signed})  # fmt: skip
    row = self.functions.forms.find("cmpi", keys(compared, self.generics))
    assert row is not None
    self.results(op, instantiate(row.expr, parameters(compared, self.generics, [x, other])), row.nest)


def _same(self: Lowering, op: Op) -> None:
    """The operand under another name."""
    (e,) = self.take(op.operands)
    if isinstance(e, rust.Var) and e.key in self.variables and op.result not in self.targets:
        self.hold(op.result, e.key)
    else:
        self.results(op, e, True)


def _scan(self: Lowering, op: Op) -> None:
    """Along another axis than 0: permute it to the front, scan, permute back."""
    ty = op.result.ty
    assert isinstance(ty, TileTy)
    axis = int(op.attrs["axis"])
    if axis == 0:
        self.form(op)
        return
    order = (axis, *(i for i in range(ty.rank) if i != axis))
    back = tuple(order.index(i) for i in range(ty.rank))
    front = TileTy(ty.dtype, tuple(ty.shape[i] for i in order))
    inner = replace(op, attrs={**op.attrs, "axis": 0}, results=(Value(front),))
    row = self.functions.forms.find("scan", keys(inner, self.generics))
    if row is None:
        self.unmapped(op, "E0601", f"`scan` has no Rust form with these attributes: {_attributes(op)}")
        return
    self.functions.trace.add("form", row.key, op.span, op.rule)
    (x,) = self.take(op.operands)
    turned = temporary(self, op, front, rust.call("permute", x, _const_array(order)), "turned")
    scanned = instantiate(row.expr, parameters(inner, self.generics, [turned]))
    running = temporary(self, op, front, scanned, "running")
    self.results(op, rust.call("permute", running, _const_array(back)), False)


def _const_array(items: Sequence[int]) -> rust.Expr:
    return rust.shape(tuple(map(str, items)), "const_array")


def _call(self: Lowering, op: Op) -> None:
    """A call of an outlined function."""
    from transpiler.emit.functions import lower_function

    group: Group = op.attrs["group"]
    function = lower_function(self.kernel, self.generics, group, self.functions)
    self.diagnostics += function.diagnostics
    self.literals |= function.literals
    turbofish = f"::<{', '.join(function.arguments)}>" if function.turbofish else ""
    arguments = self.as_variables(op) if function.clash else self.take(op.operands)
    e = rust.Call(f"{function.id}{turbofish}", tuple(arguments))
    self.results(op, e, function.nest)


def _access_tile(self: Lowering, op: Op) -> None:
    """A load or store through a view of its own."""
    from transpiler.emit.accesses import tile_access

    e = tile_access(self, op)
    alone = op.attrs["access"] == "load_view" and not self.uses.count(op.results[1])
    self.results(op, e, False, op.results[:1] if alone else None)


def _give(self: Lowering, op: Op) -> None:
    """What a function returns; nothing when its last operation wrote it already."""
    if self.block and isinstance(self.block[-1], rust.Tail) and not self.pending:
        return
    if any(self.generics.depends(v.ty) for v in op.operands):
        self.flush()
    values = self.take(op.operands)
    self.flush()
    self.block.append(rust.Tail(values[0] if len(values) == 1 else rust.Seq(tuple(values), "(", ")")))


def _make_tensor(self: Lowering, op: Op) -> None:
    """A tensor over a pointer: its run-time sizes and strides are bound first."""
    ty = op.result.ty
    assert isinstance(ty, TensorTy)
    static = tuple(op.attrs["static"])
    base, *rest = self.take(op.operands)
    parts = []
    for name, what in (("Shape", static[: ty.rank]), ("Array", static[ty.rank :])):
        dynamic, rest = rest[: sum(s is None for s in what)], rest[sum(s is None for s in what) :]
        text = f"{{ [{', '.join('-1' if s is None else str(s) for s in what)}] }}"
        items = tuple(rust.call("to_i32", e) for e in dynamic)
        key = (op, name)
        self.variable(key, {"Shape": "dims", "Array": "strides_"}[name], f"{name}<{text}>")
        value = rust.Seq(items, f"{name}::<{text}> {{ dims: &[", "] }")
        self.emit(rust.Let((key,), (f"{name}<{text}>",), value, note=self.note(op)))
        parts.append(rust.Var(key))
    made = rust.call("make_tensor_view", base, *parts, rust.call("new_token_unordered"))
    self.let(op.result, rust.Unsafe(made), op)


def temporary(self: Lowering, op: Op, ty: Type, e: rust.Expr, hint: str) -> rust.Expr:
    """A variable for an intermediate step of one operation."""
    key = (op, hint, len(self.variables))
    var = self.variable(key, hint, self.generics.type(ty))
    self.emit(rust.Let((key,), (self.variables[key].type,), e, note=self.note(op)))
    return var


SPECIAL: dict[str, Callable[[Lowering, Op], None]] = {
    "constant": _constant,
    "tensor": _tensor,
    "scalar": _scalar,
    "hole": _hole,
    "rust": _rust,
    "assert": _assert,
    "scan": _scan,
    "convert": _convert,
    "opaque": _same,
    "call": _call,
    "access_tile": _access_tile,
    "give": _give,
    "make_tensor": _make_tensor,
}
WRITTEN: dict[str, str] = {
    "constant": "$value",
    "tensor": "&Tensor<E, { [-1, ..] }>",
    "scalar": "scalar_to_tile($0)",
    "assert": "cuda_tile_assert!($0, $message)",
    "load_view, as a function": "load_$rank(&$array, $index, $shape, $token)",
    "store_view, as a function": "store_$rank(&$array, $index, $tile, $token)",
    "make_tensor": "make_tensor_view($base, $shape, $strides, ..)",
    "for": "for $i in $lower..$upper { .. }",
    "loop": "loop { .. }",
    "if": "if $0 { .. } else { .. }",
}
"""Operations that are written without a row of the table of forms, and what they look like."""
