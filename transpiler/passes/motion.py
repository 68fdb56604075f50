"""What may be computed earlier than where the author wrote it, as the reference compiler decides it.

It moves what is invariant out of loops (Muchnick, Advanced Compiler Design and Implementation, 1997, section 13.2),
loads, whole branches and loops too, but never what stands in a branch.  To it the body of a helper function that
returns early is a loop that runs once: what follows such a return stands in no branch there, and what that loop
carries (parameters that are assigned, tokens that change in it) isn't invariant.
"""

from __future__ import annotations

from collections.abc import Iterator

from transpiler.ir.tir import EFFECTS, LOADS, TERMINATORS, Block, CallSite, Kernel, Op, Value, parents_of, walk


class Motion:
    """Which operations of a kernel may move; tokens must have been threaded."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._of_calls: dict[CallSite, set[Op]] = {}
        self._busy: set[CallSite] = set()  # calls that are loops to the reference, and stay where they are
        self.parents = parents_of(kernel.body)
        for op in walk(kernel.body):
            if op.opcode in EFFECTS or _is_load(op):
                self._busy.update(op.sites())

    def harmless(self, op: Op) -> bool:
        """May the operation be executed elsewhere, or more often?

        What has a load in it hands out a token that the loop around it carries, whether or not something waits for it.
        """
        if op.opcode in EFFECTS | TERMINATORS or op.attrs.get("ordering") == "acquire":
            return False
        if op.opcode == "if" and any(region.ops[-1].opcode != "yield" for region in op.regions):
            return False
        if any(o.opcode in EFFECTS or _is_load(o) or o.opcode == "return" for o in op.within() if o is not op):
            return False
        return not any(map(self._stays_with_its_call, op.within()))

    def _stays_with_its_call(self, op: Op) -> bool:
        """Is it a part, or the result, of the loop that a call is, and does that stay?"""
        call = op.site if op.returns or op.attrs.get("parameter") else op.result_of
        return isinstance(call, CallSite) and call.once and call in self._busy

    def _invariant(self, call: CallSite) -> set[Op]:
        """The operations in a helper function that depend on nothing that stays there."""
        if call not in self._of_calls:
            self._of_calls[call] = found = set[Op]()
            inside = {op for op in walk(self._kernel.body) if op.site is not None and op.site.within(call)}
            params = {p for op in inside for region in op.regions for p in region.params}
            for op in walk(self._kernel.body):  # what is used is defined earlier
                if op in inside and self.harmless(op) and call not in carriers(op):
                    used = (v for v in free(op) if v in params or v.op in inside)
                    if all(v.op in found for v in used):
                        found.add(op)
        return self._of_calls[call]

    def may_leave_branch(self, op: Op) -> bool:
        """Does an operation stand in a branch only because the other one returns from a helper function?"""
        if op.opcode == "assume":
            return True
        call = op.follows_return
        return call is not None and self._in_no_branch(self.parents[op], call) and op in self._invariant(call)

    def place(self, op: Op, beside: Op) -> None:
        """Note that an operation stands beside another one now."""
        self.parents.pop(op, None)
        if beside in self.parents:
            self.parents[op] = self.parents[beside]

    def _in_no_branch(self, op: Op, call: CallSite) -> bool:
        """Does an operation of a function stand in no branch of it, as the reference sees it?"""
        parent = self.parents.get(op)
        if parent is None or parent.opcode != "if" or parent.site is None or not parent.site.within(call):
            return True
        return op.follows_return is not None and self._in_no_branch(parent, call)


def _is_load(op: Op) -> bool:
    """Is it a load that hands out a token?"""
    return op.opcode in LOADS and not op.attrs.get("untracked")


def defined(body: Block) -> set[Value]:
    """What a loop's body defines, parameters included, and results that only say where a constant comes from."""
    ops = set(walk(body))
    origins = {op.result_of for op in ops if isinstance(op.result_of, Value) and op.result_of.op in ops}
    return {
        *body.params,
        *origins,
        *(v for op in ops for v in (*op.results, *(p for r in op.regions for p in r.params))),
    }


def free(op: Op) -> Iterator[Value]:
    """The values from outside that an operation uses, those of its regions included."""
    own = {v for region in op.regions for v in defined(region)}
    for each in op.within():
        yield from (v for v in each.operands if v not in own)
        if isinstance(each.result_of, Value) and each.result_of not in own:
            yield each.result_of


def carriers(op: Op) -> set[CallSite]:
    """The calls whose loops carry a token that an operation, or one in it, waits for."""
    return {call for each in op.within() for call in each.carried_by}


class Inside:
    """The operations in a loop: which of them the reference compiler has at the top of its body, or before it."""

    def __init__(self, motion: Motion, loop: Op) -> None:
        self.motion, self.loop, self.body = motion, loop, loop.regions[0]
        self.values = defined(self.body)
        self.around = set(loop.sites())
        self.parents = parents_of(self.body)
        self.at_top: set[Op] = set()
        """The operations that stand at the top of the body, or are moved there."""
        self._before: set[Op] = set()
        own = {op for op in self.body.ops if not op.runs_once_in(loop)}
        for op in walk(self.body):  # what is used is defined earlier
            moves = self._moves(op)
            used = [v for v in free(op) if v in self.values] if moves else []
            if moves and all(v.op in self._before for v in used):
                self._before.add(op)
            if op in own or (moves and all(v in self.body.params or v.op in self.at_top for v in used)):
                self.at_top.add(op)

    def before(self, v: Value) -> bool:
        """Is it defined before the loop, or moved there?"""
        return v not in self.values or v.op in self._before

    def _moves(self, op: Op) -> bool:
        """May it be moved, and is it in no branch?"""
        inner = op
        while inner in self.parents:
            if self.parents[inner].opcode == "if" and inner.follows_return is None:
                return False
            inner = self.parents[inner]
        return carriers(op) <= self.around and self.motion.harmless(op)

    def pull_up(self, op: Op) -> None:
        """Move an operation to the top of the body, before what it stands in."""
        top = op
        while top in self.parents:
            top = self.parents[top]
        if top is not op:
            self._move(op, self.body, top)

    def pull_out(self, v: Value, block: Block) -> None:
        """Move the operation that computes a value to ``block``, before the loop."""
        if v in self.values and v.op is not None:
            self._move(v.op, block, self.loop)

    def _move(self, op: Op, block: Block, before: Op) -> None:
        """Move an operation, and what it needs from the loop, into ``block`` before another operation."""
        at = block.ops.index(before)
        needed = self._needed(op)
        for each in [each for each in walk(self.body) if each in needed and each not in block.ops[:at]]:
            home = self.parents.pop(each, None)
            regions = home.regions if home is not None else (self.body,)
            next(r for r in regions if each in r.ops).ops.remove(each)
            block.ops.insert(at, each)
            at += 1

    def _needed(self, op: Op) -> set[Op]:
        """The operation and those in the loop, outside of it, that it depends on."""
        found = {op}
        work = [op]
        while work:
            for v in free(work.pop()):
                if v in self.values and v.op is not None and v.op not in found:
                    found.add(v.op)
                    work.append(v.op)
        return found
