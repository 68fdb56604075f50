"""What a kernel object offers, with cuda.tile's own class as the yardstick; and what host code makes of kernels."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cuda.tile as ct
import pytest

from transpiler import runtime
from transpiler.emit.author import author_functions
from transpiler.runtime import HintError, Kernel, Library, UnknownHintError, exhaustive_search, launch
from transpiler.runtime.kernel import Array, Constant, translated

tile_kernel: Any = runtime.tile_kernel
JIT_ONLY = {"_compile"}
"""What a launch of cuda.tile calls to compile."""


@ct.kernel(occupancy=2)  # type: ignore[untyped-decorator]
def double(x: Any, N: ct.Constant[int]) -> None:  # noqa: N803
    """Doubles."""
    ct.store(x, (0,), ct.load(x, (0,), (N,)) * 2)


def _ours(origin: str = f"{__name__}:double", **more: Any) -> Kernel:
    parameters = (Array("x", (1,), ("float32",)), Constant("N"))
    made = {"decorated": {"occupancy": 2}, "origin": origin, "doc": "Doubles."} | more
    return Kernel("op_double", "double", parameters, library=Library(Path("nowhere")), **made)


@pytest.fixture
def ours() -> Kernel:
    """Our object for `double`, with the author's module loaded."""
    return _ours()


@pytest.fixture(params=["loaded", "elsewhere"])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """Our object for `double`; `elsewhere`: the author's module isn't loaded."""
    return _ours() if request.param == "loaded" else _ours("somewhere.else:double")


def test_everything_that_the_class_of_cuda_tile_has(kernel: Kernel) -> None:
    names = set(dir(double)) - set(dir(object)) - JIT_ONLY
    assert {"_pyfunc", "_annotated_function", "_compiler_options", "replace_hints"} <= names
    assert [name for name in sorted(names) if not hasattr(kernel, name)] == []
    fields = [name for name in vars(double._compiler_options) if not name.startswith("_")]
    assert [(name, getattr(kernel._compiler_options, name)) for name in fields] == [
        (name, getattr(double._compiler_options, name)) for name in fields
    ]


def test_the_function(ours: Kernel, kernel: Kernel) -> None:
    assert ours._pyfunc is double._pyfunc
    assert kernel._pyfunc is kernel._pyfunc is kernel.replace_hints(num_ctas=2)._pyfunc is kernel.__wrapped__
    assert isinstance(kernel._pyfunc, types.FunctionType)
    assert (kernel._pyfunc.__name__, kernel._pyfunc.__qualname__, kernel._pyfunc.__doc__) == (
        "double", "double", "Doubles.",
    )  # fmt: skip
    assert (kernel.__name__, kernel.__qualname__, kernel.__doc__) == ("double", "double", "Doubles.")
    assert kernel.__module__ == kernel._pyfunc.__module__
    assert list(inspect.signature(kernel).parameters) == ["x", "N"]
    described, theirs = kernel._annotated_function, double._annotated_function
    assert described.pyfunc is kernel._pyfunc
    assert list(described.pysig.parameters) == list(theirs.pysig.parameters)
    assert [(a.KIND, a.constant) for a in described.parameter_annotations] == [
        (a.KIND, a.constant) for a in theirs.parameter_annotations
    ]


def test_a_function_that_only_looks_like_the_authors() -> None:
    inner = _ours("somewhere.else:factory.<locals>.inner", signature="x, N=16, *, last=None")
    assert (inner.__name__, inner._pyfunc.__qualname__) == ("inner", "factory.<locals>.inner")
    assert str(inspect.signature(inner)) == "(x, N=16, *, last=None)"
    with pytest.raises(RuntimeError, match="inner is a kernel: launch it"):
        inner._pyfunc(1)


@pytest.mark.parametrize(
    "use",
    [pickle.dumps, copy.copy, copy.deepcopy, lambda k: k(), lambda k: k.replace_hints(3), lambda k: ct.kernel(k),
     lambda k: k.replace_hints(speed=1), lambda k: k.replace_hints(occupancy=33), lambda k: k.replace_hints(num_ctas=3),
     lambda k: k.replace_hints(occupancy=ct.ByTarget(sm_90=0)), lambda k: k.replace_hints(opt_level=4),
     lambda k: k.replace_hints(num_worker_warps=64)],
)  # fmt: skip
def test_what_cuda_tile_refuses_is_refused_alike(kernel: Kernel, use: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as theirs:
        use(double)
    with pytest.raises(theirs.type):
        use(kernel)


def test_identity_hash_and_references(kernel: Kernel) -> None:
    same = kernel.replace_hints()
    assert (same == kernel) == (double.replace_hints() == double) and same is not kernel
    assert {kernel: 1, same: 2}[kernel] == 1 and len({kernel, same}) == 2
    assert weakref.ref(kernel)() is kernel
    kernel.note = "anything"  # type: ignore[attr-defined]
    assert callable(kernel) == callable(double)


_HINTS: list[dict[str, Any]] = [
    {}, {"occupancy": 4}, {"num_ctas": 2, "opt_level": 1}, {"occupancy": 1, "num_worker_warps": 8},
    {"num_ctas": ct.ByTarget(sm_100=2, default=1)}, {"num_ctas": None},
]  # fmt: skip


@pytest.mark.parametrize("hints", _HINTS)
def test_hints_are_replaced_as_in_cuda_tile(kernel: Kernel, hints: dict[str, Any]) -> None:
    replaced, theirs = kernel.replace_hints(**hints), double.replace_hints(**hints)
    assert vars(replaced._compiler_options) == vars(theirs._compiler_options)
    twice = replaced.replace_hints(opt_level=2)._compiler_options
    assert vars(twice) == vars(theirs.replace_hints(opt_level=2)._compiler_options)
    assert kernel.hints == {}


@pytest.mark.parametrize("hints", _HINTS)
def test_decorating_again(hints: dict[str, Any]) -> None:
    plain = _ours(decorated={})
    reference = ct.kernel(double._pyfunc, **hints)
    for again in (tile_kernel(plain._pyfunc, **hints), tile_kernel(**hints)(plain.replace_hints(occupancy=9)._pyfunc),
                  translated(ct.kernel(plain._pyfunc, **hints))):  # fmt: skip
        assert type(again) is Kernel and again.symbol == plain.symbol
        assert vars(again._compiler_options) == vars(reference._compiler_options)
        assert again._pyfunc is plain._pyfunc


def test_hints_of_the_source_stay_when_decorated_again() -> None:
    leveled = _ours(decorated={"occupancy": 2, "opt_level": 1})
    again = tile_kernel(leveled._pyfunc, num_ctas=2)
    assert vars(again._compiler_options) == {"num_ctas": 2, "occupancy": 2, "opt_level": 3, "num_worker_warps": None}
    with pytest.raises(UnknownHintError, match="there is no hint `speed`"):
        tile_kernel(leveled._pyfunc, speed=2)
    by_target = _ours(decorated={"num_ctas": {"sm_100": 2, "default": 1}})._compiler_options.num_ctas
    assert (by_target._by_target, by_target._default) == ({"sm_100": 2}, 1)


def test_other_functions_become_kernels_of_cuda_tile(ours: Kernel) -> None:
    def other(x: Any) -> None:
        ct.store(x, (0,), 1)

    made = tile_kernel(occupancy=4)(other)
    assert type(made) is ct.kernel and made._compiler_options.occupancy == 4 and translated(made) is made
    assert isinstance(ours, tile_kernel) and isinstance(made, tile_kernel) and not isinstance(other, tile_kernel)
    assert (tile_kernel | None).__args__ == (tile_kernel, type(None))  # in annotations
    with pytest.raises(TypeError, match="Python function"):
        tile_kernel(3)


def test_launches_of_a_kernel_that_cuda_tile_made_of_our_function(
    ours: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[tuple[Any, ...]] = []

    def record(kernel: Kernel, *args: Any, **options: Any) -> None:
        launched.append((kernel.symbol, kernel.hints, *args))

    monkeypatch.setattr(Kernel, "launch", record)
    hinted = ct.kernel(ours._pyfunc, num_ctas=2)
    launch(0, (1,), hinted, (1, 2))
    launch(0, (1,), hinted, (3, 4))
    hints = {"num_ctas": 2, "opt_level": 3}
    assert launched == [("op_double", hints, 0, (1,), (1, 2)), ("op_double", hints, 0, (1,), (3, 4))]
    assert translated(hinted) is translated(hinted)


def test_hints_from_a_tuner(ours: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    from transpiler.runtime import tuning

    tried: list[dict[str, Any]] = []

    class Timer:
        def __init__(self, *_: Any) -> None:
            pass

        def run(self, kernel: Kernel, *_: Any) -> float:
            if kernel.hints not in tried[-1:]:
                tried.append(kernel.hints)
            return 10.0 - float(kernel.hints["occupancy"])

    monkeypatch.setattr(tuning, "_Timer", Timer)
    made = {one: ct.kernel(ours._pyfunc, num_ctas=one) for one in (1, 2)}
    for kernel in (ours, made.__getitem__, lambda _: ours):
        found = exhaustive_search([1, 2], 0, lambda _: (1,), kernel, lambda _: (), lambda c: {"occupancy": c},
                                  quiet=True, flush_l2=False)  # fmt: skip
        best = found.best.config
        assert ours.replace_hints(occupancy=best).hints == {"occupancy": 2}
    assert tried[2:4] == [{"num_ctas": one, "occupancy": one, "opt_level": 3} for one in (1, 2)]
    assert tried[:2] == tried[4:] == [{"occupancy": 1}, {"occupancy": 2}]


def test_a_module_of_that_name_with_something_else_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    other = types.ModuleType("somewhere.else")
    other.double = lambda: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, other.__name__, other)
    assert _ours("somewhere.else:double")._pyfunc is not other.double


def test_errors_are_of_both_kinds() -> None:
    assert issubclass(UnknownHintError, HintError) and issubclass(UnknownHintError, TypeError)
    assert issubclass(HintError, ValueError)


# -- The author's functions ---------------------------------------------------------------------------


def test_the_authors_functions() -> None:
    source = '''
import cuda.tile as ct

@ct.kernel
def plain(x, N: ct.Constant[int]):
    """One."""

def _body(x, *, n: ct.Constant[int] = 4):
    """Two
    lines."""

made = ct.kernel(_body, occupancy=4)
also = ct.kernel(occupancy=4)(_body)

class Holder:
    def factory(occ, /):
        if occ:
            @ct.kernel(occupancy=occ)
            def inner(x, N: ct.Constant[int] = SIZE):
                pass
        return inner
'''
    found = author_functions(source, {"plain", "made", "also", "inner", "absent"})
    assert found["plain"] == ("plain", "One.", "")
    assert found["made"] == found["also"] == ("_body", "Two\n    lines.", "x, *, n=4")
    assert found["inner"] == ("Holder.factory.<locals>.inner", None, "")
    assert set(found) == {"plain", "made", "also", "inner"}
