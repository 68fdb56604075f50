"""Mamba-2: chunked scans forward and backward."""

from __future__ import annotations

from typing import Any, NamedTuple

from tools.own_entries.common import BF16, F16, F32, TAG, Entries, entry
from transpiler.recordings import array_for
from transpiler.spec import ArraySpec, Specialization

_PARTIALS = 128  # partial sums a tile of states leaves behind


class _Call(NamedTuple):
    """Sizes of one call: T tokens in chunks, heads of size P in groups, states of size N."""

    dtype: str
    batch: int
    tokens: int
    heads: int
    groups: int
    head: int  # P
    state: int  # N
    chunk: int
    state_dtype: str = F32

    def name(self, *more: str) -> str:
        b, t, h, g, p, n = self[1:7]
        return "_".join((f"{TAG[self.dtype]}_b{b}_t{t}_h{h}x{g}_p{p}_n{n}_c{self.chunk}", *more))

    @property
    def chunks(self) -> int:
        return self.tokens // self.chunk

    def inputs(self, *names: str) -> dict[str, ArraySpec]:
        """Describe arrays that several kernels take, by name."""
        b, t, h, g, p, n = self[1:7]
        states = [b, h, self.chunks, p, n]
        shapes = {"x": [b, t, h, p], "dout": [b, t, h, p], "dx": [b, t, h, p], "out": [b, t, h, p], "b": [b, t, g, n],
                  "c": [b, t, g, n], "ddt": [b, t, h], "ddt_partial": [b, t, h]}  # fmt: skip
        known = {name: array_for(self.dtype, shape) for name, shape in shapes.items()}
        known |= {"a": array_for(F32, [h]), "d": array_for(F32, [h]), "dt": array_for(self.dtype, [b, h, t]),
                  "decay_cumsum": array_for(F32, [b, h, t]), "ddecay_cumsum": array_for(F32, [b, t, h]),
                  "hiddens": array_for(self.state_dtype, states), "dhiddens": array_for(self.state_dtype, states),
                  "dcb": array_for(self.dtype, [b, t, h, self.chunk])}  # fmt: skip
        return {name: known[name] for name in names}


_WIDE = _Call(BF16, 2, 1024, 8, 2, 64, 128, 128)
_COMMON = _Call(BF16, 2, 512, 12, 1, 64, 64, 64, BF16)
_HALF = _Call(F16, 1, 192, 6, 6, 32, 64, 64)
_SINGLE = _Call(F32, 3, 256, 8, 4, 64, 32, 64)
_CALLS = (_WIDE, _COMMON, _HALF, _SINGLE)


def mamba2() -> dict[str, Entries]:
    """Chunks of 64 and 128; heads in groups or one a group; states in f32 or narrowed."""
    return {
        "chunk_cumsum_kernel": [_cumsum(call, 4 if call.heads % 4 == 0 else 2) for call in _CALLS],
        "fwd_pass_state_kernel": [_state(*row) for row in (
            (_WIDE, 64, False, False, True), (_WIDE, 32, True, True, False), (_COMMON, 16, False, True, False),
            (_HALF, 32, True, True, True), (_SINGLE, 32, False, False, False))],
        "compute_out_kernel": [_out(_WIDE, 64, 4, True), _out(_WIDE, 128, 3, False),
                               _out(_Call(F16, 1, 384, 3, 1, 32, 48, 128), 16, 5, False),
                               _out(_Call(F32, 2, 256, 4, 2, 64, 32, 128), 32, 6, True)],
        "compute_out_swap_kernel": [_out(call, 32, 4, persistent, 3) for call, persistent in (
            (_COMMON, True), (_HALF._replace(state=96), True), (_SINGLE, False))],
        "bwd_pass_state_kernel": [_backward_state(*row) for row in (
            (_WIDE, 64, True), (_COMMON, 16, False), (_HALF, 32, True), (_SINGLE, 32, True))],
        "compute_dd_dcb_dx_kernel": [_dx(call, persistent) for call, persistent in (
            (_WIDE, True), (_COMMON, True), (_HALF, False), (_SINGLE, True))],
        "compute_da_db_dc_ddt_kernel": [_gradients(call, persistent) for call, persistent in (
            (_WIDE, True), (_COMMON, False), (_HALF, True), (_SINGLE, False))],
    }  # fmt: skip


def _cumsum(call: _Call, block: int) -> Specialization:
    b, t, h = call.batch, call.tokens, call.heads
    return entry(
        call.name(), {"occupancy": 4}, a=array_for(F32, [h]), dt=array_for(call.dtype, [b, t, h]),
        out_bth=array_for(F32, [b, t, h]), out_bht=array_for(F32, [b, h, t]), dt_bht=array_for(call.dtype, [b, h, t]),
        chunk_size=call.chunk, BLOCK_H=block,
    )  # fmt: skip


def _state(call: _Call, block: int, swap: bool, bht: bool, dual: bool) -> Specialization:
    b, t, h = call.batch, call.tokens, call.heads
    steps = [b, h, t] if bht else [b, t, h]
    state = array_for(F32, [b, h, call.head, call.state])
    wide = call.inputs("hiddens")["hiddens"]
    narrow = call._replace(state_dtype=call.dtype).inputs("hiddens")["hiddens"] if dual else wide
    return entry(
        call.name(*["swap"] * swap, "bht" if bht else "bth", *["dual"] * dual), {"num_ctas": 1, "occupancy": 2},
        **call.inputs("x", "b"), dt=array_for(call.dtype, steps), decay_cumsum=array_for(F32, steps), init_state=state,
        hiddens=wide, hid_narrow=narrow, final_state=state, chunk_size=call.chunk, BLOCK_STATE=block,
        BLOCK_HEAD=min(64, call.head), num_heads_per_group=call.heads // call.groups, LOAD_LAT=4, STORE_LAT=2,
        BDD_LAT=2, SWAP=swap, BHT=bht, DUAL=dual,
    )  # fmt: skip


def _out(call: _Call, block: int, h_lat: int, persistent: bool, latency: int | None = None) -> Specialization:
    swap: dict[str, Any] = {} if latency is None else {"LATENCY": latency}
    return entry(
        call.name(f"s{block}", *["persistent"] * persistent), {"occupancy": 1},
        **call.inputs("x", "b", "c", "d", "dt", "decay_cumsum", "hiddens", "out"), chunk_size=call.chunk,
        BLOCK_STATE=block, BLOCK_HEAD=min(64, call.head), num_heads_per_group=call.heads // call.groups,
        state_size=call.state, H_LAT=h_lat, persistent=persistent, **swap,
    )  # fmt: skip


def _backward_state(call: _Call, block: int, partials: bool) -> Specialization:
    b, t, h, _, p, n = call[1:7]
    block_head = min(64, p)
    hidden = call.inputs("hiddens", "dhiddens")
    sums = array_for(F32, [b, h, call.chunks, p // block_head, n // block, _PARTIALS])
    state = array_for(F32, [b, h, p, n])
    return entry(
        call.name(f"s{block}", *["partials"] * partials), {"num_ctas": 1, "occupancy": 2}, **call.inputs("c", "dout"),
        decay_cumsum=array_for(F32, [b, t, h]), dfinal_state=state, dhiddens=hidden["dhiddens"],
        hiddens=hidden["hiddens" if partials else "dhiddens"],
        dd_last_partials=sums if partials else hidden["dhiddens"], dinit_state=state, chunk_size=call.chunk,
        BLOCK_STATE=block, BLOCK_HEAD=block_head, num_heads_per_group=call.heads // call.groups, LOAD_LAT=5,
        STORE_LAT=1, CD_LAT=3, HID_LAT=3, WITH_PARTIALS=partials,
    )  # fmt: skip


def _dx(call: _Call, persistent: bool) -> Specialization:
    names = ("x", "b", "c", "d", "dt", "decay_cumsum", "dout", "dhiddens", "dx", "ddt", "ddecay_cumsum", "dcb")
    return entry(
        call.name(*["persistent"] * persistent), {"occupancy": 1}, **call.inputs(*names),
        dd=array_for(F32, [call.batch, call.heads, call.chunks]), chunk_size=call.chunk, BLOCK_STATE=32,
        BLOCK_HEAD=call.head, num_heads_per_group=call.heads // call.groups, state_size=call.state,
        head_size=call.head, LOAD_LAT=4, STORE_LAT=1, DOUT_LAT=5, DHID_LAT=5, persistent=persistent,
    )  # fmt: skip


def _gradients(call: _Call, persistent: bool) -> Specialization:
    b, t, h, g, p, n = call[1:7]
    grouped = g != h
    partials = (p // min(64, p)) * (n // 32) * _PARTIALS
    narrow = call._replace(state_dtype=call.dtype)
    gradient = array_for(F32, [b, t, g, n]) if grouped else array_for(call.dtype, [b, t, h, n])
    names = ("x", "a", "b", "c", "dt", "decay_cumsum", "dout", "dcb", "ddecay_cumsum", "ddt_partial", "ddt")
    return entry(
        call.name(*["persistent"] * persistent, *["grouped"] * grouped), {"occupancy": 2}, **call.inputs(*names),
        **narrow.inputs("hiddens", "dhiddens"), dd_last_partials=array_for(F32, [b, h, call.chunks, partials]),
        da=array_for(F32, [b, h, call.chunks]), db=gradient, dc=gradient, chunk_size=call.chunk, BLOCK_STATE=32,
        BLOCK_HEAD=min(64, p), num_heads_per_group=h // g, state_size=n, head_size=p, ND_LEN=partials, LOAD_LAT=3,
        STORE_LAT=1, persistent=persistent, REDUCE_HEADS=grouped,
    )  # fmt: skip


OPERATORS = {"tilegym.ops.cutile.mamba2": mamba2}
