"""The author's text in Rust: whatever is in it, rustc takes it and the judge sees the same text."""

from __future__ import annotations

import subprocess
import unicodedata
from pathlib import Path

import emit_kernels
import pytest

from transpiler import cli
from transpiler.ir import rust
from transpiler.ir.rust_text import comment, literal

DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SEPARATORS = "\u2028\u2029\u0085\x0b\x0c"
# every control and format character, separators, and some that are seen
ODD = "".join(c for c in map(chr, range(0x3000)) if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")) + 'é€"\\%'
KERNEL = """
# above {0}
@ct.kernel
def reversed_text(a, b, N: ct.Constant[int]):
    \"\"\"Docs {0}.\"\"\"
    # inside {0}
    i = ct.bid(0)  # behind {0}
    x = ct.load(a, index=(i,), shape=(N,))
    ct.assert_(x > 0, "bad {0} \\r\\0\\x7f\\t")
    ct.printf("sum {0} %f\\r\\n", ct.sum(x))
    ct.store(b, index=(i,), tile=x)


def host(stream, a, b):
    ct.launch(stream, (4,), reversed_text, (a, b, 16))
"""


def test_rustc_takes_every_character(tmp_path: Path) -> None:
    lines = [ODD[i : i + 8] for i in range(0, len(ODD), 8)]
    texts = rust.Seq(tuple(rust.Text(literal(line)) for line in lines), "&[")
    note = rust.Note(comments=tuple(lines), trailing=ODD)
    function = rust.Fn(
        "texts", (), (), "&'static [&'static str]", (rust.Tail(texts, note),), docs=tuple(lines), comments=tuple(lines)
    )
    printer = rust.Printer()
    printer.function(function, 0)
    expected = ", ".join(literal(line, ascii_only=True) for line in lines)
    source = tmp_path / "texts.rs"
    source.write_text(
        "\n".join(line.text for line in printer.lines) + f"\nfn main() {{ assert_eq!(texts(), [{expected}]); "
        + 'for text in texts() { print!("{text}"); } }\n',
        encoding="utf-8", newline="",
    )  # fmt: skip
    made = subprocess.run(["rustc", "-D", "warnings", "-o", "texts", source], cwd=tmp_path, capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert made.stderr == ""
    assert subprocess.run([tmp_path / "texts"], capture_output=True, check=True).stdout.decode() == ODD


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain é €", "plain é €"),
        ("a\u202eb", "aU+202Eb"),
        ("a\tb \u200d", "a\tb \u200d"),
        ("\x00\u2028", "U+0000U+2028"),
        ("\ud800", "U+D800"),
    ],
)
def test_comments(text: str, written: str) -> None:
    assert comment(text) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [("é\n\r\t\0", '"é\\n\\r\\t\\0"'), ('"\\', '"\\"\\\\"'), ("\u2067", '"\\u{2067}"'), ("\udcff", '"\\u{fffd}"')],
)
def test_literals(text: str, written: str) -> None:
    assert literal(text) == written


def test_text_that_changes_its_direction_is_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    odd = DIRECTIONS + SEPARATORS
    source = Path("reversed\u202e.py")
    source.write_text(emit_kernels.HEAD + KERNEL.format(odd), encoding="utf-8", newline="")
    assert cli.main([str(source)]) == 0
    texts = {path.name: path.read_text(encoding="utf-8") for path in Path("cutile_rs").rglob("*.rs")}
    assert not [name for name, text in texts.items() if set(text) & set(odd)]
    module = texts["kernel.rs"]
    for seen in ("// above U+202A", "/// Docs U+202A", "// inside U+202A", "// behind U+202A"):
        assert seen in module
    assert "sum \\u{202a}" in module and "Generated from reversedU+202E.py" in module
