"""Entries of corpus/tilegym/own, one file a family of operators (tools/own_manifests.py writes them).

Here: what they share, dtypes, their short names, how an entry is made.
"""

from __future__ import annotations

from typing import Any

from transpiler.spec import Hints, ScalarSpec, Specialization

F16, BF16, F32 = "float16", "bfloat16", "float32"
TAG = {F16: "f16", BF16: "bf16", F32: "f32", "float64": "f64", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}
I32 = ScalarSpec(dtype="int32")
F32_SCALAR = ScalarSpec(dtype=F32)
Entries = list[Specialization]


def entry(name: str, hints: dict[str, Any] | None = None, /, **params: Any) -> Specialization:
    """Make an entry; its name gets the prefix that tells it from a recorded one."""
    return Specialization(name=f"own_{name}", params=params, hints=Hints.model_validate(hints or {}))


def pow2(n: int) -> int:
    """Return the next power of two."""
    return 1 if n <= 1 else 1 << (n - 1).bit_length()
