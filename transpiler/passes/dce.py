"""Dead code elimination over structured SSA, loop-carried values included.

A mark and sweep from the effects: a carried value is live when its result is used after the loop
or its parameter is used by something live in the body (cf. Cytron et al., 1991, section 7.1).

A loop that runs needs the conditions on which its iterations end.  To the reference compiler the body of a helper
function that returns early is such a loop: as long as anything of it is live, it is decided where it returns, even
if nothing depends on that.  What is loaded for such a decision orders the memory operations after it, so this holds
until the tokens are threaded; afterwards they say what is needed.  Who uses a value that an ``if`` or a loop has on
every way needs the ``if`` or the loop there, until loops are split at it.
"""

from __future__ import annotations

from collections.abc import Iterator

from transpiler.ir.tir import EFFECTS, TERMINATORS, Block, CallSite, Kernel, Op, Value, parents_of, walk


def eliminate_dead_code(kernel: Kernel, *, last: bool = False) -> None:
    """Remove operations and carried values that no effect depends on. Tokens count as values.

    ``last``: nothing looks at branches any more, so those go that hand over what there is without them.
    """
    _drop_unreachable(kernel.body)
    threaded = any(op.opcode == "make_token" for op in kernel.body.ops)
    live = _mark(kernel.body, threaded, last)
    _sweep(kernel.body, live)


def _drop_unreachable(block: Block) -> None:
    for i, op in enumerate(block.ops):
        for region in op.regions:
            _drop_unreachable(region)
        if op.opcode in TERMINATORS:
            del block.ops[i + 1 :]
            return


class _Marker:
    def __init__(self, last: bool) -> None:
        self.last = last
        self.live: set[Value] = set()
        self.ops: set[Op] = set()
        self.work: list[Value] = []
        self.sources: dict[Value, list[Value]] = {}  # parameter or result -> values that flow into it
        self.owner: dict[Value, Op] = {}

    def prepare(self, block: Block, loop: Op | None) -> None:
        for op in block.ops:
            for r in op.results:
                self.owner[r] = op
            if op.opcode in ("for", "loop"):
                first = 3 if op.opcode == "for" else 0
                params = op.regions[0].params[1 if first else 0 :]
                for p, init, r in zip(params, op.operands[first:], op.results, strict=True):
                    self.owner[p] = op
                    self.sources.setdefault(p, []).append(init)
                    self.sources.setdefault(r, []).append(p)  # what stays has an initial and a next value
                self.prepare(op.regions[0], op)
            elif op.opcode == "if":
                for region in op.regions:
                    self.prepare(region, loop)
                    end = region.ops[-1]
                    if end.opcode == "yield":
                        for r, v in zip(op.results, end.operands, strict=True):
                            self.sources.setdefault(r, []).append(v)
            elif op.opcode in ("continue", "break") and loop is not None:
                self._flow(op, loop)

    def _flow(self, end: Op, loop: Op) -> None:
        params = loop.regions[0].params[1 if loop.opcode == "for" else 0 :]
        for p, r, v in zip(params, loop.results, end.operands, strict=True):
            if end.opcode == "continue":
                self.sources.setdefault(p, []).append(v)
                if loop.opcode == "for":
                    self.sources.setdefault(r, []).append(v)
            else:
                self.sources.setdefault(r, []).append(v)

    def need(self, v: Value) -> None:
        if v not in self.live:
            self.live.add(v)
            self.work.append(v)

    def keep(self, op: Op) -> None:
        """The operation runs: its own operands are needed (not what its regions only pass on)."""
        if op in self.ops:
            return
        self.ops.add(op)
        count = {"for": 3, "loop": 0, "if": 1}.get(op.opcode, len(op.operands))
        if op.opcode in ("continue", "break", "yield"):
            count = 0
        for v in op.operands[:count]:
            self.need(v)
        if isinstance(op.result_of, Value) and not self.last:
            self.need(op.result_of)


def _returns(body: Block) -> dict[CallSite, list[Op]]:
    """The branches in which each call of a helper function returns early."""
    found: dict[CallSite, list[Op]] = {}
    for op in walk(body):
        if op.returns and op.site is not None:
            found.setdefault(op.site, []).append(op)
    return found


def _mark(body: Block, threaded: bool, last: bool) -> _Marker:
    m = _Marker(last)
    m.prepare(body, None)
    returns = {} if threaded else _returns(body)
    parents = parents_of(body)

    def keep_with_parents(op: Op | None) -> None:
        while op is not None:
            fresh = op not in m.ops
            m.keep(op)
            if fresh and op.opcode in ("for", "loop"):
                for branch in _exits(op.regions[0]):
                    keep_with_parents(branch)
            for call in op.calls() if fresh else ():
                for branch in returns.pop(call, ()):
                    keep_with_parents(branch)
            op = parents.get(op)

    for op in walk(body):
        if op.opcode in EFFECTS or op.opcode == "return":
            keep_with_parents(op)
    while m.work:
        v = m.work.pop()
        for s in m.sources.get(v, ()):
            m.need(s)
        owner = m.owner.get(v)
        if owner is not None:
            keep_with_parents(owner)
    return m


def _exits(block: Block) -> Iterator[Op]:
    """The branches of an iteration in which it ends: a loop that runs needs their conditions."""
    for op in block.ops:
        if op.opcode == "if":
            if any(r.ops and r.ops[-1].opcode in ("break", "continue") for r in op.regions):
                yield op
            for region in op.regions:
                yield from _exits(region)


def _sweep(block: Block, m: _Marker) -> None:
    kept = []
    for op in block.ops:
        if op.opcode in TERMINATORS:
            kept.append(op)
            continue
        if op not in m.ops:
            _carry_comments(op, block)
            continue
        _prune(op, m)
        kept.append(op)
    block.ops = kept


def _carry_comments(dead: Op, block: Block) -> None:
    """A comment above a statement that left no operation moves to the next one."""
    if not dead.comments:
        return
    after = block.ops[block.ops.index(dead) + 1 :]
    if after:
        after[0].comments = tuple(c for c in dead.comments if after[0].stands_in(c.site)) + after[0].comments


def _prune(op: Op, m: _Marker) -> None:
    if op.opcode in ("for", "loop"):
        _prune_loop(op, m)
    elif op.opcode == "if":
        keep = [i for i, r in enumerate(op.results) if r in m.live]
        for region in op.regions:
            end = region.ops[-1]
            if end.opcode == "yield":
                end.operands = tuple(end.operands[i] for i in keep)
        op.results = tuple(op.results[i] for i in keep)
    for region in op.regions:
        _sweep(region, m)


def _prune_loop(op: Op, m: _Marker) -> None:
    first, lead = (3, 1) if op.opcode == "for" else (0, 0)
    body = op.regions[0]
    params = body.params[lead:]
    keep = [i for i, (p, r) in enumerate(zip(params, op.results, strict=True)) if p in m.live or r in m.live]
    for end in _ends(body):
        last = end.opcode == "break"  # what nobody reads after the loop stays as it was
        end.operands = tuple(params[i] if last and op.results[i] not in m.live else end.operands[i] for i in keep)
    body.params = body.params[:lead] + [params[i] for i in keep]
    op.operands = op.operands[:first] + tuple(op.operands[first + i] for i in keep)
    op.results = tuple(op.results[i] for i in keep)


def _ends(block: Block) -> list[Op]:
    """The jumps that belong to this loop body."""
    out = []
    for op in block.ops:
        if op.opcode in ("continue", "break"):
            out.append(op)
        elif op.opcode == "if":
            for region in op.regions:
                out.extend(_ends(region))
    return out
