"""Matrix products."""

from __future__ import annotations

from fuzz.families import Producer
from fuzz.values import shape_text, value
from fuzz.writer import Value, Writer
from transpiler.rules import Rule
from transpiler.rules.mma import ACCUMULATORS


def product(w: Writer, row: Rule) -> Value:
    dtype = w.draw.pick(tuple(ACCUMULATORS))
    acc = w.draw.pick(ACCUMULATORS[dtype])
    m, n, k = (w.draw.pick((16, 32, 8, 64)) for _ in range(3))
    batch = w.draw.pick(((), (), (2,)))
    other = w.draw.pick(("int8", "uint8")) if dtype in ("int8", "uint8") else dtype
    a, b = value(w, dtype, (*batch, m, k)), value(w, other, (*w.draw.pick((batch, ())), k, n))
    c = value(w, acc, (*batch, m, n))
    given = f", {c.text}" if w.draw.chance(50) else f", acc={c.text}"
    fast = ", use_fast_acc=True" if dtype.startswith("float8") and w.draw.chance(30) else ""
    return Value(f"ct.mma({a.text}, {b.text}{given}{fast})", acc, c.shape)


def matmul(w: Writer, row: Rule) -> Value:
    dtype = w.draw.pick(tuple(ACCUMULATORS))
    m, n, k = (w.draw.pick((16, 32, 8)) for _ in range(3))
    batch = w.draw.pick(((), (), (2,)))
    left, right = w.draw.pick(((*batch, m), (*batch, m), ())), w.draw.pick(((n,), (n,), ()))  # () is a vector's
    a = value(w, dtype, (*left, k)).text
    b = value(w, dtype, (*batch, k, *right) if right else (k,)).text
    text = f"({a} @ {b})" if row.callee.startswith("operator.") else f"ct.matmul({a}, {b})"
    outer = batch if left or right else ()
    return Value(text, dtype, (*outer, *left[-1:], *right))


def scaled(w: Writer, row: Rule) -> Value:
    w.target = "sm_100"
    m, n, k = w.draw.pick((128, 256)), w.draw.pick((32, 64)), w.draw.pick((64, 128))
    dtype = w.draw.pick(("float8_e4m3fn", "float8_e5m2"))
    a, b = value(w, dtype, (m, k)).text, value(w, dtype, (k, n)).text
    sa, sb = (
        f"ct.full({shape_text(w, s)}, {x}, ct.float8_e8m0fnu)" for s, x in (((m, k // 32), 1.0), ((k // 32, n), 2.0))
    )
    acc = value(w, "float32", (m, n)).text
    return Value(f"ct.mma_scaled({a}, {sa}, {b}, {sb}, {acc})", "float32", (m, n))


PRODUCERS: dict[str, Producer] = {
    "cuda.tile.mma": product, "cuda.tile.matmul": matmul, "operator.matmul": matmul, "cuda.tile.mma_scaled": scaled,
}  # fmt: skip
