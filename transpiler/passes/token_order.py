"""Thread memory tokens: which access happens after which.

The order is the one that cuTile Python's programs have: accesses to one array follow each other
(loads only follow stores), accesses to different arrays are independent unless they may alias, a
loop or branch that touches an array carries the array's tokens, and a store in a counted loop
whose index is the induction variable doesn't wait for the stores of earlier iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from transpiler.ir.symbolic import Sym
from transpiler.ir.tir import LOADS, Block, CallSite, Condition, Kernel, Op, Value, note, walk
from transpiler.ir.types import TOKEN

Effect = Literal[1, 2]  # load, store
ANY = "*"  # an access to anything (print, grid control)
_STORES = ("store_view", "store_ptr")
_ATOMICS = ("atomic_rmw", "atomic_cas", "atomic_red_view")
_GLOBAL = ("print", "gdc_wait", "gdc_launch")
_ACQUIRES = ("acquire", "acq_rel")
_RELEASES = ("release", "acq_rel")


@dataclass(frozen=True)
class Key:
    """A token slot: an alias group's last operation or last store, or the last acquire."""

    group: str
    role: Literal["op", "store", "acquire"]


ACQUIRE = Key("", "acquire")


@dataclass
class _Effects:
    """What a block does to memory: alias group -> strongest effect, in order of first access."""

    groups: dict[str, Effect] = field(default_factory=dict)
    acquires: bool = False

    def add(self, group: str, effect: Effect) -> None:
        self.groups[group] = max(self.groups.get(group, 1), effect)

    def join(self, other: _Effects) -> None:
        for g, e in other.groups.items():
            self.add(g, e)
        self.acquires |= other.acquires

    def keys(self) -> list[Key]:
        """The slots that control flow around the block carries."""
        out = []
        for g, e in self.groups.items():
            out.append(Key(g, "op"))
            if e == 2:
                out.append(Key(g, "store"))
        return out + [ACQUIRE] * self.acquires


@dataclass
class _Loop:
    effects: _Effects
    parallel: frozenset[Op]
    outside: Mapping[Key, Value]


class _Tokens(dict[Key, Value]):
    """Slots to tokens; a slot that nothing touched holds the root token."""

    def __init__(self, root: Value, items: Mapping[Key, Value] = {}) -> None:
        super().__init__(items)
        self.root = root

    def __missing__(self, key: Key) -> Value:
        self[key] = self.root
        return self.root

    def fork(self) -> _Tokens:
        return _Tokens(self.root, self)


def order_tokens(kernel: Kernel) -> None:
    """Add tokens to every memory access and to the control flow around them.

    Arrays with the same alias groups share their tokens; arrays with some group in common wait for
    each other.
    """
    if not any(_effect(op) for op in walk(kernel.body)):
        return
    pass_ = _Pass(kernel)
    pass_.summarize(kernel.body)
    make = Op("make_token", span=kernel.span)
    make.results = (Value(TOKEN, "token", make),)
    at = sum(1 for op in kernel.body.ops if op.opcode in ("tensor", "scalar"))
    pass_.block(kernel.body, _Tokens(make.result), None, None)
    kernel.body.ops.insert(at, make)


def _effect(op: Op) -> Effect | None:
    if op.opcode in LOADS:
        return None if op.attrs.get("untracked") else 1
    return 2 if op.opcode in _STORES + _ATOMICS + _GLOBAL else None


class _Pass:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.aliases = kernel.aliases
        self.groups: dict[str, frozenset[str]] = {}
        self.effects: dict[int, _Effects] = {}
        self.calls: dict[CallSite, _Effects] = {}  # of the functions that are loops to the reference compiler

    def group(self, op: Op) -> str:
        """The alias group of an access, under the name of one array or of the groups."""
        if op.opcode in _GLOBAL:
            return ANY
        array = str(op.attrs["array"])
        groups = self.aliases.get(array, ())
        name = "|".join(sorted(groups)) or array
        self.groups[name] = frozenset(groups) or frozenset({array})
        return name

    def summarize(self, block: Block) -> _Effects:
        out = _Effects()
        for op in block.ops:
            if (e := _effect(op)) is not None:
                out.add(self.group(op), e)
                acquires = op.attrs.get("ordering") in _ACQUIRES or op.opcode == "gdc_wait"
                out.acquires |= acquires
                for call in op.sites():
                    if call.once:
                        inside = self.calls.setdefault(call, _Effects())
                        inside.add(self.group(op), e)
                        inside.acquires |= acquires
            for region in op.regions:
                out.join(self.summarize(region))
        self.effects[id(block)] = out
        return out

    # -- blocks -----------------------------------------------------------------------------------
    def block(self, block: Block, tokens: _Tokens, loop: _Loop | None, branch: _Effects | None) -> None:
        out: list[Op] = []
        for op in block.ops:
            if op.opcode in ("for", "loop"):
                tokens = self._loop(op, tokens)
                out.append(op)
            elif op.opcode == "if":
                tokens = self._if(op, tokens, loop)
                out.append(op)
            elif op.opcode in ("continue", "break") and loop is not None:
                op.operands += tuple(tokens[k] for k in loop.effects.keys())  # noqa: SIM118
                out.append(op)
            elif op.opcode == "yield" and branch is not None:
                op.operands += tuple(tokens[k] for k in branch.keys())  # noqa: SIM118
                out.append(op)
            elif _effect(op) is not None:
                out.extend(self._access(op, tokens, loop))
            else:
                out.append(op)
        block.ops = out

    def _loop(self, op: Op, tokens: _Tokens) -> _Tokens:
        body = op.regions[0]
        effects = self.effects[id(body)]
        inside, after = tokens.fork(), tokens.fork()
        self._note_carried(op, tokens, set(effects.keys()).__contains__)
        for key in effects.keys():  # noqa: SIM118
            op.operands += (tokens[key],)
            inside[key] = Value(TOKEN, _name(key))
            body.params.append(inside[key])
            after[key] = Value(TOKEN, _name(key), op)
            op.results += (after[key],)
        self.block(body, inside, _Loop(effects, self._parallel_stores(op, effects), tokens), None)
        return after

    def _if(self, op: Op, tokens: _Tokens, loop: _Loop | None) -> _Tokens:
        merged = _Effects()
        for region in op.regions:
            merged.join(self.effects[id(region)])
        for region in op.regions:
            self.block(region, tokens.fork(), loop, merged)
        after = tokens.fork()
        if not any(r.ops[-1].opcode == "yield" for r in op.regions):
            return after
        for key in merged.keys():  # noqa: SIM118
            after[key] = Value(TOKEN, _name(key), op)
            op.results += (after[key],)
        return after

    # -- accesses ---------------------------------------------------------------------------------
    def _access(self, op: Op, tokens: _Tokens, loop: _Loop | None) -> list[Op]:
        group = self.group(op)
        last_op, last_store = Key(group, "op"), Key(group, "store")
        if loop is not None and op in loop.parallel:
            return self._parallel_store(op, tokens, loop, last_op, last_store)
        out: list[Op] = []
        wanted = last_store if op.opcode in LOADS else last_op
        op.operands += (self._input(wanted, op, tokens, out),)
        out.append(op)
        token = op.results[-1]
        token.hint = token.hint or _name(last_op)
        if op.opcode in LOADS:
            tokens[last_op] = _join(op, [tokens[last_op], token], out)
        else:
            tokens[last_op] = tokens[last_store] = token
        if op.attrs.get("ordering") in _ACQUIRES or op.opcode == "gdc_wait":
            tokens[ACQUIRE] = token
        return out

    def _input(self, key: Key, op: Op, tokens: _Tokens, out: list[Op]) -> Value:
        def waits_for(other: Key) -> bool:
            return (
                other == ACQUIRE
                or (op.attrs.get("ordering") in _RELEASES and other.role == "op")
                or (other.role == key.role and self._overlap(other.group, key.group))
            )

        wanted = [tokens[key]]
        for other, token in tokens.items():
            if waits_for(other) and token not in wanted:
                wanted.append(token)
        self._note_carried(op, tokens, waits_for)
        return wanted[0] if len(wanted) == 1 else _join(op, wanted, out)

    def _note_carried(self, op: Op, tokens: Mapping[Key, Value], waits_for: Callable[[Key], bool]) -> None:
        """Note the calls around an operation that carry a token that it waits for, as they got it."""
        for call in op.sites():
            for key in self.calls[call].keys() if call in self.calls else ():
                last = tokens[key].op if key in tokens else None
                if waits_for(key) and (last is None or last.site is None or not last.site.within(call)):
                    op.carried_by |= {call}

    def _overlap(self, a: str, b: str) -> bool:
        return a == b or ANY in (a, b) or bool(self.groups.get(a, frozenset()) & self.groups.get(b, frozenset()))

    # -- parallel stores --------------------------------------------------------------------------
    def _parallel_stores(self, loop: Op, effects: _Effects) -> frozenset[Op]:
        """Stores through a view that are the only access to their array and indexed by the induction variable."""
        if loop.opcode != "for" or any(g == ANY or len(self.groups[g]) > 1 for g in effects.groups):
            return frozenset()
        body = loop.regions[0]
        inner = {self.group(o) for op in body.ops for r in op.regions for o in walk(r) if _effect(o) is not None}
        accesses: dict[str, list[Op]] = {}
        for op in body.ops:
            if _effect(op) is not None:
                if op.runs_once_in(loop):
                    inner.add(self.group(op))
                accesses.setdefault(self.group(op), []).append(op)
        induction = body.params[0]
        return frozenset(
            ops[0]
            for group, ops in accesses.items()
            if len(ops) == 1 and ops[0].opcode == "store_view" and group not in inner
            and induction in ops[0].operands[1:-1] and _is_partition(ops[0]) and not self._overlaps(ops[0])
        )  # fmt: skip

    def _overlaps(self, store: Op) -> bool:
        """Whether a store's array may overlap itself, which decides here what the store waits for."""
        overlaps = bool(store.attrs.get("may_alias"))
        note(self.kernel, Condition(Sym("overlaps", (store.attrs["array"],)), overlaps, store.span))
        return overlaps

    def _parallel_store(self, op: Op, tokens: _Tokens, loop: _Loop, last_op: Key, last_store: Key) -> list[Op]:
        out: list[Op] = []
        before = loop.outside[last_op]
        if ACQUIRE in tokens and tokens[ACQUIRE] is not before:
            before = _join(op, [before, tokens[ACQUIRE]], out)
        op.operands += (before,)
        out.append(op)
        op.results[-1].hint = _name(last_op)
        tokens[last_op] = tokens[last_store] = _join(op, [tokens[last_op], op.results[-1]], out)
        return out


def _is_partition(store: Op) -> bool:
    ty = store.operands[0].ty
    return getattr(ty, "steps", None) is None and getattr(ty, "sparse_dim", None) is None


def _name(key: Key) -> str:
    if key.role == "acquire":
        return "acquired"
    group = "memory" if key.group == ANY else key.group
    return f"{group}_token" if key.role == "op" else f"{group}_stored"


def _join(op: Op, tokens: list[Value], out: list[Op]) -> Value:
    join = Op("join_tokens", tuple(tokens), {}, span=op.span, site=op.site, statement=op.statement)
    join.follows_return, join.carried_by = op.follows_return, op.carried_by
    join.results = (Value(TOKEN, tokens[-1].hint, join),)
    out.append(join)
    return join.result
