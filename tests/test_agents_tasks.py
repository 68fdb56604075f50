"""What a task says of a Hole, and every kind of Hole that none is made of: one line says why, and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import agents_bench as ab
import pytest

from transpiler.agents.analyst import Found, analyse
from transpiler.agents.bench import Bench
from transpiler.agents.calls import misused
from transpiler.agents.operations import operations_of
from transpiler.agents.task import HoleTask
from transpiler.diagnostics import Span
from transpiler.pipeline import translate
from transpiler.select.fragments import parse_body
from transpiler.spec import ArraySpec, Specialization
from transpiler.tileir import parse_entry

HEAD = """\
import cuda.tile as ct


def both(a, b, c, d):
    return a + c, ct.maximum(b, d)


def many(a, *more):
    return a + more[0]


@ct.kernel
def kernel(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(0,), shape=(N,))
"""
INT64 = ArraySpec(dtype="float32", ndim=1, index_dtype="int64")
RAISE = "`transpile fill DIR --raise` takes the kernel"


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as one:
        yield one


def found(folder: Path, bench: Bench, body: str, x: ArraySpec = ab.FLOATS) -> Found:
    """What the analyst says of the first Hole of a kernel."""
    source = folder / "mine.py"
    source.write_text(HEAD + "".join(f"    {line}\n" for line in body.split("\n")))
    spec: Specialization = ab.specialization(x=x)
    translation = translate(ab.job(source, {"kernel": (spec,)}))
    first = translation.sites[0]
    same = [s for s in translation.sites if s.site.construct == first.site.construct]
    return analyse(bench, translation, same)


@dataclass(frozen=True)
class Unfillable:
    """A kernel's lines, whether the reference refuses them, and what the line says: why, and what to do."""

    body: str
    said: tuple[str, ...]
    rejected: bool = False
    x: ArraySpec = ab.FLOATS


STORE = "\nct.store(y, index=(0,), tile=tile)"
UNFILLABLE = {
    "a statement that the reference refuses": Unfillable(
        "with open('x'):\n    pass" + STORE, ("the reference compiler refuses `kernel`",), rejected=True
    ),
    "a call that the reference refuses": Unfillable(
        "tile = ct.sort(tile)" + STORE, ("the reference compiler refuses `kernel`", "no attribute 'sort'"),
        rejected=True,
    ),
    "a call that tokens order": Unfillable(
        "print(i, ct.bid(1))" + STORE, ("the reference makes `print_tko` of it", "print each by itself", RAISE)
    ),
    "a call that is known while compiling": Unfillable(
        "tile = tile * ct.static_eval(len([n for n in range(N)]))" + STORE,
        ("`cuda.tile.static_eval` isn't supported", RAISE),
    ),
    "an expression": Unfillable(
        "t = tuple(tile * k for k in ct.static_iter((1, 2)))\nct.store(y, index=(0,), tile=t[0])",
        ("Rust can stand for a call, an attribute or an operation, and this is none", "write the items out", RAISE),
    ),
    "a function that takes any number of arguments": Unfillable(
        "ct.store(y, index=(0,), tile=many(tile, tile))", ("a variadic parameter", "name every parameter", RAISE)
    ),
    "a loop that counts in 64 bits": Unfillable(
        "for n in range(ct.int64(0), ct.int64(8), ct.astype(i, ct.int64) + 1):\n    tile = tile + 1" + STORE,
        ("step", "count in int32"),
    ),
    "64-bit indices": Unfillable(
        "ct.store(y, index=(0,), tile=tile)", ("count in i32", "fit in 32 bits"), x=INT64
    ),
    "a name that isn't there": Unfillable(
        "tile = tile * nothing" + STORE, ("can't be given the kernel", "define it, or import it")
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNFILLABLE.values(), ids=UNFILLABLE)
def test_what_cannot_be_filled_says_why_and_the_way_out(tmp_path: Path, bench: Bench, case: Unfillable) -> None:
    result = found(tmp_path, bench, case.body, case.x)
    assert result.task is None and result.problem is not None and result.rejected is case.rejected
    message = result.problem.message
    assert "\n" not in message and all(part in message for part in case.said), message


def test_a_task_shows_what_a_reduction_combines_and_all_that_it_gives(tmp_path: Path, bench: Bench) -> None:
    result = found(tmp_path, bench, "s, m = ct.reduce((tile, tile), 0, both, (0.0, 0.0))\ntile = tile * s + m" + STORE)
    assert result.task is not None
    assert [v.type for v in result.task.outputs] == ["tile<f32>", "tile<f32>"]
    head, arguments, *body, end = result.task.reference
    assert head.startswith("%v0, %v1 = reduce %in0, %in0 dim=0") and end == "}"
    assert arguments == "(%v2: tile<f32>, %v3: tile<f32>, %v4: tile<f32>, %v5: tile<f32>) {"
    assert [line.split(" ")[4] for line in body[:2]] == ["addf", "maxf"] and "yield %v6, %v7" in body[-1]


def test_a_lambda_belongs_to_the_call_that_it_is_for(tmp_path: Path, bench: Bench) -> None:
    result = found(tmp_path, bench, "tile = tile * ct.reduce(tile, 0, lambda p,  q: p + q, 0.0)" + STORE)
    assert result.task is not None
    assert (result.task.hole.kind, result.task.hole.name) == ("call", "cuda.tile.reduce")
    assert result.task.hole.arguments[2] == ("2", "lambda p, q: p + q")
    assert [v.name for v in result.task.inputs] == ["$0"] and [v.type for v in result.task.outputs] == ["tile<f32>"]
    assert any("addf" in line for line in result.task.reference)


def test_functions_of_one_name_are_told_apart_by_what_they_do(tmp_path: Path, bench: Bench) -> None:
    """An override for one is none for the other; comments, places and docstrings don't count."""
    body = "s, m = ct.reduce((tile, tile), 0, both, (0.0, 0.0))\ntile = tile * s + m" + STORE
    tasks: list[HoleTask | None] = []
    for old, new in (("", ""), ("def both", "# above\ndef both"), ("return a + c", "return a - c")):
        folder = tmp_path / str(len(tasks))
        folder.mkdir()
        changed = HEAD.replace(old, new) if old else HEAD
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(globals(), "HEAD", changed)
            tasks.append(found(folder, bench, body).task)
    first, same, other = (dict(t.hole.arguments)["2"] for t in tasks if t is not None)
    assert first == same != other and first.startswith("both:")


@pytest.mark.parametrize(
    ("rust", "said"),
    [
        ("exp2($0)", "`exp2` takes 2 arguments, 1 are given"),
        ("exp2($0, ftz::Disabled, $0)", "`exp2` takes 2 arguments, 3 are given"),
        ("exp2::<f32>($0, ftz::Disabled)", "`exp2` has 3 generics, 1 are given"),
        ("let x: $type = if $0 { exp2($0) } else { $0 }; x", "`exp2` takes 2 arguments, 1 are given"),
        ("let mut x: $type = $0; for i in 0..4 { x = negf(x, x); } x", "`negf` takes 1 arguments, 2 are given"),
        ("$0 + const_f(1.0)", "`const_f` takes 2 arguments, 1 are given"),
        ("exp2($0, ftz::Disabled) + const_f(1.0, $shape)", ""),
        ("unsafe { assume_div_by::<_, 16>($0) }", ""),
        ("Some($0)", ""),
    ],
)
def test_calls_are_held_against_their_declarations(rust: str, said: str) -> None:
    """rustc, which builds the accepted crate, counts what cutile's own compiler doesn't look at."""
    assert misused(parse_body(rust)) == said


PROGRAM = """\
entry @k(%x: tile<8xf32>) {
  %a = exp %x : tile<8xf32> loc("k.py":3:8)
  %b = addf %a, %x rounding<nearest_even> : tile<8xf32> loc("k.py":3:8)
  %c = negf %b : tile<8xf32> loc("k.py":4:0)
  return
}
"""


def test_what_comes_from_a_line_alone_says_nothing_of_results() -> None:
    entry = parse_entry(PROGRAM)
    own = operations_of(entry, Span("k.py", 3, 9, 3, 20))
    assert (own.names, own.results, own.own) == (("exp", "addf"), ("tile<8xf32>",), True)
    line = operations_of(entry, Span("k.py", 4, 30, 4, 31))
    assert (line.names, line.results, line.own, line.ordered) == (("negf",), (), False, ())
