"""Which operations become functions: helper calls of the author, and the memory accesses that take many operations.

The result is a copy of the program in which each group of operations is one ``call``; the group's
own operations hang off it.  A group qualifies when it stands together in one block and only its
results are used outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from transpiler.ir.tir import EFFECTS, NO_DOCS, Block, CallSite, Comment, Docs, Kernel, Op, Value
from transpiler.ir.types import TensorTy, TokenTy, ViewTy

# rule -> the operation that ends the group (None: any number may follow it)
_RULES = {
    "cuda.tile.gather": ("load_ptr",),
    "cuda.tile.scatter": ("store_ptr",),
    "operator.mod": ("select",),
    "cuda.tile.atomic_add": ("atomic_rmw",),
    "cuda.tile.atomic_max": ("atomic_rmw",),
    "cuda.tile.atomic_min": ("atomic_rmw",),
    "cuda.tile.atomic_and": ("atomic_rmw",),
    "cuda.tile.atomic_or": ("atomic_rmw",),
    "cuda.tile.atomic_xor": ("atomic_rmw",),
    "cuda.tile.atomic_xchg": ("atomic_rmw",),
    "cuda.tile.atomic_cas": ("atomic_cas",),
}
_FORBIDDEN = frozenset({"hole", "tensor", "scalar", "return", "make_token"})


@dataclass(eq=False)
class Group:
    """The operations of one function.

    ``kind`` is "helper" for a function of the author, "access" for one that the translator makes
    (its names are the same wherever it stands).  ``params`` are (name, value); ``consts`` are names
    of compile-time arguments.
    """

    name: str
    kind: Literal["helper", "access"]
    body: Block
    params: tuple[tuple[str, Value], ...]
    outputs: tuple[Value, ...]
    consts: tuple[tuple[str, Any], ...] = ()
    pure: bool = True
    docs: Docs = NO_DOCS
    site: CallSite | None = None  # one of the calls, for a helper


def outline(kernel: Kernel) -> Kernel:
    """A copy of the program with groups as ``call`` operations (attribute ``group``)."""
    return replace(kernel, body=_Outliner(kernel).block(kernel.body, None))


class _Outliner:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.users: dict[Value, list[Op]] = {}
        self.homes: dict[int, list[Block]] = {}  # call site -> the blocks that hold its own operations
        self._scan(kernel.body)

    def _scan(self, block: Block) -> None:
        for op in block.ops:
            for v in op.operands:
                self.users.setdefault(v, []).append(op)
            for site in _chain(op.site):
                blocks = self.homes.setdefault(site.index, [])
                if not any(b is block for b in blocks):
                    blocks.append(block)
            for region in op.regions:
                self._scan(region)

    # -- blocks -----------------------------------------------------------------------------------
    def block(self, block: Block, site: CallSite | None) -> Block:
        """The block with its groups replaced; ``site`` is the helper call that the block is part of."""
        return Block(block.params, self._views(list(self._rules(self._sites(block, site)))))

    def _sites(self, block: Block, site: CallSite | None) -> Iterator[Op]:
        ops = block.ops
        i = 0
        while i < len(ops):
            child = _child(ops[i].site, site)
            if child is None:
                yield self._regions(ops[i], site)
                i += 1
                continue
            j = i
            while j < len(ops) and (_child(ops[j].site, site) == child):
                j += 1
            group = self._helper(child, ops[i:j], block)
            if group is None:
                inner = list(self._sites(Block(block.params, ops[i:j]), child))
                inner[0] = replace(inner[0], comments=_written_out(inner[0].comments, child))
                yield from inner
            else:
                yield self._call(group, ops[i:j], child)
            i = j

    def _regions(self, op: Op, site: CallSite | None) -> Op:
        if not op.regions:
            return op
        return replace(op, regions=tuple(self.block(r, site) for r in op.regions))

    def _call(self, group: Group, ops: Sequence[Op], site: CallSite | None) -> Op:
        comments = tuple(c for o in ops for c in o.comments if site is None or not _said_in(c, site))
        ends = [o.trailing for o in ops if o.trailing is not None and (site is None or not _said_in(o.trailing, site))]
        trailing = Comment(site.trailing) if site is not None and site.trailing else next(iter(ends), None)
        return Op(
            "call", tuple(v for _, v in group.params), {"group": group, "pure": group.pure}, group.outputs, (),
            ops[0].span if site is None else site.span, comments, trailing,
            ops[0].site if site is None else site.parent, ops[0].rule, ops[-1].statement,
        )  # fmt: skip

    # -- helper functions -------------------------------------------------------------------------
    def _helper(self, site: CallSite, ops: list[Op], block: Block) -> Group | None:
        if self._blocks_of(site, ops, block) or any(op.opcode in _FORBIDDEN for op in _all(ops)):
            return None
        if ops[-1].opcode in ("yield", "continue", "break") or all(op.opcode == "constant" for op in ops):
            return None
        inside = set(_all(ops))
        inputs, outputs = self._interface(ops, inside)
        returned = self.kernel.helper_returns.get(site.index, ())
        if not outputs or any(v not in returned and not isinstance(v.ty, TokenTy) for v in outputs):
            return None
        outputs.sort(key=lambda v: returned.index(v) if v in returned else len(returned))
        names = {getattr(v, "tensor", v): n for n, v in self.kernel.helper_args.get(site.index, ())
                 if isinstance(getattr(v, "tensor", v), Value)}  # fmt: skip
        order = {v: i for i, v in enumerate(names)}
        inputs.sort(key=lambda v: order.get(v, len(order)))
        if any(isinstance(v.ty, ViewTy) for v in (*inputs, *outputs)):
            return None
        body = self.block(Block([], [_stripped(op, site) for op in ops]), site)
        body.ops.append(Op("give", tuple(outputs), site=site))
        consts = tuple((n, v) for n, v in self.kernel.helper_args.get(site.index, ()) if hasattr(v, "sym"))
        params = tuple((names.get(v) or v.name_in(site) or "x", v) for v in inputs)
        docs = self.kernel.helper_docs.get(site.function, NO_DOCS)
        return Group(site.function, "helper", body, params, tuple(outputs), consts, _pure(ops), docs, site)

    def _blocks_of(self, site: CallSite, ops: list[Op], block: Block) -> bool:
        """Does the call site have operations elsewhere than in ``ops``?"""
        mine = {op for op in _all(ops) if site in _chain(op.site)}
        total = sum(1 for b in self.homes[site.index] for op in b.ops if site in _chain(op.site))
        return total != len(mine) or len(set(_all(ops))) != len(mine)

    def _interface(self, ops: Sequence[Op], inside: set[Op]) -> tuple[list[Value], list[Value]]:
        defined = {v for op in inside for v in (*op.results, *(p for r in op.regions for p in r.params))}
        inputs = list(dict.fromkeys(v for op in _all(ops) for v in op.operands if v not in defined))
        outputs = [v for op in ops for v in op.results if any(u not in inside for u in self.users.get(v, ()))]
        return inputs, outputs

    # -- tile loads and stores --------------------------------------------------------------------
    def _views(self, ops: list[Op]) -> list[Op]:
        """Loads and stores with the view that only they use: one ``access_tile`` each."""
        views = {op.result: op for op in ops if op.opcode == "view" and _is_partition(op)}
        folded: dict[Op, Op] = {}
        for op in ops:
            view = views.get(op.operands[0]) if op.opcode in ("load_view", "store_view") else None
            if view is not None and len(self.users[view.result]) == 1:
                folded[view] = op
        if not folded:
            return ops
        made = {access: view for view, access in folded.items()}
        return [self._tile(op, made[op]) if op in made else op for op in ops if op not in folded]

    def _tile(self, op: Op, view: Op) -> Op:
        attrs = {**op.attrs, "access": op.opcode, "view": view.result.ty}
        return replace(
            op, opcode="access_tile", operands=(*view.operands, *op.operands[1:]), attrs=attrs,
            comments=view.comments + op.comments, trailing=view.trailing or op.trailing,
        )  # fmt: skip

    # -- accesses ---------------------------------------------------------------------------------
    def _rules(self, stream: Iterator[Op]) -> Iterator[Op]:
        run: list[Op] = []
        for op in stream:
            if run and (op.rule != run[0].rule or op.site != run[0].site):
                yield from run
                run = []
            if op.rule in _RULES and not op.regions and op.opcode != "call":
                run.append(op)
                if op.opcode in _RULES[op.rule]:
                    yield from self._access(run)
                    run = []
            else:
                yield from run
                run = []
                yield op
        yield from run

    def _access(self, ops: list[Op]) -> Iterator[Op]:
        """The group as a call; as it is when something in its middle is used elsewhere."""
        first = 0
        while ops[0].rule == "operator.mod" and first < len(ops) and ops[first].opcode == "constant":
            first += 1  # a constant divisor is an argument
        yield from ops[:first]
        ops = ops[first:]
        inside = set(ops)
        inputs, outputs = self._interface(ops, inside)
        last = ops[-1]
        if len(ops) < 3 or any(v not in last.results for v in outputs):
            yield from ops
            return
        params = _access_params(last, inputs)
        given = tuple(outputs) or last.results[-1:]
        body = Block([], [*map(_stripped, ops), Op("give", given)])
        name = _access_name(last, params)
        yield self._call(Group(name, "access", body, params, given, (), _pure(ops)), ops, None)


def _is_partition(op: Op) -> bool:
    ty = op.result.ty
    return isinstance(ty, ViewTy) and ty.steps is None and ty.sparse_dim is None


def _access_name(last: Op, params: Sequence[tuple[str, Value]]) -> str:
    if last.rule == "operator.mod":
        return "floor_mod"
    tensor = next((v.ty for _, v in params if isinstance(v.ty, TensorTy)), None)
    base = last.rule.rsplit(".", 1)[1]
    return base if tensor is None else f"{base}_{tensor.rank}d"


def _access_params(last: Op, inputs: Sequence[Value]) -> tuple[tuple[str, Value], ...]:
    """Parameters in the order array, indices, mask, value, token, named by their role."""
    roles: dict[Value, tuple[int, str]] = {}
    values = last.operands[1:-1] if last.opcode in ("store_ptr", "atomic_rmw", "atomic_cas") else ()
    for v in inputs:
        dtype = getattr(v.ty, "dtype", None)
        if isinstance(v.ty, TensorTy):
            roles[v] = (0, "array")
        elif isinstance(v.ty, TokenTy):
            roles[v] = (4, "token")
        elif v in values and (last.opcode != "store_ptr" or v is values[0]):
            roles[v] = (3, "value")
        elif dtype is not None and dtype.category == "bool":
            roles[v] = (2, "mask")
        else:
            roles[v] = (1, "index")
    if last.rule == "operator.mod":
        roles = {v: (1, n) for v, n in zip(inputs, ("a", "b", "c"), strict=False)}
    ordered = sorted(inputs, key=lambda v: roles[v][0])
    indices = [v for v in ordered if roles[v][1] == "index"]
    names = {v: "ijklmn"[k] for k, v in enumerate(indices)} if len(indices) <= 6 else {}
    return tuple((names.get(v, roles[v][1]), v) for v in ordered)


def _stripped(op: Op, site: CallSite | None = None) -> Op:
    """Without the author's comments that go to the call: all but those of the called function itself."""
    if not op.comments and op.trailing is None:
        return op
    kept = tuple(c for c in op.comments if site is not None and _said_in(c, site))
    trailing = op.trailing if site is not None and op.trailing is not None and _said_in(op.trailing, site) else None
    return replace(op, comments=kept, trailing=trailing)


def _said_in(comment: Comment, site: CallSite) -> bool:
    return comment.site is not None and comment.site.within(site)


def _written_out(comments: Sequence[Comment], site: CallSite) -> tuple[Comment, ...]:
    """The caller's comments, a note that a function's statements follow, the function's comments."""
    note = Comment(f"`{site.function}`, written out:", site.parent)
    above = tuple(c for c in comments if not _said_in(c, site))
    return (*above, note, *(c for c in comments if _said_in(c, site)))


def _pure(ops: Sequence[Op]) -> bool:
    return not any(op.opcode in EFFECTS or any(isinstance(v.ty, TokenTy) for v in op.operands) for op in _all(ops))


def _all(ops: Sequence[Op]) -> Iterator[Op]:
    for op in ops:
        yield op
        for region in op.regions:
            yield from _all(region.ops)


def _chain(site: CallSite | None) -> Iterator[CallSite]:
    while site is not None:
        yield site
        site = site.parent


def _child(site: CallSite | None, parent: CallSite | None) -> CallSite | None:
    """The call directly below ``parent`` that ``site`` is part of."""
    for s in _chain(site):
        if s.parent == parent:
            return s
    return None
