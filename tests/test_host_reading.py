"""Real host code: caches, candidates, configurations, tuples in parts, helpers and hosts in other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.static_reading import PACKAGES, measure, read_host, total
from transpiler.frontend.callsites import CallSite, CallSites
from transpiler.frontend.defaults import default_specializations
from transpiler.spec import ArraySpec, ConstantSpec

KERNELS = """\
import cuda.tile as ct
import torch
from cuda.tile.tune import exhaustive_search
from dataclasses import dataclass
from types import SimpleNamespace


@ct.kernel
def one(x, TILE: ct.Constant[int]):
    ct.store(x, index=(0,), tile=ct.zeros((TILE,), dtype=x.dtype))


@ct.kernel
def two(x, TILE: ct.Constant[int], LATENCY: ct.Constant[int]):
    ct.store(x, index=(0,), tile=ct.zeros((TILE,), dtype=x.dtype), latency=LATENCY)


"""


def read(folder: Path, host: str) -> CallSites:
    path = folder / "kernels.py"
    path.write_text(KERNELS + host)
    return read_host(path)


def launched(sites: CallSites) -> list[tuple[tuple[str, ...], list[object]]]:
    """Kernels and constants of every launch."""
    return [(site.kernels, constants(site)) for site in sites.sites]


def constants(site: CallSite) -> list[object]:
    assert site.arguments is not None
    return [argument.choices or argument.value for argument in site.arguments[1:]]


CACHES = {
    "an entry": "_cache = {}\n\n\ndef get(n):\n    if n not in _cache:\n"
                "        _cache[n] = one.replace_hints(occupancy=2)\n"
                "    return _cache[n]\n\n\ndef run(x, n):\n    ct.launch(0, (1,), get(n), (x, 16))\n",
    "a tuple": "_cache = {}\n\n\ndef run(x, n):\n    if n not in _cache:\n        _cache[n] = (8, one)\n"
               "    tile, kernel = _cache[n]\n    ct.launch(0, (1,), kernel, (x, tile))\n",
    "setdefault": "_cache = {}\n\n\ndef run(x, n):\n    kernel = _cache.setdefault(n, one)\n"
                  "    ct.launch(0, (1,), kernel, (x, 16))\n",
    "get": "_cache = {}\n\n\ndef fill(n):\n    _cache[n] = one\n\n\ndef run(x, n):\n    kernel = _cache.get(n)\n"
           "    ct.launch(0, (1,), kernel, (x, 16))\n",
    "of a class": "class F:\n    cache = {}\n\n    def run(self, x, n):\n        if n not in F.cache:\n"
                  "            F.cache[n] = one\n        ct.launch(0, (1,), F.cache[n], (x, 16))\n",
    "an attribute": "class F:\n    def __init__(self):\n        self.kernel = one\n\n    def run(self, x):\n"
                    "        ct.launch(0, (1,), self.kernel, (x, 16))\n",
    "a table": 'TABLE = {"a": one, "b": one}\n\n\ndef run(x, y):\n    ct.launch(0, (1,), TABLE[y], (x, 16))\n',
}  # fmt: skip


@pytest.mark.parametrize("host", CACHES.values(), ids=CACHES)
def test_caches(tmp_path: Path, host: str) -> None:
    (found,) = launched(read(tmp_path, host))
    assert found in [(("one",), [16]), (("one",), [8])]


def test_a_conditional_kernel_takes_the_tuple_that_fits(tmp_path: Path) -> None:
    host = """\
def run(x, slow):
    kernel = two if slow else one
    common = (x, 16)
    if slow:
        args = common + (3,)
    else:
        args = (*common,)
    ct.launch(0, (1,), kernel, args)
"""
    assert launched(read(tmp_path, host)) == [(("two",), [16, 3]), (("one",), [16])]


def test_candidates_in_a_loop(tmp_path: Path) -> None:
    host = """\
@dataclass
class Candidate:
    kernel: object
    args_fn: object
    configs: list = None


def run(x):
    candidates = [Candidate(one, lambda cfg: (x, cfg.tile))]
    candidates.append(Candidate(kernel=two, args_fn=lambda cfg: (x, cfg.tile, 5)))
    for candidate in candidates:
        exhaustive_search([SimpleNamespace(tile=32)], 0, lambda cfg: (1,), candidate.kernel, candidate.args_fn)
"""
    assert launched(read(tmp_path, host)) == [(("one",), [32]), (("two",), [32, 5])]


SPACES = {
    "a list": "SPACE = [SimpleNamespace(tile=32, lat=1), SimpleNamespace(tile=64, lat=2)]\n",
    "a generator": "def make():\n    yield SimpleNamespace(tile=32, lat=1)\n"
                   "    yield SimpleNamespace(tile=64, lat=2)\n\n\n"
                   "SPACE = list(make())\n",
    "a loop": "def make():\n    for tile in (32, 64):\n        for lat in [1, 2]:\n"
              "            yield SimpleNamespace(tile=tile, lat=lat)\n\n\nSPACE = make()\n",
    "a comprehension": "SPACE = [SimpleNamespace(tile=t, lat=l) for t in (32, 64) for l in (1, 2)]\n",
}  # fmt: skip


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_values_come_from_the_configurations_of_a_search(tmp_path: Path, space: str) -> None:
    host = f"""\
{space}
_cache = {{}}


def run(x, n):
    def args_fn(cfg):
        return (x, cfg.tile, cfg.lat)

    if n not in _cache:
        result = exhaustive_search(SPACE, 0, lambda cfg: (1,), two, args_fn)
        _cache[n] = (result.best.config, two.replace_hints(occupancy=2))
    best, kernel = _cache[n]
    ct.launch(0, (1,), kernel, args_fn(best))
"""
    sites = read(tmp_path, host)
    assert launched(sites) == [(("two",), [(32, 64), (1, 2)])] * 2
    found = default_specializations(tmp_path / "kernels.py", "two")
    assert not found.diagnostics  # every value is known
    values = {(s.params["TILE"], s.params["LATENCY"]) for s in found.specializations}
    assert values >= {(ConstantSpec(value=t), ConstantSpec(value=a)) for t, a in ((32, 1), (64, 1), (32, 2))}


def test_autograd_functions(tmp_path: Path) -> None:
    host = """\
class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, tile, kernel):
        ct.launch(0, (1,), kernel, (x, tile))
        ctx.tile = tile
        return x

    @staticmethod
    def backward(ctx, dy):
        ct.launch(0, (1,), two, (dy, ctx.tile, 1))
        return dy


def apply(x):
    return Op.apply(x, 128, one)
"""
    assert launched(read(tmp_path, host)) == [(("one",), [128]), (("two",), [128, 1])]


def test_a_helper_of_another_file_launches_what_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "launcher.py").write_text(
        "import cuda.tile as ct\n\n\ndef start(kernel, *, grid, args):\n    ct.launch(0, grid, kernel, args)\n"
    )
    host = "from launcher import start\n\n\ndef run(x):\n    start(one, grid=(4,), args=(x, 64))\n"
    assert launched(read(tmp_path, host)) == [(("one",), [64])]


def test_hosts_beside_the_kernels(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(
        "import cuda.tile as ct\nimport kernels\nfrom kernels import one as first\n\n\n"
        "def run(x):\n    ct.launch(0, (1,), first, (x, 16))\n    ct.launch(0, (1,), kernels.two, (x, 32, 4))\n"
    )
    (tmp_path / "broken.py").write_text("def f(: # kernels one\n")
    sites = read(tmp_path, "")
    assert launched(sites) == [(("one",), [16]), (("two",), [32, 4])]
    assert not sites.diagnostics
    assert str(tmp_path / "ops.py") in sites.lookups.files


def test_annotations_and_missing_tensors(tmp_path: Path) -> None:
    host = """\
def run(x: torch.Tensor, tile: int, latency: "int | None" = None, other: torch.Tensor | None = None):
    y = torch.empty((4, 4), dtype=torch.float32) if other is None else None
    ct.launch(0, (1,), one, (y, tile))
    ct.launch(0, (1,), two, (other, tile, 1 if latency else 2))
"""
    first, second = (site.arguments for site in read(tmp_path, host).sites)
    assert first is not None and second is not None
    assert [a.kind for a in first] == ["tensor", "int"]
    assert (first[0].dtype, first[0].rank) == ("float32", 2)
    assert [a.kind for a in second] == ["tensor", "int", "int"]
    assert second[2].choices == (1, 2)
    assert second[2].complete


def test_names_that_lead_in_circles_end(tmp_path: Path) -> None:
    host = """\
def pick(kernel, n):
    return pick(kernel, n - 1) if n else kernel


def run(x, n):
    kernel = one
    for _ in range(n):
        kernel = kernel.replace_hints(occupancy=n)
    args = (x,)
    args += (16,)
    ct.launch(0, (1,), pick(kernel, n), args)
"""
    assert (("one",), [16]) in launched(read(tmp_path, host))


def test_what_cannot_be_found_out_is_said_with_its_line(tmp_path: Path) -> None:
    host = "def run(x, kernels, args):\n    ct.launch(0, (1,), kernels[0], (x, 1))\n    ct.launch(0, (1,), one, args)\n"
    sites = read(tmp_path, host)
    lines = (KERNELS + host).splitlines()
    said = {d.code: lines[d.span.line - 1].strip() for d in sites.diagnostics}
    assert said["W0271"].startswith("ct.launch(0, (1,), kernels[0]")
    assert said["W0272"].startswith("ct.launch(0, (1,), one, args")


def test_the_whole_of_tilegym() -> None:
    """Every launch of the installed package is read, and what parameters are agrees with every recorded launch."""
    found = {package: total(package, rows).counts for package, rows in measure(PACKAGES, quiet=True).items()}
    ops, suites, transformers = (found[package] for package in PACKAGES)
    assert (ops["launches"], ops["searches"], ops["kernels"]) == (83, 31, 74)
    assert (suites["launches"], suites["searches"], suites["kernels"]) == (102, 34, 101)
    assert (transformers["launches"], transformers["kernels"]) == (13, 13)
    assert [counts["unread"] for counts in found.values()] == [0, 0, 0]
    assert sum(counts["unlaunched"] for counts in found.values()) == 1  # w8a8_block_fp8_matmul_kernel_ct: dead code
    assert (ops["compared"], ops["disagree"]) == (577, 0)
    assert sum(counts["specializations"] for counts in found.values()) > 900


def test_what_bounds_a_slice_and_what_is_stored(tmp_path: Path) -> None:
    kernel = """\
@ct.kernel
def ragged(a, starts, out):
    start = ct.load(starts, index=(0,), shape=(1,)).item()
    rows(a, start, out)


def rows(a, first, out):
    part = a.slice(axis=0, start=first, stop=first + 16)
    tile = ct.astype(ct.load(part, index=(0, 0), shape=(16, 16)), ct.float32)
    ct.store(out, index=(0, 0), tile=ct.ceil(tile / 3))
"""
    (tmp_path / "kernels.py").write_text(KERNELS + kernel)
    params = default_specializations(tmp_path / "kernels.py", "ragged").specializations[0].params
    arrays = {name: (p.dtype, p.ndim) for name, p in params.items() if isinstance(p, ArraySpec)}
    assert arrays == {"a": ("float16", 2), "starts": ("int32", 1), "out": ("float32", 2)}


def test_a_literal_and_an_item_that_meet_have_one_dtype(tmp_path: Path) -> None:
    kernel = """\
@ct.kernel
def meets(labels, weights, out):
    i = ct.bid(0)
    label = ct.gather(labels, (i,)).item()
    weight = 0.0
    if label != -100:
        weight = ct.gather(weights, (i,)).item()
    ct.scatter(out, (i,), weight * 2)
"""
    (tmp_path / "kernels.py").write_text(KERNELS + kernel)
    params = default_specializations(tmp_path / "kernels.py", "meets").specializations[0].params
    assert [p.dtype for p in params.values() if isinstance(p, ArraySpec)][1] == "float32"


def test_what_products_padding_and_atomics_demand(tmp_path: Path) -> None:
    kernel = """\
@ct.kernel
def demands(a, b, state, scales, total, N: ct.Constant[int]):
    acc = ct.load(state, index=(0, 0), shape=(16, 16))
    for k in range(N):
        x = ct.load(a, index=(0, k), shape=(16, 16))
        acc = ct.mma(x, ct.load(b, index=(k, 0), shape=(16, 16)), acc)
    s = ct.gather(scales, (ct.arange(16, dtype=ct.int32),), padding_value=ct.float8_e4m3fn(0.0))
    ct.atomic_add(total, (0,), ct.sum(ct.astype(s, ct.float32), 0))
    ct.store(state, index=(0, 0), tile=acc)
"""
    (tmp_path / "kernels.py").write_text(KERNELS + kernel)
    params = default_specializations(tmp_path / "kernels.py", "demands").specializations[0].params
    dtypes = {name: p.dtype for name, p in params.items() if isinstance(p, ArraySpec)}
    assert dtypes == {"a": "float16", "b": "float16", "state": "float32", "scales": "float8_e4m3fn", "total": "float32"}
