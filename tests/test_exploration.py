"""Exploration: every path of a kernel gets a specialization, and what stays open is said with its reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from transpiler import cli
from transpiler.exploration import explored
from transpiler.jobs import KernelJob, OperatorJob
from transpiler.spec import Specialization
from transpiler.specialize.conditions import leaf_values

_HEAD = "import cuda.tile as ct\n\n\n@ct.kernel\n"
_SCALE = """def k(x, out, FLAG: ct.Constant[bool], LEVEL: ct.Constant[int], EPS: ct.Constant[float]):
    t = ct.load(x, (ct.bid(0),), (16,))
    if FLAG:
        t = t + EPS
    if LEVEL:
        t = t * LEVEL
    ct.store(out, (ct.bid(0),), t.astype(out.dtype))
"""


def _array(dtype: str = "float16", **more: object) -> dict[str, object]:
    return {"dtype": dtype, "ndim": 1, **more}


def _job(folder: Path, text: str, **params: object) -> OperatorJob:
    path = folder / "k.py"
    path.write_text(_HEAD + text, encoding="utf-8")
    one = Specialization.model_validate({"name": "given", "params": params})
    return OperatorJob("k", path, "k.py", (KernelJob("k", (one,)),))


def _kernel(job: OperatorJob) -> KernelJob:
    (kernel,) = explored(job).kernels
    return kernel


def test_every_combination_of_flags_is_found(tmp_path: Path) -> None:
    job = _job(tmp_path, _SCALE, x=_array(), out=_array(), FLAG=True, LEVEL=2, EPS=1e-5)
    kernel = _kernel(job)
    values = [leaf_values(one) for one in kernel.specializations]
    assert {(v["param", "FLAG"], v["param", "LEVEL"] != 0) for v in values} == {
        (a, b) for a in (True, False) for b in (True, False)
    }
    assert kernel.specializations[0].name == "given"
    assert len({one.name for one in kernel.specializations}) == len(kernel.specializations)
    assert kernel.uncovered == ()


def test_a_float_that_only_computes_is_no_decision(tmp_path: Path) -> None:
    job = _job(tmp_path, _SCALE, x=_array(), out=_array(), FLAG=True, LEVEL=2, EPS=1e-5)
    assert {leaf_values(one)["param", "EPS"] for one in _kernel(job).specializations} == {1e-5}


def test_dtypes_of_the_class_are_told_apart_where_the_program_does(tmp_path: Path) -> None:
    text = """def k(x, y, out):
    t = ct.load(x, (ct.bid(0),), (16,)) + ct.load(y, (ct.bid(0),), (16,))
    ct.store(out, (ct.bid(0),), t.astype(out.dtype))
"""
    kernel = _kernel(_job(tmp_path, text, x=_array(), y=_array(), out=_array()))
    pairs = {(v["dtype", "x"], v["dtype", "y"]) for v in map(leaf_values, kernel.specializations)}
    assert ("float16", "float16") in pairs
    assert any(a != b for a, b in pairs)
    assert not {("float16", "bfloat16"), ("bfloat16", "float16")} & pairs  # the reference refuses them
    assert kernel.uncovered == ()


def test_sizes_that_were_baked_in_are_freed(tmp_path: Path) -> None:
    text = """def k(x, out):
    i = ct.arange(16, dtype=ct.int32)
    ct.scatter(out, i, ct.gather(x, i % x.shape[0]))
"""
    kernel = _kernel(_job(tmp_path, text, x=_array(shape_constant=[1]), out=_array()))
    sizes = {leaf_values(one)["dim", "x", 0] for one in kernel.specializations}
    strides = {leaf_values(one)["stride", "x", 0] for one in kernel.specializations}
    assert sizes == {1, None}
    assert strides == {1, None}


def test_elements_that_share_memory_are_another_path(tmp_path: Path) -> None:
    text = """def k(x, out, n: int):
    for i in range(n):
        ct.store(out, (i,), ct.load(x, (i,), (16,)))
"""
    kernel = _kernel(_job(tmp_path, text, x=_array(), out=_array(), n="int32"))
    assert {leaf_values(one)["overlaps", "out"] for one in kernel.specializations} == {True, False}


def test_a_value_that_the_program_depends_on_stays_open(tmp_path: Path) -> None:
    text = """def k(x, out, TEXT: ct.Constant[int]):
    ct.store(out, (ct.bid(0),), ct.load(x, (ct.bid(0),), (16,), latency=TEXT))
"""
    kernel = _kernel(_job(tmp_path, text, x=_array(), out=_array(), TEXT=3))
    assert [(one.condition, one.reason) for one in kernel.uncovered or ()] == [
        ("TEXT != 3", "the program depends on the value itself")
    ]


def test_a_path_without_a_rule_stays_open_and_makes_no_entry(tmp_path: Path) -> None:
    text = """def k(x, out, FLAG: ct.Constant[bool]):
    t = ct.load(x, (ct.bid(0),), (16,))
    if FLAG:
        t = ct.argmax(t, axis=0).astype(t.dtype)
    ct.store(out, (ct.bid(0),), ct.broadcast_to(t, (16,)))
"""
    kernel = _kernel(_job(tmp_path, text, x=_array("float32"), out=_array("float32"), FLAG=False))
    (open_,) = kernel.uncovered or ()
    assert open_.condition == "FLAG"
    assert open_.reason.startswith("a Hole: ")
    assert all(not leaf_values(one)["param", "FLAG"] for one in kernel.specializations)


def test_the_bound_is_said(tmp_path: Path) -> None:
    flags = [f"F{i}" for i in range(8)]
    text = "def k(x, out, " + ", ".join(f"{f}: ct.Constant[bool]" for f in flags) + "):\n"
    text += "    t = ct.load(x, (ct.bid(0),), (16,))\n"
    text += "".join(f"    if {f}:\n        t = t + {i}.0\n" for i, f in enumerate(flags))
    text += "    ct.store(out, (ct.bid(0),), t)\n"
    kernel = _kernel(_job(tmp_path, text, x=_array(), out=_array(), **dict.fromkeys(flags, False)))
    assert len(kernel.specializations) < 2 ** len(flags)
    assert kernel.uncovered
    assert {one.reason for one in kernel.uncovered} == {f"exploration is bounded ({len(kernel.specializations)} paths)"}


def test_what_was_found_is_proved_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    launch = "\n\ndef launch(stream, x, out):\n    ct.launch(stream, (1,), k, (x, out, True, 2, 1e-5))\n"
    (tmp_path / "k.py").write_text(_HEAD + _SCALE + launch, encoding="utf-8")
    assert cli.main(["k.py", "--explore", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (kernel,) = report["operators"][0]["kernels"]
    assert kernel["complete"] is True
    assert kernel["uncovered"] == []
    assert report["totals"]["complete"] == 1
    assert report["totals"]["proved"] == report["totals"]["checks"] > 4
    assert not any("EPS" in entry["condition"] for entry in kernel["entries"])
    assert cli.main(["k.py", "--explore"]) == 0
    assert "  complete: its entries take every call of these ranks" in capsys.readouterr().out
