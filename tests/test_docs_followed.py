"""docs/adding-a-rule.md and README.md's example, followed literally in a copy of the sources."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COPIED = ("transpiler", "tests", "tools", "docs", "templates", "corpus", "rust_runtime", "pyproject.toml")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what a checkout has; the compiled extension is linked."""
    skip = shutil.ignore_patterns("__pycache__", "*.so", ".pytest_cache")
    for name in _COPIED:
        source, target = ROOT / name, tmp_path / name
        shutil.copytree(source, target, ignore=skip) if source.is_dir() else shutil.copy(source, target)
    for library in (ROOT / "transpiler").glob("*.so"):
        (tmp_path / "transpiler" / library.name).symlink_to(library)
    return tmp_path


def steps(text: str) -> Iterator[tuple[str, str, str]]:
    """The page's blocks in order.

    ("run", command, output), ("write", path, text), ("show", "", generated Rust) or ("use", "", Python for a GPU).
    """
    for kind, path, body in _BLOCK.findall(text):
        if kind != "console":
            yield "write" if path else "use" if kind == "python" else "show", path, body
            continue
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            yield "run", command, expected


def _imports(text: str) -> list[tuple[str, str]]:
    """What a piece of Python takes from the generated package: module and name."""
    froms = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    known = [(node.module or "", node.names) for node in froms]
    return [(module, alias.name) for module, names in known if module.startswith("cutile_kernels.") for alias in names]


def write(checkout: Path, name: str, text: str) -> None:
    """A new file is written; rows go to the beginning of a file's ``ROWS``."""
    path = checkout / name
    if path.exists():
        before, rows, after = re.split(r"^(ROWS\b.*\n)", path.read_text(), maxsplit=1, flags=re.MULTILINE)
        text = before + rows + text + after
    path.write_text(text)


def run(checkout: Path, command: str) -> str:
    """Run a command as in a checkout with ``.venv/bin`` in PATH; returns all it prints."""
    env = {**os.environ, "PYTHONPATH": str(checkout), "COLUMNS": "200", "PATH": os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ["PATH"]])}  # fmt: skip
    done = subprocess.run(command, shell=True, cwd=checkout, env=env, capture_output=True, text=True, timeout=300,
                          check=False)  # fmt: skip
    if command.startswith(("pytest", "python", "sed", "grep")):
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    return re.sub(r"^checks: .*\n", "", done.stderr, flags=re.MULTILINE) + done.stdout  # no progress of a slow machine


def fits(output: str, expected: str) -> bool:
    """Whether the output is what the page shows; ``...`` stands for anything, seconds for any seconds."""
    pattern = ".*".join(re.escape(part) for part in expected.strip("\n").split("..."))
    pattern = re.sub(r"\d+\\\.\d\\ s\b", r"\\d+\\.\\d\\ s", pattern)
    return re.fullmatch(rf"\s*{pattern}\s*", output.strip("\n"), re.DOTALL) is not None


@pytest.mark.parametrize(("page", "blocks"), [("docs/adding-a-rule.md", 15), ("README.md", 5)])
def test_the_page_followed_literally(checkout: Path, page: str, blocks: int) -> None:
    done = 0
    for kind, what, content in steps((ROOT / page).read_text(encoding="utf-8")):
        done += 1
        if kind == "show":
            assert content in (checkout / "cutile_rs" / "scale" / "kernel.rs").read_text()
            continue
        if kind == "use":
            for module, name in _imports(content):
                source = f"import sys; sys.path.insert(0, 'cutile_rs'); from {module} import {name}"
                run(checkout, f'python -c "{source}"')
            continue
        if kind == "write":
            write(checkout, what, content)
            continue
        output = run(checkout, what)
        assert fits(output, content), f"$ {what}\nthe page says:\n{content}\nit printed:\n{output}"
    assert done == blocks
