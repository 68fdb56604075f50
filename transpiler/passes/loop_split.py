"""Split a counted loop where an ``if`` in it compares the induction variable with something invariant.

``for i in range(a, b): if i >= m: X else: Y`` becomes a loop with Y up to m and a loop with X from
m on (index set splitting; Wolfe, High Performance Compilers for Parallel Computing, 1996, 9.1).
The reference compiler does this for loops with step 1 and exactly one such ``if``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from transpiler.ir.symbolic import lit
from transpiler.ir.tir import TERMINATORS, Block, CallSite, Comment, Kernel, Op, Value, walk
from transpiler.ir.types import TileTy
from transpiler.passes.motion import Inside, Motion

_FLIP = {"ge": "le", "gt": "lt", "le": "ge", "lt": "gt"}
# predicate -> (the split is after the bound, branch in the first loop, branch in the second loop)
_PLAN = {"ge": (False, 1, 0), "gt": (True, 1, 0), "le": (True, 0, 1), "lt": (False, 0, 1)}


@dataclass(frozen=True)
class _Split:
    branch: Op
    predicate: str
    bound: Value


def split_loops(kernel: Kernel) -> None:
    """Split every loop that has exactly one splittable ``if``, inner loops first."""
    splits: dict[Op, _Split] = {}
    _find(kernel.body, Motion(kernel), splits)
    _visit(kernel, kernel.body, splits)


def _find(block: Block, motion: Motion, splits: dict[Op, _Split]) -> None:
    """Decide on every loop before one is split, and move what its split needs to where that stands then."""
    for op in list(block.ops):
        if op.opcode == "for" and op.operands[2].constant == 1:
            inside = Inside(motion, op)
            found = _candidates(inside)
            if len(found) == 1:
                (splits[op],) = found
                inside.pull_up(found[0].branch)
                inside.pull_out(found[0].bound, block)
        for region in op.regions:
            _find(region, motion, splits)


def _visit(kernel: Kernel, block: Block, splits: Mapping[Op, _Split]) -> None:
    for op in list(block.ops):
        for region in op.regions:
            _visit(kernel, region, splits)
        if op in splits:
            _apply(kernel, block, op, splits[op])


def _candidates(inside: Inside) -> list[_Split]:
    """The branches that stand at the top of a loop's body, or are moved there, and compare with its variable."""
    induction = inside.body.params[0]
    out = []
    for op in walk(inside.body):
        compare = op.operands[0].op if op.opcode == "if" else None
        returns = op.returns and op.runs_once_in(inside.loop)  # it stays in the loop that the function is
        if returns or compare is None or compare.opcode != "cmpi" or not compare.attrs["signed"]:
            continue
        a, b = compare.operands
        predicate = compare.attrs["predicate"]
        bound, predicate = (b, predicate) if a is induction else (a, _FLIP.get(predicate, predicate))
        compares = induction in (a, b) and predicate in _PLAN and inside.before(bound)
        if compares and op in inside.at_top and compare in inside.at_top:
            out.append(_Split(op, predicate, bound))
    return out


def _apply(kernel: Kernel, block: Block, loop: Op, split: _Split) -> None:
    after_bound, first_branch, second_branch = _PLAN[split.predicate]
    at = split.bound
    if after_bound:
        one = _insert(block, loop, "constant", (), at.ty, value=1, sym=lit(1))
        at = _insert(block, loop, "addi", (at, one), at.ty)
    lower, upper, step = loop.operands[:3]
    stop = _insert(block, loop, "mini", (upper, at), at.ty, signed=True)
    start = _insert(block, loop, "maxi", (lower, at), at.ty, signed=True)
    first = _clone_loop(kernel, loop, (lower, stop, step, *loop.operands[3:]), split.branch, first_branch)
    first.comments = loop.comments
    second = _clone_loop(kernel, loop, (start, upper, step, *first.results), split.branch, second_branch)
    i = block.ops.index(loop)
    block.ops[i : i + 1] = [first, second]
    _replace_uses(block, dict(zip(loop.results, second.results, strict=True)))


def _insert(block: Block, loop: Op, opcode: str, operands: tuple[Value, ...], ty: object, **attrs: object) -> Value:
    assert isinstance(ty, TileTy)
    op = Op(opcode, operands, dict(attrs), span=loop.span, site=loop.site, rule="loop-split", statement=loop.statement)
    op.results = (Value(ty, op=op),)
    block.ops.insert(block.ops.index(loop), op)
    return op.result


def _replace_uses(block: Block, new: dict[Value, Value]) -> None:
    # Only operations after the loop, in this block, can use its results.
    for op in walk(block):
        op.operands = tuple(new.get(v, v) for v in op.operands)


def _clone_loop(kernel: Kernel, loop: Op, operands: tuple[Value, ...], branch: Op, keep: int) -> Op:
    copier = _Copier(kernel, loop, branch, keep)
    body = copier.block(loop.regions[0])
    copier.copy_calls()
    out = Op(loop.opcode, operands, dict(loop.attrs), span=loop.span, site=loop.site, statement=loop.statement,
             rule=loop.rule, trailing=loop.trailing)  # fmt: skip
    out.results = tuple(Value(r.ty, r.hint, out, r.names) for r in loop.results)
    out.regions = (body,)
    return out


class _Copier:
    """Deep copy with one ``if`` replaced by one of its branches."""

    def __init__(self, kernel: Kernel, loop: Op, branch: Op, keep: int) -> None:
        self.kernel, self.branch, self.keep = kernel, branch, keep
        self.map: dict[Value, Value] = {}
        self.sites: dict[CallSite | None, CallSite | None] = {None: None}
        outer = loop.site
        while outer is not None:  # calls that the loop is part of stay the same calls
            self.sites[outer] = outer
            outer = outer.parent

    def _site(self, site: CallSite | None) -> CallSite | None:
        """A helper call inside the loop becomes another call in each copy."""
        if site not in self.sites:
            assert site is not None
            index = max(self.kernel.helper_args) + 1
            self.sites[site] = replace(site, index=index, parent=self._site(site.parent))
            self.kernel.helper_args[index] = self.kernel.helper_args[site.index]
            self.kernel.helper_returns[index] = self.kernel.helper_returns.get(site.index, ())
        return self.sites[site]

    def _comment(self, comment: Comment) -> Comment:
        return replace(comment, site=self._site(comment.site))

    def copy_calls(self) -> None:
        """Give the copied calls the copied arguments and results."""
        for old, new in self.sites.items():
            if old is None or new is None or old is new:
                continue
            args = self.kernel.helper_args[old.index]
            self.kernel.helper_args[new.index] = tuple((n, self.map.get(a, a)) for n, a in args)
            returns = self.kernel.helper_returns.get(old.index, ())
            self.kernel.helper_returns[new.index] = tuple(self.map.get(v, v) for v in returns)

    def block(self, block: Block) -> Block:
        out = Block([self._fresh(p, None) for p in block.params])
        for op in block.ops:
            if op is self.branch:
                self._inline(op.regions[self.keep], op, out)
                if out.ops and out.ops[-1].opcode in TERMINATORS:
                    break
            else:
                out.ops.append(self._op(op))
        return out

    def _inline(self, region: Block, op: Op, out: Block) -> None:
        for inner in region.ops[:-1]:
            out.ops.append(self._op(inner))
        end = region.ops[-1]
        if end.opcode != "yield":  # the branch ends the iteration
            out.ops.append(self._op(end))
            return
        for r, v in zip(op.results, end.operands, strict=True):
            self.map[r] = self.map.get(v, v)

    def _op(self, op: Op) -> Op:
        new = Op(op.opcode, tuple(self.map.get(v, v) for v in op.operands), dict(op.attrs), span=op.span,
                 comments=tuple(map(self._comment, op.comments)), site=self._site(op.site), rule=op.rule,
                 trailing=op.trailing and self._comment(op.trailing), statement=op.statement)  # fmt: skip
        new.results = tuple(self._fresh(r, new) for r in op.results)
        new.regions = tuple(self.block(r) for r in op.regions)
        return new

    def _fresh(self, v: Value, op: Op | None) -> Value:
        new = Value(v.ty, v.hint, op, {self._site(s): n for s, n in v.names.items()})
        self.map[v] = new
        return new
