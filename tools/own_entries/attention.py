"""Attention with variable lengths, biases, windows and masks."""

from __future__ import annotations

from typing import Any, NamedTuple

from tools.own_entries.common import BF16, F16, F32, F32_SCALAR, I32, TAG, Entries, entry, pow2
from transpiler.recordings import array_for
from transpiler.spec import Specialization


def varlen() -> dict[str, Entries]:
    """Lengths a batch for queries, keys, both or neither; heads in groups; causal or not."""
    rows = [
        (BF16, 2, 8, 8, 1024, 1024, 128, True, True, True, (128, 128)),
        (F16, 3, 8, 2, 1000, 777, 64, True, False, True, (64, 64)),
        (BF16, 2, 6, 6, 512, 4096, 128, False, True, False, (256, 128)),
        (F32, 1, 4, 1, 333, 333, 32, False, False, False, (64, 64)),
        (F16, 2, 4, 4, 512, 512, 128, True, False, False, (128, 64)),
    ]
    found = []
    for t, b, h, kv, q_len, kv_len, d, causal, q_lens, kv_lens, (m, n) in rows:
        flags = "_causal" * causal + "_qlens" * q_lens + "_kvlens" * kv_lens
        found.append(entry(
            f"{TAG[t]}_b{b}_h{h}x{kv}_s{q_len}x{kv_len}_d{d}{flags}", {"num_ctas": 1, "occupancy": 2},
            Q=array_for(t, [b, h, q_len, d]), K=array_for(t, [b, kv, kv_len, d]), V=array_for(t, [b, kv, kv_len, d]),
            Q_lens=array_for("int32", [b]), KV_lens=array_for("int32", [b]), Out=array_for(t, [b, h, q_len, d]),
            qk_scale=F32_SCALAR, TILE_D=d, H=h, S_QO=q_len, S_KV=kv_len, TILE_M=m, TILE_N=n,
            QUERY_GROUP_SIZE=0 if h == kv else h // kv, CAUSAL=causal, Q_LEN_MASK=q_lens, KV_LEN_MASK=kv_lens,
        ))  # fmt: skip
    return {"_fmha_varlen_kernel": found}


class _Variant(NamedTuple):
    """One call of fmha_variant: sizes of q and of k and v, and what is switched on."""

    dtype: str
    sizes: tuple[int, int, int, int, int]  # batch, query heads, key heads, query length, key length
    head: tuple[int, int]  # head sizes of q and k, and of v
    tile: tuple[int, int]
    causal: bool = True
    lens: tuple[bool, bool] = (False, False)
    window: int = 0
    bias: str = "none"
    random_mask: bool = False

    def name(self) -> str:
        """Everything that isn't the default, in words."""
        b, h, kv, q_len, kv_len = self.sizes
        words = [TAG[self.dtype], f"b{b}", f"h{h}x{kv}", f"s{q_len}x{kv_len}", f"d{self.head[0]}"]
        words += [f"v{self.head[1]}"] * (self.head[0] != self.head[1]) + ["full"] * (not self.causal)
        words += ["qlens"] * self.lens[0] + ["kvlens"] * self.lens[1] + [f"window{self.window}"] * (self.window > 0)
        words += [self.bias] * (self.bias != "none") + ["mask"] * self.random_mask
        return "_".join(words)


_BIASES = ("none", "vector", "matrix", "alibi")
_VARIANTS = (
    _Variant(BF16, (2, 8, 8, 1024, 1024), (128, 128), (128, 128)),
    _Variant(F16, (3, 8, 2, 1000, 777), (64, 64), (128, 64), lens=(True, True)),
    _Variant(BF16, (2, 4, 4, 512, 1000), (128, 128), (64, 128), causal=False, bias="vector"),
    _Variant(F16, (2, 4, 4, 512, 512), (64, 64), (128, 128), window=256, bias="matrix"),
    _Variant(BF16, (2, 8, 4, 384, 640), (96, 64), (128, 64), lens=(False, True), bias="alibi"),
    _Variant(F16, (1, 4, 4, 256, 256), (128, 128), (64, 64), causal=False, window=64, random_mask=True),
    _Variant(F32, (1, 2, 1, 100, 77), (32, 32), (64, 64), lens=(True, False)),
)


def variant() -> dict[str, Entries]:
    """Both layouts; the rank of the bias follows from its kind, and nothing is loaded of what is absent."""
    return {
        "_fmha_variant_kernel_bnsd": [_variant(v, "bnsd") for v in _VARIANTS],
        "_fmha_variant_kernel_nsbd": [_variant(v, "nsbd") for v in (*_VARIANTS[:3], *_VARIANTS[4:6])],
    }


def _variant(v: _Variant, layout: str) -> Specialization:
    b, h, kv, q_len, kv_len = v.sizes

    def array(heads: int, length: int, size: int) -> Any:
        return array_for(v.dtype, [b, heads, length, size] if layout == "bnsd" else [heads, length, b, size])

    bias = {"none": [0], "vector": [b, h, 1, kv_len], "matrix": [b, h, q_len, kv_len], "alibi": [h]}[v.bias]
    return entry(
        v.name(), {"occupancy": 2}, Q=array(h, q_len, v.head[0]), K=array(kv, kv_len, v.head[0]),
        V=array(kv, kv_len, v.head[1]), Out=array(h, q_len, v.head[1]), Bias=array_for(v.dtype, bias),
        Random_mask=array_for("int8", [b, h, q_len, kv_len] if v.random_mask else [0]),
        Q_lens=array_for("int32", [b if v.lens[0] else 0]), KV_lens=array_for("int32", [b if v.lens[1] else 0]),
        qk_scale=F32_SCALAR, S_qo=I32, S_kv=I32, TILE_D=pow2(v.head[0]), OUT_TILE_D=pow2(v.head[1]), H=h,
        TILE_M=v.tile[0], TILE_N=v.tile[1], QUERY_GROUP_SIZE=h // kv, CAUSAL=v.causal, EVEN_M=q_len % v.tile[0] == 0,
        EVEN_N=kv_len % v.tile[1] == 0, USE_Q_LENS=v.lens[0], USE_KV_LENS=v.lens[1], WINDOW_SIZE=v.window,
        BIAS_TYPE=_BIASES.index(v.bias), USE_RANDOM_MASK=v.random_mask,
    )  # fmt: skip


OPERATORS = {
    "tilegym.ops.cutile.attention_varlen": varlen,
    "tilegym.ops.cutile.attention_variant": variant,
}
