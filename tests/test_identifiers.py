"""Names that Python normalizes: every spelling of a name is the same name, in Python, in Rust and in specs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from transpiler import cli
from transpiler.emit.naming import snake
from transpiler.identifiers import identifier
from transpiler.jobs import operator_name

BOLD_N, LIGATURE = "\U0001d40d", "\ufb01"  # for N and fi
SOURCE = f"""import cuda.tile as ct

{LIGATURE}ve = 5


def shi{LIGATURE}t(tile, *, \u2170):
    return tile + i * five


@ct.kernel
def {LIGATURE}ll(a, b, {BOLD_N}: "ct.Constant[\uff49nt]", \u00e9: ct.Constant[int]):
    \uff49 = ct.bid(0)
    x = ct.\uff4coad(a, \uff49ndex=(i,), shape=(N,))
    y = shifit(\uff58, i=e\u0301)
    s = ct.sum(y)
    ct.print(f"{{\uff53 = :f}}")
    ct.store(b, index=(i,), tile=y)


def host(stream, a, b):
    ct.launch(stream, (4,), fill, (a, b, 16, 2))
"""
SPEC = f"""name = "spellings"
[[operators]]
name = "spellings"
path = "spellings.py"
[[operators.kernels]]
name = "{LIGATURE}ll"
[[operators.kernels.specializations]]
name = "one"
[operators.kernels.specializations.params]
a = {{dtype = "float32", ndim = 1}}
b = {{dtype = "float32", ndim = 1}}
"{BOLD_N}" = 32
"e\u0301" = 3
"""


def test_all_spellings_of_a_name_are_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spellings.py").write_text(SOURCE, encoding="utf-8")
    Path("spec.toml").write_text(SPEC, encoding="utf-8")
    assert cli.main(["spellings.py"]) == 0
    text = Path("cutile_rs/spellings/kernel.rs").read_text(encoding="utf-8")
    assert text.replace("\uff53", "").isascii()
    assert "let y: Tile<f32, { [N] }> = shifit" in text
    assert 'print_tko("\\u{ff53} = %f\\n", s' in text.replace("\uff53", "\\u{ff53}")
    capsys.readouterr()
    assert cli.main(["spellings.py", "--spec", "spec.toml", "--kernel", "\ufb01ll", "--format", "json"]) == 0
    assert '"specialization": "one"' in capsys.readouterr().out


def test_the_host_module_has_the_kernel_in_place_of_its_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spellings.py").write_text(SOURCE, encoding="utf-8")
    assert cli.main(["spellings.py", "--no-verify"]) == 0
    names = {n.name for n in ast.walk(ast.parse(Path("cutile_rs/spellings/host.py").read_text(encoding="utf-8")))
             if isinstance(n, ast.FunctionDef)}  # fmt: skip
    assert names == {"shifit", "host"}


@pytest.mark.parametrize(
    ("name", "in_rust"),
    [("\u00e9t\u00e9", "ete"), ("\u03b1", "alpha"), ("\u03a3Size", "sigma_size"), ("\u4e2d", "ideograph_4e2d")],
)
def test_names_in_rust_are_of_ascii_s_letters(name: str, in_rust: str) -> None:
    assert snake(name) == in_rust


def test_files_are_named_as_they_are_imported() -> None:
    assert operator_name(Path("e\u0301.py")) == "\u00e9"
    assert identifier("\ufb01") == ast.parse("\ufb01").body[0].value.id == "fi"  # type: ignore[attr-defined]
