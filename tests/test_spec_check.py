"""A SPEC.toml that doesn't fit the kernel: one error at its place, exit status 2, nothing written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from transpiler import cli
from transpiler.jobs import file_job
from transpiler.pipeline import translate

KERNEL = """\
import cuda.tile as ct


@ct.kernel
def k(a, b, n: int, TILE: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, index=(i,), shape=(TILE,))
    ct.store(b, index=(i,), tile=x * n)
"""
HEAD = """\
name = "mine"
[[operators]]
name = "k"
path = "k.py"
[[operators.kernels]]
name = "k"
[[operators.kernels.specializations]]
name = "fits"
params = {a = {dtype = "float32", ndim = 1}, b = {dtype = "float32", ndim = 1}, n = "int32", TILE = 16}
[[operators.kernels.specializations]]
name = "odd"
"""
A = 'params.a = {dtype = "float32", ndim = 1}\n'
B = 'params.b = {dtype = "float32", ndim = 1}\n'
N = 'params.n = "int32"\n'
TILE = "params.TILE = 16\n"


@pytest.mark.parametrize(
    ("odd", "place", "words"),
    [
        (A + B + N, "10:1", "says nothing of `TILE`"),
        (A + B + N + TILE + "params.m = 3\n", "16:1", "no parameter `m`"),
        (A + B + N + 'params.TILE = "int32"\n', "15:1", "is a ct.Constant"),
        (A + B + 'params.n = {dtype = "int32", ndim = 1}\n' + TILE, "14:1", "is a number"),
        (A + B + N + 'params.TILE = {value = "wide"}\n', "15:1", "neither a number nor a dtype"),
        (A + B + N + TILE + 'hints = {occupancy = "lots"}\n', "16:10", "hint"),
        ('params = {a = {dtype = "float32", ndim = 1}, x = 1}\n', "12:46", "no parameter `x`"),
        ("[operators.kernels.specializations.params]\n" + (A + B + N + "params.x = 1\n").replace("params.", ""),
         "16:1", "no parameter `x`"),
    ],
)  # fmt: skip
def test_the_place_is_in_the_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    odd: str, place: str, words: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "spec.toml").write_text(HEAD + odd)
    assert cli.main(["k.py", "--spec", "spec.toml", "-o", "out"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error[E0212]: ")
    assert re.search(rf"--> spec\.toml:{place}$", said, re.M), said
    assert words in said
    assert cli.main(["batch", "spec.toml", "-o", "out"]) == 2
    assert capsys.readouterr().err == said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.py", "spec.toml"]


def test_a_kernel_that_the_source_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNEL)
    inner = 'name = "k"\n[[operators.kernels.specializations]]'
    (tmp_path / "spec.toml").write_text((HEAD + A + B + N + TILE).replace(inner, inner.replace("k", "q", 1), 1))
    for command in (["k.py", "--spec", "spec.toml"], ["batch", "spec.toml"]):
        assert cli.main([*command, "-o", "out"]) == 2
        said = capsys.readouterr().err
        assert said.startswith(
            "error[E0201]: spec.toml names the kernel `q`, which k.py doesn't have\n --> spec.toml:6:1"
        )


def test_a_batch_notices_that_a_source_does_not_fit_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "spec.toml").write_text(HEAD + A + B + N + TILE)
    assert cli.main(["batch", "spec.toml", "-o", "out"]) == 0
    (tmp_path / "k.py").write_text(KERNEL.replace("n: int, ", "n: int, m: int, "))
    assert cli.main(["batch", "spec.toml", "-o", "out"]) == 2
    assert "`fits` says nothing of `m` of `k`" in capsys.readouterr().err


def test_the_place_is_in_an_included_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "inner.toml").write_text(HEAD + A + B + N)
    (tmp_path / "spec.toml").write_text('name = "all"\ninclude = ["inner.toml"]\n')
    with pytest.raises(Exception, match="E0212") as caught:
        file_job(Path("k.py"), spec=Path("spec.toml"))
    span = caught.value.diagnostic.span  # type: ignore[attr-defined]
    assert (span.file, span.line) == ("inner.toml", 10)


def test_parameters_may_come_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "spec.toml").write_text(HEAD + TILE + N + B + A)
    assert cli.main(["k.py", "--spec", "spec.toml", "-o", "out"]) == 0


MANY = """\
import cuda.tile as ct


@ct.kernel
def k(a, b, MODE: ct.Constant[int], TILE: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, index=(i,), shape=(TILE,))
    if MODE == 1:
        x = x + 1
    elif MODE == 2:
        x = x * 2
    elif MODE == 3 and TILE > 16:
        x = x - 3
    ct.store(b, index=(i,), tile=x)
"""
SPEC = HEAD.partition("[[operators.kernels.spec")[0] + "".join(
    f'[[operators.kernels.specializations]]\nname = "m{mode}"\nparams.MODE = {mode}\n{A}{B}{TILE}' for mode in (2, 7)
)


def test_variants_are_numbered_as_in_kernel_rs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(MANY)
    (tmp_path / "spec.toml").write_text(SPEC)
    written = {
        check.specialization.name: entry.name
        for kernel in translate(file_job(Path("k.py"), spec=Path("spec.toml"))).plan.kernels
        for entry in kernel.entries
        for check in entry.checks
    }
    assert cli.main(["k.py", "--spec", "spec.toml", "--variants"]) == 0
    out = capsys.readouterr().out
    shown = dict(re.findall(r"^  (k\w*)<.*\n    when (.*)$", out, re.M))
    assert list(shown) == ["k", *(f"k_{i}" for i in range(1, len(shown)))]
    assert len(shown) > 3
    assert "MODE == 2" in shown[written["m2"]]
    assert "MODE != 3" in shown[written["m7"]]


def test_variants_say_what_was_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(MANY)
    assert cli.main(["k.py", "--variants"]) == 0
    said = capsys.readouterr().err
    assert "warning[W0270]" in said
    assert "warning[W0273]" in said
