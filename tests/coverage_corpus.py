"""A small corpus for tests of the coverage report: proved kernels, and such that something is in the way of."""

from __future__ import annotations

from pathlib import Path

SCALE = """\
import cuda.tile as ct

FACTOR = 0.5


def scaled(x, factor=FACTOR):
    return ct.exp(x) * factor


@ct.kernel
def scale_kernel(a, b, TILE: ct.Constant[int], TWICE: ct.Constant[bool]):
    # which block this is
    i = ct.bid(0)
    x = ct.load(a, index=(i,), shape=(TILE,))
    y = scaled(x)
    if TWICE:
        y = y + y
    ct.store(b, index=(i,), tile=y)
"""
LEFT = """\
import cuda.tile as ct


@ct.kernel
def copy_kernel(a, b, TILE: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(b, index=(i,), tile=ct.load(a, index=(i,), shape=(TILE,)))


@ct.kernel
def largest_kernel(a, b, TILE: ct.Constant[int]):
    x = ct.load(a, index=(0,), shape=(TILE,))
    with ct.nothing():
        y = x
    ct.store(b, index=(0,), tile=ct.astype(ct.argmax(x, 0), ct.float32))


@ct.kernel
def smallest_kernel(a, b, TILE: ct.Constant[int]):
    x = ct.load(a, index=(0,), shape=(TILE,))
    with ct.nothing():
        y = x
    ct.store(b, index=(0,), tile=x)
"""
_ARRAYS = """\
params.a = {dtype = "float32", ndim = 1, shape_divisible_by = 16, base_addr_divisible_by = 16}
params.b = {dtype = "float32", ndim = 1, shape_divisible_by = 16, base_addr_divisible_by = 16}
"""


def write_corpus(folder: Path) -> Path:
    """Write two operators with four kernels and five checks; returns the manifest's path."""
    (folder / "scale.py").write_text(SCALE)
    (folder / "left.py").write_text(LEFT)
    text = 'name = "mine"\n' + _operator("scale") + _kernel("scale_kernel")
    text += _check("once", 128, "params.TWICE = false") + _check("twice", 128, "params.TWICE = true")
    text += _operator("left")
    for name in ("copy_kernel", "largest_kernel", "smallest_kernel"):
        text += _kernel(name) + _check("f32", 64)
    path = folder / "corpus.toml"
    path.write_text(text)
    return path


def _operator(name: str) -> str:
    return f'[[operators]]\nname = "{name}"\npath = "{name}.py"\n'


def _kernel(name: str) -> str:
    return f'[[operators.kernels]]\nname = "{name}"\n'


def _check(name: str, tile: int, more: str = "") -> str:
    head = f'[[operators.kernels.specializations]]\nname = "{name}"\n'
    return f"{head}{_ARRAYS}params.TILE = {tile}\n{more}\n"
